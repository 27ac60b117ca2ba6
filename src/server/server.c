/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server: one descriptor that tells who may have something to say, and turns
 * for all of them. What is said in a turn is client.c's business.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "channel/inside.h"
#include "core/clock.h"
#include "core/failure.h"
#include "fabric/fabric.h"
#include "server/server_state.h"

#define DEFAULT_MESSAGE 4096u
#define DEFAULT_CLIENTS 4096u
#define DEFAULT_RECEIVES 512u
#define FAREWELL_MS 1000u
#define EVENTS_AT_ONCE 64

static unsigned queued(struct vb_server *s)
{
	unsigned count;

	pthread_mutex_lock(&s->queue.lock);
	count = s->queue.count;
	pthread_mutex_unlock(&s->queue.lock);
	return count;
}

/*
 * Queues those whose descriptors are readable, and begins a new round of turns.
 * Sleeps if nobody is queued; false if the time was over before anything came.
 */
static bool look(struct vb_server *s, uint64_t deadline_ns)
{
	struct epoll_event events[EVENTS_AT_ONCE];
	int timeout_ms = deadline_ns == UINT64_MAX ? -1 : vb__ms_left(deadline_ns);
	int n = epoll_wait(s->epoll, events, EVENTS_AT_ONCE, queued(s) ? 0 : timeout_ms);

	for (int i = 0; i < n; i++)
		if (events[i].data.ptr)
			vb__queue_add(&s->queue, events[i].data.ptr);
		else
			vb__queue_woken(&s->queue);
	s->turns_left = queued(s);
	return n != 0 || s->turns_left;
}

/*
 * The next event, if there is one within the time: 1, 0, or an error of the
 * listener. The descriptors are looked at once in a round of turns, so that
 * nobody who came later waits for longer than that.
 */
static int next_event(struct vb_server *s, uint64_t deadline_ns, struct vb_server_event *event,
		      struct vb_error *err)
{
	struct vb__client *client;
	int rc;

	for (;;) {
		if (!s->turns_left && !look(s, deadline_ns))
			return 0;
		client = s->turns_left ? vb__queue_next(&s->queue) : NULL;
		if (!client)
			continue;
		s->turns_left--;
		rc = vb__client_turn(client, event, err);
		if (rc)
			return rc;
	}
}

/* Nobody else comes in; a child of the application may hold the descriptor for longer. */
static void close_door(struct vb_server *s)
{
	if (!s->listener)
		return;
	epoll_ctl(s->epoll, EPOLL_CTL_DEL, vb_listener_fd(s->listener), NULL);
	vb_listener_close(s->listener);
	s->listener = NULL;
}

int vb_server_wait(struct vb_server *s, int timeout_ms, struct vb_server_event *event,
		   struct vb_error *err)
{
	uint64_t deadline = UINT64_MAX;
	int rc;

	vb__error_clear(err);
	if (timeout_ms >= 0)
		deadline = vb__now_ns() + vb__ms((unsigned)timeout_ms);
	if (s->shown)
		vb__channel_release(s->shown->channel);
	s->shown = NULL;
	rc = next_event(s, deadline, event, err);
	if (rc < 0)
		close_door(s); /* it can be heard no more; those who are inside can */
	return rc == 0 ? VB_ERR_AGAIN : rc < 0 ? rc : 0;
}

static int watch(struct vb_server *s, int fd, struct vb__client *who, struct vb_error *err)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = who };

	if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event) != 0)
		return vb__fail_errno(err, errno, "epoll_ctl", NULL);
	return 0;
}

static int start(struct vb_server *s, const char *host, const char *port, struct vb_error *err)
{
	int rc = vb__queue_open(&s->queue, err);

	if (rc)
		return rc;
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll < 0)
		return vb__fail_errno(err, errno, "epoll_create1", NULL);
	rc = watch(s, s->queue.wake, NULL, err);
	if (rc == 0)
		rc = vb__listener_open(host, port, &s->settings, &s->listener, err);
	if (rc == 0)
		rc = watch(s, vb_listener_fd(s->listener), &s->door, err);
	if (rc)
		return rc;
	vb__listener_share(s->listener, s->shared_receives, &s->pools);
	vb__queue_add(&s->queue, &s->door); /* its first turn arms it */
	return 0;
}

int vb_server_open(const char *host, const char *port, const struct vb_server_options *options,
		   struct vb_server **server, struct vb_error *err)
{
	struct vb_server_options o = options ? *options : (struct vb_server_options){ { 0 } };
	struct vb_server *s = calloc(1, sizeof(*s));
	int rc;

	vb__error_clear(err);
	if (!s)
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	if (!o.connection.max_message_bytes)
		o.connection.max_message_bytes = DEFAULT_MESSAGE;
	s->shared_receives = o.shared_receives ? o.shared_receives : DEFAULT_RECEIVES;
	s->max_clients = o.max_clients ? o.max_clients : DEFAULT_CLIENTS;
	s->epoll = s->queue.wake = -1;
	s->door.server = s;
	rc = vb__settings_from(&s->settings, &o.connection, err);
	if (rc == 0)
		rc = start(s, host, port, err);
	if (rc) {
		vb_server_close(s);
		return rc;
	}
	*server = s;
	return 0;
}

int vb_server_close_client(struct vb_server *s, struct vb_channel *channel, struct vb_error *err)
{
	struct vb__client *client = vb__channel_watcher(channel);

	vb__error_clear(err);
	if (!client || client->server != s)
		return vb__fail_invalid(err, "close client", "it is no client of this server");
	if (client->state == VB__CLIENT_HERE)
		vb__client_leave(client, s->settings.peer_timeout_ms);
	return 0;
}

/* All at the same time; whoever does not answer is left behind. */
static void say_farewell(struct vb_server *s)
{
	uint64_t deadline = vb__now_ns() + vb__ms(FAREWELL_MS);
	struct vb__client *client;

	for (client = s->clients; client; client = client->next)
		vb__client_leave(client, FAREWELL_MS);
	while (s->clients && look(s, deadline)) {
		client = vb__queue_next(&s->queue);
		if (client)
			vb__client_turn(client, NULL, NULL);
	}
	while (s->clients)
		vb__client_destroy(s->clients);
}

static void close_pools(struct vb_server *s)
{
	struct vb__client *turns;

	while ((turns = s->pool_turns)) {
		s->pool_turns = turns->next;
		free(turns);
	}
	vb__pools_close(&s->pools);
}

void vb_server_close(struct vb_server *s)
{
	if (!s)
		return;
	close_door(s);
	say_farewell(s);
	close_pools(s);
	if (s->epoll >= 0)
		close(s->epoll);
	vb__queue_close(&s->queue);
	free(s);
}

int vb_server_fd(struct vb_server *s)
{
	return s->epoll;
}

int vb_server_port(const struct vb_server *s)
{
	return s->listener ? vb_listener_port(s->listener) : 0;
}

unsigned vb_server_clients(const struct vb_server *s)
{
	return s->here;
}

const char *vb_server_description(const struct vb_server *s)
{
	return s->listener ? vb_listener_description(s->listener) : "";
}
