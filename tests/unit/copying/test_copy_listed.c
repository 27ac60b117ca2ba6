/* SPDX-License-Identifier: Apache-2.0 */
/* --files-from: the list, and the rules that come of it. */
#include "copy/listed.h"

#include <string.h>

#include "suite.h"

static void paths_are_cleaned(void **state)
{
	static const char text[] = "a\n\n/b/c/\n./d//e/.\n.\nlast";
	struct list listed = { 0 };

	(void)state;
	assert_null(listed_parse(&listed, text, strlen(text), '\n'));
	assert_int_equal(listed.count, 4);
	assert_string_equal(listed.item[0], "a");
	assert_string_equal(listed.item[1], "b/c");
	assert_string_equal(listed.item[2], "d/e");
	assert_string_equal(listed.item[3], "last");
	list_free(&listed);
}

static void with_from0_a_newline_is_part_of_a_name(void **state)
{
	static const char text[] = "a\nb\0c";
	struct list listed = { 0 };

	(void)state;
	assert_null(listed_parse(&listed, text, sizeof(text) - 1, '\0'));
	assert_int_equal(listed.count, 2);
	assert_string_equal(listed.item[0], "a\nb");
	assert_non_null(listed_parse(&listed, text, sizeof(text) - 1, '\n'));
	list_free(&listed);
}

static void no_path_leaves_the_source(void **state)
{
	static const char *const cases[] = { "..", "a/../../b", "../b" };
	struct list listed = { 0 };

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_non_null(listed_parse(&listed, cases[i], strlen(cases[i]), '\n'));
	list_free(&listed);
}

static void rules_take_the_way_the_path_and_what_is_in_it(void **state)
{
	static const char *const expected[] = {
		"+ /a/",       "+ /a/b/", "+ /a/b/c", "+ /a/b/c/**", "+ /a/b/d",
		"+ /a/b/d/**", "+ /e/",	  "+ /e/\\*", "+ /e/\\*/**", "- *",
	};
	struct list listed = { 0 }, rules = { 0 };

	(void)state;
	list_add(&listed, "a/b/d");
	list_add(&listed, "e/*");
	list_add(&listed, "a/b/c");
	list_add(&listed, "a/b/d");
	assert_int_equal(listed_rules(&rules, &listed), 0);
	assert_int_equal(rules.count, COUNT(expected));
	for (size_t i = 0; i < rules.count; i++)
		assert_string_equal(rules.item[i], expected[i]);
	list_free(&rules);
	list_free(&listed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_are_cleaned),
		cmocka_unit_test(with_from0_a_newline_is_part_of_a_name),
		cmocka_unit_test(no_path_leaves_the_source),
		cmocka_unit_test(rules_take_the_way_the_path_and_what_is_in_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
