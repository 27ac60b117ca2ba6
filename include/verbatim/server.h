/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server: one listener, many clients, one wait for all of them.
 *
 *	vb_server_open(NULL, "7471", NULL, &server, &err);
 *	while (vb_server_wait(server, -1, &event, &err) == 0)
 *		if (event.kind == VB_CLIENT_MESSAGE)
 *			vb_channel_send(event.client, event.message, event.len, &err);
 *
 * Clients are channels, and connect by vb_channel_connect. What they send is
 * received into memory that all of them share, where the fabric can do that, so
 * that a thousand idle ones cost little. The price: on a RoCE or InfiniBand device
 * without memory windows, such as Soft-RoCE, vb_grant to a client is VB_ERR_UNSUPPORTED,
 * since clients there could use each other's keys; use a listener for these.
 *
 * Threads: waiting, closing and closing a client are for one thread at a time;
 * others may send to clients meanwhile. To receive is the server's part: do
 * not call vb_channel_recv or vb_channel_close on a client.
 */
#ifndef VERBATIM_SERVER_H
#define VERBATIM_SERVER_H

#include <verbatim/channel.h>

#ifdef __cplusplus
extern "C" {
#endif

struct vb_server;

struct vb_server_options {
	struct vb_options connection; /* here max_message_bytes is 4 KiB unless it is given */
	uint32_t max_clients;	      /* further ones are refused as busy. 4096 */

	/* How many messages of all clients the memory that they share has room for. While it is
	 * full further ones wait at their senders. 512 */
	uint32_t shared_receives;
};

enum vb_server_event_kind {
	VB_CLIENT_JOINED = 1,
	VB_CLIENT_MESSAGE,

	/* In good order, or `why` tells how it was lost. The client is gone with the next wait. One
	 * that left in good order may be sent to until then: it may have finished and wait for an answer. */
	VB_CLIENT_LEFT,
};

struct vb_server_event {
	enum vb_server_event_kind kind;
	struct vb_channel *client;
	void **user;	     /* the application's own word for this client; NULL at first */
	const void *message; /* valid until the next wait */
	size_t len;
	struct vb_error why; /* VB_CLIENT_LEFT: VB_ERR_EOF if in good order */
};

/* Starts to listen as vb_listener_open does. */
int vb_server_open(const char *host, const char *port, const struct vb_server_options *options,
		   struct vb_server **server, struct vb_error *err);

/*
 * The next event of any client. Waits for `timeout_ms` at most, without limit if
 * negative; VB_ERR_AGAIN if nothing has happened. Clients take turns: one that sends without
 * pause does not keep the others from being heard. Another failure is one of the listener and is
 * told once: from then on nobody joins, those who are here are served as before.
 */
int vb_server_wait(struct vb_server *server, int timeout_ms, struct vb_server_event *event,
		   struct vb_error *err);

/*
 * Ends a client in good order, without waiting for it: what was sent to it goes out during the
 * next waits, for the peer time-out at most. It is not to be used afterwards, and there are no more
 * events of it. VB_ERR_INVALID if it is no client of this server.
 */
int vb_server_close_client(struct vb_server *server, struct vb_channel *client,
			   struct vb_error *err);

/* Ends all clients, in good order if they answer within a second, and the listener. NULL is fine. */
void vb_server_close(struct vb_server *server);

/*
 * For poll or epoll, for reading only: readable when it is time for vb_server_wait(server, 0, ...)
 * after that said VB_ERR_AGAIN. It belongs to the library.
 */
int vb_server_fd(struct vb_server *server);

/* The port that is listened on, as a number; what is served and what is not, and why. */
int vb_server_port(const struct vb_server *server);
const char *vb_server_description(const struct vb_server *server);

/* How many have joined and not left. */
unsigned vb_server_clients(const struct vb_server *server);

#ifdef __cplusplus
}
#endif
#endif
