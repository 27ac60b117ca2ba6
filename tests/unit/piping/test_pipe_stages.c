/* SPDX-License-Identifier: Apache-2.0 */
/* Stages: what words mean, and which make no pipeline. */
#include "pipe/stages.h"

#include <string.h>

#include "common/console.h"
#include "common/exit_code.h"
#include "suite.h"

static void expect(const char *word, enum stage_kind kind, const char *host, const char *text)
{
	struct stage stage;
	const char *wrong = stage_parse(&stage, word);

	if (wrong)
		fail_msg("'%s': %s", word, wrong);
	assert_int_equal(stage.kind, kind);
	assert_string_equal(stage.host ? stage.host : "here", host);
	assert_string_equal(stage.text, text);
	stage_free(&stage);
}

static void a_word_is_a_command_or_a_file(void **state)
{
	(void)state;
	expect("a:zfs send x@y", STAGE_COMMAND, "a", "zfs send x@y");
	expect("me@a:cat /x:y", STAGE_COMMAND, "me@a", "cat /x:y");
	expect("[fd00::1]:cat", STAGE_COMMAND, "fd00::1", "cat");
	expect("a: cat <x", STAGE_COMMAND, "a", " cat <x");
	expect("a:<x", STAGE_READ, "a", "x");
	expect("a: <  x y ", STAGE_READ, "a", "x y ");
	expect("a:>x", STAGE_WRITE, "a", "x");
	expect("a:>>x", STAGE_APPEND, "a", "x");
	expect("a:> >x", STAGE_WRITE, "a", ">x");
	expect("<a:x", STAGE_READ, "here", "a:x");
	expect(">x", STAGE_WRITE, "here", "x");
	expect(">>x", STAGE_APPEND, "here", "x");
}

static void other_words_are_none(void **state)
{
	static const char *const words[] = { "",       "x",	  "a:",	   "a: ",  "a:<",
					     "a:>> ",  "<",	  ">",	   ":cat", "-oX:cat",
					     "@a:cat", "a b:cat", "/a:cat" };

	(void)state;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		struct stage stage;

		if (!stage_parse(&stage, words[i]))
			fail_msg("'%s' is a stage", words[i]);
		stage_free(&stage);
	}
}

static int make(const char *const *words)
{
	struct arguments a = { .tool = RDPIPE };
	struct stages stages;
	int code;

	for (; *words; words++)
		list_add(&a.places, *words);
	code = stages_make(&stages, &a);
	stages_free(&stages);
	list_free(&a.places);
	return code;
}

static void files_stand_at_the_ends(void **state)
{
	(void)state;
	assert_int_equal(make((const char *[]){ "<x", "a:cat", ">>y", NULL }), -1);
	assert_int_equal(make((const char *[]){ "a:<x", "a:>y", NULL }), -1);
	assert_int_equal(make((const char *[]){ "a:>y", NULL }), -1);
	assert_int_equal(make((const char *[]){ NULL }), EXIT_USAGE);
	assert_int_equal(make((const char *[]){ "<x", ">y", NULL }), EXIT_USAGE);
	assert_int_equal(make((const char *[]){ "<x", "a:<x", NULL }), EXIT_USAGE);
	assert_int_equal(make((const char *[]){ "a:cat", "a:<x", NULL }), EXIT_USAGE);
	assert_int_equal(make((const char *[]){ "a:>x", "a:cat", NULL }), EXIT_USAGE);
	assert_int_equal(make((const char *[]){ ">x", "a:cat", NULL }), EXIT_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_word_is_a_command_or_a_file),
		cmocka_unit_test(other_words_are_none),
		cmocka_unit_test(files_stand_at_the_ends),
	};

	console_open("test");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
