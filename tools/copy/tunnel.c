/* SPDX-License-Identifier: Apache-2.0 */
/* Tunnels. One thread serves all sockets; what arrives by the link is only put down for it. */
#include "copy/tunnel.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/event.h"
#include "common/trouble.h"

#define STREAMS 32u
#define WINDOW (1u << 20)
#define PIECE (128u << 10)
#define CLOSING_MS 300

enum stream_state {
	STREAM_FREE = 0,
	STREAM_WANTED, /* the other end has opened it: connect */
	STREAM_OPEN,
	STREAM_ABORTED, /* by the other end */
};

struct stream {
	enum stream_state state;
	uint32_t id;
	int fd;
	uint8_t *ring; /* what has come for the socket */
	size_t start, used;
	size_t credit;	      /* how much may be sent */
	size_t owed;	      /* how much was taken out of the ring and not yet told */
	bool their_end;	      /* SHUT has come */
	bool our_end, passed; /* SHUT was sent; theirs was passed on to the socket */
};

struct tunnel {
	struct link *link;
	pthread_t thread;
	pthread_mutex_t lock; /* over the streams */
	int wake;
	int listener; /* -1: connects to `port` */
	uint16_t port;
	bool ending, cut;
	uint32_t next_id;
	struct stream streams[STREAMS];
	uint8_t piece[PIECE];
};

/* ---- What arrives by the link; with the lock held ---- */

static struct stream *find(struct tunnel *t, uint32_t id)
{
	for (size_t i = 0; i < STREAMS; i++)
		if (t->streams[i].state != STREAM_FREE && t->streams[i].id == id)
			return &t->streams[i];
	return NULL;
}

/* NULL: there are enough, or there is no memory. */
static struct stream *new_stream(struct tunnel *t, enum stream_state state, uint32_t id)
{
	for (size_t i = 0; i < STREAMS; i++) {
		struct stream *s = &t->streams[i];
		uint8_t *ring;

		if (s->state != STREAM_FREE)
			continue;
		ring = malloc(WINDOW);
		if (!ring)
			return NULL;
		*s = (struct stream){
			.state = state, .id = id, .fd = -1, .ring = ring, .credit = WINDOW
		};
		return s;
	}
	return NULL;
}

/* More than the window is a breach: then the stream is given up. */
static void put_down(struct stream *s, const uint8_t *data, size_t len)
{
	size_t at, first;

	if (len > WINDOW - s->used || s->their_end) {
		s->state = STREAM_ABORTED;
		return;
	}
	at = (s->start + s->used) % WINDOW;
	first = len < WINDOW - at ? len : WINDOW - at;
	memcpy(s->ring + at, data, first);
	memcpy(s->ring, data + first, len - first);
	s->used += len;
}

static void hear(struct tunnel *t, enum frame_kind kind, uint32_t id, struct unpack *rest)
{
	struct stream *s = find(t, id);

	if (kind == FRAME_OPEN) {
		/* One that there is no room for simply never answers; the opener's limit is ours. */
		if (!s && t->listener < 0)
			new_stream(t, STREAM_WANTED, id);
		return;
	}
	/* It may have ended here just now. */
	if (!s || s->state == STREAM_ABORTED)
		return;
	if (kind == FRAME_DATA)
		put_down(s, rest->at, (size_t)(rest->end - rest->at));
	else if (kind == FRAME_CREDIT)
		s->credit += unpack_upto(rest, 4, WINDOW - s->credit);
	else if (kind == FRAME_SHUT)
		s->their_end = true;
	else
		s->state = STREAM_ABORTED;
}

void tunnel_hear(struct tunnel *t, const struct frame *frame)
{
	struct unpack rest = unpack_begin(frame->payload, frame->len);
	uint32_t id = (uint32_t)unpack_number(&rest, 4);

	if (rest.failed)
		return;
	pthread_mutex_lock(&t->lock);
	hear(t, frame->kind, id, &rest);
	pthread_mutex_unlock(&t->lock);
	event_raise(t->wake);
}

/* ---- The sockets; by the tunnel's thread, with the lock held but while it sends ---- */

static void say(struct tunnel *t, enum frame_kind kind, uint32_t id, const void *data, size_t len)
{
	const uint8_t head[4] = { (uint8_t)id, (uint8_t)(id >> 8), (uint8_t)(id >> 16),
				  (uint8_t)(id >> 24) };

	pthread_mutex_unlock(&t->lock);
	link_send_both(t->link, kind, head, sizeof(head), data, len);
	pthread_mutex_lock(&t->lock);
}

