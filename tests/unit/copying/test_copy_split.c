/* SPDX-License-Identifier: Apache-2.0 */
/* Words of a command, as a shell would split them, with nothing substituted. */
#include "remote/split.h"

#include "suite.h"

#define IS(text, ...) is(text, (const char *[]){ __VA_ARGS__, NULL })

static void is(const char *text, const char **expected)
{
	struct list words = { 0 };
	size_t i;

	assert_null(split_words(&words, text));
	for (i = 0; expected[i]; i++) {
		assert_true(i < words.count);
		assert_string_equal(words.item[i], expected[i]);
	}
	assert_int_equal(words.count, i);
	list_free(&words);
}

static void words_are_split_at_blanks(void **state)
{
	(void)state;
	IS("ssh", "ssh");
	IS("  docker  exec\t-i ", "docker", "exec", "-i");
	IS("", NULL);
}

static void quotes_and_backslashes_keep_together(void **state)
{
	(void)state;
	IS("a 'b c' \"d e\" f\\ g", "a", "b c", "d e", "f g");
	IS("a'b'\"c\"d", "abcd");
	IS("'' \"\"", "", "");
	IS("'a\\b' \"a\\b\" \"a\\\"b\" a\\\\b", "a\\b", "a\\b", "a\"b", "a\\b");
}

static void nothing_is_substituted(void **state)
{
	(void)state;
	IS("$(touch x) `y` $HOME ; | > *", "$(touch", "x)", "`y`", "$HOME", ";", "|", ">", "*");
}

static void an_open_quote_is_an_error(void **state)
{
	struct list words = { 0 };

	(void)state;
	assert_non_null(split_words(&words, "a 'b"));
	assert_non_null(split_words(&words, "a \"b'"));
	list_free(&words);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_split_at_blanks),
		cmocka_unit_test(quotes_and_backslashes_keep_together),
		cmocka_unit_test(nothing_is_substituted),
		cmocka_unit_test(an_open_quote_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
