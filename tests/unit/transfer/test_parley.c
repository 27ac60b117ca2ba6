/* SPDX-License-Identifier: Apache-2.0 */
/* Parleys on a wire that does its work: proving, saying, hearing, deriving, ending. */
#include <string.h>

#include <openssl/err.h>

#include "dice.h"
#include "parley_pair.h"

static void both_prove_with_the_same_key(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair, &right_secret, &right_secret);
	assert_true(pair_prove(&pair));
	assert_int_equal(vb__parley_prove(pair.end[CLIENT].parley, NULL), 0);
	assert_int_equal(vb__parley_prove(pair.end[SERVER].parley, NULL), 0);
	assert_int_equal(pair.end[CLIENT].channel.sent, 2);
	assert_int_equal(pair.end[SERVER].channel.sent, 1);
	pair_close(&pair);
}

static void different_keys_are_told_at_both_ends_in_plain_words(void **state)
{
	struct pair pair;

	(void)state;
	for (int swapped = 0; swapped < 2; swapped++) {
		pair_open(&pair, swapped ? &wrong_secret : &right_secret,
			  swapped ? &right_secret : &wrong_secret);
		assert_false(pair_prove(&pair));
		for (int i = 0; i < 2; i++) {
			struct vb_error *err = &pair.end[i].err;

			assert_unproven(&pair.end[i], VB_ERR_KEY);
			assert_string_equal(err->cause, "the peer does not have the same key");
			assert_string_equal(err->hint, "give both sides the same key");
			assert_string_equal(err->object, "the other end");
			assert_int_equal(err->native_kind, VB_NATIVE_TLS);
			assert_int_equal(ERR_GET_LIB((unsigned long)err->native), ERR_LIB_SSL);
		}
		pair_close(&pair);
	}
}

static void one_bit_of_the_secret_makes_the_difference(void **state)
{
	struct pair pair;

	(void)state;
	for (unsigned bit = 0; bit < 8 * VB__SECRET_BYTES; bit += 17) {
		struct vb__secret other = right_secret;

		other.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		pair_open(&pair, &other, &right_secret);
		pair_prove(&pair);
		assert_unproven(&pair.end[CLIENT], VB_ERR_KEY);
		assert_unproven(&pair.end[SERVER], VB_ERR_KEY);
		pair_close(&pair);
	}
}

static void two_ends_of_the_same_kind_do_not_agree(void **state)
{
	struct pair pair;

	(void)state;
	for (int role = VB__PARLEY_CONNECTED; role <= VB__PARLEY_ACCEPTED; role++) {
		memset(&pair, 0, sizeof(pair));
		mock_channel_pair(&pair.end[0].channel, &pair.end[1].channel);
		for (int i = 0; i < 2; i++) {
			pair.end[i].proof = VB_ERR_AGAIN;
			assert_int_equal(vb__parley_open(&pair.end[i].channel, &right_secret, role,
							 &pair.end[i].parley, NULL),
					 0);
		}
		assert_false(pair_prove(&pair));
		if (role == VB__PARLEY_CONNECTED)
			assert_unproven(&pair.end[1], VB_ERR_PROTOCOL);
		pair_close(&pair);
	}
}

static void nothing_is_said_heard_or_derived_before_the_proof(void **state)
{
	struct pair pair;
	uint8_t key[32];
	struct vb_error err;
	const void *words;

	(void)state;
	pair_open(&pair, &right_secret, &right_secret);
	for (int i = 0; i < 2; i++) {
		struct vb__parley *p = pair.end[i].parley;

		assert_int_equal(vb__parley_say(p, "x", 1, &err), VB_ERR_INVALID);
		assert_int_equal(err.code, VB_ERR_INVALID);
		assert_int_equal(vb__parley_hear(p, &words, &err), VB_ERR_INVALID);
		assert_int_equal(vb__parley_derive(p, "data", 0, key, sizeof(key), &err),
				 VB_ERR_INVALID);
	}
	assert_true(pair_prove(&pair)); /* and no harm was done */
	pair_close(&pair);
}

