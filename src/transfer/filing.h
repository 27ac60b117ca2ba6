/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filing: storing blocks in a regular file, by any number of threads, and what is to be known
 * before: is there room, is it better done past the cache, what does the umask say.
 */
#ifndef VB_TRANSFER_FILING_H
#define VB_TRANSFER_FILING_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <verbatim/error.h>
#include <verbatim/transfer.h>

#include "transfer/direct.h"
#include "transfer/pages.h"

/* What will be stored. */
struct vb__filing_plan {
	uint64_t total_bytes; /* UINT64_MAX: not known */
	bool sparse;
	bool fsync;
	enum vb_direct direct;
};

struct vb__filing {
	struct vb__direct direct;
	struct vb__pages pages;
	/* Through the page cache the kernel lets only one write to a file at a time, and the
	 * others would spin for their turn. */
	pthread_mutex_t writing;
};

/* `fd` stays the caller's. -1 is fine. */
void vb__filing_open(struct vb__filing *filing, int fd, const struct vb__filing_plan *plan);
void vb__filing_close(struct vb__filing *filing);

/* Is it so that whoever comes while another one puts something only waits? */
bool vb__filing_one_at_a_time(const struct vb__filing *filing);

/* 0 or an errno. */
int vb__filing_put(struct vb__filing *filing, const void *data, size_t len, uint64_t offset);

/*
 * Finds out early that there is not enough room, and where there is, keeps it and keeps it
 * together. 0 or an errno.
 */
int vb__filing_reserve(int fd, const struct vb__filing_plan *plan);

/* Makes it so long, but does not get us killed if it may not be. 0 or an errno. */
int vb__filing_resize(int fd, uint64_t bytes);

/* Records that a file could not be written. */
int vb__fail_filing(struct vb_error *err, int errnum, const char *object);

/* Permissions less the umask, which is asked for without being changed. */
mode_t vb__less_umask(mode_t mode);

#endif
