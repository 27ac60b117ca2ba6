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

	while (loop->wake && write(loop->wake, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

static void clear(struct vb__loop *loop)
{
	uint64_t count;

	while (loop->wake && read(loop->wake, &count, sizeof(count)) < 0 && errno == EINTR)
		;
}

static bool watch(int epoll, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

int vb__loop_open(struct vb_channel *ch)
{
	struct vb__loop *loop = &ch->loop;
	int epoll, wake;

	if (loop->epoll)
		return loop->epoll;
	epoll = epoll_create1(EPOLL_CLOEXEC);
	wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (epoll <= 0 || wake <= 0 || !watch(epoll, wake) || !watch(epoll, ch->ep->wait_fd) ||
	    (ch->ep->pool && !watch(epoll, ch->ep->pool->wait_fd))) {
		if (epoll >= 0)
			close(epoll);
		if (wake >= 0)
			close(wake);
		return -1;
	}
	loop->epoll = epoll;
	loop->wake = wake;
	if (loop->pending)
		set(loop);
	return epoll;
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
	if (!ch->loop.epoll)
		return;
	close(ch->loop.epoll);
	close(ch->loop.wake);
}
