/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A channel in an event loop. The endpoint's descriptor alone is not enough:
 * what it was readable for may be taken by a call that wanted something else,
 * or by another thread. So the loop gets a descriptor of its own above it, which
 * stays readable as long as there is news that the loop waits for.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "channel/channel_state.h"
#include "channel/inside.h"

static void set(struct vb__loop *loop)
{
	uint64_t one = 1;

	while (loop->wake >= 0 && write(loop->wake, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

static void clear(struct vb__loop *loop)
{
	uint64_t count;

	while (loop->wake >= 0 && read(loop->wake, &count, sizeof(count)) < 0 && errno == EINTR)
		;
}

static int watch(const struct vb_channel *ch, int fd, struct vb_error *err)
{
	struct epoll_event event = { .events = EPOLLIN };

	if (epoll_ctl(ch->loop.epoll, EPOLL_CTL_ADD, fd, &event) != 0)
		return vb__fail_errno(err, errno, "epoll_ctl", vb_channel_peer(ch));
	return 0;
}

static int make(struct vb__loop *loop, const struct vb_channel *ch, struct vb_error *err)
{
	int rc;

	loop->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll < 0)
		return vb__fail_errno(err, errno, "epoll_create1", vb_channel_peer(ch));
	loop->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (loop->wake < 0)
		return vb__fail_errno(err, errno, "eventfd", vb_channel_peer(ch));
	rc = watch(ch, loop->wake, err);
	if (rc == 0)
		rc = watch(ch, ch->ep->wait_fd, err);
	if (rc == 0 && ch->ep->pool)
		rc = watch(ch, ch->ep->pool->wait_fd, err);
	return rc;
}

int vb__loop_open(struct vb_channel *ch, struct vb_error *err)
{
	int rc;

	if (ch->loop.epoll >= 0)
		return ch->loop.epoll;
	rc = make(&ch->loop, ch, err);
	if (rc) {
		vb__loop_close(ch);
		return rc;
	}
	if (ch->loop.pending)
		set(&ch->loop);
	return ch->loop.epoll;
}

void vb__loop_tell(struct vb_channel *ch, unsigned news)
{
	struct vb__loop *loop = &ch->loop;
	unsigned hit = loop->watched & news;

	if (!hit)
		return;
	loop->watched &= ~hit;
	if (loop->told)
		loop->told(loop->told_arg);
	if (!loop->pending)
		set(loop);
	loop->pending |= hit;
}

void vb__channel_watch(struct vb_channel *ch, void (*told)(void *arg), void *arg)
{
	vb__channel_lock(ch);
	ch->loop.told = told;
	ch->loop.told_arg = arg;
	vb__channel_unlock(ch);
}

void *vb__channel_watcher(const struct vb_channel *ch)
{
	return ch->loop.told_arg;
}

void vb__loop_looks(struct vb_channel *ch, unsigned news)
{
	struct vb__loop *loop = &ch->loop;

	loop->watched &= ~news;
	if (loop->pending && !(loop->pending &= ~news))
		clear(loop);
}

void vb__loop_waits(struct vb_channel *ch, unsigned news)
{
	ch->loop.watched |= news;
}

void vb__loop_close(struct vb_channel *ch)
{
	if (ch->loop.epoll >= 0)
		close(ch->loop.epoll);
	if (ch->loop.wake >= 0)
		close(ch->loop.wake);
	ch->loop.epoll = ch->loop.wake = -1;
}
