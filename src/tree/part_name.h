/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of files that a tree's receiver makes for itself: the journal, and files that are not
 * complete. Each run has a tag, so that none touches another's.
 */
#ifndef VB_TREE_PART_NAME_H
#define VB_TREE_PART_NAME_H

#include <stdbool.h>
#include <stdint.h>

#include "tree/place.h"

#define VB__JOURNAL_NAME 40u

void vb__journal_name(char to[VB__JOURNAL_NAME], uint64_t tag);

/* The name of a file of ours that is not complete. */
struct vb__part_name {
	char text[64];
};

struct vb__part_name vb__part_name(uint64_t tag, const struct vb__path_hash *path);

/* Is it the name of a file of ours: of this tag, or of any? */
bool vb__is_part_of(const char *name, uint64_t tag);
bool vb__is_reserved(const char *name);

#endif
