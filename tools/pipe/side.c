/* SPDX-License-Identifier: Apache-2.0 */
/* Sides. What is at the other end of the pipe or file, and what a failure means, is not known here. */
#include "pipe/side.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/event.h"
#include "common/trouble.h"

/* ---- The thread ---- */

static struct vb_session *meet(struct side *side)
{
	struct vb_session *session = NULL;

	side->phase = side->door ? PHASE_WAIT : PHASE_CONNECT;
	if (side->door)
		vb_door_wait(side->door, &session, &side->err);
	else
		meeting_connect(&side->options, &side->invitation, &side->listener, &session,
				&side->err);
	explicit_bzero(&side->invitation, sizeof(side->invitation));
	return session;
}

/* False if it shall stop. */
static bool await_begin(const struct side *side)
{
	struct pollfd fds[] = { { .fd = side->begin, .events = POLLIN },
				{ .fd = side->stop_fd, .events = POLLIN } };

	while (poll(fds, 2, -1) < 0 && errno == EINTR)
		;
	return !fds[1].revents;
}

static void move(struct side *side, struct vb_session *session)
{
	const char *cipher;

	side->phase = PHASE_TRANSFER;
	if (side->sends)
		vb_session_send(session, &side->input, &side->report, &side->err);
	else
		vb_session_receive(session, &side->output, &side->report, &side->err);
	cipher = vb_session_cipher(session);
	snprintf(side->cipher, sizeof(side->cipher), "%s", cipher ? cipher : "");
}

static void note(struct side *side, bool *what)
{
	pthread_mutex_lock(&side->lock);
	*what = true;
	pthread_mutex_unlock(&side->lock);
	event_raise(side->news);
}

static void *work(void *arg)
{
	struct side *side = arg;
	struct vb_session *session = meet(side);

	if (session) {
		note(side, &side->met);
		if (await_begin(side))
			move(side, session);
		else
			trouble_say(&side->err, VB_ERR_INTERRUPTED, "interrupted");
		vb_session_close(session);
	}
	event_raise(side->over_fd);
	note(side, &side->over);
	return NULL;
}

/* ---- Begin and end ---- */

void side_init(struct side *side)
{
	*side = (struct side){ .begin = -1,
			       .quit = -1,
			       .stop_fd = -1,
			       .over_fd = -1,
			       .stop_fds = { -1, -1 },
			       .lock = PTHREAD_MUTEX_INITIALIZER,
			       .met = true,
			       .over = true };
}

static bool open_events(struct side *side)
{
	struct epoll_event event = { .events = EPOLLIN };
	bool good;

	if (side->stop_fd >= 0)
		return true;
	side->begin = event_open();
	side->quit = event_open();
	side->over_fd = event_open();
	side->stop_fd = epoll_create1(EPOLL_CLOEXEC);
	good = side->begin >= 0 && side->over_fd >= 0 && side->stop_fd >= 0 &&
	       epoll_ctl(side->stop_fd, EPOLL_CTL_ADD, side->quit, &event) == 0;
	for (size_t i = 0; i < 2; i++)
		if (side->stop_fds[i] >= 0)
			good = good && epoll_ctl(side->stop_fd, EPOLL_CTL_ADD, side->stop_fds[i],
						 &event) == 0;
	side->options.stop_fd = side->stop_fd;
	return good;
}

int side_open_door(struct side *side, struct invitation *invitation, struct vb_error *err)
{
	if (!open_events(side))
		return trouble_errno(err, VB_ERR_SYSTEM, errno, "eventfd", "");
	return meeting_open(&side->options, NULL, &side->door, invitation, err);
}

int side_start(struct side *side, struct vb_error *err)
{
	int errnum = open_events(side) ? 0 : errno;

	side->met = side->over = false;
	if (!errnum)
		errnum = pthread_create(&side->thread, NULL, work, side);
	side->running = !errnum;
	if (!errnum)
		return 0;
	side->met = side->over = true;
	return trouble_errno(err, VB_ERR_SYSTEM, errnum, "start", "a thread");
}

void side_begin(struct side *side)
{
	if (side->running)
		event_raise(side->begin);
}

void side_quit(struct side *side)
{
	if (side->running)
		event_raise(side->quit);
}

bool side_has_met(struct side *side)
{
	bool met;

	pthread_mutex_lock(&side->lock);
	met = side->met;
	pthread_mutex_unlock(&side->lock);
	return met;
}

bool side_is_over(struct side *side)
{
	bool over;

	pthread_mutex_lock(&side->lock);
	over = side->over;
	pthread_mutex_unlock(&side->lock);
	return over;
}

bool side_is_told(const struct vb_error *err)
{
	/* As vb_session_send and _receive say it. */
	return strncmp(err->operation, "the sender at", 13) == 0 ||
	       strncmp(err->operation, "the receiver at", 15) == 0;
}

void side_end(struct side *side)
{
	const int fds[] = { side->begin, side->quit, side->stop_fd, side->over_fd };

	side_quit(side);
	if (side->running)
		pthread_join(side->thread, NULL);
	side->running = false;
	vb_door_close(side->door);
	side->door = NULL;
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	side->begin = side->quit = side->stop_fd = side->over_fd = -1;
}

int side_append_to(const char *path, struct vb_error *err)
{
	/* To open a FIFO that nobody reads would be to wait where no signal reaches us. */
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);

	if (fd >= 0) {
		fcntl(fd, F_SETFL, O_APPEND);
		return fd;
	}
	trouble_errno(err, VB_ERR_IO, errno, "open", path);
	if (err->native == ENXIO)
		snprintf(err->cause, sizeof(err->cause), "nobody reads from it");
	return -1;
}
