/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes what stands before a numbered datagram, and the greeting: both come from any stranger. */
#include <string.h>

#include "fuzz_target.h"
#include "wire/datagram.h"

static void try_number(const uint8_t *data, size_t size)
{
	uint8_t wire[VB__NUMBER_BYTES];
	struct vb__number number;

	if (!vb__number_decode(&number, data, size))
		return;
	HOLDS(size >= VB__NUMBER_BYTES);
	vb__number_encode(wire, &number);
	HOLDS(!memcmp(wire, data, sizeof(wire)));
}

static void try_greeting(const uint8_t *data, size_t size)
{
	struct vb__greeting greeting, again;
	enum vb__greeting_verdict verdict = vb__greeting_decode(&greeting, data, size);
	uint8_t wire[VB__GREETING_BYTES];

	if (verdict == VB__GREETING_FOREIGN)
		return;
	HOLDS(size >= VB__GREETING_BYTES && !memcmp(data, "VBDG", 4));
	HOLDS((verdict == VB__GREETING_GOOD) == (greeting.version == VB__DATAGRAM_VERSION));
	vb__greeting_encode(wire, &greeting);
	HOLDS(vb__greeting_decode(&again, wire, sizeof(wire)) == verdict);
	HOLDS(again.numbered == greeting.numbered && again.max_bytes == greeting.max_bytes);
}

static void try_envelope(const uint8_t *data, size_t size)
{
	uint8_t wire[VB__ENVELOPE_BYTES];
	struct vb__envelope envelope;

	if (!vb__envelope_decode(&envelope, data, size))
		return;
	HOLDS(size >= VB__ENVELOPE_BYTES);
	vb__envelope_encode(wire, &envelope);
	HOLDS(!memcmp(wire, data, sizeof(wire)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	try_number(data, size);
	try_greeting(data, size);
	try_envelope(data, size);
	return 0;
}

size_t fuzz_sample(uint8_t *to, size_t room, uint64_t seed)
{
	struct vb__number number = { .flow = (uint16_t)seed, .sequence = (uint32_t)(seed >> 16) };
	struct vb__greeting greeting = {
		.version = VB__DATAGRAM_VERSION,
		.numbered = seed & 2,
		.max_bytes = (uint16_t)(seed >> 8),
	};

	struct vb__envelope envelope = {
		.kind = seed >> 4 & 1,
		.six = seed >> 5 & 1,
		.port = (uint16_t)(seed >> 8),
		.address = { (uint8_t)seed, 2, 3, 4 },
	};

	HOLDS(room >= VB__ENVELOPE_BYTES);
	if (seed % 3 == 0)
		vb__number_encode(to, &number);
	else if (seed % 3 == 1)
		vb__greeting_encode(to, &greeting);
	else
		vb__envelope_encode(to, &envelope);
	return seed % 3 == 2 ? VB__ENVELOPE_BYTES : VB__NUMBER_BYTES;
}
