/* SPDX-License-Identifier: Apache-2.0 */
/* Packing by zstd: one frame for each block, which tells its size and has no checksum: the block has a hash. */
#include "transfer/packer.h"

#include <errno.h>
#include <stdlib.h>

#include <zstd.h>

#include "core/failure.h"
#include "transfer/descriptor.h"
#include "wire/bytes.h"

/* A block shrinks by a 32nd at least: less is not worth the other side's work. */
#define GAIN_SHARE 32u
/* And smaller ones are not worth ours. */
#define LEAST_BYTES 64u
/* So much is packed in one go. At the highest level that takes a quarter of a second, and half a minute a block of 64 MiB. */
#define PIECE_BYTES (512u << 10)

struct vb__packer {
	ZSTD_CCtx *packing;
	ZSTD_DCtx *unpacking;
	int level; /* as it was set last; 0: never */
	int cancel_fd;
};

int vb__packer_open(int cancel_fd, struct vb__packer **packer, struct vb_error *err)
{
	struct vb__packer *p = calloc(1, sizeof(*p));

	if (!p)
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	p->cancel_fd = cancel_fd;
	*packer = p;
	return 0;
}

void vb__packer_close(struct vb__packer *p)
{
	if (!p)
		return;
	ZSTD_freeCCtx(p->packing);
	ZSTD_freeDCtx(p->unpacking);
	free(p);
}

/* False: there is no memory. */
static bool prepare(struct vb__packer *p, int level)
{
	if (!p->packing)
		p->packing = ZSTD_createCCtx();
	if (!p->packing)
		return false;
	if (p->level != level) {
		if (ZSTD_isError(
			    ZSTD_CCtx_setParameter(p->packing, ZSTD_c_compressionLevel, level)))
			return false;
		p->level = level;
	}
	return true;
}

/* The same frame as in one go, looking now and then whether it is still wanted. Returns 0 or how many bytes it became. */
static size_t pack_by_pieces(struct vb__packer *p, const void *data, size_t len, void *to,
			     size_t room)
{
	ZSTD_inBuffer in = { .src = data };
	ZSTD_outBuffer out = { .dst = to, .size = room };
	size_t left;

	ZSTD_CCtx_reset(p->packing, ZSTD_reset_session_only);
	if (ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(p->packing, len)))
		return 0;
	do {
		if (vb__fd_cancelled(p->cancel_fd))
			return 0;
		in.size = len - in.pos > PIECE_BYTES ? in.pos + PIECE_BYTES : len;
		left = ZSTD_compressStream2(p->packing, &out, &in,
					    in.size == len ? ZSTD_e_end : ZSTD_e_continue);
		if (ZSTD_isError(left))
			return 0;
		if (in.size == len && left == 0)
			return out.pos;
	} while (out.pos < room);
	return 0;
}

size_t vb__packer_pack(struct vb__packer *p, int level, const void *data, size_t len, void *to)
{
	/* With room for no more than is worth it, zstd gives up as soon as that is exceeded. */
	size_t packed, room = len - len / GAIN_SHARE - 1;

	if (len < LEAST_BYTES || !prepare(p, level))
		return 0;
	if (len > PIECE_BYTES)
		return pack_by_pieces(p, data, len, to, room);
	packed = ZSTD_compress2(p->packing, to, room, data, len);
	return ZSTD_isError(packed) ? 0 : packed;
}

/*
 * Exactly one frame, which says that it is so long. Anything else was not made by a packer. zstd may
 * have been built to take frames of its first versions as well, whose decoders nobody looks after.
 */
static bool is_frame_of(const void *packed, size_t packed_len, size_t len)
{
	return packed_len >= 4 && vb__get32(packed) == ZSTD_MAGICNUMBER &&
	       ZSTD_getFrameContentSize(packed, packed_len) == len &&
	       ZSTD_findFrameCompressedSize(packed, packed_len) == packed_len;
}

bool vb__packer_unpack(struct vb__packer *p, const void *packed, size_t packed_len, void *to,
		       size_t len)
{
	if (!is_frame_of(packed, packed_len, len))
		return false;
	if (!p->unpacking)
		p->unpacking = ZSTD_createDCtx();
	return p->unpacking &&
	       ZSTD_decompressDCtx(p->unpacking, to, len, packed, packed_len) == len;
}
