/* SPDX-License-Identifier: Apache-2.0 */
/* The hash table of lookup.c: an array that says all by itself, so that it can be searched from elsewhere. */
#ifndef LOOKUP_H
#define LOOKUP_H

#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define SLOTS 4096u

struct slot {
	char key[32]; /* empty: none */
	char value[96];
};

/* Where a key stands, or in one of those behind it, before an empty one. FNV-1a. */
static inline unsigned table_slot_of(const char *key)
{
	uint32_t hash = 2166136261u;

	for (; *key; key++)
		hash = (hash ^ (unsigned char)*key) * 16777619u;
	return hash % SLOTS;
}

/* Reads half as many lines as there are slots at most, so that every search meets an empty one. */
static inline void table_fill(struct slot table[SLOTS], const char *path)
{
	FILE *file = fopen(path, "r");
	struct slot slot = { 0 };
	unsigned lines = 0;

	if (!file)
		err(1, "%s", path);
	while (lines < SLOTS / 2 && fscanf(file, "%31s %95[^\n]", slot.key, slot.value) == 2) {
		unsigned i = table_slot_of(slot.key);

		while (table[i].key[0] && strcmp(table[i].key, slot.key) != 0)
			i = (i + 1) % SLOTS;
		table[i] = slot;
		lines++;
	}
	warnx("%u lines", lines);
	fclose(file);
}

#endif
