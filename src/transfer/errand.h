/* SPDX-License-Identifier: Apache-2.0 */
/* What blocks, in name servers, in the kernel, in libraries, but so that it can be given up at once. */
#ifndef VB_TRANSFER_ERRAND_H
#define VB_TRANSFER_ERRAND_H

#include <stdatomic.h>
#include <stdbool.h>

#include <verbatim/error.h>

struct vb__errand_kind {
	/* In a thread of its own. May take long; `given_up` says that nobody waits for it any more. */
	int (*run)(void *job, const atomic_bool *given_up, struct vb_error *err);

	/* Frees the job, with all that it has brought and nobody has taken. In either thread. */
	void (*discard)(void *job);
};

struct vb__errand;

/* Starts to run it. The job is taken over; on failure it is discarded. */
int vb__errand_start(const struct vb__errand_kind *kind, void *job, struct vb__errand **errand,
		     struct vb_error *err);

/* Waits until it is done, which is true, or until one of these (or -1) is readable. */
bool vb__errand_await(struct vb__errand *errand, int fd, int other_fd);

/*
 * Waits for what comes of it; VB_ERR_INTERRUPTED as soon as `stop_fd` (or -1) is readable. Frees it in any case. On
 * success the job is the caller's again.
 */
int vb__errand_finish(struct vb__errand *errand, int stop_fd, void **job, struct vb_error *err);

/* Leaves it to itself: it ends by its own time-out, and is freed then with its job. */
void vb__errand_leave(struct vb__errand *errand);

#endif
