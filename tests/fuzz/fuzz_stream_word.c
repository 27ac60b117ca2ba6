/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes words of a stream: any message of its channel is taken for one. */
#include <string.h>

#include "fuzz_target.h"
#include "wire/stream_word.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vb__stream_word word, again;
	uint8_t *copy;

	if (!vb__stream_word_decode(&word, data, size))
		return 0;
	HOLDS(size >= VB__STREAM_WORD);
	HOLDS(word.kind >= VB__STREAM_DATA && word.kind <= VB__STREAM_LEDGER);
	HOLDS(word.offset <= VB__STREAM_END && word.offset + word.length <= VB__STREAM_END);
	HOLDS(word.kind != VB__STREAM_DATA || word.length == size - VB__STREAM_WORD);
	HOLDS(word.kind != VB__STREAM_WANT || size == VB__STREAM_TOKEN + VB__STREAM_WORD);
	HOLDS(word.kind != VB__STREAM_LEDGER || size == VB__STREAM_TOKEN + VB__STREAM_WORD);
	HOLDS(!word.asks || word.kind == VB__STREAM_DATA);
	/* What was understood says the same when it is said again. */
	copy = malloc(size);
	HOLDS(copy);
	memcpy(copy, data, size);
	vb__stream_word_encode(copy + size - VB__STREAM_WORD, &word);
	HOLDS(vb__stream_word_decode(&again, copy, size));
	HOLDS(again.kind == word.kind && again.asks == word.asks);
	HOLDS(again.offset == word.offset && again.length == word.length);
	free(copy);
	return 0;
}

size_t fuzz_sample(uint8_t *to, size_t room, uint64_t seed)
{
	struct vb__stream_word word = {
		.kind = VB__STREAM_DATA + (unsigned)(seed % 8),
		.offset = seed >> 8 & (VB__STREAM_END / 2 - 1),
		.length = 1 + seed / 7 % 400,
	};
	size_t before = word.kind == VB__STREAM_DATA ? (size_t)word.length : 0;

	if (word.kind == VB__STREAM_SYNCED || word.kind == VB__STREAM_BYE ||
	    word.kind == VB__STREAM_LEDGER)
		word.length = 0;
	if (word.kind == VB__STREAM_LEDGER)
		word.offset = 0;
	if (word.kind == VB__STREAM_WANT || word.kind == VB__STREAM_LEDGER)
		before = VB__STREAM_TOKEN;
	HOLDS(before + VB__STREAM_WORD <= room);
	memset(to, (int)seed, before);
	vb__stream_word_encode(to + before, &word);
	return before + VB__STREAM_WORD;
}
