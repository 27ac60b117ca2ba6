/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The target of a tree: the directory that all comes to stand in, and what the first thing that
 * comes is called there. If the target is a directory, things come into it under their own names;
 * else one thing becomes the target itself. The user's path is trusted: its links are followed.
 */
#ifndef VB_TREE_TARGET_H
#define VB_TREE_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include <verbatim/tree.h>

struct vb__target {
	char *path;    /* as it was given, for errors */
	int dir_fd;    /* the directory that it is; -1: it is none */
	int parent_fd; /* the directory that it is in, and... */
	char *name;    /* ...what it is called there; -1 and NULL: it cannot be anything else */
	bool slash;    /* a slash is at its end: it is to be a directory */
	bool absent;   /* dry run: the directory would be made */
};

int vb__target_open(struct vb__target *target, const char *path,
		    const struct vb_tree_options *options, struct vb_error *err);
void vb__target_close(struct vb__target *target);

/*
 * Decides, when the first thing comes, which is called `offered` by the sender. Returns the base's
 * descriptor, which is the caller's (-1: it would be made), the `tag` for a journal there, and
 * in `*as` whether this thing becomes the target itself.
 *
 * That is so as well if it was so in a run that was interrupted, which has left its journal.
 */
int vb__target_choose(struct vb__target *target, const char *offered, bool *as, uint64_t *tag);

#endif
