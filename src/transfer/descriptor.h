/* SPDX-License-Identifier: Apache-2.0 */
/* What sources and sinks do with descriptors besides reading and writing. */
#ifndef VB_TRANSFER_DESCRIPTOR_H
#define VB_TRANSFER_DESCRIPTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <verbatim/error.h>

/* What a file, pipe or device is called in errors. */
struct vb__fd_name {
	char text[sizeof(((struct vb_error *)0)->object)];
};

/*
 * Waits until `fd` is ready for `events`: 1; or `timeout_ms` are over (-1: never): 0; or
 * `cancel_fd` (-1: none) is readable: VB_ERR_INTERRUPTED, whatever else there is. An error or a
 * hang-up counts as ready: the read or write tells.
 */
int vb__fd_wait(int fd, short events, int cancel_fd, int timeout_ms);

static inline bool vb__fd_cancelled(int cancel_fd)
{
	return vb__fd_wait(-1, 0, cancel_fd, 0) < 0;
}

/* Records VB_ERR_INTERRUPTED. */
int vb__fail_cancelled(struct vb_error *err, const char *operation, const char *object);

/*
 * A description of our own of what is open at `fd`, with an offset and flags that are not shared.
 * Fails, with errno set, for sockets, without /proc, and where we may not open it ourselves.
 */
int vb__fd_reopen(int fd, int flags);

/* 0, or EBADF if the descriptor is not open for this: O_RDONLY or O_WRONLY. */
int vb__fd_check(int fd, int access);

/* The descriptor of ours that a path such as /dev/stdout stands for, or -1. */
int vb__fd_from_path(const char *path);

/* The path, or what else it is called, or words for the descriptor if that is NULL. */
void vb__fd_name(struct vb__fd_name *name, int fd, const char *path);

/* More fits in, and reader and writer take turns less often. A failure is none. */
void vb__fd_enlarge_pipe(int fd);

/* What close would say: some file systems (NFS, FUSE) tell of a full disk only then. 0 or an errno. */
int vb__fd_flush(int fd);

#endif
