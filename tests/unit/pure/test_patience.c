/* SPDX-License-Identifier: Apache-2.0 */
/* How often the kernel asks again what is not acknowledged, so that it does not give up before we do. */
#include "fabric/ofi/ofi_patience.h"
#include "suite.h"

static void it_asks_eight_times_in_a_time_out(void **state)
{
	(void)state;
	assert_int_equal(ofi_patience_pause_ms(10000, 15), 1250);
	assert_int_equal(ofi_patience_pause_ms(60000, 15), 7500);
}

static void it_asks_once_a_second_at_most(void **state)
{
	(void)state;
	assert_int_equal(ofi_patience_pause_ms(100, 15), 1000);
	assert_int_equal(ofi_patience_pause_ms(2000, 15), 1000);
}

/* The values are those of the kernel's tcp_model_timeout(). */
static void with_few_tries_it_asks_as_rarely_as_lasts_longer_than_the_time_out(void **state)
{
	(void)state;
	assert_int_equal(ofi_patience_pause_ms(3520, 5), 1000); /* 4400 ms */
	assert_int_equal(ofi_patience_pause_ms(3524, 5), 2000); /* 7000 ms */
	assert_int_equal(ofi_patience_pause_ms(10000, 5),
			 10000); /* 12600 ms: it ends before it has reached that */
	assert_int_equal(ofi_patience_pause_ms(60000, 8), 30000); /* 81000 ms */
}

static void where_nothing_helps_it_is_left_alone(void **state)
{
	(void)state;
	assert_int_equal(ofi_patience_pause_ms(60000, 3), 0);
	assert_int_equal(ofi_patience_pause_ms(5000, 0), 0);
	assert_int_equal(ofi_patience_pause_ms(600000, 15), 0);
	assert_int_equal(ofi_patience_pause_ms(UINT32_MAX, 15), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_asks_eight_times_in_a_time_out),
		cmocka_unit_test(it_asks_once_a_second_at_most),
		cmocka_unit_test(
			with_few_tries_it_asks_as_rarely_as_lasts_longer_than_the_time_out),
		cmocka_unit_test(where_nothing_helps_it_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
