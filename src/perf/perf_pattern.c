/* SPDX-License-Identifier: Apache-2.0 */
/* The number itself in the first 8 bytes, then words of a multiplicative sequence that begins with it. */
#include "perf/perf_pattern.h"

#include <string.h>

static uint64_t word_at(uint64_t number, uint64_t index)
{
	uint64_t x = index ? (number + index * UINT64_C(0x9e3779b97f4a7c15)) : number;

	if (!index)
		return number;
	x = (x ^ x >> 31) * UINT64_C(0xbf58476d1ce4e5b9);
	return x ^ x >> 29;
}

void vb__perf_pattern_fill(uint8_t *to, size_t len, uint64_t number)
{
	for (uint64_t i = 0; len; i++) {
		uint64_t word = word_at(number, i);
		size_t n = len < sizeof(word) ? len : sizeof(word);

		memcpy(to, &word, n);
		to += n;
		len -= n;
	}
}

bool vb__perf_pattern_is(const uint8_t *from, size_t len, uint64_t number)
{
	for (uint64_t i = 0; len; i++) {
		uint64_t word = word_at(number, i);
		size_t n = len < sizeof(word) ? len : sizeof(word);

		if (memcmp(from, &word, n) != 0)
			return false;
		from += n;
		len -= n;
	}
	return true;
}

uint64_t vb__perf_pattern_number(const uint8_t *from, size_t len)
{
	uint64_t number = 0;

	memcpy(&number, from, len < sizeof(number) ? len : sizeof(number));
	return number;
}
