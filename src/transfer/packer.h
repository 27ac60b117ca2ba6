/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A packer: makes one block smaller, with zstd, and the other one the same
 * again. Each block stands by itself. Whether it pays is not its business, see
 * governor.h; nor whether the bytes are the right ones, which a block's hash tells.
 *
 * Each worker has one of its own; it is for one thread at a time, and never blocks.
 */
#ifndef VB_TRANSFER_PACKER_H
#define VB_TRANSFER_PACKER_H

#include <stdbool.h>
#include <stddef.h>

#include <verbatim/error.h>

struct vb__packer;

/*
 * What it needs is taken with the first block, either way. `cancel_fd` (-1: none) becomes readable when
 * what is being packed is of no use any more. On failure there is nothing to close.
 */
int vb__packer_open(int cancel_fd, struct vb__packer **packer, struct vb_error *err);

/* NULL is fine. */
void vb__packer_close(struct vb__packer *packer);

/*
 * Packs `len` bytes to `to`, which must not overlap them and has room for as many. `level` is zstd's,
 * negative ones are the fast ones. Returns how many it became, fewer than `len`; or 0
 * if it does not shrink by enough to matter, there is no memory, or it is cancelled, which is heeded within some
 * tenths of a second: then `to` holds nothing of use, and the block goes as it is.
 */
size_t vb__packer_pack(struct vb__packer *packer, int level, const void *data, size_t len,
		       void *to);

/*
 * The bytes back, to `to`, where exactly `len` must come. Never writes more, whatever `packed` says, and takes
 * no memory that depends on it. False: it is not what a packer makes of so many bytes, or there is no memory.
 */
bool vb__packer_unpack(struct vb__packer *packer, const void *packed, size_t packed_len, void *to,
		       size_t len);

#endif
