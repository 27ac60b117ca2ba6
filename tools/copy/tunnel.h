/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tunnels: TCP connections carried in the frames of a link, for where a
 * firewall lets nothing through but ssh. At one end the library connects to a
 * port of 127.0.0.1 that the tunnel listens on; at the other the tunnel
 * connects to the library's door. Each connection is a stream with a window of
 * its own, so that none waits for another and memory is bounded.
 *
 *	OPEN   stream			a connection was made
 *	DATA   stream, bytes		never more than the credit
 *	CREDIT stream, bytes (u32)	so much more may come
 *	SHUT   stream			no more data this way
 *	ABORT  stream			it is gone
 */
#ifndef TOOLS_TUNNEL_H
#define TOOLS_TUNNEL_H

#include <verbatim/error.h>

#include "remote/link.h"

struct tunnel;

/* The end that is connected to. `port` is where. */
int tunnel_listen(struct link *link, struct tunnel **tunnel, uint16_t *port, struct vb_error *err);

/* The end that connects, to this port of 127.0.0.1. */
int tunnel_to(struct link *link, uint16_t port, struct tunnel **tunnel, struct vb_error *err);

/* A frame of the kinds above. By the link's thread; never blocks. */
void tunnel_hear(struct tunnel *tunnel, const struct frame *frame);

/*
 * Ends all streams. Where the link does not take anything any more it is closed for good after a
 * moment. After this no frame may be heard. NULL is fine.
 */
void tunnel_close(struct tunnel *tunnel);

/* Where a link's thread finds the tunnel of the moment, if there is one. */
struct tunnel_slot {
	pthread_mutex_t lock;
	struct tunnel *tunnel;
	bool cut;
};

/* After this the tunnel that was there before hears no more. */
void tunnel_slot_set(struct tunnel_slot *slot, struct tunnel *tunnel);
void tunnel_slot_hear(struct tunnel_slot *slot, const struct frame *frame);

/*
 * Nothing will be heard any more: the connections of this tunnel, and of any that comes, are reset, or
 * whoever has them would wait for ever. By the link's thread; never blocks.
 */
void tunnel_slot_cut(struct tunnel_slot *slot);

#endif
