/* SPDX-License-Identifier: Apache-2.0 */
/* The command that starts a far side. */
#include "remote/launch.h"

#include <string.h>
#include <sys/socket.h>

#include "suite.h"

static size_t find(const struct list *words, const char *word)
{
	for (size_t i = 0; i < words->count; i++)
		if (strcmp(words->item[i], word) == 0)
			return i;
	fail_msg("'%s' is not there", word);
	return 0;
}

static void ssh_gets_its_options_before_the_host(void **state)
{
	struct arguments a = { .tool = RDCP, .options.connection.family = AF_INET6 };
	struct list words = { 0 };
	bool by_ssh = false;

	(void)state;
	list_add(&a.ssh_options, "-p");
	list_add(&a.ssh_options, "2222");
	assert_null(launch_words(&words, &a, "me@host", &by_ssh));
	assert_true(by_ssh);
	assert_string_equal(words.item[0], "ssh");
	assert_string_equal(words.item[1], "-p");
	assert_string_equal(words.item[2], "2222");
	assert_true(find(&words, "-6") < find(&words, "--"));
	assert_true(find(&words, "-T") < find(&words, "--"));
	assert_int_equal(find(&words, "--") + 1, find(&words, "me@host"));
	assert_string_equal(words.item[words.count - 2], "rdcp");
	assert_string_equal(words.item[words.count - 1], "--server");
	list_free(&words);
	list_free(&a.ssh_options);
}

static void another_command_gets_host_and_words_only(void **state)
{
	struct arguments a = { .tool = RDCP, .rsh = "docker exec -i", .far_path = "/opt/rdcp" };
	struct list words = { 0 };
	bool by_ssh = true;

	(void)state;
	assert_null(launch_words(&words, &a, "box", &by_ssh));
	assert_false(by_ssh);
	assert_int_equal(words.count, 6);
	assert_string_equal(words.item[3], "box");
	assert_string_equal(words.item[4], "/opt/rdcp");
	list_free(&words);
	a.rsh = "kubectl exec -i %h --";
	assert_null(launch_words(&words, &a, "pod", &by_ssh));
	assert_int_equal(words.count, 7);
	assert_string_equal(words.item[3], "pod");
	assert_string_equal(words.item[4], "--");
	list_free(&words);
}

static void ssh_is_known_by_its_name(void **state)
{
	struct arguments a = { .tool = RDCP, .rsh = "/usr/bin/ssh -v" };
	struct list words = { 0 };
	bool by_ssh = false;

	(void)state;
	assert_null(launch_words(&words, &a, "host", &by_ssh));
	assert_true(by_ssh);
	list_free(&words);
	a.rsh = "   ";
	assert_non_null(launch_words(&words, &a, "host", &by_ssh));
	a.rsh = "'ssh";
	assert_non_null(launch_words(&words, &a, "host", &by_ssh));
	list_free(&words);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ssh_gets_its_options_before_the_host),
		cmocka_unit_test(another_command_gets_host_and_words_only),
		cmocka_unit_test(ssh_is_known_by_its_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
