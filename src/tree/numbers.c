/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table with open addressing; what is removed leaves no trace. */
#include "tree/numbers.h"

#include <stdlib.h>

#define ROOM_MIN 64u

static size_t home_of(const struct vb__numbers *n, uint32_t number)
{
	return (size_t)(number * 0x9e3779b97f4a7c15u >> 32) & (n->room - 1);
}

/* Its slot, or the free one where it would stand. */
static size_t find(const struct vb__numbers *n, uint32_t number)
{
	size_t i = home_of(n, number);

	while (n->slots[i].number && n->slots[i].number != number)
		i = (i + 1) & (n->room - 1);
	return i;
}

void vb__numbers_free(struct vb__numbers *n)
{
	free(n->slots);
	*n = (struct vb__numbers){ .slots = NULL };
}

void *vb__numbers_get(const struct vb__numbers *n, uint32_t number)
{
	return n->room ? n->slots[find(n, number)].what : NULL;
}

static bool grow(struct vb__numbers *n)
{
	struct vb__numbers larger = { .room = n->room ? 2 * n->room : ROOM_MIN, .count = n->count };

	larger.slots = calloc(larger.room, sizeof(*larger.slots));
	if (!larger.slots)
		return false;
	for (size_t i = 0; i < n->room; i++)
		if (n->slots[i].number)
			larger.slots[find(&larger, n->slots[i].number)] = n->slots[i];
	free(n->slots);
	*n = larger;
	return true;
}

bool vb__numbers_set(struct vb__numbers *n, uint32_t number, void *what)
{
	size_t i;

	if (2 * (n->count + 1) > n->room && !grow(n))
		return false;
	i = find(n, number);
	n->count += !n->slots[i].number;
	n->slots[i] = (struct vb__numbered){ .number = number, .what = what };
	return true;
}

/* Those behind it move up, so that nobody who searches stops at the gap. */
void vb__numbers_remove(struct vb__numbers *n, uint32_t number)
{
	size_t gap = n->room ? find(n, number) : 0, i;

	if (!n->room || !n->slots[gap].number)
		return;
	n->count--;
	for (i = (gap + 1) & (n->room - 1); n->slots[i].number; i = (i + 1) & (n->room - 1)) {
		size_t home = home_of(n, n->slots[i].number);

		if (((i - home) & (n->room - 1)) < ((i - gap) & (n->room - 1)))
			continue;
		n->slots[gap] = n->slots[i];
		gap = i;
	}
	n->slots[gap] = (struct vb__numbered){ .number = 0 };
}

void *vb__numbers_next(const struct vb__numbers *n, size_t *at)
{
	while (*at < n->room && !n->slots[*at].number)
		++*at;
	return *at < n->room ? n->slots[(*at)++].what : NULL;
}
