/* SPDX-License-Identifier: Apache-2.0 */
/* Rules: which entries they leave, and which rules make no sense. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "suite.h"
#include "tree/filter.h"

struct expectation {
	const char *pattern, *path;
	bool directory, matches;
};

static bool leaves(const char *rule, const char *path, bool directory)
{
	const char *const rules[] = { rule, NULL };
	struct vb__filter *filter;
	bool left;

	assert_int_equal(vb__filter_create(rules, &filter, NULL), 0);
	left = vb__filter_leaves(filter, path, directory);
	vb__filter_destroy(filter);
	return left;
}

static void assert_all(const struct expectation *expected, size_t count)
{
	char rule[100];

	for (size_t i = 0; i < count; i++) {
		const struct expectation *e = &expected[i];

		snprintf(rule, sizeof(rule), "- %s", e->pattern);
		if (leaves(rule, e->path, e->directory) != e->matches)
			fail_msg("\"%s\" and %s", rule, e->path);
	}
}

static void pattern_without_a_slash_is_for_the_last_component(void **state)
{
	static const struct expectation expected[] = {
		{ "*.o", "a.o", false, true },	     { "*.o", "dir/sub/a.o", false, true },
		{ "*.o", "a.oo", false, false },     { "*.o", "a.o/b", false, false },
		{ "core", "dir/core", true, true },  { "core", "dir/core.1", false, false },
		{ "a?c", "abc", false, true },	     { "a?c", "ac", false, false },
		{ "*", ".hidden", false, true },     { "a*b*c", "aXbYbZc", false, true },
		{ "a*b*c", "aXbYbZ", false, false },
	};

	(void)state;
	assert_all(expected, COUNT(expected));
}

static void slash_at_the_start_ties_it_to_the_top(void **state)
{
	static const struct expectation expected[] = {
		{ "/a", "a", false, true },	   { "/a", "b/a", false, false },
		{ "/a/*", "a/b", false, true },	   { "/a/*", "a/b/c", false, false },
		{ "/a/*", "x/a/b", false, false }, { "/*.o", "x/a.o", false, false },
		{ "/*", "x", false, true },	   { "/*/", "x", true, true },
	};

	(void)state;
	assert_all(expected, COUNT(expected));
}

static void slash_at_the_end_is_for_directories(void **state)
{
	static const struct expectation expected[] = {
		{ "tmp/", "tmp", true, true },	       { "tmp/", "tmp", false, false },
		{ "tmp/", "dir/tmp", true, true },     { "*/", "any", true, true },
		{ "*/", "any", false, false },	       { "a/tmp/", "x/a/tmp", true, true },
		{ "a/tmp/", "x/a/tmp", false, false },
	};

	(void)state;
	assert_all(expected, COUNT(expected));
}

static void slash_inside_matches_the_end_of_the_path(void **state)
{
	static const struct expectation expected[] = {
		{ "a/b", "a/b", false, true },	      { "a/b", "x/a/b", false, true },
		{ "a/b", "xa/b", false, false },      { "a/b", "a/b/c", false, false },
		{ "a/*.o", "a/x/y.o", false, false }, { "a/?", "x/a/b", false, true },
		{ "a?b", "a/b", false, false },
	};

	(void)state;
	assert_all(expected, COUNT(expected));
}

static void double_star_goes_over_slashes(void **state)
{
	static const struct expectation expected[] = {
		{ "/a/**", "a/b/c", false, true },	 { "/a/**", "a", true, false },
		{ "/a/**/z", "a/b/c/z", false, true },	 { "/a/**/z", "a/z", false, false },
		{ "**.o", "a/b/c.o", false, true },	 { "a**z", "x/a/b/z", false, true },
		{ "/a*b**c", "a1b/2/b/c", false, true }, { "/a*b**c", "a/b/c", false, false },
		{ "/**/x*y", "a/b/x1y", false, true },	 { "/**/x*y", "a/x1/y", false, false },
		{ "dir/***", "dir", true, true },	 { "dir/***", "dir", false, false },
		{ "dir/***", "x/dir/a/b", false, true }, { "/dir/***", "x/dir/a", false, false },
		{ "dir/***", "dirt/a", false, false },
	};

	(void)state;
	assert_all(expected, COUNT(expected));
}

