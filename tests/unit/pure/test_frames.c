/* SPDX-License-Identifier: Apache-2.0 */
/* The frames of libfabric's tcp provider: what its own kind sends gets through, and nothing else does. */
#include <string.h>

#include "fabric/ofi/ofi_frames.h"
#include "suite.h"
#include "wire/bytes.h"

#define ROOM 256u

enum {
	MSG,
	TAGGED,
	READ,
	READ_ANSWER,
	WRITE,
};

struct frame {
	uint8_t op, ack, pieces;
	uint16_t flags;
	uint64_t payload;
	uint64_t piece_len[4];
	uint8_t longer; /* than its kind of header is */
};

static size_t encode(uint8_t *to, const struct frame *f)
{
	size_t len = 16 + 24u * f->pieces + f->longer;

	memset(to, 0, ROOM);
	to[0] = 3;
	to[1] = f->op;
	vb__put16(to + 2, f->flags);
	to[4] = f->ack ? 2 : 0;
	to[5] = f->pieces;
	to[6] = (uint8_t)len;
	vb__put64(to + 8, len + f->payload);
	for (unsigned i = 0; i < f->pieces && i < 4; i++)
		vb__put64(to + 16 + 24 * i + 8, f->piece_len[i]);
	return len + (size_t)f->payload;
}

static void encode_opening(uint8_t to[32], uint8_t kind, uint16_t data, bool other_order)
{
	memset(to, 0, 32);
	to[0] = 3;
	to[1] = kind;
	to[2] = (uint8_t)(data >> 8);
	to[3] = (uint8_t)data;
	to[other_order ? 31 : 24] = 1;
}

/* Both have opened, the peer with as much private data as we have. */
static struct ofi_frames opened(void)
{
	struct ofi_frames frames;
	uint8_t bytes[80] = { 0 };

	ofi_frames_start(&frames);
	encode_opening(bytes, 0, 48, false);
	assert_int_equal(ofi_frames_received(&frames, bytes, sizeof(bytes)), sizeof(bytes));
	ofi_frames_sent(&frames, bytes, sizeof(bytes));
	return frames;
}

static bool passes(struct ofi_frames *frames, struct frame f)
{
	uint8_t bytes[ROOM];
	size_t len = encode(bytes, &f);

	return ofi_frames_received(frames, bytes, len) == len;
}

static void send(struct ofi_frames *frames, struct frame f)
{
	uint8_t bytes[ROOM];
	size_t len = encode(bytes, &f);

	for (size_t i = 0; i < len; i++)
		ofi_frames_sent(frames, bytes + i, 1);
}

static void messages_pass(void **state)
{
	struct ofi_frames frames = opened();

	(void)state;
	assert_true(passes(&frames, (struct frame){ .op = MSG, .payload = 100 }));
	assert_true(passes(&frames, (struct frame){ .op = MSG }));
	assert_true(passes(&frames, (struct frame){ .op = MSG, .flags = 1, .longer = 8 }));
	assert_true(passes(&frames, (struct frame){ .op = MSG, .flags = 4, .payload = 3 }));
}

static void other_kinds_do_not_pass(void **state)
{
	(void)state;
	for (unsigned op = 0; op < 256; op++) {
		struct ofi_frames frames = opened();
		bool known = op == MSG || op == READ || op == WRITE;

		assert_int_equal(passes(&frames, (struct frame){ .op = (uint8_t)op }), known);
	}
}

static void headers_have_the_length_of_their_kind(void **state)
{
	(void)state;
	for (unsigned longer = 1; longer < 240; longer++) {
		struct frame f = { .op = MSG, .longer = (uint8_t)longer };
		struct ofi_frames frames = opened();

		assert_false(passes(&frames, f));
		frames = opened();
		f.op = WRITE;
		assert_false(passes(&frames, f));
	}
}

static void frame_is_not_shorter_than_its_header(void **state)
{
	struct ofi_frames frames = opened();
	uint8_t bytes[ROOM];

	(void)state;
	encode(bytes, &(struct frame){ .op = MSG });
	bytes[8] = 15;
	assert_int_equal(ofi_frames_received(&frames, bytes, 16), 0);
}

static void acknowledgement_of_nothing_does_not_pass(void **state)
{
	const struct frame ack = { .op = MSG, .ack = 1 };
	struct ofi_frames frames = opened();

	(void)state;
	send(&frames, (struct frame){ .op = WRITE, .flags = 4 });
	send(&frames, (struct frame){ .op = WRITE, .flags = 4 });
	send(&frames, (struct frame){ .op = WRITE });
	send(&frames, (struct frame){ .op = MSG });
	assert_true(passes(&frames, ack));
	assert_true(passes(&frames, ack));
	assert_false(passes(&frames, ack));
}