static void every_length_is_heard_as_it_was_said(void **state)
{
	static uint8_t words[VB__PARLEY_MAX];
	struct dice dice = { .state = 1 };
	struct pair pair;

	(void)state;
	pair_agree(&pair);
	for (size_t len = 1; len <= VB__PARLEY_MAX; len++) {
		struct end *from = &pair.end[len % 2], *to = &pair.end[!(len % 2)];

		dice_fill(&dice, words, len);
		assert_says(from, words, len);
		assert_int_equal(to->channel.waiting, 1);
		assert_hears(to, words, len);
		assert_hears_nothing(to, VB_ERR_AGAIN);
	}
	pair_close(&pair);
}

static void what_was_said_in_a_row_is_heard_one_by_one(void **state)
{
	static uint8_t words[VB__PARLEY_MAX];
	struct dice said = { .state = 2 }, heard = said;
	struct pair pair;

	(void)state;
	pair_agree(&pair);
	for (int i = 0; i < 1000; i++) {
		size_t len = 1 + dice_throw(&said, i % 2 ? 20 : VB__PARLEY_MAX);

		memset(words, i, len);
		assert_says(&pair.end[CLIENT], words, len);
	}
	for (int i = 0; i < 1000; i++) {
		size_t len = 1 + dice_throw(&heard, i % 2 ? 20 : VB__PARLEY_MAX);

		memset(words, i, len);
		assert_hears(&pair.end[SERVER], words, len);
	}
	assert_hears_nothing(&pair.end[SERVER], VB_ERR_AGAIN);
	pair_close(&pair);
}

static void what_cannot_be_said_is_refused_and_changes_nothing(void **state)
{
	static uint8_t words[VB__PARLEY_MAX + 1];
	struct pair pair;
	struct vb__parley *p;
	struct vb_error err;

	(void)state;
	pair_agree(&pair);
	p = pair.end[CLIENT].parley;
	assert_int_equal(vb__parley_say(p, words, 0, &err), VB_ERR_INVALID);
	assert_int_equal(vb__parley_say(p, words, sizeof(words), &err), VB_ERR_INVALID);
	assert_string_equal(err.cause, "2049 bytes, not 1 to 2048");
	assert_hears_nothing(&pair.end[SERVER], VB_ERR_AGAIN);
	assert_says(&pair.end[CLIENT], "still here", 10);
	assert_hears(&pair.end[SERVER], "still here", 10);
	pair_close(&pair);
}

/* Of what is sealed nothing is to be seen on the wire. */
static enum mock_fate look_for_words(void *seen, unsigned number, uint8_t *bytes, size_t *len)
{
	(void)number;
	if (memmem(bytes, *len, "open sesame", 11))
		*(bool *)seen = true;
	return MOCK_DELIVER;
}

static void words_are_not_seen_on_the_wire(void **state)
{
	bool seen = false;
	struct pair pair;

	(void)state;
	pair_agree(&pair);
	pair.end[CLIENT].channel.wire = look_for_words;
	pair.end[CLIENT].channel.wire_arg = &seen;
	assert_says(&pair.end[CLIENT], "open sesame", 11);
	assert_hears(&pair.end[SERVER], "open sesame", 11);
	assert_false(seen);
	pair_close(&pair);
}

static void narrow_channels_only_take_more_messages(void **state)
{
	static const size_t limits[] = { 1, 2, 5, 100, 2049, 1u << 20 };
	static uint8_t words[VB__PARLEY_MAX];

	(void)state;
	memset(words, 'w', sizeof(words));
	for (size_t i = 0; i < COUNT(limits); i++) {
		struct pair pair;

		pair_open(&pair, &right_secret, &right_secret);
		for (int e = 0; e < 2; e++)
			pair.end[e].channel.max_message = limits[i];
		assert_true(pair_prove(&pair));
		assert_says(&pair.end[SERVER], words, sizeof(words));
		assert_hears(&pair.end[CLIENT], words, sizeof(words));
		assert_hears_nothing(&pair.end[CLIENT], VB_ERR_AGAIN);
		pair_close(&pair);
	}
}

