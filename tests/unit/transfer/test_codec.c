/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Codecs: a small stream of blocks over two rails, recorded; and everything that somebody on the way could do to
 * it. What does not come exactly as it was sent, and in its turn, is refused.
 */
#include <stdlib.h>
#include <string.h>

#include "suite.h"
#include "transfer/codec.h"

#define RAILS 2u
#define MESSAGES 8u
#define DATA_MAX 100u
#define ROOM (DATA_MAX + VB__BLOCK_TRAILER)

struct recorded {
	struct vb__block block;
	uint8_t data[DATA_MAX];
	uint8_t bytes[ROOM];
	size_t len;
	unsigned rail;
	uint64_t turn;
};

static struct vb_session session;
static struct vb__codec *receiver;
static struct recorded stream[MESSAGES];

static void agree_on(unsigned seal)
{
	session = (struct vb_session){
		.agreed = { .rails = RAILS, .block_bytes = VB_BLOCK_MIN, .seal = (uint8_t)seal }
	};
	for (unsigned i = 0; i < RAILS; i++)
		memset(session.secrets[i].bytes, 7 + (int)i, sizeof(session.secrets[i].bytes));
}

/* Data of all sorts of lengths, and a hole. */
static void record(struct vb__codec *sender, unsigned i, uint64_t offset)
{
	static const size_t lengths[MESSAGES] = { 1, 16, 15, 100, 17, 33, 1u << 20, 64 };
	struct recorded *r = &stream[i];
	struct vb__message message = { .bytes = r->bytes, .rail = i % RAILS, .turn = i / RAILS };

	r->block = (struct vb__block){
		.offset = offset,
		.length = lengths[i],
		.file = i,
		.flags = lengths[i] > DATA_MAX ? VB__BLOCK_HOLE
			 : i == 3	       ? VB__BLOCK_OFFERS
					       : 0,
	};
	for (size_t b = 0; b < vb__block_data_bytes(&r->block); b++)
		r->data[b] = r->bytes[b] = (uint8_t)(31 * i + b);
	assert_int_equal(vb__codec_encode(sender, &r->block, &message, NULL), 0);
	r->len = message.len;
	r->rail = message.rail;
	r->turn = message.turn;
}

static int open_by(void **state, unsigned seal)
{
	struct vb__codec *sender;
	uint64_t offset = 0;

	(void)state;
	agree_on(seal);
	assert_int_equal(vb__codec_open(&session, -1, &sender, NULL), 0);
	for (unsigned i = 0; i < MESSAGES; i++) {
		record(sender, i, offset);
		offset += stream[i].block.length;
	}
	vb__codec_close(sender);
	return vb__codec_open(&session, -1, &receiver, NULL);
}

static int open_plain(void **state)
{
	return open_by(state, 0);
}

static int open_aes(void **state)
{
	return open_by(state, VB__SEAL_CAN | VB__SEAL_WANTED);
}

static int open_chacha(void **state)
{
	return open_by(state, VB__SEAL_CAN | VB__SEAL_WANTED | VB__SEAL_SLOW_AES);
}

static int close_all(void **state)
{
	(void)state;
	vb__codec_close(receiver);
	return 0;
}

/* A copy, as decoding may change it; at the very end of its memory, for the sanitizer. */
static int decode(const uint8_t *bytes, size_t len, unsigned rail, uint64_t turn,
		  struct vb__block *block)
{
	struct vb_error err = { .code = VB_OK };
	uint8_t *copy = malloc(len ? len : 1);
	struct vb__message message = { .bytes = copy, .len = len, .rail = rail, .turn = turn };
	const void *data;
	int rc;

	memcpy(copy, bytes, len);
	rc = vb__codec_decode(receiver, block, &message, &data, &err);
	assert_int_equal(rc, err.code);
	if (rc == 0)
		assert_memory_equal(data, stream[block->file].data, vb__block_data_bytes(block));
	free(copy);
	return rc;
}

static int decode_at(const struct recorded *r, unsigned rail, uint64_t turn)
{
	struct vb__block block;

	return decode(r->bytes, r->len, rail, turn, &block);
}

static void all_of_it_comes_as_it_was_sent(void **state)
{
	(void)state;
	for (unsigned i = 0; i < MESSAGES; i++) {
		const struct recorded *r = &stream[i];
		struct vb__block block;

		assert_int_equal(decode(r->bytes, r->len, r->rail, r->turn, &block), 0);
		assert_memory_equal(&block, &r->block, sizeof(block));
		assert_int_equal(r->len, vb__block_data_bytes(&block) + VB__BLOCK_TRAILER);
	}
}

