/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings that come in floods: how many lines they are, and that none is lost. */
#include <string.h>

#include "core/clock.h"
#include "core/warnings.h"
#include "suite.h"

#define START_NS 5000000000u
#define SECOND_NS 1000000000u

enum {
	REFUSED,
	LOST
};

struct heard {
	unsigned lines;
	char line[VB__LOG_LINE_MAX];
};

static void hear(void *arg, enum vb_log_level level, const char *line)
{
	struct heard *heard = arg;

	assert_int_equal(level, VB_LOG_WARNING);
	heard->lines++;
	strcpy(heard->line, line);
}

static struct vb__warnings warnings_to(struct heard *heard)
{
	*heard = (struct heard){ .lines = 0 };
	return (struct vb__warnings){ .log = { hear, heard, VB_LOG_WARNING } };
}

static void the_first_of_each_kind_is_told_at_once(void **state)
{
	struct heard heard;
	struct vb__warnings warnings = warnings_to(&heard);

	(void)state;
	vb__warnings_add(&warnings, REFUSED, START_NS, "port %d was refused", 7);
	assert_string_equal(heard.line, "port 7 was refused");
	vb__warnings_add(&warnings, LOST, START_NS, "port %d was lost", 8);
	assert_string_equal(heard.line, "port 8 was lost");
	assert_int_equal(heard.lines, 2);
}

static void those_of_the_same_second_are_told_together_when_it_is_over(void **state)
{
	struct heard heard;
	struct vb__warnings warnings = warnings_to(&heard);

	(void)state;
	for (int port = 1; port <= 8; port++)
		vb__warnings_add(&warnings, REFUSED, START_NS, "port %d was refused", port);
	assert_int_equal(vb__warnings_tell(&warnings, START_NS + SECOND_NS - 1),
			 START_NS + SECOND_NS);
	assert_int_equal(heard.lines, 1);
	assert_int_equal(vb__warnings_tell(&warnings, START_NS + SECOND_NS), UINT64_MAX);
	assert_int_equal(heard.lines, 2);
	assert_string_equal(heard.line, "7 more like this: port 8 was refused");
}

static void a_single_one_more_is_told_in_its_own_words(void **state)
{
	struct heard heard;
	struct vb__warnings warnings = warnings_to(&heard);

	(void)state;
	vb__warnings_add(&warnings, REFUSED, START_NS, "port 1 was refused");
	vb__warnings_add(&warnings, REFUSED, START_NS + 1, "port 2 was refused");
	vb__warnings_tell(&warnings, START_NS + SECOND_NS);
	assert_string_equal(heard.line, "port 2 was refused");
}

static void what_nobody_looked_after_is_told_with_the_next(void **state)
{
	struct heard heard;
	struct vb__warnings warnings = warnings_to(&heard);

	(void)state;
	for (int port = 1; port <= 3; port++)
		vb__warnings_add(&warnings, REFUSED, START_NS, "port %d was refused", port);
	vb__warnings_add(&warnings, REFUSED, START_NS + 9ull * SECOND_NS, "port 4 was refused");
	assert_int_equal(heard.lines, 2);
	assert_string_equal(heard.line, "3 more like this: port 4 was refused");
}

static void a_flood_is_a_line_a_second(void **state)
{
	struct heard heard;
	struct vb__warnings warnings = warnings_to(&heard);

	(void)state;
	for (uint64_t ms = 0; ms <= 3000; ms++)
		vb__warnings_add(&warnings, REFUSED, START_NS + vb__ms(ms), "it was refused");
	assert_int_equal(heard.lines, 4);
	assert_string_equal(heard.line, "1000 more like this: it was refused");
}

static void closing_tells_the_rest_once(void **state)
{
	struct heard heard;
	struct vb__warnings warnings = warnings_to(&heard);

	(void)state;
	for (int port = 1; port <= 3; port++)
		vb__warnings_add(&warnings, LOST, START_NS, "port %d was lost", port);
	vb__warnings_close(&warnings);
	assert_int_equal(heard.lines, 2);
	assert_string_equal(heard.line, "2 more like this: port 3 was lost");
	vb__warnings_close(&warnings);
	assert_int_equal(heard.lines, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_of_each_kind_is_told_at_once),
		cmocka_unit_test(those_of_the_same_second_are_told_together_when_it_is_over),
		cmocka_unit_test(a_single_one_more_is_told_in_its_own_words),
		cmocka_unit_test(what_nobody_looked_after_is_told_with_the_next),
		cmocka_unit_test(a_flood_is_a_line_a_second),
		cmocka_unit_test(closing_tells_the_rest_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
