/* SPDX-License-Identifier: Apache-2.0 */
/* A thread for what blocks. If it is not waited for any longer it ends by itself and cleans up behind itself. */
#include "transfer/errand.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/failure.h"

/* A little longer than the connector pauses between two tries. */
#define LEAVE_MS 400

struct vb__errand {
	const struct vb__errand_kind *kind;
	void *job; /* NULL: handed over */
	int done_fd;
	pthread_mutex_t lock;
	bool done, left_alone; /* whoever comes second cleans up */
	atomic_bool given_up;
	int rc;
	struct vb_error err;
};

static void clean_up(struct vb__errand *e)
{
	if (e->job)
		e->kind->discard(e->job);
	if (e->done_fd >= 0)
		close(e->done_fd);
	pthread_mutex_destroy(&e->lock);
	free(e);
}

static void *run(void *arg)
{
	const uint64_t one = 1;
	struct vb__errand *e = arg;
	bool left_alone;

	e->rc = e->kind->run(e->job, &e->given_up, &e->err);
	pthread_mutex_lock(&e->lock);
	e->done = true;
	left_alone = e->left_alone;
	if (!left_alone && write(e->done_fd, &one, sizeof(one)) < 0)
		e->done = true; /* an eventfd at 0 takes a 1 */
	pthread_mutex_unlock(&e->lock);
	if (left_alone)
		clean_up(e);
	return NULL;
}

static int start(struct vb__errand *e, struct vb_error *err)
{
	sigset_t all, before;
	pthread_t thread;
	int rc;

	e->done_fd = eventfd(0, EFD_CLOEXEC);
	if (e->done_fd < 0)
		return vb__fail_errno(err, errno, "eventfd", NULL);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&thread, NULL, run, e);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc)
		return vb__fail_errno(err, rc, "pthread_create", NULL);
	pthread_detach(thread);
	return 0;
}

int vb__errand_start(const struct vb__errand_kind *kind, void *job, struct vb__errand **errand,
		     struct vb_error *err)
{
	struct vb__errand *e = calloc(1, sizeof(*e));
	int rc;

	if (!e) {
		kind->discard(job);
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	}
	e->kind = kind;
	e->job = job;
	pthread_mutex_init(&e->lock, NULL);
	rc = start(e, err);
	if (rc)
		clean_up(e);
	else
		*errand = e;
	return rc;
}

int vb__errand_await(struct vb__errand *const *errands, unsigned count, int fd, int other_fd)
{
	struct pollfd fds[VB__ERRANDS_MAX + 2];

	for (unsigned i = 0; i < count; i++)
		fds[i] = (struct pollfd){ .fd = errands[i]->done_fd, .events = POLLIN };
	fds[count] = (struct pollfd){ .fd = fd, .events = POLLIN };
	fds[count + 1] = (struct pollfd){ .fd = other_fd, .events = POLLIN };
	while (poll(fds, count + 2, -1) < 0 && errno == EINTR)
		;
	for (unsigned i = 0; i < count; i++)
		if (fds[i].revents)
			return (int)i;
	return -1;
}

static void let_go(struct vb__errand *e, uint64_t deadline_ns)
{
	struct pollfd fd = { .fd = e->done_fd, .events = POLLIN };
	bool done;

	poll(&fd, 1, vb__ms_left(deadline_ns));
	pthread_mutex_lock(&e->lock);
	done = e->done;
	e->left_alone = !done;
	pthread_mutex_unlock(&e->lock);
	if (done)
		clean_up(e);
}

void vb__errand_leave(struct vb__errand *const *errands, unsigned count)
{
	uint64_t deadline = vb__now_ns() + vb__ms(LEAVE_MS);

	for (unsigned i = 0; i < count; i++)
		atomic_store(&errands[i]->given_up, true);
	for (unsigned i = 0; i < count; i++)
		let_go(errands[i], deadline);
}

static bool is_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

int vb__errand_finish(struct vb__errand *e, int stop_fd, void **job, struct vb_error *err)
{
	int rc;

	if (vb__errand_await(&e, 1, stop_fd, -1) < 0) {
		vb__errand_leave(&e, 1);
		return vb__fail_interrupted(err);
	}
	/* Its thread says so before it lets go of the lock. */
	pthread_mutex_lock(&e->lock);
	pthread_mutex_unlock(&e->lock);
	rc = e->rc;
	if (rc && is_readable(stop_fd)) {
		rc = vb__fail_interrupted(err); /* it may have given up for that */
	} else if (rc) {
		vb__fail_again(err, &e->err);
	} else {
		*job = e->job;
		e->job = NULL;
	}
	clean_up(e);
	return rc;
}
