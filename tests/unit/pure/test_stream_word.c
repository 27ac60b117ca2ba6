/* SPDX-License-Identifier: Apache-2.0 */
/* Words of a stream: what goes in comes out, and nothing else is believed. */
#include <string.h>

#include "suite.h"
#include "wire/stream_word.h"

#define ROOM 128u

static const struct vb__stream_word samples[] = {
	{ .kind = VB__STREAM_DATA, .offset = 0x0102030405060708, .length = 40 },
	{ .kind = VB__STREAM_DATA, .offset = 7, .length = 1, .asks = true },
	{ .kind = VB__STREAM_DATA, .offset = 7, .asks = true },
	{ .kind = VB__STREAM_SYNCED, .offset = VB__STREAM_END },
	{ .kind = VB__STREAM_READY, .offset = 1, .length = VB__STREAM_END - 1 },
	{ .kind = VB__STREAM_PULL, .offset = 1, .length = 2 },
	{ .kind = VB__STREAM_WANT, .offset = 1, .length = 2 },
	{ .kind = VB__STREAM_PLACED, .offset = 1, .length = 2 },
	{ .kind = VB__STREAM_BYE, .offset = 1 },
	{ .kind = VB__STREAM_LEDGER },
};

/* What stands before the word. */
static size_t before(const struct vb__stream_word *word)
{
	if (word->kind == VB__STREAM_DATA)
		return (size_t)word->length;
	return word->kind == VB__STREAM_WANT || word->kind == VB__STREAM_LEDGER ? VB__STREAM_TOKEN
										: 0;
}

static bool is_believed(const struct vb__stream_word *word, size_t bytes_before)
{
	struct vb__stream_word got;
	uint8_t bytes[ROOM] = { 0 };

	vb__stream_word_encode(bytes + bytes_before, word);
	return vb__stream_word_decode(&got, bytes, bytes_before + VB__STREAM_WORD);
}

static void words_come_back(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(samples); i++) {
		struct vb__stream_word got;
		uint8_t bytes[ROOM];
		size_t len = before(&samples[i]);

		vb__stream_word_encode(bytes + len, &samples[i]);
		assert_true(vb__stream_word_decode(&got, bytes, len + VB__STREAM_WORD));
		assert_int_equal(got.kind, samples[i].kind);
		assert_int_equal(got.asks, samples[i].asks);
		assert_int_equal(got.offset, samples[i].offset);
		assert_int_equal(got.length, samples[i].length);
	}
}

static void parts_of_words_are_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(samples); i++) {
		struct vb__stream_word got;
		uint8_t bytes[ROOM] = { 0 };
		size_t len = before(&samples[i]) + VB__STREAM_WORD;

		vb__stream_word_encode(bytes + before(&samples[i]), &samples[i]);
		for (size_t cut = 0; cut < len; cut++)
			assert_false(vb__stream_word_decode(&got, bytes, cut));
	}
}

static void other_lengths_than_the_kind_has_are_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(samples); i++) {
		struct vb__stream_word bad = samples[i];

		assert_false(is_believed(&bad, before(&bad) + 1));
		bad.asks = !bad.asks;
		if (bad.kind != VB__STREAM_DATA || !bad.length)
			assert_false(is_believed(&bad, before(&bad)));
	}
}

static void numbers_that_overflow_are_refused(void **state)
{
	struct vb__stream_word bad[] = {
		{ .kind = VB__STREAM_READY, .offset = 1, .length = VB__STREAM_END },
		{ .kind = VB__STREAM_READY, .offset = 1, .length = UINT64_MAX },
		{ .kind = VB__STREAM_PULL, .offset = UINT64_MAX, .length = 1 },
		{ .kind = VB__STREAM_PLACED, .offset = UINT64_MAX, .length = UINT64_MAX },
		{ .kind = VB__STREAM_BYE, .offset = VB__STREAM_END + 1 },
		{ .kind = VB__STREAM_READY, .offset = 1 },
		{ .kind = VB__STREAM_SYNCED, .offset = 1, .length = 1 },
		{ .kind = 0, .offset = 1 },
		{ .kind = VB__STREAM_LEDGER + 1, .offset = 1 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_false(is_believed(&bad[i], 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_come_back),
		cmocka_unit_test(parts_of_words_are_refused),
		cmocka_unit_test(other_lengths_than_the_kind_has_are_refused),
		cmocka_unit_test(numbers_that_overflow_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