/* An answer has the flags of its question, which the peer has chosen. */
static void own_answers_await_nothing(void **state)
{
	struct ofi_frames frames = opened();

	(void)state;
	send(&frames, (struct frame){ .op = READ_ANSWER, .flags = 12 });
	send(&frames, (struct frame){ .op = MSG, .ack = 1, .flags = 12 });
	assert_false(passes(&frames, (struct frame){ .op = MSG, .ack = 1 }));
}

static void nothing_is_due_before_all_of_the_question_is_out(void **state)
{
	const struct frame question = { .op = READ, .pieces = 1 }, answer = { .op = READ_ANSWER };
	struct ofi_frames frames = opened(), late;
	uint8_t bytes[ROOM];
	size_t len = encode(bytes, &question);

	(void)state;
	ofi_frames_sent(&frames, bytes, len - 1);
	late = frames;
	assert_false(passes(&frames, answer));
	ofi_frames_sent(&late, bytes + len - 1, 1);
	assert_true(passes(&late, answer));
	assert_false(passes(&late, answer));
}

static void writes_fill_their_pieces(void **state)
{
	struct frame f = { .op = WRITE, .pieces = 4, .payload = 100, .piece_len = { 40, 0, 59, 1 } };
	struct ofi_frames frames = opened();

	(void)state;
	assert_true(passes(&frames, f));
	f.piece_len[3] = 2;
	assert_false(passes(&frames, f));
	frames = opened();
	f.piece_len[3] = 0;
	assert_false(passes(&frames, f));
	frames = opened();
	f.piece_len[0] = UINT64_MAX;
	f.piece_len[3] = 42;
	assert_false(passes(&frames, f));
	frames = opened();
	assert_false(passes(&frames, (struct frame){ .op = WRITE, .pieces = 5 }));
}

/* That would complete something at our end, of which nobody knows what it is. */
static void writes_with_immediate_data_do_not_pass(void **state)
{
	struct ofi_frames frames = opened();

	(void)state;
	assert_false(passes(&frames, (struct frame){ .op = WRITE, .flags = 1 }));
	frames = opened();
	assert_false(passes(&frames, (struct frame){ .op = WRITE, .flags = 1, .longer = 8 }));
}

static void what_the_peer_lets_us_owe_is_bounded(void **state)
{
	struct ofi_frames frames = opened();

	(void)state;
	for (unsigned i = 0; i < OFI_FRAMES_OWED_MAX; i++)
		assert_true(
			passes(&frames, (struct frame){ .op = i % 2 ? READ : WRITE, .flags = 4 }));
	send(&frames, (struct frame){ .op = MSG, .ack = 1 });
	assert_true(passes(&frames, (struct frame){ .op = READ }));
	assert_false(passes(&frames, (struct frame){ .op = READ }));
}

static void what_comes_before_the_wrong_frame_passes(void **state)
{
	struct ofi_frames frames = opened();
	uint8_t bytes[2 * ROOM];
	size_t good = encode(bytes, &(struct frame){ .op = MSG, .payload = 50 });
	size_t bad = encode(bytes + good, &(struct frame){ .op = TAGGED, .payload = 50 });

	(void)state;
	assert_int_equal(ofi_frames_received(&frames, bytes, good + bad), good);
}

static void openings_are_of_our_byte_order(void **state)
{
	struct ofi_frames frames;
	uint8_t bytes[32];

	(void)state;
	ofi_frames_start(&frames);
	encode_opening(bytes, 0, 0, true);
	assert_int_equal(ofi_frames_received(&frames, bytes, sizeof(bytes)), 0);
	ofi_frames_start(&frames);
	encode_opening(bytes, 0, 257, false);
	assert_int_equal(ofi_frames_received(&frames, bytes, sizeof(bytes)), 0);
	ofi_frames_start(&frames);
	encode_opening(bytes, 6, 0, false);
	bytes[24] = 0; /* a refusal does not tell */
	assert_int_equal(ofi_frames_received(&frames, bytes, sizeof(bytes)), sizeof(bytes));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_pass),
		cmocka_unit_test(other_kinds_do_not_pass),
		cmocka_unit_test(headers_have_the_length_of_their_kind),
		cmocka_unit_test(frame_is_not_shorter_than_its_header),
		cmocka_unit_test(acknowledgement_of_nothing_does_not_pass),
		cmocka_unit_test(own_answers_await_nothing),
		cmocka_unit_test(nothing_is_due_before_all_of_the_question_is_out),
		cmocka_unit_test(writes_fill_their_pieces),
		cmocka_unit_test(writes_with_immediate_data_do_not_pass),
		cmocka_unit_test(what_the_peer_lets_us_owe_is_bounded),
		cmocka_unit_test(what_comes_before_the_wrong_frame_passes),
		cmocka_unit_test(openings_are_of_our_byte_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
