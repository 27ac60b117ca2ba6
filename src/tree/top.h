/* SPDX-License-Identifier: Apache-2.0 */
/* The user's own paths: what each is called in the target, and where it is. */
#ifndef VB_TREE_TOP_H
#define VB_TREE_TOP_H

#include <stdbool.h>

struct vb__top {
	char *dir;	  /* a path */
	const char *name; /* in it */
	bool contents; /* they come to stand in the target, not it itself: it has no name there */
	bool slash;    /* it ended with one */
};

/* Takes a path apart. False: no memory. To be closed in any case. */
bool vb__top_open(struct vb__top *top, const char *path);
void vb__top_close(struct vb__top *top);

/* Its name in the target; empty: it is the target itself. */
static inline const char *vb__top_shown(const struct vb__top *top)
{
	return top->contents ? "" : top->name;
}

#endif