static void proving_waits_for_room_without_blocking(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair, &right_secret, &right_secret);
	for (int i = 0; i < 2; i++) {
		pair.end[i].channel.max_message = 50;
		pair.end[i].channel.room = 2;
	}
	/* Nobody listens: it gives way. */
	for (int i = 0; i < 3; i++) {
		assert_int_equal(vb__parley_prove(pair.end[CLIENT].parley, NULL), VB_ERR_AGAIN);
		assert_int_equal(pair.end[SERVER].channel.waiting, 2);
	}
	assert_true(pair_prove(&pair));
	pair_close(&pair);
}

static void both_derive_the_same_and_each_name_its_own(void **state)
{
	static const struct {
		const char *label;
		uint32_t number;
	} names[] = { { "data", 0 }, { "data", 1 }, { "data", 256 }, { "data", UINT32_MAX },
		      { "rail", 0 }, { "dat", 0 },  { "", 0 } };
	uint8_t keys[2 * COUNT(names)][32], again[32];
	struct pair pair;
	size_t n = 0;

	(void)state;
	for (int session = 0; session < 2; session++) {
		pair_agree(&pair);
		for (size_t i = 0; i < COUNT(names); i++, n++) {
			pair_derive(&pair.end[CLIENT], names[i].label, names[i].number, keys[n]);
			pair_derive(&pair.end[SERVER], names[i].label, names[i].number, again);
			assert_memory_equal(keys[n], again, 32);
		}
		pair_close(&pair);
	}
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < i; j++)
			assert_memory_not_equal(keys[i], keys[j], 32);
}

static void deriving_does_not_depend_on_what_was_said(void **state)
{
	uint8_t before[32], after[32];
	struct pair pair;

	(void)state;
	pair_agree(&pair);
	pair_derive(&pair.end[CLIENT], "data", 7, before);
	assert_says(&pair.end[CLIENT], "words", 5);
	assert_hears(&pair.end[SERVER], "words", 5);
	pair_derive(&pair.end[SERVER], "data", 7, after);
	assert_memory_equal(before, after, 32);
	pair_close(&pair);
}

static void deriving_too_much_is_refused_and_changes_nothing(void **state)
{
	static uint8_t keys[1u << 16];
	char label[100] = "";
	struct vb_error err;
	struct pair pair;

	(void)state;
	pair_agree(&pair);
	memset(label, 'l', 65);
	assert_int_equal(vb__parley_derive(pair.end[0].parley, label, 0, keys, 32, &err),
			 VB_ERR_INVALID);
	assert_int_equal(vb__parley_derive(pair.end[0].parley, "l", 0, keys, sizeof(keys), &err),
			 VB_ERR_SYSTEM);
	assert_int_equal(err.native_kind, VB_NATIVE_TLS);
	assert_int_equal(ERR_peek_error(), 0);
	label[64] = '\0';
	assert_int_equal(vb__parley_derive(pair.end[0].parley, label, 0, keys, 8192, &err), 0);
	pair_close(&pair);
}

static void a_closed_parley_is_a_proven_end(void **state)
{
	struct pair pair;

	(void)state;
	pair_agree(&pair);
	assert_says(&pair.end[CLIENT], "last words", 10);
	vb__parley_close(pair.end[CLIENT].parley);
	pair.end[CLIENT].parley = NULL;
	pair.end[CLIENT].channel.ended = true;
	assert_hears(&pair.end[SERVER], "last words", 10);
	assert_hears_nothing(&pair.end[SERVER], VB_ERR_EOF);
	assert_hears_nothing(&pair.end[SERVER], VB_ERR_EOF);
	assert_says(&pair.end[SERVER], "too late", 8); /* the channel's to refuse */
	pair_close(&pair);
}

