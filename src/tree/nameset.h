/* SPDX-License-Identifier: Apache-2.0 */
/* The names that came for one directory: eight bytes for each, by their hashes. */
#ifndef VB_TREE_NAMESET_H
#define VB_TREE_NAMESET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vb__nameset {
	uint64_t *slots; /* a power of two, or none yet; 0: free */
	size_t room, count;
};

void vb__nameset_free(struct vb__nameset *set);

/* 1: it is new; 0: it was there; -1: no memory. `seed` is the same for all calls, and not known to the peer. */
int vb__nameset_add(struct vb__nameset *set, uint64_t seed, const void *name, size_t len);
bool vb__nameset_has(const struct vb__nameset *set, uint64_t seed, const void *name, size_t len);

#endif
