/* SPDX-License-Identifier: Apache-2.0 */
/* A walk's inside: walk.c goes from entry to entry, walk_entry.c makes offers of them. */
#ifndef VB_TREE_WALK_STATE_H
#define VB_TREE_WALK_STATE_H

#include "tree/walk.h"
#include "tree/walk_links.h"
#include "tree/walk_owners.h"
#include "tree/walk_xattrs.h"

struct vb__walker {
	const struct vb__walk *walk;
	struct vb__owners *owners;
	struct vb__links *links;
	struct vb__xattr_reader xattrs;
	uint32_t last_number;
	unsigned steps;

	/* Where it is, as in the target. */
	char *path;
	size_t path_len, path_room;

	struct vb__frame *frames; /* the directories that it is in */
	size_t depth, frame_room;
	size_t streams_from; /* the first of them whose stream is open */
};

/* An entry: `name` in a directory that is open. */
struct vb__spot {
	struct vb__dir *dir;
	int dir_fd;
	uint32_t parent;   /* the directory's number, 0: none */
	const char *name;  /* to open it by */
	const char *shown; /* in the target; empty: it is the target itself */
	bool top;	   /* the user's own */
	bool follow;	   /* a symlink stands for what it points to */
};

/* All return 0, or why the walk ends. */

/* `name` was there but something fails; `why` or NULL: the errno's words. */
int vb__walk_miss(struct vb__walker *w, const struct vb__spot *spot, mode_t mode, int errnum,
		  const char *why);

/* Of anything that can be. `st` is of what a followed symlink points to. The number is w->last_number. */
int vb__walk_offer(struct vb__walker *w, const struct vb__spot *spot, const struct stat *st);

int vb__walk_listed(struct vb__walker *w, uint32_t number, bool incomplete);

#endif
