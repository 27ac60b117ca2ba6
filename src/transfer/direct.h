/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Direct I/O: past the page cache, by a second description of an open file. It asks for aligned
 * buffers, offsets and lengths; what does not fit goes by the file's own descriptor.
 */
#ifndef VB_TRANSFER_DIRECT_H
#define VB_TRANSFER_DIRECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct vb__direct {
	int fd;		   /* -1: cannot */
	int plain_fd;	   /* for what does not fit */
	uint32_t align;	   /* of all three, a power of two */
	atomic_bool never; /* it was refused: do not try again */
};

/* `access` is O_RDONLY or O_WRONLY. If it is not `wanted`, or cannot be, all goes by `fd`. */
void vb__direct_open(struct vb__direct *direct, int fd, int access, bool wanted);
void vb__direct_close(struct vb__direct *direct);

/*
 * Read and write as pread and pwrite do, again after EINTR, and direct if `allowed` and possible.
 * Any number of threads.
 */
ssize_t vb__direct_read(struct vb__direct *direct, void *to, size_t len, uint64_t offset,
			bool allowed);
ssize_t vb__direct_write(struct vb__direct *direct, const void *from, size_t len, uint64_t offset,
			 bool allowed);

#endif