static void every_changed_bit_is_refused(void **state)
{
	(void)state;
	for (unsigned i = 0; i < MESSAGES; i++)
		for (size_t bit = 0; bit < 8 * stream[i].len; bit++) {
			struct recorded *r = &stream[i];

			r->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
			assert_int_equal(decode_at(r, r->rail, r->turn), VB_ERR_CORRUPT);
			r->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
}

static void what_is_cut_or_longer_is_refused(void **state)
{
	uint8_t longer[ROOM + 1] = { 0 };
	struct vb__block block;

	(void)state;
	for (unsigned i = 0; i < MESSAGES; i++) {
		const struct recorded *r = &stream[i];

		for (size_t len = 0; len < r->len; len++) {
			assert_int_equal(decode(r->bytes, len, r->rail, r->turn, &block),
					 VB_ERR_CORRUPT);
			assert_int_equal(decode(r->bytes + r->len - len, len, r->rail, r->turn,
						&block),
					 VB_ERR_CORRUPT);
		}
		memcpy(longer, r->bytes, r->len);
		assert_int_equal(decode(longer, r->len + 1, r->rail, r->turn, &block),
				 VB_ERR_CORRUPT);
	}
}

/* Swapped, left out or doubled: it comes at the turn, or on the rail, of another. */
static void a_sealed_block_comes_in_its_turn_on_its_rail_only(void **state)
{
	(void)state;
	for (unsigned i = 0; i < MESSAGES; i++)
		for (unsigned rail = 0; rail < RAILS; rail++)
			for (uint64_t turn = 0; turn < MESSAGES; turn++) {
				const struct recorded *r = &stream[i];
				bool its = rail == r->rail && turn == r->turn;

				assert_int_equal(decode_at(r, rail, turn),
						 its ? 0 : VB_ERR_CORRUPT);
			}
}

static void another_transfers_block_is_refused(void **state)
{
	(void)state;
	vb__codec_close(receiver);
	for (unsigned i = 0; i < RAILS; i++)
		session.secrets[i].bytes[VB__SEAL_SECRET - 1] ^= 1;
	assert_int_equal(vb__codec_open(&session, -1, &receiver, NULL), 0);
	for (unsigned i = 0; i < MESSAGES; i++)
		assert_int_equal(decode_at(&stream[i], stream[i].rail, stream[i].turn),
				 VB_ERR_CORRUPT);
}

/* A sender that did not hear of it, or forgot, does not get through. */
static void a_plain_block_is_refused_where_it_should_be_sealed(void **state)
{
	unsigned agreed = session.agreed.seal;
	struct recorded plain;

	close_all(state);
	open_by(state, 0);
	plain = stream[1];
	assert_int_equal(decode_at(&plain, plain.rail, plain.turn), 0);
	close_all(state);
	open_by(state, agreed);
	assert_int_equal(decode_at(&plain, plain.rail, plain.turn), VB_ERR_CORRUPT);
}

static void neither_data_nor_what_it_is_about_stands_in_the_message(void **state)
{
	(void)state;
	for (unsigned i = 0; i < MESSAGES; i++) {
		const struct recorded *r = &stream[i];
		uint64_t bytes = vb__block_data_bytes(&r->block);
		uint8_t trailer[VB__BLOCK_TRAILER];

		vb__block_encode(trailer, &r->block);
		assert_memory_not_equal(r->bytes + bytes, trailer, VB__BLOCK_HEAD);
		if (bytes > 8)
			assert_memory_not_equal(r->bytes, r->data, bytes);
	}
}

static void the_digest_is_the_same_sealed_or_not(void **state)
{
	uint64_t hashes[MESSAGES];

	for (unsigned i = 0; i < MESSAGES; i++)
		hashes[i] = stream[i].block.hash;
	close_all(state);
	open_plain(state);
	for (unsigned i = 0; i < MESSAGES; i++)
		assert_true(stream[i].block.hash == hashes[i]);
}

#define SEALED(test)                                                \
	cmocka_unit_test_setup_teardown(test, open_aes, close_all), \
		cmocka_unit_test_setup_teardown(test, open_chacha, close_all)
#define ANY(test) SEALED(test), cmocka_unit_test_setup_teardown(test, open_plain, close_all)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ANY(all_of_it_comes_as_it_was_sent),
		ANY(every_changed_bit_is_refused),
		ANY(what_is_cut_or_longer_is_refused),
		SEALED(a_sealed_block_comes_in_its_turn_on_its_rail_only),
		SEALED(another_transfers_block_is_refused),
		SEALED(a_plain_block_is_refused_where_it_should_be_sealed),
		SEALED(neither_data_nor_what_it_is_about_stands_in_the_message),
		SEALED(the_digest_is_the_same_sealed_or_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
