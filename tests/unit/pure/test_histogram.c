/* SPDX-License-Identifier: Apache-2.0 */
/* Histograms: percentiles to 1 % whatever the times, the ends exactly. */
#include "perf/histogram.h"

#include "suite.h"

static struct vb__histogram h;

static int clear(void **state)
{
	(void)state;
	h = (struct vb__histogram){ .count = 0 };
	return 0;
}

static void assert_near(uint64_t got, uint64_t wanted)
{
	uint64_t off = got > wanted ? got - wanted : wanted - got;

	assert_true(off <= wanted / 100);
}

static void an_empty_one_has_only_zeros(void **state)
{
	(void)state;
	assert_int_equal(vb__histogram_share(&h, 500000), 0);
}

static void one_value_is_all_of_them(void **state)
{
	(void)state;
	vb__histogram_add(&h, 123456789);
	assert_int_equal(vb__histogram_share(&h, 0), 123456789);
	assert_int_equal(vb__histogram_share(&h, 500000), 123456789);
	assert_int_equal(vb__histogram_share(&h, 1000000), 123456789);
}

static void shares_are_those_of_a_sorted_list(void **state)
{
	(void)state;
	for (uint64_t i = 1; i <= 100000; i++)
		vb__histogram_add(&h, i * 10);
	assert_int_equal(h.count, 100000);
	assert_int_equal(h.least, 10);
	assert_int_equal(h.most, 1000000);
	assert_near(vb__histogram_share(&h, 500000), 500000);
	assert_near(vb__histogram_share(&h, 990000), 990000);
	assert_near(vb__histogram_share(&h, 999000), 999000);
}

static void small_values_are_exact(void **state)
{
	(void)state;
	for (uint64_t i = 1; i <= 200; i++)
		vb__histogram_add(&h, i);
	assert_int_equal(vb__histogram_share(&h, 500000), 100);
	assert_int_equal(vb__histogram_share(&h, 990000), 198);
}

static void rare_slow_ones_are_seen_where_they_belong(void **state)
{
	(void)state;
	for (int i = 0; i < 9980; i++)
		vb__histogram_add(&h, 1000);
	for (int i = 0; i < 20; i++)
		vb__histogram_add(&h, 5000000);
	assert_near(vb__histogram_share(&h, 500000), 1000);
	assert_near(vb__histogram_share(&h, 990000), 1000);
	assert_near(vb__histogram_share(&h, 999000), 5000000);
}

static void any_value_has_a_cell(void **state)
{
	(void)state;
	for (unsigned shift = 0; shift < 64; shift++) {
		uint64_t value = UINT64_C(1) << shift;

		clear(state);
		vb__histogram_add(&h, value - 1);
		vb__histogram_add(&h, value);
		vb__histogram_add(&h, value + value / 2);
		vb__histogram_add(&h, UINT64_MAX);
		assert_near(vb__histogram_share(&h, 500000), value);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(an_empty_one_has_only_zeros, clear),
		cmocka_unit_test_setup(one_value_is_all_of_them, clear),
		cmocka_unit_test_setup(shares_are_those_of_a_sorted_list, clear),
		cmocka_unit_test_setup(small_values_are_exact, clear),
		cmocka_unit_test_setup(rare_slow_ones_are_seen_where_they_belong, clear),
		cmocka_unit_test_setup(any_value_has_a_cell, clear),
	};

	return cmocka_run_group_tests_name("histogram", tests, NULL, NULL);
}
