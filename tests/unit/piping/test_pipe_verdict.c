/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts: of several errors that tells most which is closest to the cause. */
#include "pipe/verdict.h"

#include "suite.h"

static int weigh(enum vb_err code, bool own)
{
	return verdict_weight(&(struct vb_error){ .code = code }, own);
}

static void what_began_here_tells_most(void **state)
{
	(void)state;
	assert_true(weigh(VB_ERR_IO, true) > weigh(VB_ERR_IO, false));
	assert_true(weigh(VB_ERR_INTERRUPTED, true) > weigh(VB_ERR_CORRUPT, false));
}

static void hearsay_tells_least(void **state)
{
	(void)state;
	assert_true(weigh(VB_ERR_IO, false) > weigh(VB_ERR_LOST, false));
	assert_true(weigh(VB_ERR_LOST, false) > weigh(VB_ERR_CLOSED, false));
	assert_true(weigh(VB_ERR_CLOSED, false) > weigh(VB_ERR_INTERRUPTED, false));
	assert_true(weigh(VB_ERR_INTERRUPTED, false) > weigh(VB_OK, false));
	assert_int_equal(weigh(VB_OK, false), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_began_here_tells_most),
		cmocka_unit_test(hearsay_tells_least),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
