/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/datagram.h"

#include <string.h>

#include "wire/bytes.h"

#define NUMBERED 1u

static const uint8_t greeting_magic[4] = { 'V', 'B', 'D', 'G' };
static const uint8_t number_magic = 0xd6, envelope_magic = 0xd7;

void vb__greeting_encode(uint8_t to[VB__GREETING_BYTES], const struct vb__greeting *greeting)
{
	memcpy(to, greeting_magic, sizeof(greeting_magic));
	to[4] = greeting->version;
	to[5] = greeting->numbered ? NUMBERED : 0;
	vb__put16(to + 6, greeting->max_bytes);
}

enum vb__greeting_verdict vb__greeting_decode(struct vb__greeting *greeting, const uint8_t *from,
					      size_t len)
{
	if (len < VB__GREETING_BYTES || memcmp(from, greeting_magic, sizeof(greeting_magic)) != 0)
		return VB__GREETING_FOREIGN;
	*greeting = (struct vb__greeting){
		.version = from[4],
		.numbered = from[5] & NUMBERED,
		.max_bytes = vb__get16(from + 6),
	};
	return greeting->version == VB__DATAGRAM_VERSION ? VB__GREETING_GOOD
							 : VB__GREETING_OTHER_VERSION;
}

void vb__number_encode(uint8_t to[VB__NUMBER_BYTES], const struct vb__number *number)
{
	to[0] = number_magic;
	to[1] = VB__DATAGRAM_VERSION;
	vb__put16(to + 2, number->flow);
	vb__put32(to + 4, number->sequence);
}

bool vb__number_decode(struct vb__number *number, const uint8_t *from, size_t len)
{
	if (len < VB__NUMBER_BYTES || from[0] != number_magic || from[1] != VB__DATAGRAM_VERSION)
		return false;
	*number = (struct vb__number){
		.flow = vb__get16(from + 2),
		.sequence = vb__get32(from + 4),
	};
	return true;
}

void vb__envelope_encode(uint8_t to[VB__ENVELOPE_BYTES], const struct vb__envelope *envelope)
{
	memset(to, 0, VB__ENVELOPE_BYTES);
	to[0] = envelope_magic;
	to[1] = VB__DATAGRAM_VERSION;
	to[2] = (uint8_t)envelope->kind;
	to[3] = envelope->six ? 6 : 4;
	vb__put16(to + 4, envelope->port);
	memcpy(to + 8, envelope->address, envelope->six ? 16 : 4);
}

/* There is one way only to write an address, so that equal ones have equal bytes. */
bool vb__envelope_decode(struct vb__envelope *envelope, const uint8_t *from, size_t len)
{
	uint8_t again[VB__ENVELOPE_BYTES];

	if (len < VB__ENVELOPE_BYTES || from[2] > VB__ENVELOPE_ANSWER)
		return false;
	*envelope = (struct vb__envelope){
		.kind = from[2],
		.six = from[3] == 6,
		.port = vb__get16(from + 4),
	};
	memcpy(envelope->address, from + 8, envelope->six ? 16 : 4);
	vb__envelope_encode(again, envelope);
	return !memcmp(again, from, sizeof(again));
}
