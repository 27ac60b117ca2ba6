/* SPDX-License-Identifier: Apache-2.0 */
/* What the target's path means. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "sink_kit.h"

static void into_a_directory(void **state)
{
	struct kit *kit = *state;

	kit_run(kit, "mkdir target; ln -s target link");
	kit_open(kit, "link");
	offers(kit, offer_file(1, 0, "a", 1));
	offers(kit, offer_file(2, 0, "b", 1));
	whole(kit, 1, "a");
	whole(kit, 2, "b");
	kit_finish(kit);
	kit_assert_file(kit, "target/a", "a");
	kit_assert_file(kit, "target/b", "b");
	assert_int_equal(kit_count(kit, "target"), 2);
}

static void one_file_under_another_name(void **state)
{
	struct kit *kit = *state;

	for (int round = 0; round < 2; round++) {
		kit_open(kit, "name");
		offers(kit, offer_file(1, 0, "file", 1));
		whole(kit, 1, round ? "2" : "1");
		assert_string_equal(kit->last_path, "file");
		kit_finish(kit);
		kit_assert_file(kit, "name", round ? "2" : "1");
		assert_int_equal(kit_count(kit, ""), 1);
	}
}

static void one_directory_under_another_name(void **state)
{
	struct kit *kit = *state;

	kit_open(kit, "name/");
	offers(kit, offer_directory(1, 0, "dir"));
	offers(kit, offer_file(2, 1, "file", 1));
	offers(kit, offer_listed(1));
	whole(kit, 2, "x");
	assert_string_equal(kit->last_path, "dir/file");
	kit_finish(kit);
	kit_assert_file(kit, "name/file", "x");
	assert_int_equal(kit_count(kit, ""), 1);
	/* The second time it is a directory. */
	kit_open(kit, "name");
	offers(kit, offer_directory(1, 0, "dir"));
	offers(kit, offer_listed(1));
	kit_finish(kit);
	assert_true(S_ISDIR(kit_mode(kit, "name/dir")));
}

static void several_need_a_directory(void **state)
{
	struct kit *kit = *state;

	kit_open(kit, "name");
	offers(kit, offer_file(1, 0, "a", 1));
	assert_int_equal(send_offer(kit, offer_file(2, 0, "b", 1)), VB_ERR_IO);
	assert_int_equal(kit->err.native, ENOTDIR);
	assert_string_equal(kit->err.cause, "is not a directory");
	kit_close(kit);
	assert_int_equal(kit_count(kit, ""), 0);
}

static void the_directory_is_made_on_demand(void **state)
{
	struct kit *kit = *state;

	kit->options.into_directory = true;
	kit_open(kit, "name");
	offers(kit, offer_file(1, 0, "a", 1));
	offers(kit, offer_file(2, 0, "b", 1));
	whole(kit, 1, "a");
	whole(kit, 2, "b");
	kit_finish(kit);
	assert_int_equal(kit_count(kit, "name"), 2);
	kit_make_file(kit, "file", "");
	assert_int_equal(kit_try_open(kit, "file"), VB_ERR_IO);
	assert_string_equal(kit->err.cause, "is not a directory");
	assert_int_equal(kit_try_open(kit, "none/name"), VB_ERR_IO);
	assert_int_equal(kit->err.native, ENOENT);
}

static void contents_come_to_stand_in_the_target(void **state)
{
	struct kit *kit = *state;
	struct vb__offer offer = offer_directory(1, 0, "");

	offer.mode = S_IFDIR | 0711;
	for (int round = 0; round < 2; round++) { /* made, then found */
		struct stat st;

		kit_open(kit, "name");
		offers(kit, offer);
		offers(kit, offer_file(2, 1, "file", 1));
		offers(kit, offer_listed(1));
		whole(kit, 2, "x");
		assert_string_equal(kit->last_path, "file");
		kit_finish(kit);
		kit_assert_file(kit, "name/file", "x");
		assert_int_equal(kit_count(kit, ""), 1);
		assert_int_equal(kit_count(kit, "name"), 1);
		assert_int_equal(stat(kit_path(kit, "name"), &st), 0);
		assert_int_equal(st.st_mode, S_IFDIR | 0711);
		assert_int_equal(st.st_mtim.tv_nsec, 123456789);
	}
}

