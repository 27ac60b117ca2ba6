/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parleys with somebody on the wire who changes, cuts, drops, repeats, reorders
 * and replays. Whatever is done, nobody hears what was not said.
 */
#include <stdlib.h>
#include <string.h>

#include "parley_pair.h"

/* The opening: hello and end of the client's proof, and the server's flight between them. */
#define OPENING 3
static const int sender_of[OPENING] = { CLIENT, SERVER, CLIENT };
static const unsigned number_of[OPENING] = { 0, 0, 1 };

/* What is done to one message of one end. */
struct fault {
	unsigned number;
	enum mock_fate fate;
	size_t byte;
	uint8_t flip; /* XOR to that byte */
	bool cut;     /* there */
	bool done;
};

static enum mock_fate spoil(void *arg, unsigned number, uint8_t *bytes, size_t *len)
{
	struct fault *fault = arg;

	if (number != fault->number)
		return MOCK_DELIVER;
	fault->done = true;
	if (fault->cut && fault->byte < *len)
		*len = fault->byte;
	if (fault->flip && fault->byte < *len)
		bytes[fault->byte] ^= fault->flip;
	return fault->fate;
}

static void arrange(struct pair *pair, int sender, struct fault *fault)
{
	pair->end[sender].channel.wire = spoil;
	pair->end[sender].channel.wire_arg = fault;
}

/* A wire that keeps a copy of all that passes. */
struct record {
	unsigned count;
	size_t len[8];
	uint8_t bytes[8][4096];
};

static enum mock_fate keep_copy(void *arg, unsigned number, uint8_t *bytes, size_t *len)
{
	struct record *record = arg;

	assert_true(number < 8 && *len <= 4096);
	record->count = number + 1;
	record->len[number] = *len;
	memcpy(record->bytes[number], bytes, *len);
	return MOCK_DELIVER;
}

static void record_session(struct record records[2])
{
	struct pair pair;

	pair_open(&pair, &right_secret, &right_secret);
	for (int i = 0; i < 2; i++) {
		records[i] = (struct record){ .count = 0 };
		pair.end[i].channel.wire = keep_copy;
		pair.end[i].channel.wire_arg = &records[i];
	}
	assert_true(pair_prove(&pair));
	assert_says(&pair.end[CLIENT], "pay 100", 7);
	assert_hears(&pair.end[SERVER], "pay 100", 7);
	assert_says(&pair.end[SERVER], "paid", 4);
	assert_hears(&pair.end[CLIENT], "paid", 4);
	pair_close(&pair);
}

static size_t opening_bytes(int message)
{
	static struct record records[2];

	if (!records[0].count)
		record_session(records);
	return records[sender_of[message]].len[number_of[message]];
}

/*
 * The version in the header of a record that is not sealed is outside of what TLS proves, and
 * OpenSSL hardly looks at it: it says nothing. All other bytes must be as they were.
 */
static bool is_idle(int message, size_t byte)
{
	return message < 2 && (byte == 1 || byte == 2);
}

/* Whoever believes to have proven must not hear anything but the truth. */
static void assert_nobody_is_fooled(struct pair *pair)
{
	for (int i = 0; i < 2; i++) {
		struct end *end = &pair->end[i], *peer = &pair->end[!i];
		const void *heard = NULL;

		if (end->proof != 0)
			assert_int_not_equal(vb__parley_say(end->parley, "lie", 3, NULL), 0);
		else
			assert_int_equal(vb__parley_say(end->parley, "truth", 5, NULL), 0);
		assert_true(vb__parley_hear(peer->parley, &heard, NULL) < 0);
		assert_null(heard);
	}
}

static void assert_conversation_is_good(struct pair *pair)
{
	uint8_t key[2][32];

	for (int i = 0; i < 2; i++) {
		assert_says(&pair->end[i], "truth", 5);
		assert_hears(&pair->end[!i], "truth", 5);
		pair_derive(&pair->end[i], "data", 1, key[i]);
	}
	assert_memory_equal(key[0], key[1], 32);
}

static void flip_in_opening(int message, size_t byte, uint8_t flip)
{
	struct fault fault = { .number = number_of[message], .byte = byte, .flip = flip };
	struct pair pair;

	pair_open(&pair, &right_secret, &right_secret);
	arrange(&pair, sender_of[message], &fault);
	if (pair_prove(&pair)) {
		assert_true(is_idle(message, byte));
		assert_conversation_is_good(&pair);
	} else {
		assert_nobody_is_fooled(&pair);
	}
	assert_true(fault.done);
	pair_close(&pair);
}

