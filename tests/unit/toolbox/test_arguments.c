/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines that are right, and what is understood. Wrong ones are in tests/tools/test-arguments. */
#include "common/arguments.h"

#include <stdio.h>
#include <sys/socket.h>

#include "suite.h"

#define PARSE(a, tool, have_key, ...) \
	parse(a, tool, have_key, (const char *[]){ __VA_ARGS__, NULL })

/* The words are copied: what is parsed may be written to. */
static int parse(struct arguments *a, enum tool tool, bool have_key, const char **words)
{
	static char copies[32][64];
	static char *argv[33];
	int argc = 0;

	for (; words[argc]; argc++) {
		snprintf(copies[argc], sizeof(copies[argc]), "%s", words[argc]);
		argv[argc] = copies[argc];
	}
	argv[argc] = NULL;
	return arguments_parse(a, tool, have_key, argc, argv);
}

static void what_is_not_given_is_zero(void **state)
{
	struct arguments a;

	(void)state;
	assert_int_equal(PARSE(&a, RDSEND, false, "rdsend", "host", "7471", "key"), -1);
	assert_string_equal(a.host, "host");
	assert_string_equal(a.port, "7471");
	assert_string_equal(a.key, "key");
	assert_null(a.file);
	assert_null(a.command);
	assert_int_equal(a.options.block_bytes, 0);
	assert_int_equal(a.options.connection.connect_timeout_ms, 0);
	assert_int_equal(a.options.connection.fabric, VB_FABRIC_AUTO);
	assert_int_equal(a.verbosity, 0);
}

static void options_reach_their_fields(void **state)
{
	struct arguments a;

	(void)state;
	assert_int_equal(PARSE(&a, RDSEND, false, "rdsend", "-b", "1M", "-w16", "--rails=2",
			       "--workers", "3", "--fabric", "ofi", "--wireup", "tcp", "--device",
			       "tcp", "-6", "--bwlimit", "100MB", "--peer-timeout", "2.5",
			       "--timeout", "0.3", "--no-direct", "--json", "-vv", "[::1]", "1",
			       "k", "file"),
			 -1);
	assert_int_equal(a.options.block_bytes, 1 << 20);
	assert_int_equal(a.options.window_blocks, 16);
	assert_int_equal(a.options.rails, 2);
	assert_int_equal(a.options.workers, 3);
	assert_int_equal(a.options.connection.fabric, VB_FABRIC_OFI);
	assert_int_equal(a.options.connection.wireup, VB_WIREUP_TCP);
	assert_string_equal(a.options.connection.device, "tcp");
	assert_int_equal(a.options.connection.family, AF_INET6);
	assert_int_equal(a.options.max_bytes_per_second, 100000000);
	assert_int_equal(a.options.connection.peer_timeout_ms, 2500);
	assert_int_equal(a.options.connection.connect_timeout_ms, 300);
	assert_int_equal(a.options.wait_timeout_ms, 0);
	assert_int_equal(a.options.direct, VB_DIRECT_NEVER);
	assert_true(a.json);
	assert_int_equal(a.verbosity, 2);
	assert_string_equal(a.host, "[::1]");
	assert_string_equal(a.file, "file");
}

static void the_receivers_own_options_reach_their_fields(void **state)
{
	struct arguments a;

	(void)state;
	assert_int_equal(PARSE(&a, RDRECV, false, "rdrecv", "0", "k", "--bind", "::1", "--fsync",
			       "--direct", "--keep-listening", "--timeout", "1m", "-q", "-4", "-"),
			 -1);
	assert_string_equal(a.port, "0");
	assert_string_equal(a.bind, "::1");
	assert_true(a.options.fsync);
	assert_int_equal(a.options.direct, VB_DIRECT_ALWAYS);
	assert_true(a.keep_listening);
	assert_int_equal(a.options.wait_timeout_ms, 60000);
	assert_int_equal(a.options.connection.connect_timeout_ms, 0);
	assert_int_equal(a.options.connection.family, AF_INET);
	assert_int_equal(a.verbosity, -1);
	assert_null(a.file);
}

