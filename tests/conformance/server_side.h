/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of servers have in common: servers, crowds of clients, messages that tell whose they are. */
#ifndef CONFORMANCE_SERVER_SIDE_H
#define CONFORMANCE_SERVER_SIDE_H

#include "harness.h"

#define CROWD_MAX 30u

/* A server that the client side can connect to; a failure of these ends the process. */
struct vb_server *server_here(struct side *side, struct vb_server_options *options);
struct vb_server *plain_server(struct side *side);
struct vb_server_event next_event(struct vb_server *server);
struct vb_server_event expect_event(struct vb_server *server, enum vb_server_event_kind kind);
void nobody_is_left(struct vb_server *server); /* and closes it */

/* Sends everything back until so many have left, and checks that each was heard in order. */
void echo_until_left(struct vb_server *server, unsigned clients);

/* ---- The clients ---- */

unsigned crowd_size(const struct side *side);
void connect_crowd(struct side *side, struct vb_channel **ch, unsigned n);
void close_crowd(struct vb_channel **ch, unsigned n);

/* What each message of a crowd begins with. */
struct mark {
	uint32_t client, number;
};

size_t length_of(uint32_t client, uint32_t number);
void send_marked(struct vb_channel *ch, uint32_t client, uint32_t number, size_t len);
void take_marked(struct vb_channel *ch, uint32_t client, uint32_t number, size_t len);

/* There and back. */
void talk_once(struct vb_channel *ch, uint32_t number);

#endif
