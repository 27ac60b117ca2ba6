/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connecting blocks: in name servers, in the kernel, in libraries. So a thread
 * does it. If it is not waited for any longer it ends by itself and cleans up
 * behind itself.
 */
#include "transfer/connecting.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/failure.h"

/* A little longer than the connector pauses between two tries. */
#define LEAVE_MS 400

struct vb__connecting {
	char host[256], port[32];
	struct vb__settings settings;
	int done_fd;
	atomic_bool give_up;
	pthread_mutex_t lock;
	bool done, left_alone; /* whoever comes second cleans up */
	int rc;
	struct vb_channel *channel;
	struct vb_error err;
};

static void clean_up(struct vb__connecting *c)
{
	vb_channel_abort(c->channel);
	if (c->done_fd >= 0)
		close(c->done_fd);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

static void *run(void *arg)
{
	const uint64_t one = 1;
	struct vb__connecting *c = arg;
	bool left_alone;

	c->rc = vb__channel_connect(c->host, c->port, &c->settings, &c->channel, &c->err);
	pthread_mutex_lock(&c->lock);
	c->done = true;
	left_alone = c->left_alone;
	if (!left_alone && write(c->done_fd, &one, sizeof(one)) < 0)
		c->done = true; /* an eventfd at 0 takes a 1 */
	pthread_mutex_unlock(&c->lock);
	if (left_alone)
		clean_up(c);
	return NULL;
}

static int start(struct vb__connecting *c, struct vb_error *err)
{
	sigset_t all, before;
	pthread_t thread;
	int rc;

	c->done_fd = eventfd(0, EFD_CLOEXEC);
	if (c->done_fd < 0)
		return vb__fail_errno(err, errno, "eventfd", NULL);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&thread, NULL, run, c);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc)
		return vb__fail_errno(err, rc, "pthread_create", NULL);
	pthread_detach(thread);
	return 0;
}

bool vb__connecting_await(struct vb__connecting *c, int fd, int other_fd)
{
	struct pollfd fds[] = {
		{ .fd = c->done_fd, .events = POLLIN },
		{ .fd = fd, .events = POLLIN },
		{ .fd = other_fd, .events = POLLIN },
	};

	while (poll(fds, 3, -1) < 0 && errno == EINTR)
		;
	return fds[0].revents;
}

void vb__connecting_leave(struct vb__connecting *c)
{
	struct pollfd fd = { .fd = c->done_fd, .events = POLLIN };
	bool done;

	/* Mostly it is only waiting for its next try. */
	atomic_store(&c->give_up, true);
	poll(&fd, 1, LEAVE_MS);
	pthread_mutex_lock(&c->lock);
	done = c->done;
	c->left_alone = !done;
	pthread_mutex_unlock(&c->lock);
	if (done)
		clean_up(c);
}

int vb__connecting_start(const char *host, const char *port, const struct vb__settings *settings,
			 struct vb__connecting **connecting, struct vb_error *err)
{
	struct vb__connecting *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	snprintf(c->host, sizeof(c->host), "%s", host);
	snprintf(c->port, sizeof(c->port), "%s", port);
	c->settings = *settings;
	c->settings.give_up = &c->give_up;
	pthread_mutex_init(&c->lock, NULL);
	rc = start(c, err);
	if (rc)
		clean_up(c);
	else
		*connecting = c;
	return rc;
}

int vb__connecting_finish(struct vb__connecting *c, int stop_fd, struct vb_channel **channel,
			  struct vb_error *err)
{
	int rc;

	if (!vb__connecting_await(c, stop_fd, -1)) {
		vb__connecting_leave(c);
		return vb__fail(err, &(struct vb__failure){ .code = VB_ERR_INTERRUPTED,
							    .cause = "interrupted" });
	}
	/* Its thread says so before it lets go of the lock. */
	pthread_mutex_lock(&c->lock);
	pthread_mutex_unlock(&c->lock);
	rc = c->rc;
	*channel = c->channel;
	c->channel = NULL;
	if (rc)
		vb__fail_again(err, &c->err);
	clean_up(c);
	return rc;
}
