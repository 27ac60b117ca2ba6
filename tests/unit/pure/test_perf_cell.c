/* SPDX-License-Identifier: Apache-2.0 */
/* Cells: which there are, on what, and in how much memory; and the patterns of checked messages. */
#include <string.h>

#include "perf/perf_cell.h"
#include "perf/perf_pattern.h"
#include "suite.h"

static int check(enum vb_perf_op op, enum vb_perf_qp qp)
{
	struct vb_perf_cell cell = { .op = op, .qp = qp };

	return vb_perf_check(&cell, NULL);
}

static void the_table_of_operations_and_types_is_kept(void **state)
{
	(void)state;
	for (enum vb_perf_op op = VB_PERF_SEND; op <= VB_PERF_CAS; op++)
		assert_int_equal(check(op, VB_PERF_RC), 0);
	assert_int_equal(check(VB_PERF_SEND, VB_PERF_UC), 0);
	assert_int_equal(check(VB_PERF_WRITE, VB_PERF_UC), 0);
	assert_int_equal(check(VB_PERF_WRITE_IMM, VB_PERF_UC), 0);
	assert_int_equal(check(VB_PERF_SEND, VB_PERF_UD), 0);
	for (enum vb_perf_op op = VB_PERF_READ; op <= VB_PERF_CAS; op++)
		assert_int_equal(check(op, VB_PERF_UC), VB_ERR_UNSUPPORTED);
	for (enum vb_perf_op op = VB_PERF_WRITE; op <= VB_PERF_CAS; op++)
		assert_int_equal(check(op, VB_PERF_UD), VB_ERR_UNSUPPORTED);
}

static void what_there_is_not_says_why(void **state)
{
	struct vb_perf_cell cell = { .op = VB_PERF_READ, .qp = VB_PERF_UC };
	struct vb_error err;

	(void)state;
	vb_perf_check(&cell, &err);
	assert_non_null(strstr(err.cause, "answer"));
	cell = (struct vb_perf_cell){ .op = VB_PERF_WRITE,
				      .kind = VB_PERF_LATENCY,
				      .wait = VB_PERF_EVENT };
	assert_int_equal(vb_perf_check(&cell, &err), VB_ERR_UNSUPPORTED);
	assert_non_null(strstr(err.hint, "write_imm"));
}

static void numbers_over_their_limits_are_refused(void **state)
{
	struct vb_perf_cell cells[] = {
		{ .bytes = VB_PERF_BYTES_MAX + 1 }, { .depth = VB_PERF_DEPTH_MAX + 1 },
		{ .rails = VB_PERF_RAILS_MAX + 1 }, { .duration_ms = VB_PERF_DURATION_MAX_MS + 1 },
		{ .op = (enum vb_perf_op)9 },	    { .op = VB_PERF_CAS, .bytes = 64 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cells); i++)
		assert_int_equal(vb_perf_check(&cells[i], NULL), VB_ERR_INVALID);
}

static void defaults_are_put_in(void **state)
{
	struct vb_perf_cell cell = { .op = VB_PERF_FETCH_ADD };

	(void)state;
	vb__perf_cell_settle(&cell);
	assert_int_equal(cell.bytes, 8);
	assert_int_equal(cell.depth, 16);
	assert_int_equal(cell.rails, 1);
	assert_int_equal(cell.duration_ms, 500);
}

static void what_a_device_has_not_is_told(void **state)
{
	struct vb_perf_cell cell = { .op = VB_PERF_WRITE_IMM, .bytes = 100 };
	struct vb_error err = { .code = VB_OK };

	(void)state;
	assert_int_equal(vb__perf_cell_fits(&cell, 0, 4096, "siw0", &err), VB_ERR_UNSUPPORTED);
	assert_string_equal(err.object, "siw0");
	assert_int_equal(vb__perf_cell_fits(&cell, VB__CAP_IMM, 4096, "x", NULL), 0);
	assert_int_equal(vb__perf_cell_fits(&cell, VB__CAP_IMM, 99, "x", NULL), VB_ERR_TOO_BIG);
	cell = (struct vb_perf_cell){ .op = VB_PERF_CAS, .bytes = 8 };
	assert_int_equal(vb__perf_cell_fits(&cell, VB__CAP_IMM, 4096, "x", NULL),
			 VB_ERR_UNSUPPORTED);
}

