/* SPDX-License-Identifier: Apache-2.0 */
/* Time stamps: what they come to in nanoseconds. */
#include "perf/stopwatch.h"

#include "suite.h"

static void ticks_are_as_long_as_the_clock_says(void **state)
{
	struct vb__moment begin = { .ns = 1000, .ticks = 50 }, end = { .ns = 3000, .ticks = 5050 };

	(void)state;
	assert_int_equal(vb__ticks_in_ns(0, &begin, &end), 0);
	assert_int_equal(vb__ticks_in_ns(100, &begin, &end), 40);
	assert_int_equal(vb__ticks_in_ns(5000, &begin, &end), 2000);
}

static void years_of_ticks_do_not_overflow(void **state)
{
	struct vb__moment begin = { .ns = 0, .ticks = 0 },
			  end = { .ns = UINT64_C(1) << 60, .ticks = UINT64_C(1) << 62 };

	(void)state;
	assert_int_equal(vb__ticks_in_ns(UINT64_C(1) << 61, &begin, &end), UINT64_C(1) << 59);
}

static void a_counter_that_stands_or_goes_back_tells_no_time(void **state)
{
	struct vb__moment begin = { .ns = 10, .ticks = 100 }, end = { .ns = 20, .ticks = 99 };

	(void)state;
	assert_int_equal(vb__ticks_since(100, 99), 0);
	assert_int_equal(vb__ticks_since(99, 100), 1);
	assert_int_equal(vb__ticks_in_ns(5, &begin, &end), 0);
}

static void a_counter_far_from_any_processors_tells_no_time(void **state)
{
	struct vb__moment begin = { .ns = 0, .ticks = 0 }, fast = { .ns = 1000, .ticks = 22000 },
			  slow = { .ns = 22000, .ticks = 1000 },
			  odd = { .ns = 1000, .ticks = 10000 };

	(void)state;
	assert_int_equal(vb__ticks_in_ns(100, &begin, &fast), 0);
	assert_int_equal(vb__ticks_in_ns(100, &begin, &slow), 0);
	assert_int_equal(vb__ticks_in_ns(100, &begin, &odd), 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ticks_are_as_long_as_the_clock_says),
		cmocka_unit_test(years_of_ticks_do_not_overflow),
		cmocka_unit_test(a_counter_that_stands_or_goes_back_tells_no_time),
		cmocka_unit_test(a_counter_far_from_any_processors_tells_no_time),
	};

	return cmocka_run_group_tests_name("stopwatch", tests, NULL, NULL);
}
