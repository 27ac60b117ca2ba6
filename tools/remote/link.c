/* SPDX-License-Identifier: Apache-2.0 */
/* Links. What the frames mean is not known here. */
#include "remote/link.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define BUFFER (2 * (FRAME_MAX + FRAME_HEAD))

/* ---- Sending ---- */

/* With the lock held. Whole or not at all, as far as the other side can tell. */
static bool put(struct link *link, const uint8_t *bytes, size_t len)
{
	while (len && !atomic_load(&link->broken)) {
		struct pollfd fds[] = { { .fd = link->out, .events = POLLOUT },
					{ .fd = link->quit, .events = POLLIN } };
		ssize_t n = write(link->out, bytes, len);

		if (n >= 0) {
			bytes += n;
			len -= (size_t)n;
		} else if (errno != EAGAIN && errno != EINTR) {
			atomic_store(&link->broken, true);
		} else if (poll(fds, 2, -1) > 0 && fds[1].revents) {
			atomic_store(&link->broken, true);
		}
	}
	return len == 0;
}

bool link_send_both(struct link *link, enum frame_kind kind, const void *head, size_t head_len,
		    const void *data, size_t len)
{
	uint8_t first[FRAME_HEAD];
	bool sent;

	frame_head(first, kind, head_len + len);
	pthread_mutex_lock(&link->sending);
	sent = put(link, first, sizeof(first)) && put(link, head, head_len) && put(link, data, len);
	pthread_mutex_unlock(&link->sending);
	return sent;
}

bool link_send(struct link *link, enum frame_kind kind, const void *payload, size_t len)
{
	return link_send_both(link, kind, NULL, 0, payload, len);
}

bool link_send_pack(struct link *link, enum frame_kind kind, struct pack *pack)
{
	bool sent = !pack->failed && pack->len <= FRAME_MAX &&
		    link_send(link, kind, pack->bytes, pack->len);

	free(pack->bytes);
	*pack = (struct pack){ 0 };
	return sent;
}

bool link_write(struct link *link, const void *bytes, size_t len)
{
	bool sent;

	pthread_mutex_lock(&link->sending);
	sent = put(link, bytes, len);
	pthread_mutex_unlock(&link->sending);
	return sent;
}

/* ---- Reading ---- */

/* Hands on all frames that are whole; how many bytes they were, or -1. */
static ssize_t hand_on(struct link *link, const uint8_t *bytes, size_t len)
{
	size_t done = 0;

	for (;;) {
		struct frame frame;
		ssize_t n = frame_take(&frame, bytes + done, len - done);

		if (n <= 0)
			return n < 0 ? -1 : (ssize_t)done;
		link->heard(link->arg, &frame);
		done += (size_t)n;
	}
}

/* More bytes, 0 at the end of all. */
static size_t get_more(struct link *link, uint8_t *to, size_t room)
{
	for (;;) {
		struct pollfd fds[] = { { .fd = link->in, .events = POLLIN },
					{ .fd = link->quit, .events = POLLIN } };
		ssize_t n;

		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return 0;
		if (fds[1].revents)
			return 0;
		n = read(link->in, to, room);
		if (n >= 0)
			return (size_t)n;
		if (errno != EAGAIN && errno != EINTR)
			return 0;
	}
}

static void *read_all(void *arg)
{
	static const struct frame none = { .kind = FRAME_NONE };
	struct link *link = arg;
	uint8_t *buffer = malloc(BUFFER);
	size_t used = 0, n;
	ssize_t taken = 0;

	while (buffer && taken >= 0 && (n = get_more(link, buffer + used, BUFFER - used)) > 0) {
		used += n;
		taken = hand_on(link, buffer, used);
		if (taken <= 0)
			continue;
		used -= (size_t)taken;
		memmove(buffer, buffer + taken, used);
	}
	free(buffer);
	atomic_store(&link->senseless, taken < 0);
	link->heard(link->arg, &none);
	return NULL;
}

/* ---- Both ---- */

int link_open(struct link *link, int in, int out)
{
	*link = (struct link){ .in = in, .out = out, .sending = PTHREAD_MUTEX_INITIALIZER };
	atomic_init(&link->broken, false);
	atomic_init(&link->senseless, false);
	fcntl(in, F_SETFL, fcntl(in, F_GETFL) | O_NONBLOCK);
	fcntl(out, F_SETFL, fcntl(out, F_GETFL) | O_NONBLOCK);
	link->quit = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return link->quit >= 0 ? 0 : -1;
}

int link_listen(struct link *link, link_fn heard, void *arg)
{
	link->heard = heard;
	link->arg = arg;
	link->reading = pthread_create(&link->reader, NULL, read_all, link) == 0;
	return link->reading ? 0 : -1;
}

void link_hang_up(struct link *link)
{
	/* Whoever is in the middle of sending must not wait for ever. */
	pthread_mutex_lock(&link->sending);
	atomic_store(&link->broken, true);
	if (link->out >= 0)
		close(link->out);
	link->out = -1;
	pthread_mutex_unlock(&link->sending);
}

void link_break(struct link *link)
{
	const uint64_t one = 1;
	ssize_t n = write(link->quit, &one, sizeof(one));

	(void)n; /* it stays readable: nobody reads it */
	atomic_store(&link->broken, true);
}

void link_close(struct link *link)
{
	if (link->quit >= 0)
		link_break(link);
	if (link->reading)
		pthread_join(link->reader, NULL);
	link->reading = false;
	link_hang_up(link);
	if (link->in >= 0)
		close(link->in);
	if (link->quit >= 0)
		close(link->quit);
	link->in = link->quit = -1;
}