/* All cells that there are, at the ends of their ranges. */
static void memory_is_bounded_and_holds_what_is_posted(void **state)
{
	static const uint32_t sizes[] = { 1, 64, 4096, 1u << 20, VB_PERF_BYTES_MAX };

	(void)state;
	for (unsigned i = 0; i < 6 * 2 * 2 * COUNT(sizes) * 2; i++) {
		struct vb_perf_cell cell = {
			.op = i % 6,
			.kind = i / 6 % 2,
			.check = i / 12 % 2,
			.bytes = sizes[i / 24 % COUNT(sizes)],
			.depth = i / 120 % 2 ? VB_PERF_DEPTH_MAX : 1,
			.rails = 1,
		};
		struct vb__perf_layout l;

		if (vb__perf_layout(&cell, &l, NULL) != 0)
			continue;
		assert_true(l.bytes <= VB_PERF_MEMORY_MAX);
		assert_true(l.slot_bytes >= cell.bytes);
		assert_true(l.in_at >= l.out_at + l.out_slots * l.slot_bytes);
		assert_true(l.bytes >= l.in_at + l.in_slots * l.slot_bytes);
		assert_true(l.receives >= 1);
		/* A checked message has a place of its own until it has been looked at. */
		if (cell.check && vb__perf_takes_receives(cell.op) &&
		    cell.kind == VB_PERF_BANDWIDTH)
			assert_true(l.in_slots >= l.receives && l.out_slots == cell.depth);
	}
}

static void too_much_memory_is_refused(void **state)
{
	struct vb_perf_cell cell = { .bytes = VB_PERF_BYTES_MAX, .depth = 16, .rails = 4 };
	struct vb__perf_layout layout;

	(void)state;
	assert_int_equal(vb__perf_layout(&cell, &layout, NULL), VB_ERR_TOO_BIG);
}

static void a_cell_has_a_time_limit(void **state)
{
	struct vb_perf_cell cell = { .bytes = 65536, .depth = 16, .rails = 2, .duration_ms = 500 };

	(void)state;
	assert_int_equal(vb__perf_span_ms(&cell), 500);
	/* 2 MiB under way, at 10 MB/s. */
	assert_int_equal(vb__perf_patience_ms(&cell, 1000), 1209);
	cell.count = 1000;
	assert_int_equal(vb__perf_span_ms(&cell), 2 * 1000 * 7);
	cell = (struct vb_perf_cell){
		.bytes = VB_PERF_BYTES_MAX, .depth = 1, .rails = 16, .count = UINT32_MAX
	};
	assert_int_equal(vb__perf_span_ms(&cell), UINT32_MAX);
}

static void more_than_can_have_been_sent_is_noticed(void **state)
{
	struct vb_perf_cell cell = { .op = VB_PERF_SEND, .rails = 2 };

	(void)state;
	assert_true(vb__perf_is_possible(&cell, 100, 100, 8));
	assert_true(vb__perf_is_possible(&cell, 108, 100, 8));
	assert_false(vb__perf_is_possible(&cell, 109, 100, 8));
	assert_false(vb__perf_is_possible(&cell, 99, 100, 8));
	assert_false(vb__perf_is_possible(&cell, UINT64_MAX, 100, 8));
	cell.qp = VB_PERF_UD;
	assert_true(vb__perf_is_possible(&cell, 100000, 100, 8));
	cell.count = 50;
	assert_true(vb__perf_is_possible(&cell, 100, 90, 8));
	assert_false(vb__perf_is_possible(&cell, 101, 90, 8));
}

static void patterns_tell_their_number(void **state)
{
	uint8_t bytes[100];

	(void)state;
	for (size_t len = 1; len <= sizeof(bytes); len++) {
		vb__perf_pattern_fill(bytes, len, 77);
		assert_true(vb__perf_pattern_is(bytes, len, 77));
		assert_false(vb__perf_pattern_is(bytes, len, 78));
		assert_int_equal(vb__perf_pattern_number(bytes, len), 77);
		bytes[len - 1] ^= 0x40;
		assert_false(vb__perf_pattern_is(bytes, len, 77));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_of_operations_and_types_is_kept),
		cmocka_unit_test(what_there_is_not_says_why),
		cmocka_unit_test(numbers_over_their_limits_are_refused),
		cmocka_unit_test(defaults_are_put_in),
		cmocka_unit_test(what_a_device_has_not_is_told),
		cmocka_unit_test(memory_is_bounded_and_holds_what_is_posted),
		cmocka_unit_test(too_much_memory_is_refused),
		cmocka_unit_test(a_cell_has_a_time_limit),
		cmocka_unit_test(more_than_can_have_been_sent_is_noticed),
		cmocka_unit_test(patterns_tell_their_number),
	};

	return cmocka_run_group_tests_name("perf_cell", tests, NULL, NULL);
}
