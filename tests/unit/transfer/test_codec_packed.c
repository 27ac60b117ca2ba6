/* SPDX-License-Identifier: Apache-2.0 */
/* Codecs that pack, sealed or not: what comes is what was sent, or nothing; and a sender that lies gets nowhere. */
#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#include "dice.h"
#include "suite.h"
#include "transfer/codec.h"

#define SEALED (VB__SEAL_CAN | VB__SEAL_WANTED)
#define ROOM (VB_BLOCK_MIN + VB__BLOCK_TRAILER)

static struct vb_session session;
static struct vb__codec *sender, *receiver;
static uint8_t data[VB_BLOCK_MIN];

static int open_by(unsigned seal, uint8_t pack)
{
	session = (struct vb_session){ .agreed = { .rails = 1,
						   .block_bytes = VB_BLOCK_MIN,
						   .seal = (uint8_t)seal,
						   .pack = pack } };
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t) "a block of a text, of a text, "[i * (1 + i / 900) % 30];
	return vb__codec_open(&session, -1, &sender, NULL) ||
	       vb__codec_open(&session, -1, &receiver, NULL);
}

static int open_plain(void **state)
{
	(void)state;
	return open_by(0, 3);
}

static int open_sealed(void **state)
{
	(void)state;
	return open_by(SEALED, VB__PACK_AUTO);
}

static int close_all(void **state)
{
	(void)state;
	vb__codec_close(sender);
	vb__codec_close(receiver);
	return 0;
}

/* The message of a block with the first `len` bytes of the data; returns its length. */
static size_t make(uint8_t *bytes, size_t len, uint32_t flags, int level, struct vb__block *block)
{
	struct vb__message message = { .bytes = bytes, .level = level };

	*block = (struct vb__block){ .offset = 7, .length = len, .flags = flags };
	memcpy(bytes, data, vb__block_data_bytes(block));
	assert_int_equal(vb__codec_encode(sender, block, &message, NULL), 0);
	return message.len;
}

/* Decodes a copy, which ends where its memory does. */
static int decode(const uint8_t *bytes, size_t len, struct vb__block *block)
{
	struct vb_error err = { .code = VB_OK };
	uint8_t *copy = malloc(len ? len : 1);
	struct vb__message message = { .bytes = copy, .len = len };
	const void *found;
	int rc;

	memcpy(copy, bytes, len);
	rc = vb__codec_decode(receiver, block, &message, &found, &err);
	assert_int_equal(rc, err.code);
	if (rc == 0)
		assert_memory_equal(found, data, vb__block_data_bytes(block));
	free(copy);
	return rc;
}

static void packed_blocks_come_back_with_the_same_hash(void **state)
{
	static const uint32_t kinds[] = { 0, VB__BLOCK_OFFERS, VB__BLOCK_PARCELS };
	static const size_t lengths[] = { 200, 4095, VB_BLOCK_MIN };
	uint8_t bytes[ROOM], plain[ROOM];

	(void)state;
	for (unsigned i = 0; i < 9; i++) {
		struct vb__block block, unpacked, got;
		size_t len = make(bytes, lengths[i / 3], kinds[i % 3], 3, &block);

		assert_true(len < lengths[i / 3] + VB__BLOCK_TRAILER);
		assert_int_equal(decode(bytes, len, &got), 0);
		assert_memory_equal(&got, &block, sizeof(got));
		make(plain, lengths[i / 3], kinds[i % 3], 0, &unpacked);
		assert_true(unpacked.hash == block.hash);
	}
}

static void what_does_not_shrink_and_holes_go_as_they_are(void **state)
{
	struct dice dice = { 1 };
	struct vb__block block, got;
	uint8_t bytes[ROOM];

	(void)state;
	dice_fill(&dice, data, sizeof(data));
	assert_int_equal(make(bytes, VB_BLOCK_MIN, 0, 9, &block), ROOM);
	assert_int_equal(decode(bytes, ROOM, &got), 0);
	assert_int_equal(make(bytes, 1u << 30, VB__BLOCK_HOLE, 9, &block), VB__BLOCK_TRAILER);
	assert_int_equal(decode(bytes, VB__BLOCK_TRAILER, &got), 0);
	assert_int_equal(got.length, 1u << 30);
}

