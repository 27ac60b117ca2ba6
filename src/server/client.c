/* SPDX-License-Identifier: Apache-2.0 */
/* A server's client, from the door to the farewell: what it does when it is its turn. */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "channel/inside.h"
#include "core/clock.h"
#include "core/failure.h"
#include "fabric/fabric.h"
#include "server/server_state.h"

/* By the thread that found something, with the channel's lock held. */
static void call(void *arg)
{
	struct vb__client *client = arg;

	vb__queue_call(&client->server->queue, client);
}

void vb__client_destroy(struct vb__client *client)
{
	struct vb_server *s = client->server;

	vb__channel_watch(client->channel, NULL, NULL);
	/* Closing it is not enough where a child of the application holds it, too. */
	epoll_ctl(s->epoll, EPOLL_CTL_DEL, vb__channel_wait_fd(client->channel), NULL);
	vb_channel_abort(client->channel);
	vb__queue_remove(&s->queue, client);
	if (client->next)
		client->next->previous = client->previous;
	if (client->previous)
		client->previous->next = client->next;
	else
		s->clients = client->next;
	s->present--;
	free(client);
}

void vb__client_leave(struct vb__client *client, uint32_t within_ms)
{
	client->server->here -= client->state == VB__CLIENT_HERE;
	client->state = VB__CLIENT_LEAVING;
	client->deadline_ns = vb__now_ns() + vb__ms(within_ms);
	vb__queue_add(&client->server->queue, client);
}

/* One that takes turns, its descriptor watched. */
static struct vb__client *make(struct vb_server *s, enum vb__client_state state, int fd,
			       struct vb_error *err)
{
	struct vb__client *client = calloc(1, sizeof(*client));
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = client };

	if (!client) {
		vb__fail_errno(err, ENOMEM, "calloc", NULL);
		return NULL;
	}
	if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
		vb__fail_errno(err, errno, "epoll_ctl", NULL);
		free(client);
		return NULL;
	}
	client->server = s;
	client->state = state;
	return client;
}

/* Of the pools that were made for those who come in: one of them may be waited for by its news. */
static void watch_pools(struct vb_server *s)
{
	for (struct vb__pool *pool = s->pools; pool; pool = pool->next) {
		struct vb__client *turns;

		if (pool->watched)
			continue;
		turns = make(s, VB__CLIENT_POOL, pool->wait_fd, NULL);
		if (!turns)
			return; /* tried again when the next one comes */
		turns->pool = pool;
		turns->next = s->pool_turns;
		s->pool_turns = turns;
		pool->watched = true;
	}
}

static int welcome(struct vb_server *s, struct vb_channel *channel, struct vb__client **out,
		   struct vb_error *err)
{
	struct vb__client *client = make(s, VB__CLIENT_HERE, vb__channel_wait_fd(channel), err);

	if (!client)
		return VB_ERR_NOMEM;
	client->channel = channel;
	client->next = s->clients;
	if (s->clients)
		s->clients->previous = client;
	s->clients = client;
	s->present++;
	s->here++;
	vb__channel_watch(channel, call, client);
	*out = client;
	return 0;
}

/* Lets the next one in, if there is one. */
static int open_door(struct vb_server *s, struct vb_server_event *event, struct vb_error *err)
{
	struct vb_error why = { .code = VB_OK };
	struct vb__client *client;
	struct vb_channel *channel;
	char line[VB_ERROR_LINE_MAX];
	int rc;

	vb__listener_set_room(s->listener, s->max_clients - s->present);
	rc = vb_listener_try_accept(s->listener, &channel, err);
	watch_pools(s);
	if (rc)
		return rc == VB_ERR_AGAIN ? 0 : rc;
	vb__queue_add(&s->queue, &s->door); /* there may be more */
	rc = welcome(s, channel, &client, &why);
	if (rc) {
		vb__log(&s->settings.log, VB_LOG_WARNING, "a client could not be served: %s",
			vb_error_format(&why, line, sizeof(line)));
		vb_channel_abort(channel);
		return 0;
	}
	vb__queue_add(&s->queue, client);
	*event = (struct vb_server_event){
		.kind = VB_CLIENT_JOINED,
		.client = channel,
		.user = &client->user,
	};
	return 1;
}

static int hear(struct vb__client *client, struct vb_server_event *event)
{
	struct vb_server *s = client->server;
	ssize_t n;

	*event = (struct vb_server_event){
		.kind = VB_CLIENT_MESSAGE,
		.client = client->channel,
		.user = &client->user,
	};
	n = vb_channel_try_recv(client->channel, &event->message, &event->why);
	if (n == VB_ERR_AGAIN)
		return 0;
	if (n >= 0) {
		event->len = (size_t)n;
		s->shown = client;
		vb__queue_add(&s->queue, client);
		return 1;
	}
	event->kind = VB_CLIENT_LEFT;
	vb__client_leave(client, s->settings.peer_timeout_ms);
	if (n != VB_ERR_EOF)
		client->state = VB__CLIENT_GONE;
	return 1;
}

static void take_leave(struct vb__client *client)
{
	if (vb__channel_try_close(client->channel, NULL) == VB_ERR_AGAIN &&
	    vb__now_ns() < client->deadline_ns)
		return;
	vb__client_destroy(client);
}

int vb__client_turn(struct vb__client *client, struct vb_server_event *event, struct vb_error *err)
{
	switch (client->state) {
	case VB__CLIENT_DOOR:
		return client->server->listener ? open_door(client->server, event, err) : 0;
	case VB__CLIENT_POOL:
		vb__pool_look_after(client->pool);
		return 0;
	case VB__CLIENT_HERE:
		return hear(client, event);
	case VB__CLIENT_LEAVING:
		take_leave(client);
		return 0;
	case VB__CLIENT_GONE:
		vb__client_destroy(client);
		return 0;
	}
	return 0;
}
