/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks: every bit of data and trailer is covered by the hash, and nonsense is refused. */
#include <string.h>

#include "suite.h"
#include "wire/block.h"
#include "wire/hash.h"

#define DATA 100u

static size_t make(uint8_t *message, struct vb__block *block)
{
	size_t data = vb__block_data_bytes(block);

	for (size_t i = 0; i < data; i++)
		message[i] = (uint8_t)(i * 7);
	block->hash = vb__block_hash(block, message);
	vb__block_encode(message + data, block);
	return data + VB__BLOCK_TRAILER;
}

static bool is_accepted(const uint8_t *message, size_t len)
{
	struct vb__block block;

	return vb__block_decode(&block, message, len) &&
	       vb__block_hash(&block, message) == block.hash;
}

static void block_comes_back_as_it_was_encoded(void **state)
{
	struct vb__block block = { .offset = 0x0102030405060708, .length = DATA, .file = 7 }, got;
	uint8_t message[DATA + VB__BLOCK_TRAILER] = { 0 };
	size_t len = make(message, &block);

	(void)state;
	assert_true(vb__block_decode(&got, message, len));
	assert_memory_equal(&got, &block, sizeof(got));
	assert_true(is_accepted(message, len));
}

static void hole_of_any_length_has_no_data(void **state)
{
	struct vb__block block = { .length = UINT64_MAX, .flags = VB__BLOCK_HOLE }, got;
	uint8_t message[VB__BLOCK_TRAILER] = { 0 };
	size_t len = make(message, &block);

	(void)state;
	assert_int_equal(len, VB__BLOCK_TRAILER);
	assert_true(is_accepted(message, len));
	assert_true(vb__block_decode(&got, message, len));
	assert_int_equal(got.length, UINT64_MAX);
}

static bool is_packed_as(uint32_t flags, uint64_t length, size_t came)
{
	struct vb__block block = { .length = length, .flags = VB__BLOCK_PACKED | flags }, got;
	uint8_t message[DATA + VB__BLOCK_TRAILER] = { 0 };

	vb__block_encode(message + came, &block);
	return vb__block_decode(&got, message, came + VB__BLOCK_TRAILER);
}

static void packed_block_is_shorter_than_its_length(void **state)
{
	(void)state;
	assert_true(is_packed_as(0, DATA, DATA - 1));
	assert_true(is_packed_as(VB__BLOCK_OFFERS, UINT64_MAX, 1));
	assert_true(is_packed_as(VB__BLOCK_PARCELS, 2, 1));
	assert_false(is_packed_as(0, DATA, DATA));
	assert_false(is_packed_as(0, DATA - 1, DATA));
	assert_false(is_packed_as(0, DATA, 0));
	assert_false(is_packed_as(VB__BLOCK_HOLE, DATA, 1));
	assert_false(is_packed_as(VB__BLOCK_HOLE, DATA, 0));
	assert_false(is_packed_as(VB__BLOCK_OFFERS | VB__BLOCK_PARCELS, DATA, 1));
}

static void hash_is_the_same_packed_or_not(void **state)
{
	struct vb__block block = { .offset = 5, .length = 4 }, packed = block;

	(void)state;
	packed.flags = VB__BLOCK_PACKED;
	assert_true(vb__block_hash(&block, "data") == vb__block_hash(&packed, "data"));
}

/* From sizes that are hashed in one go to those of many stripes. */
static void hash_is_the_same_by_any_way(void **state)
{
	static uint8_t data[20000];
	uint64_t plain;

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 31 + i / 251);
	for (size_t len = 0; len <= sizeof(data); len += len < 600 ? 1 : 97) {
		plain = vb__hash_plainly(data, len, len * 7);
		assert_true(plain == vb__hash_by_vectors(data, len, len * 7));
		assert_true(plain == vb__hash(data, len, len * 7));
	}
}

static void every_flipped_bit_is_noticed(void **state)
{
	struct vb__block blocks[] = { { .offset = 4096, .length = DATA },
				      { .offset = 1, .length = 1 },
				      { .length = 1u << 20, .flags = VB__BLOCK_HOLE } };

	(void)state;
	for (size_t b = 0; b < COUNT(blocks); b++) {
		uint8_t message[DATA + VB__BLOCK_TRAILER] = { 0 };
		size_t len = make(message, &blocks[b]);

		for (size_t bit = 0; bit < len * 8; bit++) {
			message[bit / 8] ^= (uint8_t)(1u << bit % 8);
			assert_false(is_accepted(message, len));
			message[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
		assert_true(is_accepted(message, len));
	}
}

static void every_truncation_is_noticed(void **state)
{
	struct vb__block block = { .length = DATA };
	uint8_t message[DATA + VB__BLOCK_TRAILER] = { 0 };
	size_t len = make(message, &block);

	(void)state;
	for (size_t cut = 0; cut < len; cut++)
		assert_false(is_accepted(message, cut));
}

static void empty_block_and_one_beyond_the_end_are_refused(void **state)
{
	struct vb__block empty = { .offset = 1 };
	struct vb__block beyond = { .offset = UINT64_MAX - 10, .length = 11 + DATA };
	uint8_t message[2 * DATA + VB__BLOCK_TRAILER] = { 0 };

	(void)state;
	assert_false(is_accepted(message, make(message, &empty)));
	assert_false(is_accepted(message, make(message, &beyond)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(block_comes_back_as_it_was_encoded),
		cmocka_unit_test(hole_of_any_length_has_no_data),
		cmocka_unit_test(packed_block_is_shorter_than_its_length),
		cmocka_unit_test(hash_is_the_same_packed_or_not),
		cmocka_unit_test(hash_is_the_same_by_any_way),
		cmocka_unit_test(every_flipped_bit_is_noticed),
		cmocka_unit_test(every_truncation_is_noticed),
		cmocka_unit_test(empty_block_and_one_beyond_the_end_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