static void encryption_has_its_value_behind_the_long_name_only(void **state)
{
	struct arguments a;

	(void)state;
	assert_int_equal(PARSE(&a, RDSEND, true, "rdsend", "-e", "host", "1"), -1);
	assert_int_equal(a.options.encrypt, VB_ENCRYPT_REQUIRE);
	assert_string_equal(a.host, "host");
	assert_int_equal(PARSE(&a, RDRECV, true, "rdrecv", "--encrypt", "1"), -1);
	assert_int_equal(a.options.encrypt, VB_ENCRYPT_REQUIRE);
	assert_int_equal(PARSE(&a, RDRECV, true, "rdrecv", "--encrypt=ask", "1"), -1);
	assert_int_equal(a.options.encrypt, VB_ENCRYPT_ASK);
	assert_int_equal(PARSE(&a, RDRECV, true, "rdrecv", "-e", "--encrypt=no", "1"), -1);
	assert_int_equal(a.options.encrypt, VB_ENCRYPT_NEVER);
	assert_int_equal(PARSE(&a, RDCP, true, "rdcp", "-e", "rsh", "--encrypt", "a", "b"), -1);
	assert_int_equal(a.options.encrypt, VB_ENCRYPT_REQUIRE);
	assert_string_equal(a.rsh, "rsh");
	assert_int_equal(a.places.count, 2);
	arguments_free(&a);
}

static void compression_is_by_level_or_as_it_pays(void **state)
{
	static const struct {
		const char *word;
		int compress;
	} cases[] = { { "-z", VB_COMPRESS_AUTO },
		      { "--compress", VB_COMPRESS_AUTO },
		      { "--compress=auto", VB_COMPRESS_AUTO },
		      { "--compress=no", VB_COMPRESS_NEVER },
		      { "--compress=1", 1 },
		      { "--compress=19", 19 } };
	struct arguments a;

	(void)state;
	for (unsigned i = 0; i < COUNT(cases); i++) {
		assert_int_equal(PARSE(&a, RDRECV, false, "rdrecv", cases[i].word, "1", "k"), -1);
		assert_int_equal(a.options.compress, cases[i].compress);
		assert_string_equal(a.port, "1");
	}
	assert_int_equal(PARSE(&a, RDRECV, false, "rdrecv", "1", "k"), -1);
	assert_int_equal(a.options.compress, 0);
}

static void a_key_from_elsewhere_leaves_its_place(void **state)
{
	struct arguments a;

	(void)state;
	assert_int_equal(PARSE(&a, RDSEND, true, "rdsend", "host", "1", "file"), -1);
	assert_null(a.key);
	assert_string_equal(a.file, "file");
	assert_int_equal(PARSE(&a, RDRECV, false, "rdrecv", "1", "file", "-k", "keys"), -1);
	assert_null(a.key);
	assert_string_equal(a.key_file, "keys");
	assert_string_equal(a.file, "file");
	assert_int_equal(PARSE(&a, RDRECV, false, "rdrecv", "-k", "-", "1"), -1);
	assert_string_equal(a.key_file, "-");
}

static void dashes_begin_a_command_or_end_the_options(void **state)
{
	struct arguments a;

	(void)state;
	assert_int_equal(PARSE(&a, RDRECV, false, "rdrecv", "1", "-v", "k", "--", "tar", "-x"), -1);
	assert_string_equal(a.command[0], "tar");
	assert_string_equal(a.command[1], "-x");
	assert_null(a.command[2]);
	assert_null(a.file);
	assert_int_equal(PARSE(&a, RDRECV, false, "rdrecv", "--", "1", "-k", "-file"), -1);
	assert_null(a.command);
	assert_string_equal(a.key, "-k");
	assert_string_equal(a.file, "-file");
	assert_int_equal(PARSE(&a, RDRECV, false, "rdrecv", "--", "1", "-k", "--", "cat", "--"),
			 -1);
	assert_string_equal(a.command[0], "cat");
	assert_string_equal(a.command[1], "--");
	assert_int_equal(PARSE(&a, RDRECV, false, "rdrecv", "1", "-k", "--"), -1);
	assert_string_equal(a.key_file, "--");
	assert_null(a.command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_given_is_zero),
		cmocka_unit_test(options_reach_their_fields),
		cmocka_unit_test(the_receivers_own_options_reach_their_fields),
		cmocka_unit_test(encryption_has_its_value_behind_the_long_name_only),
		cmocka_unit_test(compression_is_by_level_or_as_it_pays),
		cmocka_unit_test(a_key_from_elsewhere_leaves_its_place),
		cmocka_unit_test(dashes_begin_a_command_or_end_the_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
