/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets: what one send of the fabric carries. Either one message as it is, or
 * several small ones, each in a frame; then a trailer. It is behind the
 * payload so that a message sent from a page-aligned buffer also arrives
 * page-aligned, in one piece. See docs/protocol.md.
 */
#ifndef VB_WIRE_PACKET_H
#define VB_WIRE_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VB__PACKET_TRAILER 16u
#define VB__FRAME_HEADER 8u /* and frames start at multiples of 8 */

enum vb__packet_kind {
	VB__PACKET_DATA = 1,	  /* messages; takes a credit */
	VB__PACKET_END = 2,	  /* nothing more will be sent; takes a credit */
	VB__PACKET_CREDIT = 3,	  /* only returns credits, as any packet may */
	VB__PACKET_END_SEEN = 4,  /* your END has arrived; at most one */
	VB__PACKET_CLOSING = 5,	  /* nothing more will be received; at most one */
	VB__PACKET_ACCESSING = 6, /* from now on your memory is accessed; at most one */
};

enum vb__packet_flag {
	VB__PACKET_FRAMED = 1, /* DATA: the payload is a run of frames */
	VB__PACKET_NOTICE = 2, /* DATA: no message, the payload is a number */
};

struct vb__packet {
	enum vb__packet_kind kind;
	uint8_t flags;
	uint16_t credits;  /* returned to the receiver of this packet */
	uint32_t messages; /* DATA: how many */
	uint32_t payload;  /* bytes before the trailer */
	uint32_t seen;	   /* how many CREDIT packets the sender has received so far */
};

/* Writes the trailer, wherever that is. */
void vb__packet_encode(uint8_t to[VB__PACKET_TRAILER], const struct vb__packet *packet);

/* `from` is the whole packet as it was received. False: the peer breaks the protocol. */
bool vb__packet_decode(struct vb__packet *packet, const uint8_t *from, size_t received);

/*
 * Where the fabric has immediate data, a packet of one message needs no trailer: credits and
 * the last bits of `seen` are in there. `confirmed` is what the peer had seen before.
 */
uint32_t vb__packet_immediate(const struct vb__packet *packet);
bool vb__packet_from_immediate(struct vb__packet *packet, uint32_t immediate, size_t received,
			       uint32_t confirmed);

/* The payload of a notice. */
#define VB__NOTICE_BYTES 4u
void vb__notice_encode(uint8_t to[VB__NOTICE_BYTES], uint32_t number);
uint32_t vb__notice_number(const uint8_t from[VB__NOTICE_BYTES]);

/* The room that a message of `len` bytes takes among frames. */
static inline size_t vb__frame_room(size_t len)
{
	return VB__FRAME_HEADER + ((len + 7u) & ~(size_t)7);
}

/* Starts a frame at `to`; the message's bytes go to the returned place. */
uint8_t *vb__frame_begin(uint8_t *to, size_t len);

/*
 * Takes the frame at `*at` of `payload`: sets `message` and `len`, moves `*at`
 * behind it. False: there is no whole frame, the peer breaks the protocol.
 */
bool vb__frame_next(const uint8_t *payload, size_t payload_len, size_t *at, const uint8_t **message,
		    size_t *len);

#endif
