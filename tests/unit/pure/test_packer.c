/* SPDX-License-Identifier: Apache-2.0 */
/* Packing: what was packed comes back as it was; what was not made by a packer, or tampered with, does no harm. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <zstd.h>

#include "dice.h"
#include "suite.h"
#include "transfer/packer.h"

#define BLOCK (256u << 10)
#define GUARD 64u

struct bench {
	struct vb__packer *packer;
	uint8_t plain[BLOCK], packed[BLOCK], back[BLOCK + GUARD];
};

static int begin(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));

	*state = b;
	return b ? vb__packer_open(-1, &b->packer, NULL) : -1;
}

static int end(void **state)
{
	struct bench *b = *state;

	vb__packer_close(b->packer);
	free(b);
	return 0;
}

/* Words in no order, as a text has them. */
static void write_text(uint8_t *to, size_t len, uint64_t seed)
{
	static const char *const words[] = { "block ", "rail ",	   "a ",       "receiver ",
					     "the ",   "stored\n", "verdict ", "of " };
	struct dice dice = { seed };
	size_t at = 0;

	while (at < len) {
		const char *word = words[dice_throw(&dice, COUNT(words))];
		size_t n = strlen(word) < len - at ? strlen(word) : len - at;

		memcpy(to + at, word, n);
		at += n;
	}
}

static size_t pack_text(struct bench *b, int level, size_t len)
{
	write_text(b->plain, len, len);
	return vb__packer_pack(b->packer, level, b->plain, len, b->packed);
}

static bool comes_back(struct bench *b, size_t packed, size_t len)
{
	memset(b->back, 0xa5, sizeof(b->back));
	if (!vb__packer_unpack(b->packer, b->packed, packed, b->back, len))
		return false;
	assert_memory_equal(b->back, b->plain, len);
	return true;
}

/* What is behind the declared length was not touched, whatever happened. */
static void assert_kept_within(const struct bench *b, size_t len)
{
	for (size_t i = len; i < len + GUARD; i++)
		assert_int_equal(b->back[i], 0xa5);
}

static void text_of_any_size_at_any_level_comes_back(void **state)
{
	static const size_t sizes[] = { 64, 65, 1000, 4095, 4096, 4097, BLOCK - 1, BLOCK };
	static const int levels[] = { -7, -1, 1, 3, 9, 19 };
	struct bench *b = *state;

	for (size_t l = 0; l < COUNT(levels); l++)
		for (size_t s = 0; s < COUNT(sizes); s++) {
			size_t packed = pack_text(b, levels[l], sizes[s]);

			if (sizes[s] >= 4095)
				assert_in_range(packed, 1, sizes[s] * 2 / 3);
			if (packed)
				assert_true(comes_back(b, packed, sizes[s]));
		}
}

/* Which is packed piece by piece, and yet one frame, whose size is told. */
static void large_block_comes_back(void **state)
{
	static const int levels[] = { -7, 3, 9, 1 };
	size_t len = (2u << 20) + 1;
	struct bench *b = *state;
	uint8_t *plain = malloc(3 * len), *packed = plain + len, *back = packed + len;

	assert_non_null(plain);
	write_text(plain, len, 1);
	for (size_t l = 0; l < COUNT(levels); l++) {
		size_t n = vb__packer_pack(b->packer, levels[l], plain, len, packed);

		assert_in_range(n, 1, len * 2 / 3);
		assert_true(vb__packer_unpack(b->packer, packed, n, back, len));
		assert_memory_equal(back, plain, len);
		dice_fill(&(struct dice){ 7 }, back, len);
		assert_int_equal(vb__packer_pack(b->packer, levels[l], back, len, packed), 0);
	}
	free(plain);
}

/* At the highest level a large block takes long. */
static void large_block_of_no_use_is_left(void **state)
{
	size_t len = 4u << 20;
	uint8_t *plain = malloc(len), *packed = malloc(len);
	int cancel_fd = eventfd(1, EFD_CLOEXEC);
	struct vb__packer *packer;

	(void)state;
	assert_true(plain && packed && cancel_fd >= 0);
	assert_int_equal(vb__packer_open(cancel_fd, &packer, NULL), 0);
	write_text(plain, len, 1);
	assert_int_equal(vb__packer_pack(packer, 19, plain, len, packed), 0);
	vb__packer_close(packer);
	close(cancel_fd);
	free(plain);
	free(packed);
}

static void what_does_not_shrink_goes_as_it_is(void **state)
{
	struct dice dice = { 1 };
	struct bench *b = *state;

	dice_fill(&dice, b->plain, BLOCK);
	assert_int_equal(vb__packer_pack(b->packer, 1, b->plain, BLOCK, b->packed), 0);
	/* Nor does it pay to send 99 parts for 100. */
	memset(b->plain, 0, BLOCK / 100);
	assert_int_equal(vb__packer_pack(b->packer, 1, b->plain, BLOCK, b->packed), 0);
	memset(b->plain, 0, BLOCK / 10);
	assert_in_range(vb__packer_pack(b->packer, 1, b->plain, BLOCK, b->packed), 1,
			BLOCK - BLOCK / 32);
}

