/* SPDX-License-Identifier: Apache-2.0 */
/* A set of hashes. Two names that share one are taken for the same: once in 10^19. */
#include "tree/nameset.h"

#include <stdlib.h>
#include <xxhash.h>

#define ROOM_MIN 16u

static uint64_t hash_of(uint64_t seed, const void *name, size_t len)
{
	return XXH3_64bits_withSeed(name, len, seed) | 1;
}

static size_t find(const struct vb__nameset *set, uint64_t hash)
{
	size_t i = (size_t)(hash >> 16) & (set->room - 1);

	while (set->slots[i] && set->slots[i] != hash)
		i = (i + 1) & (set->room - 1);
	return i;
}

void vb__nameset_free(struct vb__nameset *set)
{
	free(set->slots);
	*set = (struct vb__nameset){ .slots = NULL };
}

static bool grow(struct vb__nameset *set)
{
	struct vb__nameset larger = { .room = set->room ? 2 * set->room : ROOM_MIN,
				      .count = set->count };

	larger.slots = calloc(larger.room, sizeof(*larger.slots));
	if (!larger.slots)
		return false;
	for (size_t i = 0; i < set->room; i++)
		if (set->slots[i])
			larger.slots[find(&larger, set->slots[i])] = set->slots[i];
	free(set->slots);
	*set = larger;
	return true;
}

int vb__nameset_add(struct vb__nameset *set, uint64_t seed, const void *name, size_t len)
{
	uint64_t hash = hash_of(seed, name, len);
	size_t i;

	if (4 * (set->count + 1) > 3 * set->room && !grow(set))
		return -1;
	i = find(set, hash);
	if (set->slots[i])
		return 0;
	set->slots[i] = hash;
	set->count++;
	return 1;
}

bool vb__nameset_has(const struct vb__nameset *set, uint64_t seed, const void *name, size_t len)
{
	return set->room && set->slots[find(set, hash_of(seed, name, len))];
}