static void every_flipped_bit_of_the_opening_spoils_it(void **state)
{
	(void)state;
	for (int message = 0; message < OPENING; message++)
		for (size_t byte = 0; byte < opening_bytes(message); byte++)
			for (unsigned bit = 0; bit < 8; bit++)
				flip_in_opening(message, byte, (uint8_t)(1u << bit));
}

/* What is flipped in the last message of the client's proof only the server can see. */
static void client_hears_that_its_last_message_was_spoilt(void **state)
{
	struct fault fault = { .number = 1, .byte = 20, .flip = 1 };
	struct pair pair;

	(void)state;
	pair_open(&pair, &right_secret, &right_secret);
	arrange(&pair, CLIENT, &fault);
	assert_false(pair_prove(&pair));
	assert_int_equal(pair.end[CLIENT].proof, 0);
	assert_unproven(&pair.end[SERVER], VB_ERR_KEY);
	assert_hears_nothing(&pair.end[CLIENT], VB_ERR_CORRUPT);
	pair_close(&pair);
}

static void cut_in_opening(int message, size_t byte)
{
	struct fault fault = { .number = number_of[message], .byte = byte, .cut = true };
	struct pair pair;
	struct end *victim;

	pair_open(&pair, &right_secret, &right_secret);
	victim = &pair.end[!sender_of[message]];
	arrange(&pair, sender_of[message], &fault);
	assert_false(pair_prove(&pair));
	if (byte == 0)
		assert_unproven(victim, VB_ERR_PROTOCOL);
	else
		assert_int_equal(victim->proof, VB_ERR_AGAIN);
	pair.end[sender_of[message]].channel.ended = true;
	pair_prove(&pair);
	if (byte)
		assert_unproven(victim, VB_ERR_LOST);
	pair_close(&pair);
}

static void an_opening_cut_anywhere_goes_nowhere(void **state)
{
	(void)state;
	for (int message = 0; message < OPENING; message++)
		for (size_t byte = 0; byte < opening_bytes(message); byte++)
			cut_in_opening(message, byte);
}

static void an_opening_dropped_or_repeated_fools_nobody(void **state)
{
	static const enum mock_fate fates[] = { MOCK_DROP, MOCK_REPEAT };

	(void)state;
	for (size_t f = 0; f < COUNT(fates); f++)
		for (int message = 0; message < OPENING; message++) {
			struct fault fault = { .number = number_of[message], .fate = fates[f] };
			struct pair pair;
			bool both;

			pair_open(&pair, &right_secret, &right_secret);
			arrange(&pair, sender_of[message], &fault);
			both = pair_prove(&pair);
			assert_true(fault.done);
			/* Repeats that come after the proof spoil the talk. */
			assert_true(!both || fates[f] == MOCK_REPEAT);
			if (both)
				assert_hears_nothing(&pair.end[!sender_of[message]],
						     VB_ERR_CORRUPT);
			else
				assert_nobody_is_fooled(&pair);
			pair_close(&pair);
		}
}

/* Three things are said, the wire does something to the second. */
static void open_spoilt_talk(struct pair *pair, int sender, struct fault *fault)
{
	pair_agree(pair);
	arrange(pair, sender, fault);
	fault->number = pair->end[sender].channel.sent + 1;
	assert_says(&pair->end[sender], "one", 3);
	assert_says(&pair->end[sender], "two", 3);
	assert_says(&pair->end[sender], "three", 5);
	assert_true(fault->done);
	assert_hears(&pair->end[!sender], "one", 3);
}

static void every_flipped_bit_of_words_is_refused_at_both_ends(void **state)
{
	size_t len = 5 + 2 + 3 + 1 + 16; /* header, length, "two", type, tag */

	(void)state;
	for (int sender = CLIENT; sender <= SERVER; sender++)
		for (size_t i = 0; i < 8 * len; i++) {
			struct fault fault = { .byte = i / 8, .flip = (uint8_t)(1u << i % 8) };
			struct pair pair;
			struct end *end;
			const void *heard = NULL;
			ssize_t n;

			open_spoilt_talk(&pair, sender, &fault);
			end = &pair.end[!sender];
			n = vb__parley_hear(end->parley, &heard, NULL);
			assert_true(n < 0);
			/* A longer record waits for the rest of it; that comes to nothing. */
			if (n == VB_ERR_AGAIN)
				assert_in_range(fault.byte, 3, 4);
			else
				assert_int_equal(n, VB_ERR_CORRUPT);
			assert_hears_nothing(&pair.end[sender], n);
			pair_close(&pair);
		}
}

