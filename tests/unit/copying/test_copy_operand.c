/* SPDX-License-Identifier: Apache-2.0 */
/* SRC and DST as people write them. */
#include "remote/operand.h"

#include <string.h>

#include "suite.h"

static void hosts_and_paths_are_told_apart(void **state)
{
	static const struct {
		const char *text, *host, *path;
	} cases[] = {
		{ "file", NULL, "file" },
		{ "./a:b", NULL, "./a:b" },
		{ "/a:b", NULL, "/a:b" },
		{ "dir/a:b", NULL, "dir/a:b" },
		{ "host:", "host", "" },
		{ "host:path", "host", "path" },
		{ "host:/a:b", "host", "/a:b" },
		{ "me@host:path", "me@host", "path" },
		{ "me@[fd00::1]:path", "me@fd00::1", "path" },
		{ "[::1]:", "::1", "" },
		{ "[::1]:a]:b", "::1", "a]:b" },
		{ "[abc", NULL, "[abc" },
		{ "me@home", NULL, "me@home" },
		{ "host:$(touch x)", "host", "$(touch x)" },
		{ "host:-rf", "host", "-rf" },
		{ "-file", NULL, "-file" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct operand operand;

		assert_null(operand_parse(&operand, cases[i].text));
		assert_int_equal(operand.kind, cases[i].host ? OPERAND_REMOTE : OPERAND_LOCAL);
		if (cases[i].host)
			assert_string_equal(operand.host, cases[i].host);
		else
			assert_null(operand.host);
		assert_string_equal(operand.path, cases[i].path);
		operand_free(&operand);
	}
}

static void a_dash_alone_is_stdin_or_stdout(void **state)
{
	struct operand operand;

	(void)state;
	assert_null(operand_parse(&operand, "-"));
	assert_int_equal(operand.kind, OPERAND_STDIO);
	operand_free(&operand);
}

static void what_ssh_could_take_for_an_option_is_no_host(void **state)
{
	static const char *const cases[] = { "",	":path",       "@host:path", "me@:path",
					     "-oX=y:p", "me@-oX=y:p",  "[-oX]:p",    "-me@host:p",
					     "ho st:p", "ho\nst:path", "[]:p",	     "a\x1b:p" };

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct operand operand;

		assert_non_null(operand_parse(&operand, cases[i]));
		operand_free(&operand);
	}
}

static void an_address_without_brackets_is_told_of_them(void **state)
{
	static const char *const cases[] = { "::1:p",
					     "::1",
					     "fd00::1",
					     "fd00::1:/p",
					     "me@fd00::1:p",
					     "fe80::1%eth0:p",
					     "1:2:3:4:5:6:7:8:p",
					     "[fd00::1]",
					     "me@[fd00::1]p",
					     "[fd00::1]/p",
					     "[fd00::1 :p" };
	static const char *const others[] = { "a:b:c", "a::", "beef::module", "host:fd00::1",
					      "a/b:c::1:d" };
	struct operand operand;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *wrong = operand_parse(&operand, cases[i]);

		assert_non_null(wrong);
		assert_non_null(strstr(wrong, "[ADDRESS]:"));
		operand_free(&operand);
	}
	for (size_t i = 0; i < COUNT(others); i++) {
		assert_null(operand_parse(&operand, others[i]));
		operand_free(&operand);
	}
}

static void a_source_without_a_name_means_its_contents(void **state)
{
	static const char *const cases[][2] = {
		{ "dir/", "dir" },    { "dir///", "dir" },   { "dir/.", "dir/." },
		{ ".", "./." },	      { "./", "./." },	     { "..", "../." },
		{ "a/..", "a/../." }, { "/", "/." },	     { "host:", "./." },
		{ "host:.", "./." },  { "...", "..." },	     { "a/..b", "a/..b" },
		{ "host:/", "/." },   { "dir/./", "dir/." }, { "host:~", "~/." },
		{ "host:~/", "~/." }, { "~", "~" },	     { "host:~/x", "~/x" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct operand operand;

		assert_null(operand_parse(&operand, cases[i][0]));
		assert_true(operand_as_source(&operand));
		assert_string_equal(operand.path, cases[i][1]);
		operand_free(&operand);
	}
}

static void a_slash_at_the_targets_end_is_noticed(void **state)
{
	struct operand operand;

	(void)state;
	assert_null(operand_parse(&operand, "host:dir//"));
	assert_true(operand_ends_in_slash(&operand));
	operand_free(&operand);
	assert_null(operand_parse(&operand, "host:dir"));
	assert_false(operand_ends_in_slash(&operand));
	operand_free(&operand);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hosts_and_paths_are_told_apart),
		cmocka_unit_test(a_dash_alone_is_stdin_or_stdout),
		cmocka_unit_test(what_ssh_could_take_for_an_option_is_no_host),
		cmocka_unit_test(an_address_without_brackets_is_told_of_them),
		cmocka_unit_test(a_source_without_a_name_means_its_contents),
		cmocka_unit_test(a_slash_at_the_targets_end_is_noticed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
