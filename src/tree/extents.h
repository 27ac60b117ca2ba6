/* SPDX-License-Identifier: Apache-2.0 */
/* Which ranges of a file are there: in order, never touching each other. For one thread at a time. */
#ifndef VB_TREE_EXTENTS_H
#define VB_TREE_EXTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vb__extent {
	uint64_t start, end;
};

struct vb__extents {
	struct vb__extent *list;
	size_t count, room;
	uint64_t bytes; /* in all */
};

/* More pieces than an honest sender makes. */
#define VB__EXTENTS_MAX (1u << 20)

enum vb__extents_added {
	VB__EXTENTS_NEW = 0,
	VB__EXTENTS_OVERLAP, /* some of it was there: nothing was added */
	VB__EXTENTS_FULL,    /* no memory, or too many pieces */
};

/* `length` is not 0, and the sum does not overflow. */
enum vb__extents_added vb__extents_add(struct vb__extents *extents, uint64_t offset,
				       uint64_t length);

/* The first gap at or behind `*offset` and before `end`: false if there is none. */
bool vb__extents_gap(const struct vb__extents *extents, uint64_t *offset, uint64_t end,
		     uint64_t *length);

void vb__extents_free(struct vb__extents *extents);

#endif
