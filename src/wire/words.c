/* SPDX-License-Identifier: Apache-2.0 */
/* Words on the wire: a byte for the kind, then fields of fixed size; texts at the end. */
#include "wire/words.h"

#include <string.h>

#include <verbatim/transfer.h>

#include "wire/bytes.h"

#define TERMS_BYTES 33u
#define SUM_BYTES 26u
#define VERDICT_BYTES 12u /* and then four texts, each with its length before it */

#define FLAG_SENDS 1u
#define FLAG_SPARSE 2u
#define FLAG_TREE 4u
#define FLAG_MODE 8u

static size_t encode_terms(uint8_t *to, const struct vb__terms *terms)
{
	vb__put16(to + 1,
		  (uint16_t)((terms->sends ? FLAG_SENDS : 0) | (terms->sparse ? FLAG_SPARSE : 0) |
			     (terms->tree ? FLAG_TREE : 0) | (terms->has_mode ? FLAG_MODE : 0)));
	vb__put16(to + 3, terms->mode);
	vb__put16(to + 5, terms->rails);
	vb__put32(to + 7, terms->block_bytes);
	vb__put32(to + 11, terms->window);
	vb__put64(to + 15, terms->bytes_per_second);
	vb__put64(to + 23, terms->total_bytes);
	to[31] = terms->seal;
	to[32] = terms->pack;
	return TERMS_BYTES;
}

static bool decode_terms(struct vb__terms *terms, const uint8_t *from, size_t len)
{
	unsigned flags;

	if (len != TERMS_BYTES)
		return false;
	flags = vb__get16(from + 1);
	*terms = (struct vb__terms){
		.sends = flags & FLAG_SENDS,
		.sparse = flags & FLAG_SPARSE,
		.tree = flags & FLAG_TREE,
		.has_mode = flags & FLAG_MODE,
		.mode = vb__get16(from + 3),
		.rails = vb__get16(from + 5),
		.block_bytes = vb__get32(from + 7),
		.window = vb__get32(from + 11),
		.bytes_per_second = vb__get64(from + 15),
		.total_bytes = vb__get64(from + 23),
		.seal = from[31],
		.pack = from[32],
	};
	return terms->mode <= (terms->has_mode ? 0777 : 0) && terms->rails &&
	       terms->rails <= VB_RAILS_MAX && terms->block_bytes >= VB_BLOCK_MIN &&
	       terms->block_bytes <= VB_BLOCK_MAX && terms->block_bytes % VB_BLOCK_MIN == 0 &&
	       terms->window && terms->window <= VB_WINDOW_MAX &&
	       (terms->pack <= VB_COMPRESS_MAX || terms->pack >= VB__PACK_NEVER);
}

static size_t encode_sum(uint8_t *to, const struct vb__sum *sum)
{
	to[1] = sum->filled;
	vb__put64(to + 2, sum->bytes);
	vb__put64(to + 10, sum->blocks);
	vb__put64(to + 18, sum->digest);
	return SUM_BYTES;
}

static bool decode_sum(struct vb__sum *sum, const uint8_t *from, size_t len)
{
	if (len != SUM_BYTES)
		return false;
	*sum = (struct vb__sum){
		.filled = from[1],
		.bytes = vb__get64(from + 2),
		.blocks = vb__get64(from + 10),
		.digest = vb__get64(from + 18),
	};
	return sum->filled <= 100;
}

static uint8_t *put_text(uint8_t *to, const char *text, size_t size)
{
	size_t len = strnlen(text, size - 1);

	vb__put16(to, (uint16_t)len);
	memcpy(to + 2, text, len);
	return to + 2 + len;
}

/* Takes a text off the front; what could disturb a terminal becomes a question mark. */
static bool get_text(char *to, size_t size, const uint8_t **from, const uint8_t *end)
{
	size_t len;

	if (end - *from < 2)
		return false;
	len = vb__get16(*from);
	*from += 2;
	if (len >= size || len > (size_t)(end - *from))
		return false;
	for (size_t i = 0; i < len; i++)
		to[i] = (*from)[i] < 0x20 || (*from)[i] == 0x7f ? '?' : (char)(*from)[i];
	to[len] = '\0';
	*from += len;
	return true;
}

static size_t encode_verdict(uint8_t *to, const struct vb_error *err)
{
	uint8_t *at = to + VERDICT_BYTES;

	vb__put16(to + 1, (uint16_t)-err->code);
	to[3] = (uint8_t)err->native_kind;
	vb__put32(to + 4, (uint32_t)err->native);
	vb__put32(to + 8, 0);
	at = put_text(at, err->operation, sizeof(err->operation));
	at = put_text(at, err->object, sizeof(err->object));
	at = put_text(at, err->cause, sizeof(err->cause));
	at = put_text(at, err->hint, sizeof(err->hint));
	return (size_t)(at - to);
}

static bool decode_verdict(struct vb_error *err, const uint8_t *from, size_t len)
{
	const uint8_t *at, *end = from + len;

	if (len < VERDICT_BYTES || from[3] > VB_NATIVE_TLS)
		return false;
	at = from + VERDICT_BYTES;
	*err = (struct vb_error){
		.code = -(int)vb__get16(from + 1),
		.native_kind = from[3],
		.native = (int)vb__get32(from + 4),
	};
	/* These say something about a call, not about a transfer. */
	if (err->code == VB_ERR_AGAIN || err->code == VB_ERR_EOF)
		return false;
	return get_text(err->operation, sizeof(err->operation), &at, end) &&
	       get_text(err->object, sizeof(err->object), &at, end) &&
	       get_text(err->cause, sizeof(err->cause), &at, end) &&
	       get_text(err->hint, sizeof(err->hint), &at, end) && at == end;
}

static size_t encode_note(uint8_t *to, const uint8_t *bytes, size_t len)
{
	memcpy(to + 1, bytes, len);
	return 1 + len;
}

static bool decode_note(struct vb__words *words, const uint8_t *from, size_t len)
{
	words->note.bytes = from + 1;
	words->note.len = len - 1;
	return words->note.len && words->note.len <= VB__NOTE_ROOM;
}

size_t vb__words_encode(uint8_t to[VB__WORDS_MAX], const struct vb__words *words)
{
	to[0] = (uint8_t)words->kind;
	switch (words->kind) {
	case VB__WORDS_TERMS:
		return encode_terms(to, &words->terms);
	case VB__WORDS_PROGRESS:
	case VB__WORDS_END:
		return encode_sum(to, &words->sum);
	case VB__WORDS_VERDICT:
		return encode_verdict(to, &words->verdict);
	case VB__WORDS_NOTE:
		return encode_note(to, words->note.bytes, words->note.len);
	case VB__WORDS_READY:
		break;
	}
	return 1;
}

bool vb__words_decode(struct vb__words *words, const uint8_t *from, size_t len)
{
	if (!len)
		return false;
	*words = (struct vb__words){ .kind = from[0] };
	switch (from[0]) {
	case VB__WORDS_TERMS:
		return decode_terms(&words->terms, from, len);
	case VB__WORDS_PROGRESS:
	case VB__WORDS_END:
		return decode_sum(&words->sum, from, len);
	case VB__WORDS_VERDICT:
		return decode_verdict(&words->verdict, from, len);
	case VB__WORDS_NOTE:
		return decode_note(words, from, len);
	case VB__WORDS_READY:
		return len == 1;
	default:
		return false;
	}
}
