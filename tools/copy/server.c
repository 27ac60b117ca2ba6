/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The far side. It does what the client orders, with the rights of whom ssh
 * has let in, and ends when the client does. Nothing but frames goes to its stdout.
 */
#include "copy/server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <verbatim/verbatim.h>

#include "common/console.h"
#include "common/exit_code.h"
#include "common/interrupt.h"
#include "copy/duty.h"

#define WATCHDOG_S 5 /* from the client's end to ours, at most */

struct server {
	struct link link;
	struct tunnel_slot slot;
	int stop;    /* an eventfd: what is under way is not wanted any more */
	int stop_fd; /* that, or a signal */

	int news; /* an eventfd: of the following something has changed */
	pthread_mutex_t lock;
	struct pack coming; /* of an order that is longer than a frame */
	struct order next;
	bool has_next, gone;

	const struct order *order; /* under way */
};

/* ---- What the client says; by the link's thread ---- */

static void raise_event(int fd)
{
	const uint64_t one = 1;
	ssize_t n = write(fd, &one, sizeof(one));

	(void)n; /* it cannot be full */
}

static void clear_event(int fd)
{
	uint64_t count;
	ssize_t n = read(fd, &count, sizeof(count));

	(void)n; /* nor does it matter if it was empty */
}

static void end(struct server *server)
{
	pthread_mutex_lock(&server->lock);
	server->gone = true;
	pthread_mutex_unlock(&server->lock);
	raise_event(server->news);
	raise_event(server->stop);
	/* Whatever still hangs then, nobody waits for it. */
	alarm(WATCHDOG_S);
}

static bool hear_order(struct server *server, const struct frame *frame)
{
	struct pack *coming = &server->coming;
	bool good = coming->len + frame->len <= ORDER_MAX;

	if (good)
		pack_data(coming, frame->payload, frame->len);
	if (!good || coming->failed)
		return false;
	if (frame->kind == FRAME_ORDER_PART)
		return true;
	/* A late word about the order before this one. */
	clear_event(server->stop);
	pthread_mutex_lock(&server->lock);
	good = !server->has_next;
	if (good && !order_unpack(&server->next, coming->bytes, coming->len)) {
		order_free(&server->next);
		good = false;
	}
	server->has_next |= good;
	pthread_mutex_unlock(&server->lock);
	raise_event(server->news);
	explicit_bzero(coming->bytes, coming->len);
	free(coming->bytes);
	*coming = (struct pack){ 0 };
	return good;
}

static bool understand(struct server *server, const struct frame *frame)
{
	switch (frame->kind) {
	case FRAME_ORDER_PART:
	case FRAME_ORDER:
		return hear_order(server, frame);
	case FRAME_STOP:
		raise_event(server->stop);
		return true;
	case FRAME_OPEN:
	case FRAME_DATA:
	case FRAME_CREDIT:
	case FRAME_SHUT:
	case FRAME_ABORT:
		tunnel_slot_hear(&server->slot, frame);
		return true;
	default:
		return false;
	}
}

static void heard(void *arg, const struct frame *frame)
{
	struct server *server = arg;

	if (frame->kind == FRAME_NONE) {
		end(server);
	} else if (!understand(server, frame)) {
		console_error("--server: that is no order");
		link_break(&server->link);
	}
}

/* ---- What it is told ---- */

static void invite(void *arg, const struct invitation *invitation)
{
	struct server *server = arg;
	struct pack pack = { 0 };

	invitation_pack(&pack, invitation);
	link_send_pack(&server->link, FRAME_INVITATION, &pack);
}

static void send_note(struct server *server, enum vb_log_level level, const char *text)
{
	struct pack pack = { 0 };
	struct note note = { .level = level };

	snprintf(note.text, sizeof(note.text), "%s", text);
	note_pack(&pack, &note);
	link_send_pack(&server->link, FRAME_NOTE, &pack);
}

/* Who connects tells of it; when that is not the client, it is us. */
static void say(void *arg, const char *text)
{
	struct server *server = arg;

	if (server->order->verbosity >= 1)
		send_note(server, VB_LOG_INFO, text);
}

static void log_line(void *arg, enum vb_log_level level, const char *line)
{
	send_note(arg, level, line);
}

static void send_event(void *arg, const struct vb_tree_event *event)
{
	struct server *server = arg;
	struct pack pack = { 0 };

	event_pack(&pack, event);
	link_send_pack(&server->link, FRAME_EVENT, &pack);
}

static void tell_event(void *arg, const struct vb_tree_event *event)
{
	const struct server *server = arg;

	if (server->order->tells)
		send_event(arg, event);
}

static void tell_progress(void *arg, const struct vb_progress *progress)
{
	struct server *server = arg;
	struct pack pack = { 0 };

	if (!server->order->tells)
		return;
	progress_pack(&pack, progress);
	link_send_pack(&server->link, FRAME_PROGRESS, &pack);
}

