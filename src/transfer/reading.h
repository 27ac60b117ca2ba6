/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a file by position: past the page cache where that gains, and around its holes. All
 * offsets are the file's own.
 */
#ifndef VB_TRANSFER_READING_H
#define VB_TRANSFER_READING_H

#include <sys/stat.h>

#include <verbatim/transfer.h>

#include "transfer/direct.h"

struct vb__reading {
	int fd;	      /* not ours */
	uint64_t end; /* of what is read */
	bool holes;   /* look for them */
	bool look;    /* direct only what is not in the cache... */
	void *map;    /* ...which is seen here; never touched */
	struct vb__direct direct;
};

/* Prepares to read from `start` to `end`. */
void vb__reading_open(struct vb__reading *reading, int fd, uint64_t start, uint64_t end,
		      const struct stat *st, enum vb_direct wanted);
void vb__reading_close(struct vb__reading *reading);

/*
 * Reads until there are `len` bytes, or the file ends: how many, or -1 with errno set. `to` is best
 * page-aligned. Any number of threads.
 */
ssize_t vb__reading_read(struct vb__reading *reading, void *to, size_t len, uint64_t offset);

/*
 * From now on holes are looked for, if there are any at or after `start`; returns whether. For
 * descriptors whose offset is ours alone.
 */
bool vb__reading_look_for_holes(struct vb__reading *reading, uint64_t start, const struct stat *st);

/*
 * How long the hole at `offset` is: 0 if there is data. Then `*data_end` is where that ends, else
 * where the data behind the hole does. One thread at a time.
 */
uint64_t vb__reading_find_data(struct vb__reading *reading, uint64_t offset, uint64_t *data_end);

#endif
