/* SPDX-License-Identifier: Apache-2.0 */
/* Exit codes: those that scripts test. */
#include "common/exit_code.h"

#include "suite.h"

static void errors_map_to_the_documented_codes(void **state)
{
	static const struct {
		enum vb_err code;
		enum phase phase;
		int expected;
	} cases[] = {
		{ VB_OK, PHASE_TRANSFER, 0 },		{ VB_ERR_INVALID, PHASE_LISTEN, 1 },
		{ VB_ERR_KEY, PHASE_CONNECT, 5 },	{ VB_ERR_IO, PHASE_KEY, 5 },
		{ VB_ERR_IN_USE, PHASE_LISTEN, 10 },	{ VB_ERR_ACCESS, PHASE_LISTEN, 10 },
		{ VB_ERR_LOST, PHASE_TRANSFER, 10 },	{ VB_ERR_CLOSED, PHASE_TRANSFER, 10 },
		{ VB_ERR_LOST, PHASE_CONNECT, 10 },	{ VB_ERR_SYSTEM, PHASE_TRANSFER, 10 },
		{ VB_ERR_IO, PHASE_CHECK, 11 },		{ VB_ERR_IO, PHASE_TRANSFER, 11 },
		{ VB_ERR_PROTOCOL, PHASE_CONNECT, 12 }, { VB_ERR_VERSION, PHASE_CONNECT, 12 },
		{ VB_ERR_CORRUPT, PHASE_TRANSFER, 12 }, { VB_ERR_INTERRUPTED, PHASE_KEY, 20 },
		{ VB_ERR_INTERRUPTED, PHASE_WAIT, 20 }, { VB_ERR_NOMEM, PHASE_TRANSFER, 22 },
		{ VB_ERR_MEMLOCK, PHASE_CONNECT, 22 },	{ VB_ERR_TIMEOUT, PHASE_WAIT, 30 },
		{ VB_ERR_TIMEOUT, PHASE_TRANSFER, 30 }, { VB_ERR_TIMEOUT, PHASE_CONNECT, 35 },
		{ VB_ERR_REFUSED, PHASE_CONNECT, 35 },	{ VB_ERR_UNREACHABLE, PHASE_CONNECT, 35 },
		{ VB_ERR_TOO_BIG, PHASE_CHECK, 5 },	{ VB_ERR_TOO_BIG, PHASE_TRANSFER, 12 },
		{ VB_ERR_RESOLVE, PHASE_CONNECT, 35 },	{ VB_ERR_NO_DEVICE, PHASE_CONNECT, 35 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_int_equal(exit_code_of(cases[i].code, cases[i].phase), cases[i].expected);
}

static void no_error_is_success(void **state)
{
	(void)state;
	for (int code = VB_ERR_INTERRUPTED - 5; code < 0; code++)
		for (int phase = PHASE_CHECK; phase <= PHASE_TRANSFER; phase++)
			assert_int_not_equal(exit_code_of((enum vb_err)code, (enum phase)phase), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors_map_to_the_documented_codes),
		cmocka_unit_test(no_error_is_success),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
