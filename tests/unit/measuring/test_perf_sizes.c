/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes as --size takes them, and as they are shown. */
#include "perf/sizes.h"

#include <stdio.h>
#include <string.h>

#include "suite.h"

/* As a text, with blanks between. */
static const char *parsed(const char *text)
{
	static char all[1024];
	struct sizes sizes;
	size_t at = 0;

	if (sizes_parse(&sizes, text) != 0)
		return "refused";
	all[0] = '\0';
	for (size_t i = 0; i < sizes.count; i++)
		at += (size_t)snprintf(all + at, sizeof(all) - at, "%s%u", i ? " " : "",
				       sizes.bytes[i]);
	return all;
}

static void one_a_list_and_ranges(void **state)
{
	(void)state;
	assert_string_equal(parsed("64"), "64");
	assert_string_equal(parsed("64K"), "65536");
	assert_string_equal(parsed("2,64,1M"), "2 64 1048576");
	assert_string_equal(parsed("2:16"), "2 4 8 16");
	assert_string_equal(parsed("1:4,3"), "1 2 4 3");
	assert_string_equal(parsed("8:8"), "8");
}

static void a_range_ends_with_its_end(void **state)
{
	(void)state;
	assert_string_equal(parsed("3:20"), "3 6 12 20");
}

static void the_default_range_fits(void **state)
{
	struct sizes sizes;

	(void)state;
	assert_int_equal(sizes_parse(&sizes, "2:8M"), 0);
	assert_int_equal(sizes.count, 23);
	assert_int_equal(sizes.bytes[22], 8u << 20);
	assert_int_equal(sizes_parse(&sizes, "1:1G"), 0);
}

static void what_is_no_size_is_refused(void **state)
{
	static const char *const bad[] = { "",	   "0",	  "x",	 "1:",	  ":1",	   "4:2",
					   "1,,2", "1,",  "-1",	 "1:2:4", "2G",	   "1M:2G",
					   "0:8",  "1 2", "1e3", "64k:x", "1.2.3", ":" };

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_string_equal(parsed(bad[i]), "refused");
}

static void too_many_are_refused(void **state)
{
	char text[200] = "1";

	(void)state;
	for (int i = 1; i < 64; i++)
		strcat(text, ",1");
	assert_string_not_equal(parsed(text), "refused");
	strcat(text, ",1");
	assert_string_equal(parsed(text), "refused");
}

static void sizes_are_shown_as_they_are_typed(void **state)
{
	char text[16];

	(void)state;
	assert_string_equal(sizes_text(text, 2), "2");
	assert_string_equal(sizes_text(text, 1000), "1000");
	assert_string_equal(sizes_text(text, 1024), "1K");
	assert_string_equal(sizes_text(text, 1536), "1536");
	assert_string_equal(sizes_text(text, 8u << 20), "8M");
	assert_string_equal(sizes_text(text, 1u << 30), "1G");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_a_list_and_ranges),
		cmocka_unit_test(a_range_ends_with_its_end),
		cmocka_unit_test(the_default_range_fits),
		cmocka_unit_test(what_is_no_size_is_refused),
		cmocka_unit_test(too_many_are_refused),
		cmocka_unit_test(sizes_are_shown_as_they_are_typed),
	};

	return cmocka_run_group_tests_name("sizes", tests, NULL, NULL);
}
