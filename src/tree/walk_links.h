/* SPDX-License-Identifier: Apache-2.0 */
/* Files with more than one name: which of them was offered first. */
#ifndef VB_TREE_WALK_LINKS_H
#define VB_TREE_WALK_LINKS_H

#include <stdint.h>
#include <sys/stat.h>

struct vb__links;

/* NULL: no memory. */
struct vb__links *vb__links_create(void);
void vb__links_destroy(struct vb__links *links);

/*
 * The number that a file with st_nlink > 1 has been offered by; or 0: it is new, and `number` is its
 * first. One of which all names were seen is forgotten. Without memory each name is a new file.
 */
uint32_t vb__links_meet(struct vb__links *links, const struct stat *st, uint32_t number);

#endif
