/* SPDX-License-Identifier: Apache-2.0 */
/* Sinks that are block devices: written in place. What was there before is lost, even if it fails. */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/failure.h"
#include "transfer/descriptor.h"
#include "transfer/direct.h"
#include "transfer/sink.h"

/* Fits every sector. */
#define SECTOR 4096u
/* A hole is zeroed by pieces, so that it can be given up in between. */
#define PIECE_BYTES (64u << 20)

struct device_sink {
	struct vb__sink base;
	int fd;
	int cancel_fd;
	struct vb__direct direct;
	atomic_uint_fast64_t stored;
	vb_at_end_fn at_end;
	void *at_end_arg;
	struct vb__fd_name name;
};

/* Not const: then it takes no room in the library's file. */
static uint8_t zeros[64 << 10] __attribute__((aligned(4096)));

static struct device_sink *device_of(struct vb__sink *sink)
{
	return (struct device_sink *)sink;
}

static int write_range(struct device_sink *d, const uint8_t *from, uint64_t len, uint64_t offset,
		       struct vb_error *err)
{
	uint64_t done = 0;

	while (done < len) {
		ssize_t n =
			vb__direct_write(&d->direct, from + done, len - done, offset + done, true);

		if (n < 0)
			return vb__fail_io(err, errno, "write", d->name.text);
		done += (uint64_t)n;
	}
	return 0;
}

/* The device makes the zeros itself, if it can. */
static bool zero_by_device(const struct device_sink *d, uint64_t offset, uint64_t len)
{
	uint64_t range[2] = { offset, len };

	if ((offset | len) & (SECTOR - 1))
		return false;
	return fallocate(d->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
			 (off_t)len) == 0 ||
	       ioctl(d->fd, BLKZEROOUT, range) == 0;
}

/* How much of the hole to do next: up to a boundary, then whole sectors, then the rest. */
static uint64_t next_piece(uint64_t offset, uint64_t left)
{
	uint64_t piece = left < PIECE_BYTES ? left : PIECE_BYTES;

	if (offset & (SECTOR - 1)) {
		uint64_t up = SECTOR - (offset & (SECTOR - 1));

		return left < up ? left : up;
	}
	return piece >= SECTOR ? piece & ~(uint64_t)(SECTOR - 1) : piece;
}

static int write_zeros(struct device_sink *d, uint64_t len, uint64_t offset, struct vb_error *err)
{
	int rc = 0;

	while (len && !rc) {
		uint64_t part = len < sizeof(zeros) ? len : sizeof(zeros);

		rc = write_range(d, zeros, part, offset, err);
		offset += part;
		len -= part;
	}
	return rc;
}

static int zero_range(struct device_sink *d, uint64_t offset, uint64_t len, struct vb_error *err)
{
	int rc = 0;

	while (len && !rc) {
		uint64_t piece = next_piece(offset, len);

		if (vb__fd_cancelled(d->cancel_fd))
			return vb__fail_cancelled(err, "write", d->name.text);
		if (!zero_by_device(d, offset, piece))
			rc = write_zeros(d, piece, offset, err);
		offset += piece;
		len -= piece;
	}
	return rc;
}

static int device_put(struct vb__sink *sink, const struct vb__block *block, const void *data,
		      struct vb_error *err)
{
	struct device_sink *d = device_of(sink);
	int rc;

	if (block->flags & VB__BLOCK_HOLE)
		rc = zero_range(d, block->offset, block->length, err);
	else
		rc = write_range(d, data, block->length, block->offset, err);
	atomic_fetch_add_explicit(&d->stored, block->length, memory_order_relaxed);
	return rc;
}

static int device_finish(struct vb__sink *sink, uint64_t total_bytes, struct vb_error *err)
{
	struct device_sink *d = device_of(sink);

	if (atomic_load(&d->stored) != total_bytes)
		return vb__fail(err, &(struct vb__failure){
					     .code = VB_ERR_PROTOCOL,
					     .operation = "write",
					     .object = d->name.text,
					     .cause = "the end came before all of the data",
				     });
	/* Always: what the device could not write is told here or never. */
	if (fsync(d->fd))
		return vb__fail_io(err, errno, "fsync", d->name.text);
	return d->at_end ? d->at_end(d->at_end_arg, d->cancel_fd, err) : 0;
}

static void device_close(struct vb__sink *sink)
{
	struct device_sink *d = device_of(sink);

	vb__direct_close(&d->direct);
	close(d->fd);
	free(d);
}

static const struct vb__sink_ops device_ops = {
	.put = device_put,
	.finish = device_finish,
	.close = device_close,
};

/* Returns the descriptor, or an error. Exclusively: not what is mounted. */
static int open_device(const char *path, uint64_t total_bytes, struct vb_error *err)
{
	int fd = open(path, O_WRONLY | O_EXCL | O_CLOEXEC);
	uint64_t size;

	if (fd < 0) {
		int errnum = errno;

		vb__fail_io(err, errnum, "open", path);
		if (errnum == EBUSY)
			vb__error_hint(err, "the device is in use: is it mounted?");
		return VB_ERR_IO;
	}
	if (total_bytes != UINT64_MAX && ioctl(fd, BLKGETSIZE64, &size) == 0 &&
	    size < total_bytes) {
		close(fd);
		vb__fail_io(err, ENOSPC, "write", path);
		vb__error_hint(err, "the device has %llu bytes, %llu are to come",
			       (unsigned long long)size, (unsigned long long)total_bytes);
		return VB_ERR_IO;
	}
	return fd;
}

int vb__device_sink_open(const struct vb_output *output, const struct vb__origin *origin,
			 const struct vb__sink_options *options, struct vb__sink **sink,
			 struct vb_error *err)
{
	struct device_sink *d = calloc(1, sizeof(*d));

	if (!d)
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	*d = (struct device_sink){
		.base = { .ops = &device_ops },
		.fd = open_device(output->path, origin->total_bytes, err),
		.cancel_fd = options->cancel_fd,
		.at_end = output->at_end,
		.at_end_arg = output->at_end_arg,
	};
	if (d->fd < 0) {
		free(d);
		return VB_ERR_IO;
	}
	vb__fd_name(&d->name, -1, output->path);
	vb__direct_open(&d->direct, d->fd, O_WRONLY, options->direct == VB_DIRECT_ALWAYS);
	*sink = &d->base;
	return 0;
}
