/* SPDX-License-Identifier: Apache-2.0 */
/* Series: what --json writes, --add reads; what others wrote does no harm. Numbers in the table, too. */
#include "perf/series.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perf/flat.h"
#include "perf/table.h"
#include "suite.h"

static void a_row_comes_back(void **state)
{
	struct series_row row = {
		.size = 65536,
		.has_bandwidth = true,
		.has_latency = true,
		.bandwidth = { .bytes_per_second = 12345678.5, .messages = 77, .cpu_here = 0.5 },
		.latency = { .min_ns = 1001, .median_ns = 1234, .p99_ns = 5678, .p999_ns = 99999 },
	};
	struct series series = { .count = 0 };
	char *line = series_row_json(&row);

	(void)state;
	assert_int_equal(series_read_line(&series, line), 0);
	assert_int_equal(series.count, 1);
	assert_int_equal(series.row[0].size, 65536);
	assert_true(series.row[0].has_bandwidth && series.row[0].has_latency);
	assert_true(series.row[0].bandwidth.bytes_per_second == 12345678.5);
	assert_int_equal(series.row[0].bandwidth.messages, 77);
	assert_int_equal(series.row[0].latency.min_ns, 1001);
	assert_int_equal(series.row[0].latency.p999_ns, 99999);
	free(line);
}

static void what_was_not_measured_is_not_there(void **state)
{
	struct series_row row = { .size = 2, .has_latency = true };
	struct series series = { .count = 0 };
	char *line = series_row_json(&row);

	(void)state;
	assert_null(strstr(line, "bytes_per_s"));
	assert_int_equal(series_read_line(&series, line), 0);
	assert_false(series.row[0].has_bandwidth);
	assert_true(series.row[0].has_latency);
	free(line);
}

static void a_run_gives_the_label(void **state)
{
	struct series series = { .label = "file" };

	(void)state;
	assert_int_equal(series_read_line(&series,
					  "{\"event\": \"run\", \"label\": \"a \\\"b\\\"\", "
					  "\"x\": {\"y\": [1, \"}\"]}, \"z\": null}"),
			 0);
	assert_string_equal(series.label, "a \"b\"");
	assert_int_equal(series.count, 0);
}

static void other_lines_are_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"size",
		"{",
		"{\"a\"",
		"{\"a\": }",
		"{\"a\": 1",
		"{\"a\": 1 \"b\": 2}",
		"{\"a\": \"",
		"{\"a\": \"\\",
		"{\"a\": [[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]}",
		"{\"event\": \"row\"}",
		"{\"event\": \"row\", \"size\": 0}",
		"{\"event\": \"row\", \"size\": 1e300}",
		"{\"event\": \"row\", \"size\": maybe}",
	};
	struct series series = { .count = 0 };

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_int_equal(series_read_line(&series, bad[i]), -1);
	assert_int_equal(series.count, 0);
}

static void more_rows_than_fit_are_refused(void **state)
{
	const char *row = "{\"event\": \"row\", \"size\": 8, \"bytes_per_s\": -1e400}";
	struct series series = { .count = 0 };

	(void)state;
	for (unsigned i = 0; i < SIZES_MAX; i++)
		assert_int_equal(series_read_line(&series, row), 0);
	assert_int_equal(series_read_line(&series, row), -1);
}

static void long_texts_are_cut(void **state)
{
	struct series series = { .count = 0 };
	char line[1200] = "{\"label\": \"";

	(void)state;
	memset(line + strlen(line), 'x', 1000);
	strcpy(line + 1011, "\"}");
	assert_int_equal(series_read_line(&series, line), 0);
	assert_int_equal(strlen(series.label), SERIES_LABEL - 1);
}

static void rows_of_the_table_fit_a_terminal(void **state)
{
	struct series_row row = {
		.size = 1u << 30,
		.has_bandwidth = true,
		.has_latency = true,
		.bandwidth = { .bytes_per_second = 99.9e9,
			       .messages_per_second = 123456789,
			       .cpu_here = 16,
			       .cpu_there = 16 },
		.latency = { .min_ns = 1234567, .median_ns = 99999999, .p99_ns = 1, .p999_ns = 0 },
	};
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	table_heading(out);
	table_row(out, &row);
	fclose(out);
	for (const char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		assert_true(strlen(line) <= 80);
	free(text);
}

static void numbers_have_three_digits(void **state)
{
	char text[TABLE_NUMBER];

	(void)state;
	assert_string_equal(table_number(text, 0), "0.00");
	assert_string_equal(table_number(text, 9.99), "9.99");
	assert_string_equal(table_number(text, 999.4), "999");
	assert_string_equal(table_number(text, 999.6), "1.00k");
	assert_string_equal(table_number(text, 4560000), "4.56M");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_row_comes_back),
		cmocka_unit_test(what_was_not_measured_is_not_there),
		cmocka_unit_test(a_run_gives_the_label),
		cmocka_unit_test(other_lines_are_refused),
		cmocka_unit_test(more_rows_than_fit_are_refused),
		cmocka_unit_test(long_texts_are_cut),
		cmocka_unit_test(rows_of_the_table_fit_a_terminal),
		cmocka_unit_test(numbers_have_three_digits),
	};

	return cmocka_run_group_tests_name("series", tests, NULL, NULL);
}
