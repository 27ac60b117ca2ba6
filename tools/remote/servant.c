/* SPDX-License-Identifier: Apache-2.0 */
/* Servants. */
#include "remote/servant.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <verbatim/verbatim.h>

#include "common/console.h"
#include "common/event.h"
#include "common/exit_code.h"
#include "common/interrupt.h"

#define WATCHDOG_S 5 /* from the client's end to ours, at most */

/* ---- What the client says; by the link's thread ---- */

void servant_end(struct servant *servant)
{
	pthread_mutex_lock(&servant->lock);
	servant->gone = true;
	pthread_mutex_unlock(&servant->lock);
	event_raise(servant->news);
	event_raise(servant->stop);
	/* Whatever still hangs then, nobody waits for it. */
	alarm(WATCHDOG_S);
}

void servant_break(struct servant *servant)
{
	console_error("--server: that is no order");
	link_break(&servant->link);
}

int servant_hear_order(struct servant *servant, const struct frame *frame, size_t most)
{
	struct pack *coming = &servant->coming;

	if (coming->len + frame->len > most)
		return -1;
	pack_data(coming, frame->payload, frame->len);
	if (coming->failed)
		return -1;
	return frame->kind == FRAME_ORDER;
}

void servant_forget_order(struct servant *servant)
{
	if (servant->coming.bytes)
		explicit_bzero(servant->coming.bytes, servant->coming.len);
	free(servant->coming.bytes);
	servant->coming = (struct pack){ 0 };
}

/* ---- What it is told ---- */

void servant_note(struct servant *servant, enum vb_log_level level, const char *text)
{
	struct pack pack = { 0 };
	struct note note = { .level = level };

	snprintf(note.text, sizeof(note.text), "%s", text);
	note_pack(&pack, &note);
	link_send_pack(&servant->link, FRAME_NOTE, &pack);
}

void servant_expand_home(char **path)
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

/* ---- Begin ---- */

/* What anything prints must not get between the frames. */
static bool take_stdio(int *in, int *out)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	*in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	*out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	return null >= 0 && *in >= 0 && *out >= 0 && dup2(null, STDIN_FILENO) >= 0 &&
	       dup2(STDERR_FILENO, STDOUT_FILENO) >= 0;
}

static bool exchange_hellos(struct servant *servant, enum tool tool)
{
	struct pollfd fd = { .fd = servant->link.in, .events = POLLIN };
	uint8_t hello[FRAME_HELLO_BYTES];
	size_t len = 0;

	frame_hello(hello, tool);
	if (!link_write(&servant->link, hello, sizeof(hello)))
		return false;
	while (len < sizeof(hello)) {
		ssize_t n = read(servant->link.in, hello + len, sizeof(hello) - len);

		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) || interrupt_seen())
			return false;
		if (n < 0)
			poll(&fd, 1, 1000);
		else
			len += (size_t)n;
		if (!frame_hello_begins(hello, len, tool)) {
			console_error("--server is for %s itself, which starts it at the far side",
				      tool_name(tool));
			return false;
		}
	}
	/* The client says so, if that is another. */
	return frame_hello_version(hello, tool) == FRAME_VERSION;
}

static bool prepare(struct servant *servant)
{
	struct epoll_event event = { .events = EPOLLIN };
	int in, out;

	if (!take_stdio(&in, &out) || link_open(&servant->link, in, out) != 0)
		return false;
	servant->stop = event_open();
	servant->news = event_open();
	servant->stop_fd = epoll_create1(EPOLL_CLOEXEC);
	return servant->stop >= 0 && servant->news >= 0 && servant->stop_fd >= 0 &&
	       epoll_ctl(servant->stop_fd, EPOLL_CTL_ADD, servant->stop, &event) == 0 &&
	       epoll_ctl(servant->stop_fd, EPOLL_CTL_ADD, interrupt_fd(), &event) == 0;
}

int servant_open(struct servant *servant, enum tool tool)
{
	struct vb_error err;

	pthread_mutex_init(&servant->lock, NULL);
	vb_prepare();
	if (interrupt_open(&err) != 0 || !prepare(servant)) {
		console_error("--server: %s", strerror(errno));
		return EXIT_START;
	}
	return exchange_hellos(servant, tool) ? EXIT_OK : EXIT_PROTOCOL;
}

int servant_listen(struct servant *servant, link_fn heard, void *arg)
{
	return link_listen(&servant->link, heard, arg);
}
