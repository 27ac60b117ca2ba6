/* SPDX-License-Identifier: Apache-2.0 */
/* The progress line, from numbers and a width. */
#include "common/progress.h"

#include <stdio.h>
#include <string.h>

#include "common/printable.h"
#include "suite.h"

#define SECOND UINT64_C(1000000000)

static const struct vb_progress half = {
	.bytes = 2000000000,
	.total_bytes = 4000000000,
	.elapsed_ns = 4 * SECOND,
	.filled_here = 80,
	.filled_there = 5,
};

static void a_wide_line_tells_everything(void **state)
{
	char line[200];

	(void)state;
	assert_string_equal(progress_line(line, sizeof(line), 120, &half, 510000000),
			    "2.00 GB   510 MB/s   50%  ETA 0:04  average 500 MB/s  "
			    "buffers here  80%, there   5%");
}

static void without_a_total_there_is_no_eta(void **state)
{
	struct vb_progress now = half;
	char line[200];

	(void)state;
	now.total_bytes = UINT64_MAX;
	progress_line(line, sizeof(line), 120, &now, 0);
	assert_null(strstr(line, "ETA"));
	assert_null(strchr(line, '-'));
	assert_int_equal(progress_eta(&now), UINT64_MAX);
}

static void no_line_is_as_wide_as_the_terminal(void **state)
{
	char line[200];

	(void)state;
	for (unsigned width = 0; width < 130; width++) {
		progress_line(line, sizeof(line), width, &half, 510000000);
		assert_true(strlen(line) < (width ? width : 1));
	}
	assert_string_equal(progress_line(line, sizeof(line), 20, &half, 510000000),
			    "2.00 GB   510 MB/s");
	assert_string_equal(progress_line(line, sizeof(line), 6, &half, 510000000), "2.00 ");
	assert_string_equal(progress_line(line, 6, 80, &half, 510000000), "2.00 ");
}

static void nothing_yet_is_shown_without_nonsense(void **state)
{
	const struct vb_progress start = { .total_bytes = 1000 }, empty = { .total_bytes = 0 };
	char line[200];

	(void)state;
	progress_line(line, sizeof(line), 60, &start, 0);
	assert_non_null(strstr(line, "  0%  ETA -:--"));
	progress_line(line, sizeof(line), 60, &empty, 0);
	assert_non_null(strstr(line, "100%"));
}

static void the_rate_is_that_of_the_last_samples(void **state)
{
	struct progress progress = { .line = false };
	struct vb_progress now = { .bytes = 0 };
	uint64_t rate = 0;

	(void)state;
	for (int i = 0; i < 50; i++) {
		now.elapsed_ns += SECOND / 10;
		now.bytes += i < 25 ? 1000 : 5000;
		rate = progress_rate(&progress, &now);
		if (i == 24)
			assert_int_equal(rate, 10000);
	}
	assert_int_equal(rate, 50000);
	assert_int_equal(progress_rate(&progress, &now) > 0, 1);
}

/* Columns count, not bytes: two for each of these, which have three. */
static void wide_names_fill_the_line_and_no_more(void **state)
{
	struct vb_progress now = { .bytes = 2000000000,
				   .total_bytes = UINT64_MAX,
				   .elapsed_ns = SECOND,
				   .files = 12,
				   .total_files = 345 };
	char line[256];

	(void)state;
	snprintf(now.name, sizeof(now.name), "日本語日本語日本語");
	progress_line(line, sizeof(line), 60, &now, 510000000);
	assert_string_equal(line, "12/345 files  2.00 GB   510 MB/s  日本語日本語日本語");
	progress_line(line, sizeof(line), 48, &now, 510000000);
	assert_string_equal(line, "12/345 files  2.00 GB   510 MB/s  ...本語日本語");
	assert_true(printable_columns(line) < 48);
}

static void of_a_tree_files_and_a_name_are_told(void **state)
{
	struct vb_progress now = half;
	char line[200];

	(void)state;
	now.files = 12;
	now.total_files = 345;
	snprintf(now.name, sizeof(now.name), "some/directory/with a\x1b[31m name");
	assert_string_equal(progress_line(line, sizeof(line), 120, &now, 510000000),
			    "12/345 files  2.00 GB   510 MB/s   50%  ETA 0:04  "
			    "some/directory/with a\\x1b[31m name");
	now.counting = true;
	assert_string_equal(progress_line(line, sizeof(line), 60, &now, 510000000),
			    "12/345+ files  2.00 GB   510 MB/s  ...y/with a\\x1b[31m name");
	for (unsigned width = 0; width < 130; width++) {
		progress_line(line, sizeof(line), width, &now, 510000000);
		assert_true(strlen(line) < (width ? width : 1));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_a_tree_files_and_a_name_are_told),
		cmocka_unit_test(wide_names_fill_the_line_and_no_more),
		cmocka_unit_test(a_wide_line_tells_everything),
		cmocka_unit_test(without_a_total_there_is_no_eta),
		cmocka_unit_test(no_line_is_as_wide_as_the_terminal),
		cmocka_unit_test(nothing_yet_is_shown_without_nonsense),
		cmocka_unit_test(the_rate_is_that_of_the_last_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
