/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The provider believes its peer: it takes a tagged message where there are none (an assertion only,
 * and then a null pointer), an acknowledgement of nothing (likewise), more pieces of memory than it
 * has room for. So only what its own kind sends on a connection of ours gets through here.
 */
#include "fabric/ofi/ofi_frames.h"

#include <string.h>

#include "wire/bytes.h"

/* The opening message: a header, of which these are known, and private data. */
#define OPENING 32u
#define OPENING_KIND 1
#define OPENING_LEN 2 /* of the private data; big-endian */
#define OPENING_ORDER 24
#define KIND_REFUSAL 6
#define OPENING_DATA_MAX 256u

#define OP 1
#define FLAGS 2
#define OP_DATA 4
#define PIECES 5
#define HEADER_LEN 6
#define SIZE 8 /* with the header */
#define PIECE_LEN 8

enum {
	OP_MSG = 0,
	OP_READ = 2,
	OP_READ_ANSWER = 3,
	OP_WRITE = 4,
};

#define OP_DATA_ACK 2
#define FLAG_IMM 1u
#define FLAGS_ACK_ME (4u | 8u) /* when it has been delivered; when it is in memory that lasts */

static unsigned flags_of(const struct ofi_flow *f)
{
	return vb__get16(f->header + FLAGS);
}

static bool is_ack(const struct ofi_flow *f)
{
	return f->header[OP] == OP_MSG && f->header[OP_DATA] == OP_DATA_ACK;
}

static bool wants_ack(const struct ofi_flow *f)
{
	return !is_ack(f) && flags_of(f) & FLAGS_ACK_ME;
}

static void begin_frame(struct ofi_flow *f)
{
	f->have = 0;
	f->need = OFI_FRAME_HEADER;
}

void ofi_frames_start(struct ofi_frames *frames)
{
	memset(frames, 0, sizeof(*frames));
	frames->in.need = frames->out.need = OPENING;
}

/* With a peer of the other byte order the provider would read all sizes differently from here. */
static bool opens_well(const struct ofi_flow *f)
{
	return (vb__get64(f->header + OPENING_ORDER) == 1 ||
		f->header[OPENING_KIND] == KIND_REFUSAL) &&
	       f->left <= OPENING_DATA_MAX;
}

static void open_flow(struct ofi_flow *f)
{
	f->left = (uint64_t)f->header[OPENING_LEN] << 8 | f->header[OPENING_LEN + 1];
	f->opened = true;
}

/* ---- What the provider sends ---- */

/* What it awaits from now on; nothing before all of the frame is out. */
static void note_sent(struct ofi_frames *frames)
{
	const struct ofi_flow *f = &frames->out;
	bool answer = is_ack(f) || f->header[OP] == OP_READ_ANSWER;

	frames->reads_due += f->header[OP] == OP_READ;
	/* An answer has the flags of what it answers. */
	frames->acks_due += !answer && f->header[OP] != OP_READ && wants_ack(f);
	if (answer && frames->owed)
		frames->owed--;
}

static void end_sent(struct ofi_frames *frames, bool opening)
{
	if (frames->out.left)
		return;
	if (!opening)
		note_sent(frames);
	begin_frame(&frames->out);
}

/* How many of the bytes belong to what follows the header, or to the header. */
static size_t take(struct ofi_flow *f, const uint8_t *bytes, size_t len)
{
	size_t n = f->have < f->need ? (size_t)(f->need - f->have) : len;

	if (n > len)
		n = len;
	if (f->have < f->need) {
		memcpy(f->header + f->have, bytes, n);
		f->have += (uint8_t)n;
		return n;
	}
	if (n > f->left)
		n = (size_t)f->left;
	f->left -= n;
	return n;
}

void ofi_frames_sent(struct ofi_frames *frames, const uint8_t *bytes, size_t len)
{
	struct ofi_flow *f = &frames->out;

	while (len) {
		bool in_header = f->have < f->need, opening = f->need == OPENING;
		size_t n = take(f, bytes, len);

		bytes += n;
		len -= n;
		if (f->have < f->need)
			continue;
		if (in_header && opening)
			open_flow(f);
		else if (in_header)
			f->left = vb__get64(f->header + SIZE) - OFI_FRAME_HEADER;
		end_sent(frames, opening);
	}
}

/* ---- What the peer sends ---- */

/* Only now is the length of the whole header known. */
static bool begins_well(struct ofi_flow *f)
{
	unsigned pieces = f->header[PIECES], len = OFI_FRAME_HEADER, flags = flags_of(f);

	switch (f->header[OP]) {
	case OP_MSG:
		len += !is_ack(f) && flags & FLAG_IMM ? 8 : 0;
		break;
	case OP_READ_ANSWER:
		break;
	case OP_READ:
	case OP_WRITE:
		if (pieces > OFI_FRAME_PIECES || flags & FLAG_IMM)
			return false;
		len += pieces * OFI_FRAME_PIECE;
		break;
	default:
		return false;
	}
	f->need = (uint8_t)len;
	return f->header[HEADER_LEN] == len && vb__get64(f->header + SIZE) >= len;
}

/* What is written is as much as the pieces of memory that it is written to. */
static bool fills_pieces(const struct ofi_flow *f)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < f->header[PIECES]; i++) {
		uint64_t len =
			vb__get64(f->header + OFI_FRAME_HEADER + i * OFI_FRAME_PIECE + PIECE_LEN);

		if (len > f->left - sum)
			return false;
		sum += len;
	}
	return sum == f->left;
}

static bool count_down(uint64_t *due)
{
	return *due && (*due)--;
}

static bool is_due(struct ofi_frames *frames)
{
	const struct ofi_flow *f = &frames->in;

	if (is_ack(f))
		return f->left == 0 && count_down(&frames->acks_due);
	if ((f->header[OP] == OP_READ || wants_ack(f)) && ++frames->owed > OFI_FRAMES_OWED_MAX)
		return false;
	switch (f->header[OP]) {
	case OP_READ:
		return f->left == 0;
	case OP_READ_ANSWER:
		return count_down(&frames->reads_due);
	case OP_WRITE:
		return fills_pieces(f);
	default:
		return true;
	}
}

/* The header is there as far as it is needed: now it may turn out to be longer. */
static bool is_expected(struct ofi_frames *frames)
{
	struct ofi_flow *f = &frames->in;

	if (!f->opened) {
		open_flow(f);
		return opens_well(f);
	}
	if (f->have == OFI_FRAME_HEADER && !begins_well(f))
		return false;
	if (f->have < f->need)
		return true;
	f->left = vb__get64(f->header + SIZE) - f->need;
	return is_due(frames);
}

size_t ofi_frames_received(struct ofi_frames *frames, const uint8_t *bytes, size_t len)
{
	struct ofi_flow *f = &frames->in;
	size_t at = 0;

	while (at < len) {
		bool in_header = f->have < f->need;
		size_t n = take(f, bytes + at, len - at);

		if (in_header && f->have == f->need && !is_expected(frames))
			return at;
		at += n;
		if (f->have == f->need && !f->left)
			begin_frame(f);
	}
	return len;
}
