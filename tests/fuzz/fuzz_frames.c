/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes what a peer sends to libfabric's tcp provider, as the guard looks at it. */
#include <string.h>

#include "fabric/ofi/ofi_frames.h"
#include "fuzz_target.h"
#include "wire/bytes.h"

#define OPENING 32u

/* What may never be seen, whatever is said about sizes. */
static void check_header(const uint8_t *frame)
{
	HOLDS(frame[1] == 0 || frame[1] == 2 || frame[1] == 4); /* nothing was asked for */
	HOLDS(frame[1] != 0 || frame[4] != 2);
	HOLDS(frame[1] == 0 || frame[5] <= OFI_FRAME_PIECES);
	HOLDS(frame[6] >= OFI_FRAME_HEADER && frame[6] <= OFI_FRAME_HEADER_MAX);
	HOLDS(vb__get64(frame + 8) >= frame[6]);
}

/* Goes from frame to frame as the provider does. */
static void check_seen(const uint8_t *data, size_t seen)
{
	size_t at = OPENING;

	if (seen < OPENING)
		return;
	at += (size_t)data[2] << 8 | data[3];
	while (at + OFI_FRAME_HEADER <= seen) {
		check_header(data + at);
		if (vb__get64(data + at + 8) > seen - at)
			return;
		at += (size_t)vb__get64(data + at + 8);
	}
}

/* However it was divided on its way: the same frames pass, and the start of the wrong one at most. */
static void check_divided(const uint8_t *data, size_t size, size_t seen)
{
	struct ofi_frames frames;
	size_t at = 0;

	ofi_frames_start(&frames);
	while (at < size && ofi_frames_received(&frames, data + at, 1))
		at++;
	HOLDS((at == size) == (seen == size));
	HOLDS(at >= seen && at - seen < OFI_FRAME_HEADER_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ofi_frames frames;
	size_t seen;

	ofi_frames_start(&frames);
	seen = ofi_frames_received(&frames, data, size);
	HOLDS(seen <= size);
	check_seen(data, seen);
	check_divided(data, size, seen);
	ofi_frames_start(&frames);
	ofi_frames_sent(&frames, data, size);
	return 0;
}

static size_t put_frame(uint8_t *to, uint64_t seed)
{
	static const uint8_t ops[] = { 0, 0, 2, 4 };
	uint8_t op = ops[seed % 4], pieces = op ? seed / 4 % 5 : 0;
	uint64_t len = 16 + 24u * pieces, payload = op == 2 || (op && !pieces) ? 0 : seed % 60;

	memset(to, 0, len + payload);
	to[1] = op;
	to[5] = pieces;
	to[6] = (uint8_t)len;
	vb__put64(to + 8, len + payload);
	if (pieces)
		vb__put64(to + 24, payload);
	return len + payload;
}

size_t fuzz_sample(uint8_t *to, size_t room, uint64_t seed)
{
	size_t len = OPENING + seed % 20;

	memset(to, 0, len);
	to[3] = seed % 20;
	to[24] = 1;
	while (room - len > OFI_FRAME_HEADER_MAX + 60) {
		HOLDS(len < room);
		seed = seed * 7919 + 12345;
		len += put_frame(to + len, seed >> 8);
	}
	return len;
}
