/* SPDX-License-Identifier: Apache-2.0 */
/* The hello: what goes in comes out, and nothing else is believed. */
#include <stdlib.h>
#include <string.h>

#include <verbatim/options.h>

#include "suite.h"
#include "wire/hello.h"

static const struct vb__hello open_hello = {
	.kind = VB__HELLO_OPEN,
	.version = VB__PROTOCOL_VERSION,
	.max_message = 1u << 20,
	.depth = 2,
};

static void assert_same(const struct vb__hello *a, const struct vb__hello *b)
{
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->version, b->version);
	assert_int_equal(a->reason, b->reason);
	assert_int_equal(a->max_message, b->max_message);
	assert_int_equal(a->depth, b->depth);
}

static void hello_comes_back_as_it_was_encoded(void **state)
{
	static const struct vb__hello hellos[] = {
		{ VB__HELLO_OPEN, 1, VB__REFUSAL_NONE, 1, 1 },
		{ VB__HELLO_OPEN, 1, VB__REFUSAL_NONE, VB_MESSAGE_MAX, VB_DEPTH_MAX },
		{ VB__HELLO_ACCEPT, 1, VB__REFUSAL_NONE, 0x01020304, 0x0102 },
		{ VB__HELLO_REFUSE, 1, VB__REFUSAL_VERSION, 0, 0 },
		{ VB__HELLO_REFUSE, 1, VB__REFUSAL_BUSY, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(hellos); i++) {
		uint8_t wire[VB__HELLO_BYTES];
		struct vb__hello got;

		vb__hello_encode(wire, &hellos[i]);
		assert_int_equal(vb__hello_decode(&got, wire, sizeof(wire)), VB__HELLO_GOOD);
		assert_same(&got, &hellos[i]);
	}
}

static void layout_is_the_documented_one(void **state)
{
	static const uint8_t expected[VB__HELLO_BYTES] = { 'V', 'B', 'T', 'M', 1, 0, 2,
							   0,	4,   3,	  2,   1, 6, 5 };
	struct vb__hello hello = { VB__HELLO_ACCEPT, 1, 0, 0x01020304, 0x0506 };
	uint8_t wire[VB__HELLO_BYTES];

	(void)state;
	memset(wire, 0xff, sizeof(wire));
	vb__hello_encode(wire, &hello);
	assert_memory_equal(wire, expected, sizeof(wire));
}

static void every_truncation_is_garbage(void **state)
{
	uint8_t wire[VB__HELLO_BYTES];

	(void)state;
	vb__hello_encode(wire, &open_hello);
	for (size_t len = 0; len < sizeof(wire); len++) {
		/* On the heap and exact, so that ASan sees a read beyond it. */
		uint8_t *cut = malloc(len ? len : 1);
		struct vb__hello got;

		assert_non_null(cut);
		memcpy(cut, wire, len);
		assert_int_equal(vb__hello_decode(&got, cut, len), VB__HELLO_GARBAGE);
		free(cut);
	}
}

static void padding_by_the_fabric_is_ignored(void **state)
{
	uint8_t wire[256];
	struct vb__hello got;

	(void)state;
	memset(wire, 0xa5, sizeof(wire));
	vb__hello_encode(wire, &open_hello);
	for (size_t len = VB__HELLO_BYTES; len <= sizeof(wire); len++) {
		assert_int_equal(vb__hello_decode(&got, wire, len), VB__HELLO_GOOD);
		assert_same(&got, &open_hello);
	}
}

static void wrong_magic_is_garbage_whichever_bit_is_wrong(void **state)
{
	uint8_t wire[VB__HELLO_BYTES];
	struct vb__hello got;

	(void)state;
	for (unsigned bit = 0; bit < 32; bit++) {
		vb__hello_encode(wire, &open_hello);
		wire[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_int_equal(vb__hello_decode(&got, wire, sizeof(wire)), VB__HELLO_GARBAGE);
	}
}

static void only_the_three_kinds_are_known(void **state)
{
	uint8_t wire[VB__HELLO_BYTES];
	struct vb__hello got;

	(void)state;
	vb__hello_encode(wire, &open_hello);
	for (unsigned kind = 0; kind < 256; kind++) {
		wire[6] = (uint8_t)kind;
		assert_int_equal(vb__hello_decode(&got, wire, sizeof(wire)),
				 kind >= 1 && kind <= 3 ? VB__HELLO_GOOD : VB__HELLO_GARBAGE);
	}
}

static void another_version_is_told_apart_whatever_else_it_says(void **state)
{
	static const uint16_t versions[] = { 0, 2, 255, 256, 257, 65535 };
	uint8_t wire[VB__HELLO_BYTES];

	(void)state;
	for (size_t i = 0; i < COUNT(versions); i++) {
		/* Limits of 0 would be garbage in our version. */
		struct vb__hello hello = { VB__HELLO_REFUSE, versions[i], VB__REFUSAL_VERSION, 0,
					   0 };
		struct vb__hello got;

		vb__hello_encode(wire, &hello);
		memset(wire + 14, 0xff, sizeof(wire) - 14);
		assert_int_equal(vb__hello_decode(&got, wire, sizeof(wire)),
				 VB__HELLO_OTHER_VERSION);
		assert_int_equal(got.kind, VB__HELLO_REFUSE);
		assert_int_equal(got.version, versions[i]);
		assert_int_equal(got.reason, VB__REFUSAL_VERSION);
	}
}

static void limits_must_be_within_bounds_except_in_a_refusal(void **state)
{
	static const struct {
		uint32_t max_message;
		uint16_t depth;
		enum vb__hello_verdict verdict;
	} cases[] = {
		{ 1, 1, VB__HELLO_GOOD },
		{ VB_MESSAGE_MAX, VB_DEPTH_MAX, VB__HELLO_GOOD },
		{ 0, 1, VB__HELLO_GARBAGE },
		{ 1, 0, VB__HELLO_GARBAGE },
		{ VB_MESSAGE_MAX + 1, 1, VB__HELLO_GARBAGE },
		{ UINT32_MAX, 1, VB__HELLO_GARBAGE },
		{ 1, VB_DEPTH_MAX + 1, VB__HELLO_GARBAGE },
		{ 1, UINT16_MAX, VB__HELLO_GARBAGE },
	};
	static const enum vb__hello_kind kinds[] = { VB__HELLO_OPEN, VB__HELLO_ACCEPT,
						     VB__HELLO_REFUSE };

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		for (size_t k = 0; k < COUNT(kinds); k++) {
			struct vb__hello hello = { kinds[k], VB__PROTOCOL_VERSION, 0,
						   cases[i].max_message, cases[i].depth };
			uint8_t wire[VB__HELLO_BYTES];
			struct vb__hello got;

			vb__hello_encode(wire, &hello);
			assert_int_equal(vb__hello_decode(&got, wire, sizeof(wire)),
					 kinds[k] == VB__HELLO_REFUSE ? VB__HELLO_GOOD
								      : cases[i].verdict);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hello_comes_back_as_it_was_encoded),
		cmocka_unit_test(layout_is_the_documented_one),
		cmocka_unit_test(every_truncation_is_garbage),
		cmocka_unit_test(padding_by_the_fabric_is_ignored),
		cmocka_unit_test(wrong_magic_is_garbage_whichever_bit_is_wrong),
		cmocka_unit_test(only_the_three_kinds_are_known),
		cmocka_unit_test(another_version_is_told_apart_whatever_else_it_says),
		cmocka_unit_test(limits_must_be_within_bounds_except_in_a_refusal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
