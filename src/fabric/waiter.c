/* SPDX-License-Identifier: Apache-2.0 */
/* One epoll set per endpoint. What the descriptors mean is the backend's business. */
#include "fabric/waiter.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/failure.h"

#define POLLS_PER_LOOK_AT_CLOCK 32u

bool vb__idle_long(struct vb__idle *idle)
{
	uint64_t now = vb__now_coarse_ns();

	if (now == idle->looked_ns)
		return false;
	idle->looked_ns = now;
	return true;
}

bool vb__idle_enough(struct vb__idle *idle)
{
	return ++idle->polls % POLLS_PER_LOOK_AT_CLOCK == 0 && vb__idle_long(idle);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void vb__waiter_close(struct vb__waiter *w)
{
	close_fd(&w->tick);
	close_fd(&w->wake);
	close_fd(&w->epoll);
}

int vb__waiter_add(struct vb__waiter *w, int fd, uint32_t ready_bit, struct vb_error *err)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = ready_bit };

	if (epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &event) != 0)
		return vb__fail_errno(err, errno, "epoll_ctl", NULL);
	return 0;
}

void vb__waiter_remove(struct vb__waiter *w, int fd)
{
	epoll_ctl(w->epoll, EPOLL_CTL_DEL, fd, NULL);
}

static int start_ticking(struct vb__waiter *w, uint32_t tick_ms, struct vb_error *err)
{
	struct timespec period = { .tv_sec = tick_ms / 1000,
				   .tv_nsec = (long)(tick_ms % 1000) * 1000000 };
	struct itimerspec spec = { .it_interval = period, .it_value = period };

	w->tick = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (w->tick < 0 || timerfd_settime(w->tick, 0, &spec, NULL) != 0)
		return vb__fail_errno(err, errno, "timerfd", NULL);
	return vb__waiter_add(w, w->tick, VB__READY_TICK, err);
}

int vb__waiter_open(struct vb__waiter *w, uint32_t tick_ms, struct vb_error *err)
{
	int rc;

	*w = VB__WAITER_NONE;
	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	w->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (w->epoll < 0 || w->wake < 0) {
		rc = vb__fail_errno(err, errno, w->epoll < 0 ? "epoll_create1" : "eventfd", NULL);
		goto undo;
	}
	rc = vb__waiter_add(w, w->wake, VB__READY_WAKE, err);
	if (rc == 0 && tick_ms)
		rc = start_ticking(w, tick_ms, err);
	if (rc == 0)
		return 0;
undo:
	vb__waiter_close(w);
	return rc;
}

static void drain(int fd)
{
	uint64_t count;

	while (read(fd, &count, sizeof(count)) < 0 && errno == EINTR)
		;
}

uint32_t vb__waiter_check(struct vb__waiter *w, uint32_t take)
{
	struct epoll_event events[8];
	uint32_t ready = 0;
	int n = epoll_wait(w->epoll, events, 8, 0);

	for (int i = 0; i < n; i++)
		ready |= events[i].data.u32;
	if (ready & take & VB__READY_TICK)
		drain(w->tick);
	if (ready & take & VB__READY_WAKE)
		drain(w->wake);
	return ready;
}

void vb__waiter_sleep(int epoll_fd, uint64_t deadline_ns)
{
	struct pollfd p = { .fd = epoll_fd, .events = POLLIN };

	poll(&p, 1, deadline_ns == UINT64_MAX ? -1 : vb__ms_left(deadline_ns));
}

void vb__waiter_wake(struct vb__waiter *w)
{
	uint64_t one = 1;

	while (write(w->wake, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}
