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

#define VB__ERRANDS_MAX 16u

/* Waits until one of these is done, and says which, or -1 as soon as `fd` or `other_fd` (or -1) is readable. */
int vb__errand_await(struct vb__errand *const *errands, unsigned count, int fd, int other_fd);

/*
 * Waits for what comes of it; VB_ERR_INTERRUPTED as soon as `stop_fd` (or -1) is readable. Frees it in any case. On
 * success the job is the caller's again.
 */
int vb__errand_finish(struct vb__errand *errand, int stop_fd, void **job, struct vb_error *err);

/*
 * Gives these up. Those that do not end within half a second are left to themselves: they end by their own time-outs,
 * and are freed then with their jobs.
 */
void vb__errand_leave(struct vb__errand *const *errands, unsigned count);

#endif
