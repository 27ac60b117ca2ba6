/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes. */
#include "perf/sizes.h"

#include <stdio.h>
#include <string.h>
#include <verbatim/perf.h>

#include "common/quantity.h"

static int one(const char *text, uint64_t *bytes)
{
	if (quantity_size(text, bytes) != 0 || !*bytes || *bytes > VB_PERF_BYTES_MAX)
		return -1;
	return 0;
}

static int add(struct sizes *sizes, uint64_t bytes)
{
	if (sizes->count == SIZES_MAX)
		return -1;
	sizes->bytes[sizes->count++] = (uint32_t)bytes;
	return 0;
}

/* The last one is measured also where doubling goes past it. */
static int add_range(struct sizes *sizes, uint64_t from, uint64_t to)
{
	if (from > to)
		return -1;
	for (; from < to; from *= 2)
		if (add(sizes, from) != 0)
			return -1;
	return add(sizes, to);
}

static int add_word(struct sizes *sizes, char *word)
{
	char *colon = strchr(word, ':');
	uint64_t from, to;

	if (colon)
		*colon = '\0';
	if (one(word, &from) != 0)
		return -1;
	to = from;
	if (colon && one(colon + 1, &to) != 0)
		return -1;
	return add_range(sizes, from, to);
}

int sizes_parse(struct sizes *sizes, const char *text)
{
	char copy[256], *rest = copy, *word;

	sizes->count = 0;
	if (snprintf(copy, sizeof(copy), "%s", text) >= (int)sizeof(copy))
		return -1;
	while ((word = strsep(&rest, ",")))
		if (add_word(sizes, word) != 0)
			return -1;
	return 0;
}

char *sizes_text(char to[16], uint32_t bytes)
{
	static const char units[] = "GMK";

	for (unsigned i = 0; i < 3; i++) {
		unsigned shift = 30 - 10 * i;

		if (bytes >> shift && bytes % (1u << shift) == 0) {
			snprintf(to, 16, "%u%c", bytes >> shift, units[i]);
			return to;
		}
	}
	snprintf(to, 16, "%u", bytes);
	return to;
}
