/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines of rdcp, and who copies what. */
#include "copy/jobs.h"

#include "suite.h"

#define PARSE(a, ...) parse(a, (const char *[]){ "rdcp", __VA_ARGS__, NULL })

static int parse(struct arguments *a, const char **words)
{
	int argc = 0;

	while (words[argc])
		argc++;
	return arguments_parse(a, RDCP, true, argc, (char **)words);
}

static void options_come_to_what_they_mean(void **state)
{
	struct arguments a;

	(void)state;
	assert_int_equal(PARSE(&a, "-apn", "--sync", "-P", "22", "-o", "A=b", "--exclude", "*.o",
			       "--include", "x", "--retries=0", "--", "-a", "host:"),
			 -1);
	assert_int_equal(a.tree.keep, VB_KEEP_ARCHIVE);
	assert_true(a.tree.recursive && a.tree.dry_run);
	assert_int_equal(a.tree.select, VB_SELECT_CHANGED);
	assert_int_equal(a.ssh_options.count, 4);
	assert_string_equal(a.ssh_options.item[0], "-p");
	assert_string_equal(a.rules.item[0], "- *.o");
	assert_string_equal(a.rules.item[1], "+ x");
	assert_int_equal(a.retries, 0);
	assert_int_equal(a.places.count, 2);
	assert_string_equal(a.places.item[0], "-a");
	arguments_free(&a);
}

static void without_options_only_contents_go(void **state)
{
	struct arguments a;

	(void)state;
	assert_int_equal(PARSE(&a, "a", "b"), -1);
	assert_int_equal(a.tree.keep, 0);
	assert_false(a.tree.recursive || a.tree.no_resume || a.tree.delete_others);
	assert_int_equal(a.tree.select, VB_SELECT_ALL);
	assert_int_equal(a.retries, 5);
	arguments_free(&a);
}

static void sources_are_grouped_by_host(void **state)
{
	struct arguments a;
	struct jobs jobs;

	(void)state;
	assert_int_equal(PARSE(&a, "a", "x:b", "y:c", "x:d", "e", "z:dir"), -1);
	assert_int_equal(jobs_make(&jobs, &a), -1);
	assert_int_equal(jobs.count, 3);
	assert_true(jobs.into_directory);
	assert_int_equal(jobs.job[0].paths.count, 2);
	assert_string_equal(jobs.job[0].paths.item[1], "e");
	assert_string_equal(jobs.job[1].from->host, "x");
	assert_string_equal(jobs.job[1].paths.item[1], "d");
	assert_string_equal(jobs.target.path, "dir");
	jobs_free(&jobs);
	arguments_free(&a);
}

static void one_source_keeps_the_targets_name(void **state)
{
	struct arguments a;
	struct jobs jobs;

	(void)state;
	assert_int_equal(PARSE(&a, "a", "x:b"), -1);
	assert_int_equal(jobs_make(&jobs, &a), -1);
	assert_false(jobs.into_directory);
	jobs_free(&jobs);
	arguments_free(&a);
	assert_int_equal(PARSE(&a, "a", "x:b/"), -1);
	assert_int_equal(jobs_make(&jobs, &a), -1);
	assert_true(jobs.into_directory);
	assert_string_equal(jobs.target.path, "b");
	jobs_free(&jobs);
	arguments_free(&a);
}

static void of_a_list_the_contents_go(void **state)
{
	struct arguments a;
	struct jobs jobs;

	(void)state;
	assert_int_equal(PARSE(&a, "-r", "--files-from", "list", "dir", "x:b"), -1);
	assert_int_equal(jobs_make(&jobs, &a), -1);
	assert_string_equal(jobs.job[0].paths.item[0], "dir/.");
	jobs_free(&jobs);
	arguments_free(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_come_to_what_they_mean),
		cmocka_unit_test(without_options_only_contents_go),
		cmocka_unit_test(sources_are_grouped_by_host),
		cmocka_unit_test(one_source_keeps_the_targets_name),
		cmocka_unit_test(of_a_list_the_contents_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
