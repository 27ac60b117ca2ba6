/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of rdinfo. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "info/inquiry.h"
#include "suite.h"

static int parse(struct inquiry *inquiry, const char *const *words)
{
	static char copies[8][32]; /* what was parsed points there */
	char *argv[8] = { (char[]){ "rdinfo" } };
	int argc = 1;

	for (; words[argc - 1]; argc++) {
		snprintf(copies[argc], sizeof(copies[argc]), "%s", words[argc - 1]);
		argv[argc] = copies[argc];
	}
	return inquiry_parse(inquiry, argc, argv);
}

#define PARSE(inquiry, ...) parse(inquiry, (const char *const[]){ __VA_ARGS__, NULL })

static void all_options_are_understood(void **state)
{
	struct inquiry i;

	(void)state;
	assert_int_equal(PARSE(&i, "--check", "far", "-4", "--fabric=ofi", "--wireup=tcp"), -1);
	assert_true(i.check && !i.serve && !i.json);
	assert_string_equal(i.host, "far");
	assert_string_equal(i.port, "7470");
	assert_int_equal(i.options.family, AF_INET);
	assert_int_equal(i.options.fabric, VB_FABRIC_OFI);
	assert_int_equal(i.options.wireup, VB_WIREUP_TCP);
	assert_int_equal(i.options.connect_timeout_ms, 5000);
	assert_int_equal(PARSE(&i, "--serve", "-p", "9000", "--bind", "::1", "--json"), -1);
	assert_true(i.serve && i.json && !i.host);
	assert_string_equal(i.port, "9000");
	assert_string_equal(i.bind, "::1");
	assert_int_equal(PARSE(&i, "-v", "--device", "mlx5_0", "--timeout", "500ms"), -1);
	assert_string_equal(i.options.device, "mlx5_0");
	assert_int_equal(i.options.connect_timeout_ms, 500);
	assert_int_equal(i.verbosity, 1);
}

static void nonsense_is_refused(void **state)
{
	struct inquiry i;

	(void)state;
	assert_int_equal(PARSE(&i, "--nonsense"), INQUIRY_FAILED);
	assert_int_equal(PARSE(&i, "a", "b"), INQUIRY_FAILED);
	assert_int_equal(PARSE(&i, ""), INQUIRY_FAILED);
	assert_int_equal(PARSE(&i, "--serve", "far"), INQUIRY_FAILED);
	assert_int_equal(PARSE(&i, "--serve", "--check"), INQUIRY_FAILED);
	assert_int_equal(PARSE(&i, "--port"), INQUIRY_FAILED);
	assert_int_equal(PARSE(&i, "--port", "65535"), INQUIRY_FAILED);
	assert_int_equal(PARSE(&i, "--port", "http"), INQUIRY_FAILED);
	assert_int_equal(PARSE(&i, "--fabric", "tcp"), INQUIRY_FAILED);
	assert_int_equal(PARSE(&i, "--timeout", "0"), INQUIRY_FAILED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_options_are_understood),
		cmocka_unit_test(nonsense_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
