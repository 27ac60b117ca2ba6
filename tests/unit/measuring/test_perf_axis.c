/* SPDX-License-Identifier: Apache-2.0 */
/* Axes: ticks are few, round and inside, whatever the values. */
#include "perf/axis.h"

#include <math.h>
#include <stdint.h>

#include "suite.h"

static void assert_sound(const struct axis *axis)
{
	assert_in_range(axis->count, 1, AXIS_TICKS);
	assert_true(axis->high > axis->low);
	for (size_t i = 0; i < axis->count; i++) {
		assert_true(axis->tick[i] >= axis->low * 0.999);
		assert_true(axis->tick[i] <= axis->high * 1.001);
		assert_true(i == 0 || axis->tick[i] > axis->tick[i - 1]);
	}
}

static void linear_ones_begin_at_zero_and_hold_the_most(void **state)
{
	struct axis axis;

	(void)state;
	for (double most = 1e-6; most < 1e15; most *= 1.37) {
		axis_linear(&axis, most);
		assert_sound(&axis);
		assert_true(axis.low == 0 && axis.high >= most * 0.999999);
		assert_true(axis.high <= most * 1.5);
		assert_in_range(axis.count, 4, 11);
	}
	axis_linear(&axis, 100);
	assert_true(fabs(axis.tick[1] - 20) < 1e-9 && axis.count == 6);
}

static void logarithmic_ones_hold_all_and_do_not_crowd(void **state)
{
	struct axis axis;

	(void)state;
	for (double least = 1e-3; least < 1e6; least *= 3.7)
		for (double most = least; most < 1e9; most *= 2.9) {
			axis_log10(&axis, least, most);
			assert_sound(&axis);
			assert_true(axis.low <= least * 1.001 && axis.high >= most * 0.999);
			assert_in_range(axis.count, 1, 16);
		}
}

static void sizes_are_powers_of_two(void **state)
{
	struct axis axis;

	(void)state;
	for (unsigned low = 0; low < 30; low++)
		for (unsigned high = low; high <= 30; high++) {
			axis_log2(&axis, exp2(low), exp2(high));
			assert_sound(&axis);
			assert_in_range(axis.count, 1, 14);
			for (size_t i = 0; i < axis.count; i++)
				assert_true(log2(axis.tick[i]) == floor(log2(axis.tick[i])));
		}
	axis_log2(&axis, 3, 3);
	assert_sound(&axis);
}

static void nonsense_makes_an_axis_all_the_same(void **state)
{
	const double bad[] = { 0, -1, NAN, INFINITY };
	struct axis axis;

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++) {
		axis_linear(&axis, bad[i]);
		assert_sound(&axis);
		axis_log10(&axis, bad[i], bad[i]);
		assert_sound(&axis);
		axis_log2(&axis, bad[i], bad[i]);
		assert_sound(&axis);
	}
}

static void places_are_between_the_ends(void **state)
{
	struct axis axis;

	(void)state;
	axis_linear(&axis, 100);
	axis.from = 200;
	axis.to = 0;
	assert_true(fabs(axis_place(&axis, 50) - 100) < 1e-9);
	assert_true(axis_place(&axis, -5) == 200);
	assert_true(axis_place(&axis, 1e9) == 0);
	assert_true(axis_place(&axis, NAN) == 200);
	axis_log10(&axis, 1, 100);
	axis.from = 0;
	axis.to = 10;
	assert_true(fabs(axis_place(&axis, 10) - 5) < 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(linear_ones_begin_at_zero_and_hold_the_most),
		cmocka_unit_test(logarithmic_ones_hold_all_and_do_not_crowd),
		cmocka_unit_test(sizes_are_powers_of_two),
		cmocka_unit_test(nonsense_makes_an_axis_all_the_same),
		cmocka_unit_test(places_are_between_the_ends),
	};

	return cmocka_run_group_tests_name("axis", tests, NULL, NULL);
}