static void an_end_without_farewell_is_a_loss(void **state)
{
	struct pair pair;

	(void)state;
	pair_agree(&pair);
	assert_says(&pair.end[CLIENT], "first words", 11);
	pair.end[CLIENT].channel.ended = true;
	assert_hears(&pair.end[SERVER], "first words", 11);
	assert_hears_nothing(&pair.end[SERVER], VB_ERR_LOST);
	assert_hears_nothing(&pair.end[SERVER], VB_ERR_LOST);
	pair_close(&pair);
}

static void an_end_within_the_proof_is_a_loss(void **state)
{
	struct pair pair;

	(void)state;
	for (int i = 0; i < 2; i++) {
		pair_open(&pair, &right_secret, &right_secret);
		pair.end[!i].channel.ended = true;
		pair.end[i].proof = vb__parley_prove(pair.end[i].parley, &pair.end[i].err);
		assert_unproven(&pair.end[i], VB_ERR_LOST);
		pair_close(&pair);
	}
}

static void failures_of_the_channel_are_told_as_they_are(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair, &right_secret, &right_secret);
	for (int i = 0; i < 2; i++) {
		pair.end[i].channel.broken = VB_ERR_LOST;
		pair.end[i].proof = vb__parley_prove(pair.end[i].parley, &pair.end[i].err);
		assert_unproven(&pair.end[i], VB_ERR_LOST);
		assert_string_equal(pair.end[i].err.operation, "mock");
	}
	pair_close(&pair);

	pair_agree(&pair);
	pair.end[CLIENT].channel.broken = VB_ERR_CLOSED;
	assert_int_equal(vb__parley_say(pair.end[CLIENT].parley, "x", 1, NULL), VB_ERR_CLOSED);
	assert_hears_nothing(&pair.end[CLIENT], VB_ERR_CLOSED);
	pair.end[SERVER].channel.broken = VB_ERR_LOST;
	assert_hears_nothing(&pair.end[SERVER], VB_ERR_LOST);
	pair_close(&pair);
}

static void errors_that_others_left_in_openssl_do_not_matter(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair, &right_secret, &right_secret);
	ERR_raise(ERR_LIB_USER, 42);
	assert_int_equal(vb__parley_prove(pair.end[CLIENT].parley, NULL), VB_ERR_AGAIN);
	assert_true(pair_prove(&pair));
	ERR_raise(ERR_LIB_USER, 42);
	assert_hears_nothing(&pair.end[CLIENT], VB_ERR_AGAIN);
	pair_close(&pair);
	vb__parley_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_prove_with_the_same_key),
		cmocka_unit_test(different_keys_are_told_at_both_ends_in_plain_words),
		cmocka_unit_test(one_bit_of_the_secret_makes_the_difference),
		cmocka_unit_test(two_ends_of_the_same_kind_do_not_agree),
		cmocka_unit_test(nothing_is_said_heard_or_derived_before_the_proof),
		cmocka_unit_test(every_length_is_heard_as_it_was_said),
		cmocka_unit_test(what_was_said_in_a_row_is_heard_one_by_one),
		cmocka_unit_test(what_cannot_be_said_is_refused_and_changes_nothing),
		cmocka_unit_test(words_are_not_seen_on_the_wire),
		cmocka_unit_test(narrow_channels_only_take_more_messages),
		cmocka_unit_test(proving_waits_for_room_without_blocking),
		cmocka_unit_test(both_derive_the_same_and_each_name_its_own),
		cmocka_unit_test(deriving_does_not_depend_on_what_was_said),
		cmocka_unit_test(deriving_too_much_is_refused_and_changes_nothing),
		cmocka_unit_test(a_closed_parley_is_a_proven_end),
		cmocka_unit_test(an_end_without_farewell_is_a_loss),
		cmocka_unit_test(an_end_within_the_proof_is_a_loss),
		cmocka_unit_test(failures_of_the_channel_are_told_as_they_are),
		cmocka_unit_test(errors_that_others_left_in_openssl_do_not_matter),
	};

	return cmocka_run_group_tests(tests, make_secrets, NULL);
}
