/* SPDX-License-Identifier: Apache-2.0 */
/* Words about a transfer: what goes in comes out, and nothing else is believed. */
#include <string.h>

#include <verbatim/transfer.h>

#include "suite.h"
#include "wire/words.h"

static const struct vb__terms good_terms = {
	.sends = true,
	.sparse = true,
	.has_mode = true,
	.mode = 0754,
	.rails = VB_RAILS_MAX,
	.block_bytes = VB_BLOCK_MAX,
	.window = VB_WINDOW_MAX,
	.bytes_per_second = 0x0102030405060708,
	.total_bytes = UINT64_MAX,
	.pack = VB__PACK_AUTO,
	.seal = 5,
};

static size_t there_and_back(const struct vb__words *words, struct vb__words *got)
{
	uint8_t bytes[VB__WORDS_MAX];
	size_t len = vb__words_encode(bytes, words);

	assert_in_range(len, 1, VB__WORDS_MAX);
	assert_true(vb__words_decode(got, bytes, len));
	assert_int_equal(got->kind, words->kind);
	for (size_t cut = 0; cut < len; cut++) {
		struct vb__words none;

		assert_false(vb__words_decode(&none, bytes, cut));
	}
	return len;
}

static void terms_come_back(void **state)
{
	struct vb__words words = { .kind = VB__WORDS_TERMS, .terms = good_terms }, got;

	(void)state;
	there_and_back(&words, &got);
	assert_int_equal(got.terms.sends, true);
	assert_int_equal(got.terms.sparse, true);
	assert_true(got.terms.has_mode);
	assert_int_equal(got.terms.mode, 0754);
	assert_int_equal(got.terms.rails, VB_RAILS_MAX);
	assert_int_equal(got.terms.block_bytes, VB_BLOCK_MAX);
	assert_int_equal(got.terms.window, VB_WINDOW_MAX);
	assert_int_equal(got.terms.bytes_per_second, 0x0102030405060708);
	assert_int_equal(got.terms.total_bytes, UINT64_MAX);
	assert_int_equal(got.terms.pack, VB__PACK_AUTO);
	assert_int_equal(got.terms.seal, 5);
}

static void no_mode_is_not_a_mode_of_nothing(void **state)
{
	struct vb__words words = { .kind = VB__WORDS_TERMS, .terms = good_terms }, got;

	(void)state;
	words.terms.mode = 0;
	there_and_back(&words, &got);
	assert_true(got.terms.has_mode);
	assert_int_equal(got.terms.mode, 0);
	words.terms.has_mode = false;
	there_and_back(&words, &got);
	assert_false(got.terms.has_mode);
}

static void terms_beyond_the_limits_are_refused(void **state)
{
	struct vb__terms bad[11];

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		bad[i] = good_terms;
	bad[0].rails = 0;
	bad[1].rails = VB_RAILS_MAX + 1;
	bad[2].block_bytes = VB_BLOCK_MIN - 1;
	bad[3].block_bytes = VB_BLOCK_MAX + 1;
	bad[4].window = 0;
	bad[5].window = VB_WINDOW_MAX + 1;
	bad[6].mode = 04755;
	bad[7].block_bytes = VB_BLOCK_MIN + 1;
	bad[8].pack = VB_COMPRESS_MAX + 1;
	bad[9].pack = VB__PACK_NEVER - 1;
	bad[10].has_mode = false;
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct vb__words words = { .kind = VB__WORDS_TERMS, .terms = bad[i] }, got;
		uint8_t bytes[VB__WORDS_MAX];

		assert_false(vb__words_decode(&got, bytes, vb__words_encode(bytes, &words)));
	}
}

static void sums_come_back(void **state)
{
	static const enum vb__words_kind kinds[] = { VB__WORDS_PROGRESS, VB__WORDS_END };

	(void)state;
	for (size_t i = 0; i < COUNT(kinds); i++) {
		struct vb__words words = {
			.kind = kinds[i],
			.sum = { .bytes = UINT64_MAX, .blocks = 2, .digest = 3, .filled = 100 },
		};
		struct vb__words got;

		there_and_back(&words, &got);
		assert_int_equal(got.sum.bytes, UINT64_MAX);
		assert_int_equal(got.sum.blocks, 2);
		assert_int_equal(got.sum.digest, 3);
		assert_int_equal(got.sum.filled, 100);
	}
}

static void ready_is_one_byte(void **state)
{
	struct vb__words words = { .kind = VB__WORDS_READY }, got;

	(void)state;
	assert_int_equal(there_and_back(&words, &got), 1);
}

static void largest_verdict_fits_and_comes_back(void **state)
{
	struct vb__words words = { .kind = VB__WORDS_VERDICT }, got;
	struct vb_error *v = &words.verdict;

	(void)state;
	v->code = VB_ERR_IO;
	v->native_kind = VB_NATIVE_ERRNO;
	v->native = 28;
	memset(v->operation, 'o', sizeof(v->operation) - 1);
	memset(v->object, 'b', sizeof(v->object) - 1);
	memset(v->cause, 'c', sizeof(v->cause) - 1);
	memset(v->hint, 'h', sizeof(v->hint) - 1);
	there_and_back(&words, &got);
	assert_memory_equal(&got.verdict, v, sizeof(*v));
}

static void texts_cannot_disturb_a_terminal(void **state)
{
	struct vb__words words = { .kind = VB__WORDS_VERDICT }, got;

	(void)state;
	words.verdict.code = VB_ERR_IO;
	strcpy(words.verdict.cause, "\033[2Jgone\r\n\x7f");
	there_and_back(&words, &got);
	assert_string_equal(got.verdict.cause, "?[2Jgone???");
}

static void unknown_kinds_are_refused(void **state)
{
	(void)state;
	for (unsigned kind = 0; kind < 256; kind++) {
		uint8_t bytes[VB__WORDS_MAX] = { (uint8_t)kind };
		struct vb__words got;

		if (kind < VB__WORDS_TERMS || kind > VB__WORDS_NOTE)
			for (size_t len = 0; len < sizeof(bytes); len++)
				assert_false(vb__words_decode(&got, bytes, len));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(terms_come_back),
		cmocka_unit_test(no_mode_is_not_a_mode_of_nothing),
		cmocka_unit_test(terms_beyond_the_limits_are_refused),
		cmocka_unit_test(sums_come_back),
		cmocka_unit_test(ready_is_one_byte),
		cmocka_unit_test(largest_verdict_fits_and_comes_back),
		cmocka_unit_test(texts_cannot_disturb_a_terminal),
		cmocka_unit_test(unknown_kinds_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
