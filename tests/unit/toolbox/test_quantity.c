/* SPDX-License-Identifier: Apache-2.0 */
/* Amounts, as people write and read them. */
#include "common/quantity.h"

#include "suite.h"

static void sizes_are_understood(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} cases[] = {
		{ "0", 0 },
		{ "0.0K", 0 },
		{ "4096", 4096 },
		{ "4096B", 4096 },
		{ "64K", 65536 },
		{ "64k", 65536 },
		{ "64KiB", 65536 },
		{ "64KB", 64000 },
		{ "1M", 1 << 20 },
		{ "1.5M", 3 << 19 },
		{ "0.25K", 256 },
		{ "2G", UINT64_C(2) << 30 },
		{ "2gb", UINT64_C(2000000000) },
		{ "1T", UINT64_C(1) << 40 },
		{ "1.9999999999K", 2047 },
		{ "18446744073709551615", UINT64_MAX },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		uint64_t bytes = 1;

		assert_int_equal(quantity_size(cases[i].text, &bytes), 0);
		assert_int_equal(bytes, cases[i].bytes);
	}
}

static void what_is_no_size_is_refused(void **state)
{
	static const char *const cases[] = {
		"",	     "K",
		"x",	     "12x",
		"-1",	     "+1",
		" 1",	     "1 ",
		"1.",	     ".5",
		"1.5.2",     "1K2",
		"1e6",	     "0x1000",
		"1KK",	     "1 GB",
		"1\n",	     "18446744073709551616",
		"16777216T", "99999999999999999999G",
		"0.5",	     "0.0000001G",
	};
	uint64_t bytes;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_int_equal(quantity_size(cases[i], &bytes), -1);
}

static void times_are_understood_or_refused(void **state)
{
	uint64_t ms;

	(void)state;
	assert_int_equal(quantity_time("10", &ms), 0);
	assert_int_equal(ms, 10000);
	assert_int_equal(quantity_time("0.25", &ms), 0);
	assert_int_equal(ms, 250);
	assert_int_equal(quantity_time("250ms", &ms), 0);
	assert_int_equal(ms, 250);
	assert_int_equal(quantity_time("2m", &ms), 0);
	assert_int_equal(ms, 120000);
	assert_int_equal(quantity_time("1.5h", &ms), 0);
	assert_int_equal(ms, 5400000);
	assert_int_equal(quantity_time("soon", &ms), -1);
	assert_int_equal(quantity_time("0.0001", &ms), -1);
	assert_int_equal(quantity_time("1d", &ms), -1);
	assert_int_equal(quantity_time("-1", &ms), -1);
}

static void counts_are_digits_only(void **state)
{
	uint64_t count;

	(void)state;
	assert_int_equal(quantity_count("1000", &count), 0);
	assert_int_equal(count, 1000);
	assert_int_equal(quantity_count("1K", &count), -1);
	assert_int_equal(quantity_count("1.5", &count), -1);
	assert_int_equal(quantity_count("", &count), -1);
}

static void amounts_show_three_digits(void **state)
{
	char text[QUANTITY_TEXT];

	(void)state;
	assert_string_equal(quantity_bytes(text, 0), "0 B");
	assert_string_equal(quantity_bytes(text, 999), "999 B");
	assert_string_equal(quantity_bytes(text, 1000), "1.00 kB");
	assert_string_equal(quantity_bytes(text, 9994), "9.99 kB");
	assert_string_equal(quantity_bytes(text, 9996), "10.0 kB");
	assert_string_equal(quantity_bytes(text, 123456789), "123 MB");
	assert_string_equal(quantity_bytes(text, 999600), "1.00 MB");
	assert_string_equal(quantity_bytes(text, UINT64_MAX), "18.4 EB");
	assert_string_equal(quantity_rate(text, 5103000000), "5.10 GB/s");
}

static void durations_are_read_as_on_a_clock(void **state)
{
	char text[QUANTITY_TEXT];

	(void)state;
	assert_string_equal(quantity_duration(text, 7), "0:07");
	assert_string_equal(quantity_duration(text, 754), "12:34");
	assert_string_equal(quantity_duration(text, 3723), "1:02:03");
	assert_string_equal(quantity_duration(text, UINT64_MAX), "long");
}

static void speed_needs_time_and_does_not_overflow(void **state)
{
	(void)state;
	assert_int_equal(quantity_speed(1000, 0), 0);
	assert_int_equal(quantity_speed(1000, 500000000), 2000);
	assert_int_equal(quantity_speed(UINT64_MAX, 1), UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_are_understood),
		cmocka_unit_test(what_is_no_size_is_refused),
		cmocka_unit_test(times_are_understood_or_refused),
		cmocka_unit_test(counts_are_digits_only),
		cmocka_unit_test(amounts_show_three_digits),
		cmocka_unit_test(durations_are_read_as_on_a_clock),
		cmocka_unit_test(speed_needs_time_and_does_not_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
