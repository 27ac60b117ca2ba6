/* SPDX-License-Identifier: Apache-2.0 */
/* What a terminal gets to see of other people's text. */
#include "common/printable.h"

#include <string.h>

#include "suite.h"

static void harmless_text_stays_as_it_is(void **state)
{
	char to[100];

	(void)state;
	assert_string_equal(printable(to, sizeof(to), ""), "");
	assert_string_equal(printable(to, sizeof(to), "open a/b: no"), "open a/b: no");
	assert_string_equal(printable(to, sizeof(to),
				      "Gr\xc3\xb6\xc3\x9f"
				      "e \xe2\x82\xac \xf0\x9f\x98\x80"),
			    "Gr\xc3\xb6\xc3\x9f"
			    "e \xe2\x82\xac \xf0\x9f\x98\x80");
}

static void what_a_terminal_obeys_is_escaped(void **state)
{
	static const struct {
		const char *from, *to;
	} cases[] = {
		{ "a\nb\tc\rd", "a\\nb\\tc\\rd" },
		{ "\x1b[31mred", "\\x1b[31mred" },
		{ "\x7f\x01", "\\x7f\\x01" },
		{ "\xc2\x9b"
		  "31m",
		  "\\xc2\\x9b"
		  "31m" },	     /* CSI as one character */
		{ "\x9b", "\\x9b" }, /* and as one byte */
		{ "\xe2\x80\xae"
		  "exe",
		  "\\xe2\\x80\\xaeexe" },	       /* right to left */
		{ "\xc3", "\\xc3" },		       /* cut off */
		{ "\xc0\xaf", "\\xc0\\xaf" },	       /* longer than need be */
		{ "\xed\xa0\x80", "\\xed\\xa0\\x80" }, /* a surrogate */
		{ "\xf5\x80\x80\x80", "\\xf5\\x80\\x80\\x80" },
		{ "\xff", "\\xff" },
	};
	char to[100];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_string_equal(printable(to, sizeof(to), cases[i].from), cases[i].to);
}

static void what_does_not_fit_is_cut_between_characters(void **state)
{
	char to[8];

	(void)state;
	assert_string_equal(printable(to, 8, "12345678"), "1234567");
	assert_string_equal(printable(to, 8, "12345\xe2\x82\xac"), "12345");
	assert_string_equal(printable(to, 8, "1234\x1b"), "1234");
	assert_string_equal(printable(to, 1, "1"), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(harmless_text_stays_as_it_is),
		cmocka_unit_test(what_a_terminal_obeys_is_escaped),
		cmocka_unit_test(what_does_not_fit_is_cut_between_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