static void drop(struct stream *s, bool at_once)
{
	const struct linger reset = { .l_onoff = 1 };

	if (s->fd >= 0 && at_once)
		setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	if (s->fd >= 0)
		close(s->fd);
	free(s->ring);
	*s = (struct stream){ .state = STREAM_FREE, .fd = -1 };
}

static void give_up(struct tunnel *t, struct stream *s)
{
	uint32_t id = s->id;

	drop(s, true);
	say(t, FRAME_ABORT, id, NULL, 0);
}

static int to_door(const struct tunnel *t)
{
	struct sockaddr_in door = { .sin_family = AF_INET, .sin_port = htons(t->port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	door.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&door, sizeof(door)) != 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static void take_in(struct stream *s, int fd)
{
	const int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	s->fd = fd;
	s->state = STREAM_OPEN;
}

static void connect_wanted(struct tunnel *t, struct stream *s)
{
	int fd = to_door(t);

	if (fd < 0)
		give_up(t, s);
	else
		take_in(s, fd);
}

static void accept_one(struct tunnel *t)
{
	int fd = accept4(t->listener, NULL, NULL, SOCK_CLOEXEC);
	struct stream *s = fd >= 0 && !t->cut ? new_stream(t, STREAM_WANTED, t->next_id) : NULL;

	if (!s) {
		if (fd >= 0)
			close(fd);
		return;
	}
	t->next_id++;
	take_in(s, fd);
	say(t, FRAME_OPEN, s->id, NULL, 0);
}

static void from_socket(struct tunnel *t, struct stream *s)
{
	size_t room = s->credit < PIECE ? s->credit : PIECE;
	ssize_t n = recv(s->fd, t->piece, room, MSG_DONTWAIT);

	if (n > 0) {
		s->credit -= (size_t)n;
		say(t, FRAME_DATA, s->id, t->piece, (size_t)n);
	} else if (n == 0) {
		s->our_end = true;
		say(t, FRAME_SHUT, s->id, NULL, 0);
	} else if (errno != EAGAIN && errno != EINTR) {
		give_up(t, s);
	}
}

static void to_socket(struct tunnel *t, struct stream *s)
{
	size_t len = s->used < WINDOW - s->start ? s->used : WINDOW - s->start;
	ssize_t n = send(s->fd, s->ring + s->start, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	uint8_t owed[4];

	if (n < 0) {
		if (errno != EAGAIN && errno != EINTR)
			give_up(t, s);
		return;
	}
	s->start = (s->start + (size_t)n) % WINDOW;
	s->used -= (size_t)n;
	s->owed += (size_t)n;
	if (s->owed < WINDOW / 4 || s->their_end)
		return;
	for (size_t i = 0; i < 4; i++)
		owed[i] = (uint8_t)(s->owed >> 8 * i);
	s->owed = 0;
	say(t, FRAME_CREDIT, s->id, owed, sizeof(owed));
}

/* What does not wait for its socket. */
static void look_after(struct tunnel *t, struct stream *s)
{
	if (t->cut && s->state != STREAM_FREE)
		s->state = STREAM_ABORTED;
	if (s->state == STREAM_WANTED)
		connect_wanted(t, s);
	if (s->state == STREAM_ABORTED)
		drop(s, true);
	if (s->state != STREAM_OPEN)
		return;
	if (s->their_end && !s->used && !s->passed) {
		s->passed = true;
		shutdown(s->fd, SHUT_WR);
	}
	if (s->passed && s->our_end)
		drop(s, false);
}

static struct pollfd wish(const struct stream *s)
{
	struct pollfd fd = { .fd = -1 };

	if (s->state != STREAM_OPEN)
		return fd;
	if (s->credit && !s->our_end)
		fd.events |= POLLIN;
	if (s->used)
		fd.events |= POLLOUT;
	/* With nothing to do here not even an error is looked at: it would come again and again. */
	if (fd.events)
		fd.fd = s->fd;
	return fd;
}

static void turn(struct tunnel *t)
{
	struct pollfd fds[STREAMS + 2] = { { .fd = t->wake, .events = POLLIN },
					   { .fd = t->listener, .events = POLLIN } };

	for (size_t i = 0; i < STREAMS; i++) {
		look_after(t, &t->streams[i]);
		fds[i + 2] = wish(&t->streams[i]);
	}
	pthread_mutex_unlock(&t->lock);
	poll(fds, STREAMS + 2, -1);
	event_clear(t->wake);
	pthread_mutex_lock(&t->lock);
	if (fds[1].revents)
		accept_one(t);
	for (size_t i = 0; i < STREAMS; i++) {
		struct stream *s = &t->streams[i];

		if (fds[i + 2].revents & (POLLIN | POLLHUP | POLLERR) && s->state == STREAM_OPEN &&
		    s->fd == fds[i + 2].fd && s->credit && !s->our_end)
			from_socket(t, s);
		if (fds[i + 2].revents & (POLLOUT | POLLERR) && s->state == STREAM_OPEN &&
		    s->fd == fds[i + 2].fd && s->used)
			to_socket(t, s);
	}
}

static void *serve(void *arg)
{
	struct tunnel *t = arg;

	pthread_mutex_lock(&t->lock);
	while (!t->ending)
		turn(t);
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

/* ---- Begin and end ---- */

static void free_tunnel(struct tunnel *t)
{
	for (size_t i = 0; i < STREAMS; i++)
		if (t->streams[i].state != STREAM_FREE)
			drop(&t->streams[i], false);
	if (t->wake >= 0)
		close(t->wake);
	if (t->listener >= 0)
		close(t->listener);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

static int start(struct tunnel *t, struct tunnel **tunnel, struct vb_error *err)
{
	int errnum = t->wake < 0 ? errno : pthread_create(&t->thread, NULL, serve, t);

	if (errnum) {
		free_tunnel(t);
		return trouble_errno(err, VB_ERR_SYSTEM, errnum, "start", "the tunnel");
	}
	*tunnel = t;
	return 0;
}

static struct tunnel *new_tunnel(struct link *link)
{
	struct tunnel *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->link = link;
	t->listener = -1;
	t->wake = event_open();
	pthread_mutex_init(&t->lock, NULL);
	return t;
}

int tunnel_listen(struct link *link, struct tunnel **tunnel, uint16_t *port, struct vb_error *err)
{
	struct sockaddr_in here = { .sin_family = AF_INET };
	struct tunnel *t = new_tunnel(link);
	socklen_t len = sizeof(here);
	int errnum;

	if (!t)
		return trouble_say(err, VB_ERR_NOMEM, "out of memory");
	here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	t->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (t->listener < 0 || bind(t->listener, (struct sockaddr *)&here, sizeof(here)) != 0 ||
	    listen(t->listener, (int)STREAMS) != 0 ||
	    getsockname(t->listener, (struct sockaddr *)&here, &len) != 0) {
		errnum = errno;
		free_tunnel(t);
		return trouble_errno(err, VB_ERR_SYSTEM, errnum, "listen on", "127.0.0.1");
	}
	*port = ntohs(here.sin_port);
	return start(t, tunnel, err);
}

int tunnel_to(struct link *link, uint16_t port, struct tunnel **tunnel, struct vb_error *err)
{
	struct tunnel *t = new_tunnel(link);

	if (!t)
		return trouble_say(err, VB_ERR_NOMEM, "out of memory");
	t->port = port;
	return start(t, tunnel, err);
}

void tunnel_close(struct tunnel *t)
{
	struct timespec until;

	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	t->ending = true;
	pthread_mutex_unlock(&t->lock);
	event_raise(t->wake);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += CLOSING_MS * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000L;
	until.tv_nsec %= 1000000000L;
	if (pthread_timedjoin_np(t->thread, NULL, &until) != 0) {
		link_break(t->link);
		pthread_join(t->thread, NULL);
	}
	free_tunnel(t);
}

static void cut(struct tunnel *t)
{
	pthread_mutex_lock(&t->lock);
	t->cut = true;
	pthread_mutex_unlock(&t->lock);
	event_raise(t->wake);
}

void tunnel_slot_set(struct tunnel_slot *slot, struct tunnel *tunnel)
{
	pthread_mutex_lock(&slot->lock);
	slot->tunnel = tunnel;
	if (tunnel && slot->cut)
		cut(tunnel);
	pthread_mutex_unlock(&slot->lock);
}

void tunnel_slot_cut(struct tunnel_slot *slot)
{
	pthread_mutex_lock(&slot->lock);
	slot->cut = true;
	if (slot->tunnel)
		cut(slot->tunnel);
	pthread_mutex_unlock(&slot->lock);
}

void tunnel_slot_hear(struct tunnel_slot *slot, const struct frame *frame)
{
	pthread_mutex_lock(&slot->lock);
	if (slot->tunnel)
		tunnel_hear(slot->tunnel, frame);
	pthread_mutex_unlock(&slot->lock);
}
