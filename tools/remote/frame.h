/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames: what rdcp and the `rdcp --server` that ssh has started say to each
 * other over its stdin and stdout, and rdpipe and `rdpipe --server` likewise.
 * Pure: bytes only.
 *
 * Both begin with a hello, in which each tool has its own name. Then follow
 * frames: the payload's length in four bytes, the kind in one, the payload.
 */
#ifndef TOOLS_FRAME_H
#define TOOLS_FRAME_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/arguments.h"

#define FRAME_HELLO_BYTES 12u
#define FRAME_VERSION 4u
#define FRAME_HEAD 5u
#define FRAME_MAX (1u << 20) /* of the payload */

enum frame_kind {
	FRAME_NONE = 0,

	/* From the client. */
	FRAME_ORDER_PART, /* an order longer than a frame begins with these */
	FRAME_ORDER,	  /* its end: copy/order.h, pipe/stage_order.h */
	FRAME_STOP,	  /* what was ordered is not wanted any more */

	/* From the server; remote/message.h. */
	FRAME_INVITATION, /* the door is open */
	FRAME_NOTE,
	FRAME_EVENT,
	FRAME_PROGRESS,
	FRAME_ENDING,  /* of an order; the next may come */
	FRAME_GLIMPSE, /* what its tree comes to; copy/glance.h */

	/* Either way; copy/tunnel.h. */
	FRAME_OPEN,
	FRAME_DATA,
	FRAME_CREDIT,
	FRAME_SHUT,
	FRAME_ABORT,

	/* rdpipe's; pipe/stage_order.h. */
	FRAME_ONWARD, /* from the client: where to connect to */
	FRAME_READY,  /* from the server: all connections are made */
	FRAME_BEGIN,  /* from the client: everybody is ready */
	FRAME_LAST = FRAME_BEGIN,
};

/* RDCP's or RDPIPE's. */
void frame_hello(uint8_t to[FRAME_HELLO_BYTES], enum tool tool);

/* The other's version; 0 if this is no hello of that tool's. */
uint32_t frame_hello_version(const uint8_t from[FRAME_HELLO_BYTES], enum tool tool);

/* Do these first bytes, up to FRAME_HELLO_BYTES, look like a hello so far? */
int frame_hello_begins(const uint8_t *from, size_t len, enum tool tool);

void frame_head(uint8_t to[FRAME_HEAD], enum frame_kind kind, size_t len);

struct frame {
	enum frame_kind kind;
	const uint8_t *payload;
	size_t len;
};

/* Takes a frame off the front: how many bytes it has, 0 if it is not all there, -1 if it is none. */
ssize_t frame_take(struct frame *frame, const uint8_t *bytes, size_t len);

#endif