static void classes_and_escapes_are_understood(void **state)
{
	static const struct expectation expected[] = {
		{ "[a-c]x", "bx", false, true },
		{ "[a-c]x", "dx", false, false },
		{ "[!a-c]x", "dx", false, true },
		{ "[^a-c]x", "bx", false, false },
		{ "[]]", "]", false, true },
		{ "[!]]", "]", false, false },
		{ "[a-]", "-", false, true },
		{ "[\\]x]", "]", false, true },
		{ "a[!b]c", "a/c", false, false },
		{ "[[:digit:]]", "7", false, true },
		{ "[[:digit:]x]", "x", false, true },
		{ "[![:digit:]]", "7", false, false },
		{ "\\*", "*", false, true },
		{ "\\*", "a", false, false },
		{ "/\\*/a\\b", "*/ab", false, true },
		{ "/\\*/a\\b", "x/ab", false, false },
		{ "/a\\/**", "a/b/c", false, true },
		{ "/a/\\**", "a/*b", false, true },
		{ "/a/\\**", "a/b", false, false },
		{ "/a\\\\/**", "a\\/b", false, true },
		{ "[\xc0-\xff]", "\xe4", false, true },
	};

	(void)state;
	assert_all(expected, COUNT(expected));
}

static void first_rule_that_matches_counts(void **state)
{
	const char *const rules[] = {
		"+ *.c", "- /secret.c", "+ /dir/a.h", "- /dir/**", "+ /dir/b.h",
		"+ */",	 "- *",		"+ /late",    NULL,
	};
	struct vb__filter *filter;

	(void)state;
	assert_int_equal(vb__filter_create(rules, &filter, NULL), 0);
	assert_false(vb__filter_leaves(filter, "a.c", false));
	assert_false(vb__filter_leaves(filter, "secret.c", false));
	assert_false(vb__filter_leaves(filter, "dir", true));
	assert_false(vb__filter_leaves(filter, "dir/a.h", false));
	assert_true(vb__filter_leaves(filter, "dir/b.h", false));
	assert_true(vb__filter_leaves(filter, "dir/sub", true));
	assert_true(vb__filter_leaves(filter, "late", false));
	vb__filter_destroy(filter);
	assert_int_equal(vb__filter_create(NULL, &filter, NULL), 0);
	assert_false(vb__filter_leaves(filter, "a", false));
}

static void rules_that_make_no_sense_are_named(void **state)
{
	static const char *const bad[] = {
		"",	  "x",	  "-",	 "- ",		 "+",
		"*.o",	  "-x",	  "- /", "- [a",	 "- [",
		"- a[!]", "- []", "! ",	 "- [[:digit:]", "- [[:nonsense:]]",
		"- [\\]"
	};

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++) {
		const char *const rules[] = { "- fine", bad[i], NULL };
		struct vb_error err = { .code = VB_OK };
		struct vb__filter *filter;

		if (vb__filter_create(rules, &filter, &err) != VB_ERR_INVALID)
			fail_msg("\"%s\" was accepted", bad[i]);
		assert_non_null(strstr(err.cause, bad[i]));
	}
}

/* With patterns that make a simple matcher take for ever. */
static void matching_stays_quick(void **state)
{
	char text[4000];

	(void)state;
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_false(leaves("- a*a*a*a*a*a*a*a*a*a*b", text, false));
	assert_false(leaves("- /a**a**a**a**a**a*a*a*a**b", text, false));
}

/* One by one this would be some 10^10 comparisons. */
static void a_long_list_of_paths_stays_quick(void **state)
{
	enum {
		PATHS = 100000
	};
	const char **rules = calloc(PATHS + 2, sizeof(*rules));
	struct vb__filter *filter;
	char path[40];

	(void)state;
	for (size_t i = 0; i < PATHS; i++) {
		char *rule = malloc(sizeof(path));

		snprintf(rule, sizeof(path), i % 2 ? "+ /dir/%zu" : "+ /%zu/**", i);
		rules[i] = rule;
	}
	rules[PATHS] = "- *";
	assert_int_equal(vb__filter_create(rules, &filter, NULL), 0);
	for (size_t i = 0; i < PATHS; i++) {
		snprintf(path, sizeof(path), i % 2 ? "dir/%zu" : "%zu/below/it", i);
		assert_false(vb__filter_leaves(filter, path, false));
		snprintf(path, sizeof(path), i % 2 ? "dir/x%zu" : "%zux/below/it", i);
		assert_true(vb__filter_leaves(filter, path, false));
	}
	vb__filter_destroy(filter);
	for (size_t i = 0; i < PATHS; i++)
		free((char *)rules[i]);
	free(rules);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pattern_without_a_slash_is_for_the_last_component),
		cmocka_unit_test(slash_at_the_start_ties_it_to_the_top),
		cmocka_unit_test(slash_at_the_end_is_for_directories),
		cmocka_unit_test(slash_inside_matches_the_end_of_the_path),
		cmocka_unit_test(double_star_goes_over_slashes),
		cmocka_unit_test(classes_and_escapes_are_understood),
		cmocka_unit_test(first_rule_that_matches_counts),
		cmocka_unit_test(rules_that_make_no_sense_are_named),
		cmocka_unit_test(matching_stays_quick),
		cmocka_unit_test(a_long_list_of_paths_stays_quick),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
