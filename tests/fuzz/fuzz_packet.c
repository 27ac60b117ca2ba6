/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes packets and their frames: all that a peer sends once it is connected. */
#include <string.h>

#include "fuzz_target.h"
#include "wire/packet.h"

static volatile uint8_t sink;

/* Takes frames as a receiver does; each must lie inside and behind the one before. */
static void check_frames(const uint8_t *payload, size_t size, uint32_t count)
{
	const uint8_t *message, *end = payload + size, *behind = payload;
	size_t at = 0, len;

	while (count--) {
		size_t before = at;

		if (!vb__frame_next(payload, size, &at, &message, &len)) {
			HOLDS(at == before);
			return;
		}
		HOLDS(message >= behind + VB__FRAME_HEADER && message <= end);
		HOLDS(len <= (size_t)(end - message));
		HOLDS(at > before && at <= size && (at - before) % 8 == 0);
		for (size_t b = 0; b < len; b++)
			sink = message[b]; /* for a sanitizer to see */
		behind = message + len;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vb__packet packet;
	uint8_t wire[VB__PACKET_TRAILER];

	/* Frames also without a trailer behind them, which must be right to get this far. */
	check_frames(data, size, UINT32_MAX);
	if (!vb__packet_decode(&packet, data, size))
		return 0;
	HOLDS(size >= VB__PACKET_TRAILER && packet.payload == size - VB__PACKET_TRAILER);
	HOLDS(packet.kind >= VB__PACKET_DATA && packet.kind <= VB__PACKET_ACCESSING);
	HOLDS(packet.kind == VB__PACKET_DATA
		      ? packet.messages > 0
		      : !packet.messages && !packet.payload && !packet.flags);
	vb__packet_encode(wire, &packet);
	/* Every byte of a trailer has its meaning. */
	HOLDS(memcmp(wire, data + packet.payload, sizeof(wire)) == 0);
	if (packet.flags & VB__PACKET_FRAMED)
		check_frames(data, packet.payload, packet.messages);
	return 0;
}

static size_t sample_frames(struct vb__packet *packet, uint8_t *payload, size_t room, uint64_t seed)
{
	size_t used = 0;

	packet->flags = VB__PACKET_FRAMED;
	packet->messages = 0;
	for (size_t len = seed % 40; used + vb__frame_room(len) <= room; len = (len * 7 + 3) % 40) {
		memset(vb__frame_begin(payload + used, len), 'm', len);
		used += vb__frame_room(len);
		if (++packet->messages > seed / 40 % 8)
			break;
	}
	return used;
}

size_t fuzz_sample(uint8_t *to, size_t room, uint64_t seed)
{
	struct vb__packet packet = {
		.kind = VB__PACKET_DATA,
		.credits = 1,
		.messages = 1,
		.seen = (uint32_t)(seed >> 8),
	};

	switch (seed % 6) {
	case 0:
	case 1:
		packet.kind = VB__PACKET_END + (unsigned)(seed / 6 % 4);
		packet.messages = 0;
		break;
	case 2:
		packet.payload = (uint32_t)(seed / 6 % 100);
		memset(to, 'm', packet.payload);
		break;
	default:
		packet.payload =
			(uint32_t)sample_frames(&packet, to, room - VB__PACKET_TRAILER, seed / 6);
	}
	vb__packet_encode(to + packet.payload, &packet);
	return packet.payload + VB__PACKET_TRAILER;
}
