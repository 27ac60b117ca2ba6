/* SPDX-License-Identifier: Apache-2.0 */
/* A server with one client, who is answered and leaves. */
#include <string.h>

#include "lives.h"

/* Until the client has left; a client that could not be let in comes again. */
static void serve_one(struct side *side, struct vb_server *server)
{
	struct vb_server_event event;
	struct vb_error err;
	bool left = false;

	while (!left && goes_on(side, vb_server_wait(server, -1, &event, &err), &err)) {
		if (event.kind == VB_CLIENT_MESSAGE)
			goes_on(side, vb_channel_send(event.client, event.message, event.len, &err),
				&err);
		left = event.kind == VB_CLIENT_LEFT;
		if (left && event.why.code != VB_ERR_EOF)
			goes_on(side, event.why.code, &event.why);
		left |= side->rc != 0;
	}
}

static void victim_serves(struct side *side)
{
	struct vb_server_options options = { .connection = life_options, .shared_receives = 8 };
	struct vb_server *server;
	struct vb_error err;

	if (!goes_on(side, vb_server_open("127.0.0.1", "0", &options, &server, &err), &err))
		return;
	now_listening(side, vb_server_port(server));
	serve_one(side, server);
	vb_server_close(server);
}

static bool ask(struct vb_channel *ch)
{
	const void *message;

	return vb_channel_send(ch, "echo", 4, NULL) == 0 &&
	       vb_channel_recv(ch, &message, NULL) == 4 && memcmp(message, "echo", 4) == 0;
}

static void peer_asks(struct side *side)
{
	struct vb_channel *ch;
	bool answered = false;
	char port[8];

	if (!port_there(side, port))
		return;
	while (!answered) {
		if (vb_channel_connect("127.0.0.1", port, &life_options, &ch, NULL) == 0) {
			answered = ask(ch);
			vb_channel_close(ch, NULL);
		}
		if (!answered && !try_again(side))
			break;
	}
	expects(side, answered, "no answer");
}

const struct life server_lives[1] = {
	{ .name = "server", .victim = victim_serves, .peer = peer_asks },
};