static void words_dropped_repeated_or_reordered_are_refused(void **state)
{
	static const enum mock_fate fates[] = { MOCK_DROP, MOCK_REPEAT, MOCK_DELAY };

	(void)state;
	for (size_t i = 0; i < COUNT(fates); i++) {
		struct fault fault = { .fate = fates[i] };
		struct pair pair;

		open_spoilt_talk(&pair, CLIENT, &fault);
		if (fates[i] == MOCK_REPEAT)
			assert_hears(&pair.end[SERVER], "two", 3);
		assert_hears_nothing(&pair.end[SERVER], VB_ERR_CORRUPT);
		assert_hears_nothing(&pair.end[SERVER], VB_ERR_CORRUPT);
		assert_hears_nothing(&pair.end[CLIENT], VB_ERR_CORRUPT);
		pair_close(&pair);
	}
}

static void words_cut_anywhere_are_not_heard(void **state)
{
	(void)state;
	for (size_t byte = 0; byte < 5 + 2 + 5 + 1 + 16; byte++) {
		struct fault fault = { .number = 2, .byte = byte, .cut = true };
		struct pair pair;

		pair_agree(&pair);
		arrange(&pair, CLIENT, &fault);
		assert_says(&pair.end[CLIENT], "words", 5);
		assert_hears_nothing(&pair.end[SERVER], byte ? VB_ERR_AGAIN : VB_ERR_PROTOCOL);
		pair.end[CLIENT].channel.ended = true;
		if (byte)
			assert_hears_nothing(&pair.end[SERVER], VB_ERR_LOST);
		pair_close(&pair);
	}
}

static void messages_put_in_are_refused(void **state)
{
	/* An alert in plain text, "close_notify", as anybody could send it. */
	static const uint8_t farewell[] = { 21, 3, 3, 0, 2, 1, 0 };
	struct pair pair;

	(void)state;
	pair_agree(&pair);
	mock_channel_inject(&pair.end[SERVER].channel, farewell, sizeof(farewell));
	assert_hears_nothing(&pair.end[SERVER], VB_ERR_CORRUPT);
	pair_close(&pair);

	pair_agree(&pair);
	mock_channel_inject(&pair.end[CLIENT].channel, "", 0);
	assert_hears_nothing(&pair.end[CLIENT], VB_ERR_PROTOCOL);
	pair_close(&pair);
}

static void a_replayed_session_is_refused_by_server_and_client(void **state)
{
	static struct record records[2];

	(void)state;
	record_session(records);
	for (int victim = CLIENT; victim <= SERVER; victim++) {
		struct record *old = &records[!victim];
		struct pair pair;
		struct end *end;

		assert_true(old->count >= 2);
		pair_open(&pair, &right_secret, &right_secret);
		end = &pair.end[victim];
		for (unsigned i = 0; i < old->count; i++) {
			mock_channel_inject(&end->channel, old->bytes[i], old->len[i]);
			if (end->proof == VB_ERR_AGAIN)
				end->proof = vb__parley_prove(end->parley, &end->err);
		}
		assert_true(end->proof == VB_ERR_KEY || end->proof == VB_ERR_PROTOCOL);
		assert_unproven(end, (enum vb_err)end->proof);
		pair_close(&pair);
	}
}

/* A mirror knows the key no better. */
static void a_parley_does_not_agree_with_its_own_echo(void **state)
{
	static struct record record;
	struct pair pair;

	(void)state;
	pair_open(&pair, &right_secret, &right_secret);
	pair.end[CLIENT].channel.wire = keep_copy;
	pair.end[CLIENT].channel.wire_arg = &record;
	assert_int_equal(vb__parley_prove(pair.end[CLIENT].parley, NULL), VB_ERR_AGAIN);
	mock_channel_inject(&pair.end[CLIENT].channel, record.bytes[0], record.len[0]);
	pair.end[CLIENT].proof = vb__parley_prove(pair.end[CLIENT].parley, &pair.end[CLIENT].err);
	assert_unproven(&pair.end[CLIENT], VB_ERR_PROTOCOL);
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_flipped_bit_of_the_opening_spoils_it),
		cmocka_unit_test(client_hears_that_its_last_message_was_spoilt),
		cmocka_unit_test(an_opening_cut_anywhere_goes_nowhere),
		cmocka_unit_test(an_opening_dropped_or_repeated_fools_nobody),
		cmocka_unit_test(every_flipped_bit_of_words_is_refused_at_both_ends),
		cmocka_unit_test(words_dropped_repeated_or_reordered_are_refused),
		cmocka_unit_test(words_cut_anywhere_are_not_heard),
		cmocka_unit_test(messages_put_in_are_refused),
		cmocka_unit_test(a_replayed_session_is_refused_by_server_and_client),
		cmocka_unit_test(a_parley_does_not_agree_with_its_own_echo),
	};

	return cmocka_run_group_tests(tests, make_secrets, NULL);
}