/* A bit or two of zstd's header mean nothing: then it is still the same data, which decode checks. */
static void a_changed_bit_never_changes_what_comes(void **state)
{
	struct vb__block block, got;
	uint8_t bytes[ROOM];
	size_t len = make(bytes, 1000, 0, 3, &block), unnoticed = 0;

	(void)state;
	for (size_t bit = 0; bit < 8 * len; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		if (decode(bytes, len, &got) == 0) {
			assert_memory_equal(&got, &block, sizeof(got));
			unnoticed++;
		}
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	assert_in_range(unnoticed, 0, session.agreed.seal ? 0 : len / 4);
}

static void what_is_cut_is_refused(void **state)
{
	struct vb__block block;
	uint8_t bytes[ROOM];
	size_t len = make(bytes, 1000, 0, 3, &block);

	(void)state;
	for (size_t cut = 1; cut <= len; cut++) {
		assert_int_equal(decode(bytes, len - cut, &block), VB_ERR_CORRUPT);
		assert_int_equal(decode(bytes + cut, len - cut, &block), VB_ERR_CORRUPT);
	}
}

/* Says that it is `length` bytes, and brings these. */
static int decode_forged(uint8_t *bytes, size_t len, uint64_t length, uint32_t flags)
{
	struct vb__block block = { .length = length, .flags = VB__BLOCK_PACKED | flags };

	vb__block_encode(bytes + len, &block);
	return decode(bytes, len + VB__BLOCK_TRAILER, &block);
}

static void lies_about_the_length_are_refused(void **state)
{
	struct vb__block block;
	uint8_t bytes[ROOM];
	size_t len = make(bytes, 1000, 0, 3, &block) - VB__BLOCK_TRAILER;

	(void)state;
	assert_int_equal(decode_forged(bytes, len, 999, 0), VB_ERR_CORRUPT);
	assert_int_equal(decode_forged(bytes, len, 1001, 0), VB_ERR_CORRUPT);
	assert_int_equal(decode_forged(bytes, len, len, 0), VB_ERR_CORRUPT);
	assert_int_equal(decode_forged(bytes, 0, 1000, 0), VB_ERR_CORRUPT);
	assert_int_equal(decode_forged(bytes, len, 1000, VB__BLOCK_HOLE), VB_ERR_CORRUPT);
}

/* 64 MiB of zeros in a few KiB, and the truth told about that. */
static void bomb_is_refused(void **state)
{
	const size_t huge = 64u << 20;
	uint8_t *zeros = calloc(1, huge), *bytes = malloc(2 * ROOM);
	size_t len = ZSTD_compress(bytes, ROOM, zeros, huge, 19);

	(void)state;
	assert_false(ZSTD_isError(len));
	assert_int_equal(decode_forged(bytes, len, huge, 0), VB_ERR_CORRUPT);
	assert_int_equal(decode_forged(bytes, len, VB_BLOCK_MIN, 0), VB_ERR_CORRUPT);
	free(zeros);
	free(bytes);
}

static void a_packed_block_is_refused_where_that_was_not_agreed_on(void **state)
{
	struct vb__block block;
	uint8_t bytes[ROOM];
	size_t len = make(bytes, 1000, 0, 3, &block);

	(void)state;
	assert_int_equal(decode(bytes, len, &block), 0);
	vb__codec_close(receiver);
	session.agreed.pack = 0;
	assert_int_equal(vb__codec_open(&session, -1, &receiver, NULL), 0);
	assert_int_equal(decode(bytes, len, &block), VB_ERR_CORRUPT);
}

#define PLAIN(test) cmocka_unit_test_setup_teardown(test, open_plain, close_all)
#define BOTH(test) PLAIN(test), cmocka_unit_test_setup_teardown(test, open_sealed, close_all)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(packed_blocks_come_back_with_the_same_hash),
		BOTH(what_does_not_shrink_and_holes_go_as_they_are),
		BOTH(a_changed_bit_never_changes_what_comes),
		BOTH(what_is_cut_is_refused),
		PLAIN(lies_about_the_length_are_refused),
		PLAIN(bomb_is_refused),
		BOTH(a_packed_block_is_refused_where_that_was_not_agreed_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
