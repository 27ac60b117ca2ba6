/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes words: what a peer says over the parley once it has proven its key. */
#include <stdio.h>
#include <string.h>

#include <verbatim/transfer.h>

#include "fuzz_target.h"
#include "wire/words.h"

static void check_terms(const struct vb__terms *terms)
{
	HOLDS(terms->mode <= 0777);
	HOLDS(terms->rails >= 1 && terms->rails <= VB_RAILS_MAX);
	HOLDS(terms->block_bytes >= VB_BLOCK_MIN && terms->block_bytes <= VB_BLOCK_MAX);
	HOLDS(terms->window >= 1 && terms->window <= VB_WINDOW_MAX);
}

/* Terminated, and without what could disturb a terminal. */
static void check_text(const char *text, size_t size)
{
	HOLDS(memchr(text, '\0', size));
	for (; *text; text++)
		HOLDS((unsigned char)*text >= 0x20 && *text != 0x7f);
}

static void check_verdict(const struct vb_error *verdict)
{
	char line[VB_ERROR_LINE_MAX];

	HOLDS(verdict->code <= VB_OK);
	HOLDS(verdict->native_kind <= VB_NATIVE_TLS);
	check_text(verdict->operation, sizeof(verdict->operation));
	check_text(verdict->object, sizeof(verdict->object));
	check_text(verdict->cause, sizeof(verdict->cause));
	check_text(verdict->hint, sizeof(verdict->hint));
	vb_error_format(verdict, line, sizeof(line));
	check_text(line, sizeof(line));
}

static void check_same(const struct vb__words *a, const struct vb__words *b)
{
	uint8_t first[VB__WORDS_MAX], second[VB__WORDS_MAX];
	size_t len = vb__words_encode(first, a);

	HOLDS(a->kind == b->kind && len <= VB__WORDS_MAX);
	HOLDS(vb__words_encode(second, b) == len && memcmp(first, second, len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t wire[VB__WORDS_MAX];
	struct vb__words words, again;

	if (!vb__words_decode(&words, data, size))
		return 0;
	HOLDS(words.kind >= VB__WORDS_TERMS && words.kind <= VB__WORDS_NOTE);
	if (words.kind == VB__WORDS_TERMS)
		check_terms(&words.terms);
	if (words.kind == VB__WORDS_PROGRESS || words.kind == VB__WORDS_END)
		HOLDS(words.sum.filled <= 100);
	if (words.kind == VB__WORDS_VERDICT)
		check_verdict(&words.verdict);
	/* What was understood says the same when it is said again. */
	HOLDS(vb__words_decode(&again, wire, vb__words_encode(wire, &words)));
	check_same(&words, &again);
	return 0;
}

static struct vb__terms sample_terms(uint64_t seed)
{
	return (struct vb__terms){
		.sends = seed % 2,
		.sparse = seed / 2 % 2,
		.has_mode = seed / 2 % 4,
		.mode = seed / 2 % 4 ? seed / 4 % 01000 : 0,
		.rails = 1 + seed / 64 % VB_RAILS_MAX,
		.block_bytes = VB_BLOCK_MIN << seed / 8 % 15,
		.window = 1 + seed / 16 % VB_WINDOW_MAX,
		.bytes_per_second = seed / 3,
		.total_bytes = seed % 3 ? seed : UINT64_MAX,
	};
}

static struct vb_error sample_verdict(uint64_t seed)
{
	struct vb_error err = {
		.code = -(int)(seed % 26),
		.native_kind = seed / 26 % (VB_NATIVE_TLS + 1),
		.native = (int)(seed >> 16),
	};

	snprintf(err.operation, sizeof(err.operation), "%.*s", (int)(seed % 20),
		 "write to something");
	snprintf(err.object, sizeof(err.object), "%.*s", (int)(seed / 20 % 30), "/some/file");
	snprintf(err.cause, sizeof(err.cause), "%*d", (int)(seed / 600 % 90), 1);
	snprintf(err.hint, sizeof(err.hint), "%*d", (int)(seed / 54000 % 90), 2);
	return err;
}

size_t fuzz_sample(uint8_t *to, size_t room, uint64_t seed)
{
	struct vb__words words = { .kind = VB__WORDS_TERMS + (unsigned)(seed % 5) };
	uint8_t wire[VB__WORDS_MAX];
	size_t len;

	if (words.kind == VB__WORDS_TERMS)
		words.terms = sample_terms(seed / 5);
	else if (words.kind == VB__WORDS_VERDICT)
		words.verdict = sample_verdict(seed / 5);
	else if (words.kind != VB__WORDS_READY)
		words.sum = (struct vb__sum){
			.bytes = seed, .blocks = seed / 7, .digest = ~seed, .filled = seed / 5 % 101
		};
	len = vb__words_encode(wire, &words);
	HOLDS(len <= room);
	memcpy(to, wire, len);
	return len;
}