/* ---- Orders ---- */

/* "~/x" is the home's, as people are used to from the shell, which sees nothing of this. */
static void expand_home(char **path)
{
	const char *home = getenv("HOME");
	char *full;

	if (!home || !*path || (*path)[0] != '~' || ((*path)[1] && (*path)[1] != '/'))
		return;
	if (asprintf(&full, "%s%s", home, *path + 1) < 0)
		return;
	free(*path);
	*path = full;
}

static void carry_out(struct server *server, struct order *order)
{
	const struct duty duty = {
		.order = order,
		.stop_fd = server->stop_fd,
		.fd = -1,
		.link = &server->link,
		.slot = &server->slot,
		.arg = server,
		.invite = invite,
		.say = say,
		.event = tell_event,
		.missing = send_event,
		.progress = tell_progress,
		.log = log_line,
	};
	struct pack pack = { 0 };
	struct ending ending;

	/* Those of a sender elsewhere mean its home, if any, not ours. */
	for (size_t i = 0; order->role != ROLE_RECEIVE && i < order->paths.count; i++)
		expand_home(&order->paths.item[i]);
	expand_home(&order->target);
	server->order = order;
	duty_run(&duty, &ending);
	ending_pack(&pack, &ending);
	link_send_pack(&server->link, FRAME_ENDING, &pack);
}

static bool take_order(struct server *server, struct order *order, bool *gone)
{
	bool found;

	pthread_mutex_lock(&server->lock);
	*gone = server->gone;
	found = server->has_next;
	if (found)
		*order = server->next;
	server->has_next = false;
	pthread_mutex_unlock(&server->lock);
	return found;
}

/* Waits for the next one; false when there will be none. */
static bool next_order(struct server *server, struct order *order)
{
	struct pollfd fds[] = { { .fd = server->news, .events = POLLIN },
				{ .fd = interrupt_fd(), .events = POLLIN } };
	bool gone = false;

	while (!interrupt_seen()) {
		clear_event(server->news);
		if (take_order(server, order, &gone))
			return true;
		if (gone)
			break;
		poll(fds, 2, -1);
	}
	return false;
}

/* ---- Begin and end ---- */

/* What anything prints must not get between the frames. */
static bool take_stdio(int *in, int *out)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	*in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	*out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	return null >= 0 && *in >= 0 && *out >= 0 && dup2(null, STDIN_FILENO) >= 0 &&
	       dup2(STDERR_FILENO, STDOUT_FILENO) >= 0;
}

static bool exchange_hellos(struct server *server)
{
	struct pollfd fd = { .fd = server->link.in, .events = POLLIN };
	uint8_t hello[FRAME_HELLO_BYTES];
	size_t len = 0;

	frame_hello(hello);
	if (!link_write(&server->link, hello, sizeof(hello)))
		return false;
	while (len < sizeof(hello)) {
		ssize_t n = read(server->link.in, hello + len, sizeof(hello) - len);

		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) || interrupt_seen())
			return false;
		if (n < 0)
			poll(&fd, 1, 1000);
		else
			len += (size_t)n;
		if (!frame_hello_begins(hello, len)) {
			console_error(
				"--server is for rdcp itself, which starts it at the far side");
			return false;
		}
	}
	/* The client says so, if that is another. */
	return frame_hello_version(hello) == FRAME_VERSION;
}

static bool prepare(struct server *server)
{
	struct epoll_event event = { .events = EPOLLIN };
	int in, out;

	if (!take_stdio(&in, &out) || link_open(&server->link, in, out) != 0)
		return false;
	server->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	server->news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	server->stop_fd = epoll_create1(EPOLL_CLOEXEC);
	return server->stop >= 0 && server->news >= 0 && server->stop_fd >= 0 &&
	       epoll_ctl(server->stop_fd, EPOLL_CTL_ADD, server->stop, &event) == 0 &&
	       epoll_ctl(server->stop_fd, EPOLL_CTL_ADD, interrupt_fd(), &event) == 0;
}

int server_run(void)
{
	static struct server server = { .slot.lock = PTHREAD_MUTEX_INITIALIZER,
					.lock = PTHREAD_MUTEX_INITIALIZER };
	struct vb_error err;
	struct order order;

	vb_prepare();
	if (interrupt_open(&err) != 0 || !prepare(&server)) {
		console_error("--server: %s", strerror(errno));
		return EXIT_START;
	}
	if (!exchange_hellos(&server))
		return EXIT_PROTOCOL;
	if (link_listen(&server.link, heard, &server) != 0)
		return EXIT_START;
	while (next_order(&server, &order)) {
		carry_out(&server, &order);
		order_free(&order);
	}
	/* Threads may still be in libraries that exit(3) would take down under them. */
	_exit(interrupt_seen() ? EXIT_INTERRUPTED : EXIT_OK);
}
