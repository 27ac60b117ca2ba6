/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens: what goes in comes out, and what makes no sense is no token. */
#include <string.h>

#include "suite.h"
#include "wire/token.h"

static const struct vb__token_fields fields = {
	.rights = 5,
	.addr = 0x1122334455667788,
	.key = 0x99aabbccddeeff00,
	.len = 4096,
};

static bool makes_sense(struct vb__token_fields changed)
{
	uint8_t wire[VB__TOKEN_LENGTH];
	struct vb__token_fields got;

	vb__token_encode(wire, &changed);
	return vb__token_decode(&got, wire);
}

static void token_comes_back_as_it_was_encoded(void **state)
{
	uint8_t wire[VB__TOKEN_LENGTH];
	struct vb__token_fields got;

	(void)state;
	vb__token_encode(wire, &fields);
	assert_true(vb__token_decode(&got, wire));
	assert_int_equal(got.rights, fields.rights);
	assert_true(got.addr == fields.addr && got.key == fields.key && got.len == fields.len);
}

static void what_makes_no_sense_is_no_token(void **state)
{
	struct vb__token_fields bad = fields;

	(void)state;
	bad.rights = 0;
	assert_false(makes_sense(bad));
	bad.rights = 8;
	assert_false(makes_sense(bad));
	bad = fields;
	bad.len = 0;
	assert_false(makes_sense(bad));
	bad.len = UINT64_MAX - bad.addr + 1; /* beyond the end of memory */
	assert_false(makes_sense(bad));
	bad.len--;
	assert_true(makes_sense(bad));
}

static void other_bytes_are_no_token(void **state)
{
	uint8_t wire[VB__TOKEN_LENGTH];
	struct vb__token_fields got;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		vb__token_encode(wire, &fields);
		wire[i] ^= 1;
		assert_false(vb__token_decode(&got, wire));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(token_comes_back_as_it_was_encoded),
		cmocka_unit_test(what_makes_no_sense_is_no_token),
		cmocka_unit_test(other_bytes_are_no_token),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
