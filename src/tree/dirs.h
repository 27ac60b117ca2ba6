/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directories that a tree is read from. Each is opened by its name in the one above it, without
 * ever following a symlink that was not there on purpose, so that paths may be longer than the
 * kernel takes at once. Descriptors are kept for the next file as long as there are few of them.
 *
 * All may be called by any thread.
 */
#ifndef VB_TREE_DIRS_H
#define VB_TREE_DIRS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* So many are open at once, and some more while they are used. */
#define VB__DIRS_OPEN 64u

struct vb__dir {
	struct vb__dir *parent; /* NULL: `name` is a path of the user's */
	const char *shown;	/* its name in the target; empty: it is the target itself */
	bool follow;		/* it may be reached by a symlink */
	unsigned depth;
	dev_t dev; /* what it was when it was found */
	ino_t ino;

	/* Under the lock. */
	unsigned refs, users;
	int fd; /* -1: not open; O_PATH */
	struct vb__dir *newer, *older;
	char name[];
};

struct vb__dirs {
	pthread_mutex_t lock;
	struct vb__dir *newest, *oldest; /* those that are open, by their last use */
	unsigned open;
};

void vb__dirs_init(struct vb__dirs *dirs);
/* All directories must have been let go. */
void vb__dirs_destroy(struct vb__dirs *dirs);

/* What is to be told of a new one. */
struct vb__dir_facts {
	struct vb__dir *parent; /* or NULL */
	const char *name;	/* in the parent, or a path */
	bool shown;		/* its name is seen in the target, too */
	bool follow;
	const struct stat *st; /* NULL: it is whatever it is when it is opened first */
};

/* Held once by the caller. NULL: no memory. */
struct vb__dir *vb__dir_add(struct vb__dirs *dirs, const struct vb__dir_facts *facts);
void vb__dir_hold(struct vb__dirs *dirs, struct vb__dir *dir);
/* NULL is fine. */
void vb__dir_let_go(struct vb__dirs *dirs, struct vb__dir *dir);

/*
 * A descriptor (O_PATH) for use with openat and the like, until it is released; or a negative errno.
 * ENOENT: it is no longer the same directory.
 */
int vb__dir_use(struct vb__dirs *dirs, struct vb__dir *dir);
void vb__dir_release(struct vb__dirs *dirs, struct vb__dir *dir);

/* The path in the target of `name` (or "") in the directory, to be freed. NULL: no memory. */
char *vb__dir_path(const struct vb__dir *dir, const char *name);

#endif
