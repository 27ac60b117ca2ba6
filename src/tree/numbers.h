/* SPDX-License-Identifier: Apache-2.0 */
/* What is known by its number: the entries of a tree that are under way. For one thread at a time. */
#ifndef VB_TREE_NUMBERS_H
#define VB_TREE_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vb__numbers {
	struct vb__numbered *slots; /* a power of two, or none yet */
	size_t room, count;
};

struct vb__numbered {
	uint32_t number; /* 0: free */
	void *what;
};

void vb__numbers_free(struct vb__numbers *numbers);

/* NULL: there is none. */
void *vb__numbers_get(const struct vb__numbers *numbers, uint32_t number);

/* Adds or replaces; `number` is not 0. False: no memory. */
bool vb__numbers_set(struct vb__numbers *numbers, uint32_t number, void *what);
void vb__numbers_remove(struct vb__numbers *numbers, uint32_t number);

/* All of them, in any order: start with `*at` 0; NULL at the end. */
void *vb__numbers_next(const struct vb__numbers *numbers, size_t *at);

#endif
