/* SPDX-License-Identifier: Apache-2.0 */
/* Compilers would make vector instructions of it by themselves. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-tree-vectorize", "unroll-loops")
#endif

#define XXH_INLINE_ALL
#define XXH_VECTOR 0 /* none */
#include <xxhash.h>

#include "wire/hash.h"

uint64_t vb__hash_plainly(const void *data, size_t len, uint64_t seed)
{
	return XXH3_64bits_withSeed(data, len, seed);
}
