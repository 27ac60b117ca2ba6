/* SPDX-License-Identifier: Apache-2.0 */
/* Words of a measurement: what goes in comes out, and nothing that makes no sense is believed. */
#include <string.h>

#include "suite.h"
#include "wire/perf_word.h"

static const struct vb_perf_cell sound = {
	.op = VB_PERF_CAS,
	.qp = VB_PERF_UC,
	.kind = VB_PERF_LATENCY,
	.wait = VB_PERF_EVENT,
	.bytes = 8,
	.depth = VB_PERF_DEPTH_MAX,
	.rails = VB_PERF_RAILS_MAX,
	.duration_ms = VB_PERF_DURATION_MAX_MS,
	.count = UINT32_MAX,
	.both_ways = true,
	.check = true,
};

static bool comes_back(const struct vb__perf_word *word, struct vb__perf_word *got)
{
	uint8_t bytes[VB__PERF_WORD_MAX];
	size_t len = vb__perf_word_encode(bytes, word);

	return vb__perf_word_decode(got, bytes, len);
}

static bool cell_is_believed(struct vb_perf_cell cell)
{
	struct vb__perf_word word = { .kind = VB__PERF_CELL, .cell = cell }, got;

	return comes_back(&word, &got);
}

static void a_cell_comes_back(void **state)
{
	struct vb__perf_word word = { .kind = VB__PERF_CELL, .cell = sound }, got;

	(void)state;
	assert_true(comes_back(&word, &got));
	assert_int_equal(got.kind, VB__PERF_CELL);
	assert_memory_equal(&got.cell, &sound, sizeof(sound));
}

static void figures_come_back(void **state)
{
	struct vb__perf_word word = { .kind = VB__PERF_FIGURES, .figures = { 1, 2, 3, 4, 5, 6 } },
			     got;

	(void)state;
	assert_true(comes_back(&word, &got));
	assert_memory_equal(&got.figures, &word.figures, sizeof(word.figures));
}

static void a_refusal_brings_its_reason(void **state)
{
	struct vb__perf_word word = {
		.kind = VB__PERF_REFUSED, .code = VB_ERR_TOO_BIG, .tail = "too big", .tail_len = 7
	};
	struct vb__perf_word got;

	(void)state;
	assert_true(comes_back(&word, &got));
	assert_int_equal(got.code, VB_ERR_TOO_BIG);
	assert_int_equal(got.tail_len, 7);
	assert_memory_equal(got.tail, "too big", 7);
}

static void a_refusal_cannot_command_a_terminal(void **state)
{
	struct vb__perf_word word = {
		.kind = VB__PERF_REFUSED, .code = VB_ERR_TOO_BIG, .tail = "\33[2J", .tail_len = 4
	};
	struct vb__perf_word got;

	(void)state;
	assert_false(comes_back(&word, &got));
}

static void a_code_that_we_do_not_know_is_a_protocol_error(void **state)
{
	struct vb__perf_word word = { .kind = VB__PERF_REFUSED, .code = (enum vb_err) - 99 }, got;

	(void)state;
	assert_true(comes_back(&word, &got));
	assert_int_equal(got.code, VB_ERR_PROTOCOL);
}

static void cells_are_bounded(void **state)
{
	struct vb_perf_cell cell;

	(void)state;
	assert_true(cell_is_believed(sound));
#define REFUSES(field, value)                         \
	do {                                          \
		cell = sound;                         \
		cell.field = value;                   \
		assert_false(cell_is_believed(cell)); \
	} while (0)
	REFUSES(op, (enum vb_perf_op)6);
	REFUSES(qp, (enum vb_perf_qp)3);
	REFUSES(kind, (enum vb_perf_kind)2);
	REFUSES(wait, (enum vb_perf_wait)2);
	REFUSES(bytes, 0);
	REFUSES(bytes, VB_PERF_BYTES_MAX + 1);
	REFUSES(depth, 0);
	REFUSES(depth, VB_PERF_DEPTH_MAX + 1);
	REFUSES(rails, 0);
	REFUSES(rails, VB_PERF_RAILS_MAX + 1);
	REFUSES(duration_ms, 0);
	REFUSES(duration_ms, VB_PERF_DURATION_MAX_MS + 1);
}

static void other_messages_are_not_taken_for_words(void **state)
{
	struct vb__perf_word word = { .kind = VB__PERF_BEGIN }, got;
	uint8_t bytes[VB__PERF_WORD_MAX + 1] = { 0 };
	size_t len = vb__perf_word_encode(bytes, &word);

	(void)state;
	assert_false(vb__perf_word_decode(&got, bytes, len - 1));
	assert_false(vb__perf_word_decode(&got, bytes, len + 1)); /* it has no tail */
	assert_false(vb__perf_word_decode(&got, bytes, sizeof(bytes)));
	bytes[4] = 99;
	assert_false(vb__perf_word_decode(&got, bytes, len));
	bytes[4] = VB__PERF_BEGIN;
	bytes[0] ^= 1;
	assert_false(vb__perf_word_decode(&got, bytes, len));
}

static void a_pass_comes_back_and_is_bounded(void **state)
{
	struct vb__perf_pass pass = {
		.key = 1, .rail = 15, .receives = 9, .data = { 2, 3 }, .ledger = { 4, 5 }
	};
	uint8_t bytes[VB__PERF_PASS];
	struct vb__perf_pass got;

	(void)state;
	vb__perf_pass_encode(bytes, &pass);
	assert_true(vb__perf_pass_decode(&got, bytes, sizeof(bytes)));
	assert_int_equal(got.key, 1);
	assert_int_equal(got.rail, 15);
	assert_int_equal(got.receives, 9);
	assert_int_equal(got.data.key, 3);
	assert_int_equal(got.ledger.addr, 4);
	assert_false(vb__perf_pass_decode(&got, bytes, sizeof(bytes) - 1));
	pass.rail = VB_PERF_RAILS_MAX;
	vb__perf_pass_encode(bytes, &pass);
	assert_false(vb__perf_pass_decode(&got, bytes, sizeof(bytes)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cell_comes_back),
		cmocka_unit_test(figures_come_back),
		cmocka_unit_test(a_refusal_brings_its_reason),
		cmocka_unit_test(a_refusal_cannot_command_a_terminal),
		cmocka_unit_test(a_code_that_we_do_not_know_is_a_protocol_error),
		cmocka_unit_test(cells_are_bounded),
		cmocka_unit_test(other_messages_are_not_taken_for_words),
		cmocka_unit_test(a_pass_comes_back_and_is_bounded),
	};

	return cmocka_run_group_tests_name("perf_word", tests, NULL, NULL);
}
