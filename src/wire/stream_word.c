/* SPDX-License-Identifier: Apache-2.0 */
/* Words of a stream: offset 8, length 8, kind 1, flags 1, reserved 6. */
#include "wire/stream_word.h"

#include <string.h>

#include "wire/bytes.h"

#define FLAG_ASKS 1u

void vb__stream_word_encode(uint8_t to[VB__STREAM_WORD], const struct vb__stream_word *word)
{
	memset(to, 0, VB__STREAM_WORD);
	vb__put64(to, word->offset);
	vb__put64(to + 8, word->length);
	to[16] = (uint8_t)word->kind;
	to[17] = word->asks ? FLAG_ASKS : 0;
}

/* Whether a word of this kind may have such a length and so many bytes before it. */
static bool makes_sense(const struct vb__stream_word *word, size_t before)
{
	switch (word->kind) {
	case VB__STREAM_DATA:
		return word->length == before && (before || word->asks);
	case VB__STREAM_WANT:
		return word->length && before == VB__STREAM_TOKEN && !word->asks;
	case VB__STREAM_READY:
	case VB__STREAM_PULL:
	case VB__STREAM_PLACED:
		return word->length && !before && !word->asks;
	case VB__STREAM_SYNCED:
	case VB__STREAM_BYE:
		return !word->length && !before && !word->asks;
	case VB__STREAM_LEDGER:
		return !word->offset && !word->length && before == VB__STREAM_TOKEN && !word->asks;
	}
	return false;
}

bool vb__stream_word_decode(struct vb__stream_word *word, const uint8_t *from, size_t len)
{
	size_t before = len - VB__STREAM_WORD;

	if (len < VB__STREAM_WORD)
		return false;
	from += before;
	if (from[17] > FLAG_ASKS)
		return false;
	*word = (struct vb__stream_word){
		.kind = from[16],
		.asks = from[17] & FLAG_ASKS,
		.offset = vb__get64(from),
		.length = vb__get64(from + 8),
	};
	return word->offset <= VB__STREAM_END && word->length <= VB__STREAM_END - word->offset &&
	       makes_sense(word, before);
}
