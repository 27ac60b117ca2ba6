/* SPDX-License-Identifier: Apache-2.0 */
/* Direct I/O where it fits. Whether it gains is the caller's decision. */
#include "transfer/direct.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transfer/descriptor.h"

/* Fits all that does not say otherwise: sectors have 512 or 4096 bytes. */
#define USUAL_ALIGN 4096u

/* 0: the file system cannot. */
static uint32_t alignment_of(int fd)
{
#ifdef STATX_DIOALIGN
	struct statx stx;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &stx) == 0 &&
	    (stx.stx_mask & STATX_DIOALIGN))
		return stx.stx_dio_offset_align > stx.stx_dio_mem_align ? stx.stx_dio_offset_align
									: stx.stx_dio_mem_align;
#else
	(void)fd;
#endif
	return USUAL_ALIGN;
}

void vb__direct_open(struct vb__direct *direct, int fd, int access, bool wanted)
{
	*direct = (struct vb__direct){ .fd = -1, .plain_fd = fd };
	if (!wanted)
		return;
	direct->align = alignment_of(fd);
	if (direct->align && !(direct->align & (direct->align - 1)))
		direct->fd = vb__fd_reopen(fd, access | O_DIRECT);
}

void vb__direct_close(struct vb__direct *direct)
{
	if (direct->fd >= 0)
		close(direct->fd);
	direct->fd = -1;
}

/* How much of it, from its start, fits. */
static size_t part_that_fits(struct vb__direct *direct, const void *buffer, size_t len,
			     uint64_t offset)
{
	size_t mask = direct->align - 1;

	if (direct->fd < 0 || atomic_load_explicit(&direct->never, memory_order_relaxed))
		return 0;
	return ((uintptr_t)buffer | offset) & mask ? 0 : len & ~mask;
}

/* After a failed call: is there any sense in another one? */
static bool try_again(struct vb__direct *direct, bool was_direct)
{
	if (was_direct && errno == EINVAL) {
		atomic_store_explicit(&direct->never, true, memory_order_relaxed);
		return true;
	}
	return errno == EINTR;
}

ssize_t vb__direct_read(struct vb__direct *direct, void *to, size_t len, uint64_t offset,
			bool allowed)
{
	size_t part;
	ssize_t n;

	do {
		part = allowed ? part_that_fits(direct, to, len, offset) : 0;
		n = part ? pread(direct->fd, to, part, (off_t)offset)
			 : pread(direct->plain_fd, to, len, (off_t)offset);
	} while (n < 0 && try_again(direct, part > 0));
	return n;
}

ssize_t vb__direct_write(struct vb__direct *direct, const void *from, size_t len, uint64_t offset,
			 bool allowed)
{
	size_t part;
	ssize_t n;

	do {
		part = allowed ? part_that_fits(direct, from, len, offset) : 0;
		n = part ? pwrite(direct->fd, from, part, (off_t)offset)
			 : pwrite(direct->plain_fd, from, len, (off_t)offset);
	} while (n < 0 && try_again(direct, part > 0));
	return n;
}
