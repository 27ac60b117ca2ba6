/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources: where the bytes of a transfer come from. A source hands out blocks
 * in ascending order of their offsets, without gaps or overlaps.
 */
#ifndef VB_TRANSFER_SOURCE_H
#define VB_TRANSFER_SOURCE_H

#include <sys/types.h>

#include <verbatim/transfer.h>

#include "wire/block.h"

struct vb__source {
	const struct vb__source_ops *ops;
	uint64_t total_bytes; /* UINT64_MAX: not known before the end */
	bool has_mode;	      /* it is a regular file, with these permissions: */
	mode_t mode;
	bool sparse;   /* it has holes */
	int cancel_fd; /* readable: the transfer is given up, nothing may block any longer */
};

struct vb__source_ops {
	/*
	 * Takes the next block: sets its offset, length (up to `room` if it has
	 * data) and flags. A stream also reads it, to `buffer`, and blocks until
	 * there is something. Returns 1, 0 at the end, or an error. One thread
	 * at a time, and not again after it returned 0 or an error.
	 */
	int (*next)(struct vb__source *source, void *buffer, size_t room, struct vb__block *block,
		    struct vb_error *err);

	/*
	 * Reads the block's data if `next` has not; `buffer`, which is page-aligned, is as `next` has
	 * left it. Any number of threads. May make another block of it, up to `room` long but not
	 * empty. If the transfer fails it is not called for every block.
	 */
	int (*fill)(struct vb__source *source, void *buffer, struct vb__block *block,
		    struct vb_error *err);

	/*
	 * All was read: is the input content? Calls input.at_end. A file that has become shorter is
	 * an error here at the latest. The offset of an input.fd is now where reading ended.
	 */
	int (*finish)(struct vb__source *source, struct vb_error *err);

	void (*close)(struct vb__source *source);

	/* Or NULL: what the sink at the other end has to say. Must not block. */
	int (*hear)(struct vb__source *source, const void *note, size_t len, struct vb_error *err);

	/* Or NULL: fills in what it knows better than the engine. Any thread. */
	void (*progress)(struct vb__source *source, struct vb_progress *progress);
};

/*
 * Opens an input. `cancel_fd` (-1: none) becomes readable when the transfer is given
 * up: then `next` must not block any longer but return VB_ERR_INTERRUPTED.
 * What kind of source it is depends on what the input is: regular files and
 * block devices are read by position, all else as a stream. A regular file that
 * is empty is a stream too, because those of /proc only seem to be.
 */
int vb__source_open(const struct vb_input *input, enum vb_direct direct, int cancel_fd,
		    struct vb__source **source, struct vb_error *err);

/* Of the kinds of source: source_stream.c, source_file.c. They take the descriptor over if `own`. */
int vb__stream_source_open(int fd, bool own, const struct vb_input *input, int cancel_fd,
			   struct vb__source **source, struct vb_error *err);
int vb__file_source_open(int fd, bool own, const struct vb_input *input, enum vb_direct direct,
			 struct vb__source **source, struct vb_error *err);

#endif
