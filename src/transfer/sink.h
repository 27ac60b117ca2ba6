/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sinks: where the bytes of a transfer go. Nothing is seen under the target's
 * name before `finish` has succeeded, where the target is a regular file.
 */
#ifndef VB_TRANSFER_SINK_H
#define VB_TRANSFER_SINK_H

#include <sys/types.h>

#include <verbatim/transfer.h>

#include "wire/block.h"

/* What the sender tells of the input beforehand. */
struct vb__origin {
	uint64_t total_bytes; /* UINT64_MAX: not known */
	bool has_mode;	      /* it is a regular file, with these permissions: */
	mode_t mode;
	bool sparse;
};

struct vb__sink {
	const struct vb__sink_ops *ops;
	bool one_at_a_time; /* it makes no sense to put more than one block at once */
};

struct vb__sink_ops {
	/*
	 * Called with SIGPIPE and SIGXFSZ blocked, which the engine's workers have: the kernel sends
	 * them to the writing thread, where they stay pending.
	 *
	 * Stores a block whose hash is right. `data` is page-aligned; NULL for a hole. Any number
	 * of threads, blocks in any order; a stream makes each thread wait for its block's turn,
	 * so whoever brings a block must not be needed for bringing earlier ones.
	 */
	int (*put)(struct vb__sink *sink, const struct vb__block *block, const void *data,
		   struct vb_error *err);

	/*
	 * Or NULL: how many are in `put` now because an earlier block has not been put. If these are
	 * all that there are to bring one, it will not come. Any thread; must not block.
	 */
	unsigned (*waiting)(struct vb__sink *sink);

	/*
	 * All `total_bytes` were put: makes them stand, and calls output.at_end. One thread, once,
	 * after the last `put` has returned. Where there is an at_end, output.fd is closed if and
	 * only if it was called.
	 */
	int (*finish)(struct vb__sink *sink, uint64_t total_bytes, struct vb_error *err);

	/* Frees it. Without a `finish` that succeeded nothing is left behind. */
	void (*close)(struct vb__sink *sink);

	/*
	 * Or NULL: takes what the sink has to say to the source, up to `room` bytes; returns how many,
	 * 0 if nothing. Must not block. Called again and again after wake_fd was written to, and
	 * before the end until it returns 0.
	 */
	size_t (*speak)(struct vb__sink *sink, void *note, size_t room);

	/* Or NULL: fills in what it knows better than the engine. Any thread. */
	void (*progress)(struct vb__sink *sink, struct vb_progress *progress);
};

struct vb__sink_options {
	enum vb_direct direct;
	bool fsync;
	bool sealed;   /* what is put came encrypted and authenticated */
	int cancel_fd; /* readable: the transfer is given up, nothing may block any longer; or -1 */
	int wake_fd;   /* an eventfd, for sinks that speak; or -1 */
};

/*
 * Opens an output. Touches nothing that exists under the target's name, if that is a regular file.
 * Blocks for a FIFO, until somebody reads it or `cancel_fd` is readable.
 */
int vb__sink_open(const struct vb_output *output, const struct vb__origin *origin,
		  const struct vb__sink_options *options, struct vb__sink **sink,
		  struct vb_error *err);

/* Of the kinds of sink: sink_stream.c, sink_file.c, sink_device.c. */
int vb__stream_sink_open(int fd, bool own, const struct vb_output *output,
			 const struct vb__sink_options *options, struct vb__sink **sink,
			 struct vb_error *err);
int vb__file_sink_open(const struct vb_output *output, const struct vb__origin *origin,
		       const struct vb__sink_options *options, struct vb__sink **sink,
		       struct vb_error *err);
int vb__device_sink_open(const struct vb_output *output, const struct vb__origin *origin,
			 const struct vb__sink_options *options, struct vb__sink **sink,
			 struct vb_error *err);

#endif