static void a_few_bytes_are_not_packed(void **state)
{
	struct bench *b = *state;

	memset(b->plain, 0, 64);
	for (size_t len = 0; len < 64; len++)
		assert_int_equal(vb__packer_pack(b->packer, 1, b->plain, len, b->packed), 0);
	assert_true(vb__packer_pack(b->packer, 1, b->plain, 64, b->packed) > 0);
}

static void bomb_is_refused_before_it_goes_off(void **state)
{
	struct bench *b = *state;
	size_t huge = 64u << 20, packed;
	uint8_t *zeros = calloc(1, huge);

	assert_non_null(zeros);
	packed = ZSTD_compress(b->packed, BLOCK, zeros, huge, 1);
	assert_in_range(packed, 1, BLOCK);
	memset(b->back, 0xa5, sizeof(b->back));
	assert_false(vb__packer_unpack(b->packer, b->packed, packed, b->back, BLOCK));
	assert_kept_within(b, 0);
	free(zeros);
}

static void declared_length_must_be_exact(void **state)
{
	struct bench *b = *state;
	size_t packed = pack_text(b, 1, 5000);

	assert_false(comes_back(b, packed, 4999));
	assert_kept_within(b, 4999);
	assert_false(comes_back(b, packed, 5001));
	assert_false(comes_back(b, packed, 0));
	assert_true(comes_back(b, packed, 5000));
}

/* zstd itself would take these. */
static void more_than_one_frame_is_refused(void **state)
{
	static const uint8_t skippable[] = { 0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 'x' };
	struct bench *b = *state;
	size_t packed = pack_text(b, 1, 5000);

	memcpy(b->packed + packed, skippable, sizeof(skippable));
	assert_false(comes_back(b, packed + sizeof(skippable), 5000));
	b->packed[packed] = 0;
	assert_false(comes_back(b, packed + 1, 5000));
}

/* A build of zstd may take them. */
static void frame_of_an_old_zstd_is_refused(void **state)
{
	/* Of version 0.7: its length, a block that repeats one byte, the end. */
	static const uint8_t old[] = { 0x27, 0xb5, 0x2f, 0xfd, 0x20, 200, 0x80,
				       0,    200,  'a',	 0xc0, 0,    0 };
	struct bench *b = *state;

	memset(b->plain, 'a', 200);
	memcpy(b->packed, old, sizeof(old));
	assert_false(comes_back(b, sizeof(old), 200));
}

static void cut_anywhere_it_is_refused(void **state)
{
	struct bench *b = *state;
	size_t packed = pack_text(b, 1, 5000);

	for (size_t len = 0; len < packed; len++)
		assert_false(comes_back(b, len, 5000));
	assert_true(comes_back(b, packed, 5000));
}

/* The hash finds what zstd does not; here it must only stay within its bounds, and be good for the next. */
static void every_flipped_bit_stays_within_bounds(void **state)
{
	struct bench *b = *state;
	size_t packed = pack_text(b, 3, 700);
	unsigned noticed = 0;

	for (size_t bit = 0; bit < packed * 8; bit++) {
		b->packed[bit / 8] ^= (uint8_t)(1u << bit % 8);
		memset(b->back, 0xa5, sizeof(b->back));
		noticed += !vb__packer_unpack(b->packer, b->packed, packed, b->back, 700);
		assert_kept_within(b, 700);
		b->packed[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	assert_true(noticed > 0);
	assert_true(comes_back(b, packed, 700));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(text_of_any_size_at_any_level_comes_back, begin,
						end),
		cmocka_unit_test_setup_teardown(large_block_comes_back, begin, end),
		cmocka_unit_test(large_block_of_no_use_is_left),
		cmocka_unit_test_setup_teardown(what_does_not_shrink_goes_as_it_is, begin, end),
		cmocka_unit_test_setup_teardown(a_few_bytes_are_not_packed, begin, end),
		cmocka_unit_test_setup_teardown(bomb_is_refused_before_it_goes_off, begin, end),
		cmocka_unit_test_setup_teardown(declared_length_must_be_exact, begin, end),
		cmocka_unit_test_setup_teardown(more_than_one_frame_is_refused, begin, end),
		cmocka_unit_test_setup_teardown(frame_of_an_old_zstd_is_refused, begin, end),
		cmocka_unit_test_setup_teardown(cut_anywhere_it_is_refused, begin, end),
		cmocka_unit_test_setup_teardown(every_flipped_bit_stays_within_bounds, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
