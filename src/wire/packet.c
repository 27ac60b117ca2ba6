/* SPDX-License-Identifier: Apache-2.0 */
/* Packets on the wire: encoding, and decoding that believes nothing. */
#include "wire/packet.h"

#include <string.h>

#include "wire/bytes.h"

void vb__packet_encode(uint8_t to[VB__PACKET_TRAILER], const struct vb__packet *packet)
{
	to[0] = (uint8_t)packet->kind;
	to[1] = packet->flags;
	vb__put16(to + 2, packet->credits);
	vb__put32(to + 4, packet->messages);
	vb__put32(to + 8, packet->payload);
	vb__put32(to + 12, packet->seen);
}

static bool data_makes_sense(const struct vb__packet *p)
{
	if (p->flags == VB__PACKET_NOTICE)
		return p->messages == 0 && p->payload == VB__NOTICE_BYTES;
	if (p->flags & ~VB__PACKET_FRAMED)
		return false;
	if (p->flags & VB__PACKET_FRAMED)
		return p->messages > 0 && p->messages <= p->payload / VB__FRAME_HEADER;
	return p->messages == 1;
}

bool vb__packet_decode(struct vb__packet *packet, const uint8_t *from, size_t received)
{
	const uint8_t *trailer;

	if (received < VB__PACKET_TRAILER)
		return false;
	trailer = from + received - VB__PACKET_TRAILER;
	*packet = (struct vb__packet){
		.kind = trailer[0],
		.flags = trailer[1],
		.credits = vb__get16(trailer + 2),
		.messages = vb__get32(trailer + 4),
		.payload = vb__get32(trailer + 8),
		.seen = vb__get32(trailer + 12),
	};
	if (packet->payload != received - VB__PACKET_TRAILER)
		return false;
	if (packet->kind == VB__PACKET_DATA)
		return data_makes_sense(packet);
	return packet->kind >= VB__PACKET_END && packet->kind <= VB__PACKET_ACCESSING &&
	       !packet->payload && !packet->messages && !packet->flags;
}

uint32_t vb__packet_immediate(const struct vb__packet *packet)
{
	return packet->credits | (packet->seen & 0xff) << 16;
}

bool vb__packet_from_immediate(struct vb__packet *packet, uint32_t immediate, size_t received,
			       uint32_t confirmed)
{
	uint8_t further = (uint8_t)((immediate >> 16) - confirmed);

	*packet = (struct vb__packet){
		.kind = VB__PACKET_DATA,
		.credits = (uint16_t)immediate,
		.messages = 1,
		.payload = (uint32_t)received,
		.seen = confirmed + further,
	};
	return immediate >> 24 == 0;
}

void vb__notice_encode(uint8_t to[VB__NOTICE_BYTES], uint32_t number)
{
	vb__put32(to, number);
}

uint32_t vb__notice_number(const uint8_t from[VB__NOTICE_BYTES])
{
	return vb__get32(from);
}

uint8_t *vb__frame_begin(uint8_t *to, size_t len)
{
	size_t room = vb__frame_room(len);

	/* The padding is the last 0..7 bytes: clear them, nothing of ours must leak. */
	memset(to + room - 8, 0, 8);
	vb__put32(to, (uint32_t)len);
	vb__put32(to + 4, 0);
	return to + VB__FRAME_HEADER;
}

bool vb__frame_next(const uint8_t *payload, size_t payload_len, size_t *at, const uint8_t **message,
		    size_t *len)
{
	size_t left = payload_len - *at;
	uint32_t claimed;

	if (*at > payload_len || left < VB__FRAME_HEADER)
		return false;
	claimed = vb__get32(payload + *at);
	if (claimed > left - VB__FRAME_HEADER || vb__frame_room(claimed) > left)
		return false;
	*message = payload + *at + VB__FRAME_HEADER;
	*len = claimed;
	*at += vb__frame_room(claimed);
	return true;
}
