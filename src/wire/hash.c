/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/hash.h"

#include <pthread.h>

#ifdef VB_HAVE_XXH_DISPATCH
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

#include "core/clock.h"

/* Each is tried so often, with so much: a few microseconds. */
#define TRIES 5
#define TRIAL_BYTES 16384

typedef uint64_t (*way)(const void *data, size_t len, uint64_t seed);

static way fastest;

uint64_t vb__hash_by_vectors(const void *data, size_t len, uint64_t seed)
{
	return XXH3_64bits_withSeed(data, len, seed);
}

/* The least time of several: whatever else ran meanwhile only makes it longer. */
static uint64_t time_taken(way hash, const uint8_t *data)
{
	way volatile tried = hash; /* for all that a compiler can know, each time another one */
	uint64_t least = UINT64_MAX, start, took;

	for (int i = 0; i < TRIES; i++) {
		start = vb__now_ns();
		(void)tried(data, TRIAL_BYTES, 0);
		took = vb__now_ns() - start;
		least = took < least ? took : least;
	}
	return least;
}

static void choose(void)
{
	static const uint8_t data[TRIAL_BYTES];
	uint64_t by_vectors = time_taken(vb__hash_by_vectors, data);

	fastest = time_taken(vb__hash_plainly, data) < by_vectors ? vb__hash_plainly
								  : vb__hash_by_vectors;
}

uint64_t vb__hash(const void *data, size_t len, uint64_t seed)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, choose);
	return fastest(data, len, seed);
}
