/* SPDX-License-Identifier: Apache-2.0 */
/* Charts: well-formed whatever they show, with a panel and a line for what there is. */
#include "perf/chart.h"

#include <stdlib.h>
#include <string.h>

#include "suite.h"

static char *text;

static const char *drawn(const char *title, const struct series *series, size_t count)
{
	size_t size;
	FILE *out = open_memstream(&text, &size);

	chart_write(out, title, series, count);
	fclose(out);
	return text;
}

static int forget(void **state)
{
	(void)state;
	free(text);
	text = NULL;
	return 0;
}

static unsigned count_of(const char *what)
{
	unsigned n = 0;

	for (const char *at = text; (at = strstr(at, what)); at++)
		n++;
	return n;
}

static struct series sample(const char *label, bool latency)
{
	struct series s = { .count = 0 };

	snprintf(s.label, sizeof(s.label), "%s", label);
	for (unsigned i = 1; i <= 20; i++)
		s.row[s.count++] = (struct series_row){
			.size = 1u << i,
			.has_bandwidth = true,
			.has_latency = latency,
			.bandwidth = { .bytes_per_second = 1e6 * i },
			.latency = { .median_ns = 1000u * i, .p99_ns = 1500u * i },
		};
	return s;
}

static void both_panels_are_drawn(void **state)
{
	struct series s = sample("one", true);

	(void)state;
	assert_non_null(strstr(drawn("title", &s, 1), "Bandwidth, MB/s"));
	assert_non_null(strstr(text, "Latency"));
	assert_int_equal(count_of("<polyline"), 3);
	assert_int_equal(count_of("</svg>"), 1);
}

static void what_was_not_measured_has_no_panel(void **state)
{
	struct series s = sample("one", false);

	(void)state;
	assert_null(strstr(drawn("title", &s, 1), "Latency"));
	assert_int_equal(count_of("<polyline"), 1);
}

static void each_series_has_its_line_and_label(void **state)
{
	struct series all[CHART_SERIES];

	(void)state;
	for (unsigned i = 0; i < CHART_SERIES; i++)
		all[i] = sample(i % 2 ? "odd" : "even", true);
	drawn("title", all, CHART_SERIES);
	assert_int_equal(count_of("<polyline"), 3 * CHART_SERIES);
	assert_int_equal(count_of(">odd<"), CHART_SERIES / 2);
}

static void labels_cannot_break_the_document(void **state)
{
	struct series s = sample("<script>&\33[2J\xff", true);

	(void)state;
	drawn("a<b>&c", &s, 1);
	assert_null(strstr(text, "<script"));
	assert_null(strchr(text, '\33'));
	assert_null(strchr(text, '\xff'));
	assert_non_null(strstr(text, "&lt;script>&amp;"));
	assert_non_null(strstr(text, "a&lt;b>&amp;c"));
}

static void long_labels_are_cut(void **state)
{
	struct series two[2] = { sample("", true), sample("short", true) };

	(void)state;
	memset(two[0].label, 'x', sizeof(two[0].label) - 1);
	assert_non_null(strstr(drawn("t", two, 2), "xxx…</text>"));
}

/* As --add may bring them from a file. */
static void strange_numbers_are_drawn_inside(void **state)
{
	struct series s = sample("strange", true);

	(void)state;
	s.row[0].bandwidth.bytes_per_second = -5;
	s.row[1].bandwidth.bytes_per_second = 0;
	s.row[2].latency.median_ns = 0;
	s.row[3].latency.p99_ns = UINT64_MAX;
	s.row[4].size = 1;
	drawn("t", &s, 1);
	assert_null(strstr(text, "nan"));
	assert_null(strstr(text, "inf"));
	assert_null(strstr(text, "\"-"));
}

static void nothing_at_all_is_a_document_too(void **state)
{
	(void)state;
	drawn("t", NULL, 0);
	assert_int_equal(count_of("</svg>"), 1);
}

static void a_file_that_cannot_be_written_is_told(void **state)
{
	struct series s = sample("one", true);
	struct vb_error err = { .code = VB_OK };

	(void)state;
	assert_int_equal(chart_save("/nosuchdir/x.svg", "t", &s, 1, &err), VB_ERR_IO);
	assert_string_equal(err.object, "/nosuchdir/x.svg");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(both_panels_are_drawn, forget),
		cmocka_unit_test_teardown(what_was_not_measured_has_no_panel, forget),
		cmocka_unit_test_teardown(each_series_has_its_line_and_label, forget),
		cmocka_unit_test_teardown(labels_cannot_break_the_document, forget),
		cmocka_unit_test_teardown(long_labels_are_cut, forget),
		cmocka_unit_test_teardown(strange_numbers_are_drawn_inside, forget),
		cmocka_unit_test_teardown(nothing_at_all_is_a_document_too, forget),
		cmocka_unit_test(a_file_that_cannot_be_written_is_told),
	};

	return cmocka_run_group_tests_name("chart", tests, NULL, NULL);
}