static void contents_of_two_come_together(void **state)
{
	struct kit *kit = *state;

	kit->options.delete_others = true;
	for (int round = 0; round < 2; round++) {
		kit_open(kit, "name");
		offers(kit, offer_directory(1, 0, ""));
		offers(kit, offer_file(2, 1, "a", 1));
		offers(kit, offer_listed(1));
		offers(kit, offer_directory(3, 0, ""));
		offers(kit, offer_file(4, 3, "b", 1));
		offers(kit, offer_listed(3));
		whole(kit, 2, "a");
		whole(kit, 4, "b");
		kit_finish(kit);
		assert_int_equal(kit_count(kit, "name"), 2);
		assert_int_equal(kit->report.deleted, round);
		kit_make_file(kit, "name/other", "x");
	}
}

static void nothing_is_deleted_if_one_of_several_is_missing(void **state)
{
	struct kit *kit = *state;

	kit->options.delete_others = true;
	for (int round = 0; round < 4; round++) { /* before and after; a name, or contents */
		const char *missing = round & 1 ? "other" : "";

		kit_run(kit, "mkdir -p name; echo x > name/other");
		kit_open(kit, "name");
		if (round & 2)
			offers(kit, offer_missed(0, missing));
		offers(kit, offer_directory(1, 0, ""));
		offers(kit, offer_file(2, 1, "a", 1));
		offers(kit, offer_listed(1));
		if (!(round & 2))
			offers(kit, offer_missed(0, missing));
		whole(kit, 2, "a");
		kit_finish(kit);
		assert_int_equal(kit->report.deleted, 0);
		kit_assert_file(kit, "name/other", "x\n");
	}
}

static void a_slash_asks_for_a_directory(void **state)
{
	struct kit *kit = *state;

	kit_open(kit, "name/");
	assert_int_equal(send_offer(kit, offer_file(1, 0, "file", 1)), VB_ERR_IO);
	assert_int_equal(kit->err.native, ENOTDIR);
	kit_close(kit);
	kit_make_file(kit, "file", "x");
	assert_int_equal(kit_try_open(kit, "file/"), VB_ERR_IO);
	assert_int_equal(kit->err.native, ENOTDIR);
}

static void the_directory_above_must_be_there(void **state)
{
	struct kit *kit = *state;

	assert_int_equal(kit_try_open(kit, "none/name"), VB_ERR_IO);
	assert_int_equal(kit->err.native, ENOENT);
	assert_non_null(strstr(kit->err.hint, "make it first"));
	assert_null(kit->sink);
}

static void the_users_own_links_are_followed(void **state)
{
	struct kit *kit = *state;

	kit_run(kit, "mkdir far; ln -s far/file link");
	kit_open(kit, "link");
	offers(kit, offer_file(1, 0, "name", 1));
	whole(kit, 1, "x");
	kit_finish(kit);
	kit_assert_file(kit, "far/file", "x");
	assert_true(S_ISLNK(kit_mode(kit, "link")));
}

static void no_path_is_the_working_directory(void **state)
{
	struct kit *kit = *state;
	char before[400];

	assert_non_null(getcwd(before, sizeof(before)));
	assert_int_equal(chdir(kit->dir), 0);
	assert_int_equal(vb__tree_sink_open("", &kit->options, &kit->sink_options, &kit->report,
					    &kit->sink, &kit->err),
			 0);
	offers(kit, offer_file(1, 0, "name", 1));
	whole(kit, 1, "x");
	kit_finish(kit);
	assert_int_equal(chdir(before), 0);
	kit_assert_file(kit, "name", "x");
}

static void a_rule_that_makes_no_sense_is_refused(void **state)
{
	struct kit *kit = *state;
	static const char *const rules[] = { "what", NULL };

	kit->options.rules = rules;
	assert_int_equal(kit_try_open(kit, ""), VB_ERR_INVALID);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, kit_setup, kit_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(into_a_directory),
		TEST(one_file_under_another_name),
		TEST(one_directory_under_another_name),
		TEST(several_need_a_directory),
		TEST(the_directory_is_made_on_demand),
		TEST(contents_come_to_stand_in_the_target),
		TEST(contents_of_two_come_together),
		TEST(nothing_is_deleted_if_one_of_several_is_missing),
		TEST(a_slash_asks_for_a_directory),
		TEST(the_directory_above_must_be_there),
		TEST(the_users_own_links_are_followed),
		TEST(no_path_is_the_working_directory),
		TEST(a_rule_that_makes_no_sense_is_refused),
	};

	return cmocka_run_group_tests_name("sink_target", tests, NULL, NULL);
}
