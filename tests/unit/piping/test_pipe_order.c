/* SPDX-License-Identifier: Apache-2.0 */
/* Orders and endings of stages: what was packed comes out again, and nothing else does. */
#include "pipe/stage_order.h"

#include <stdlib.h>

#include "suite.h"

static const struct stage_order sample = {
	.kind = STAGE_COMMAND,
	.text = (char *)"a\n\xff'b'",
	.input = FLOW_CLIENT,
	.output = FLOW_STAGE,
	.verbosity = -1,
	.device = (char *)"mlx5_0",
	.transfer = { .rails = 3, .fsync = true, .compress = VB_COMPRESS_AUTO },
};

static bool passes(const struct stage_order *order)
{
	struct stage_order again;
	struct pack pack = { 0 };
	bool good;

	stage_order_pack(&pack, order);
	good = stage_order_unpack(&again, pack.bytes, pack.len);
	stage_order_free(&again);
	free(pack.bytes);
	return good;
}

static void an_order_survives_only_as_a_whole(void **state)
{
	struct stage_order again;
	struct pack pack = { 0 };

	(void)state;
	stage_order_pack(&pack, &sample);
	assert_true(stage_order_unpack(&again, pack.bytes, pack.len));
	assert_int_equal(again.kind, STAGE_COMMAND);
	assert_string_equal(again.text, sample.text);
	assert_int_equal(again.input, FLOW_CLIENT);
	assert_int_equal(again.output, FLOW_STAGE);
	assert_int_equal(again.verbosity, -1);
	assert_string_equal(again.device, "mlx5_0");
	assert_int_equal(again.transfer.rails, 3);
	assert_int_equal(again.transfer.compress, VB_COMPRESS_AUTO);
	assert_true(again.transfer.fsync);
	stage_order_free(&again);
	for (size_t len = 0; len < pack.len; len++) {
		assert_false(stage_order_unpack(&again, pack.bytes, len));
		stage_order_free(&again);
	}
	free(pack.bytes);
}

static void an_order_makes_sense(void **state)
{
	struct stage_order order = sample;

	(void)state;
	order.output = FLOW_NONE;
	assert_false(passes(&order));
	order.kind = STAGE_WRITE;
	assert_true(passes(&order));
	order.kind = STAGE_READ;
	assert_false(passes(&order));
	order = sample;
	order.text = (char *)"";
	assert_false(passes(&order));
	order = sample;
	order.kind = (enum stage_kind)0;
	assert_false(passes(&order));
}

static void an_ending_survives(void **state)
{
	const struct stage_ending ending = { .err = { .code = VB_ERR_IO, .cause = "x" },
					     .phase = PHASE_TRANSFER,
					     .own = true,
					     .how = ENDED_SIGNAL,
					     .number = 9,
					     .bytes_out = UINT64_MAX,
					     .cipher = "AES" };
	struct stage_ending again;
	struct pack pack = { 0 };

	(void)state;
	stage_ending_pack(&pack, &ending);
	assert_true(stage_ending_unpack(&again, pack.bytes, pack.len));
	assert_int_equal(again.err.code, VB_ERR_IO);
	assert_true(again.own && again.how == ENDED_SIGNAL && again.number == 9);
	assert_true(again.bytes_out == UINT64_MAX);
	assert_string_equal(again.cipher, "AES");
	assert_false(stage_ending_unpack(&again, pack.bytes, pack.len - 1));
	free(pack.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_order_survives_only_as_a_whole),
		cmocka_unit_test(an_order_makes_sense),
		cmocka_unit_test(an_ending_survives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
