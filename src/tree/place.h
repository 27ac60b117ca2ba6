/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places: the directories that a tree is received into. One, the base, is open from the start; all
 * others are reached from it by descriptor and one name at a time, and no link is ever followed. A
 * directory that is not the one it was, because somebody has put another in its place, is
 * refused. So nothing is written outside of the base, whatever a sender says and others do.
 */
#ifndef VB_TREE_PLACE_H
#define VB_TREE_PLACE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "tree/meta.h"
#include "tree/nameset.h"
#include "wire/offer.h"

/* Deeper than any path that could be named by the system's own calls. */
#define VB__PLACE_DEPTH_MAX 4096u

/* A path from the base, in 128 bits. */
struct vb__path_hash {
	uint64_t high, low;
};

struct vb__place {
	struct vb__place *parent; /* NULL: it is the base */
	uint32_t number;
	unsigned depth;
	struct vb__path_hash hash;

	/* As it was found or made. */
	dev_t dev;
	ino_t ino;
	mode_t old_mode;  /* st_mode as it was; 0: it was made, or its permissions left alone */
	bool made;	  /* it is new: nothing is in it but what we put there */
	bool absent;	  /* dry run: it would be made */
	bool failed;	  /* it cannot be: nothing below it is dealt with */
	bool default_acl; /* what is made in it inherits rights */

	/* The tree sink's: what will be set at the end, what came for it, what is still to come. */
	struct vb__meta meta;
	struct vb__nameset names;
	bool described; /* `meta` is to be set */
	bool incomplete;
	unsigned unlisted; /* so many LISTED are to come */
	unsigned refs;	   /* places in it, entries of it under way, and one until it is listed */

	/* Of the cache. */
	int fd;
	unsigned users;
	struct vb__place *newer, *older;
	struct vb__place *next, *previous; /* of all */
	const char *shown;		   /* what its user calls it; NULL: as it is called here */
	char name[];
};

struct vb__places {
	struct vb__place *base;
	bool check_acls;      /* find out about default_acl */
	pthread_mutex_t lock; /* for all below, and the places' cache */
	unsigned open_count;
	struct vb__place *newest, *oldest; /* those that are open and can be closed */
	struct vb__place *all;
	size_t count;
};

/* Takes `base_fd` over, on failure too; -1 in a dry run: the base would be made. 0 or an errno. */
int vb__places_open(struct vb__places *places, int base_fd, bool check_acls);

/* Frees all places. Permissions that were widened for the work, and not set yet, are set back. */
void vb__places_close(struct vb__places *places);

/* Adds a place, not made or looked at yet. NULL: no memory. */
struct vb__place *vb__place_add(struct vb__places *places, struct vb__place *parent,
				uint32_t number, const char *name);
/* The parent is not told. */
void vb__place_free(struct vb__places *places, struct vb__place *place);

/*
 * Opens the directory; makes it, with these permissions and those that we need, if there is none.
 * 0 or an errno: ENOTDIR, something else is there.
 */
int vb__place_enter(struct vb__places *places, struct vb__place *place, mode_t mode);

/* Only finds out whether it is there, else it is `absent`. 0 or an errno. */
int vb__place_look(struct vb__places *places, struct vb__place *place);

/*
 * Its descriptor, which stays open until it is let go, or -1 with errno set: ESTALE, it is not the
 * directory that it was. Any number of threads.
 */
int vb__place_hold(struct vb__places *places, struct vb__place *place);
void vb__place_let_go(struct vb__places *places, struct vb__place *place);

/* The hash of a name in it. */
struct vb__path_hash vb__place_hash(const struct vb__place *place, const char *name);

/* The path from the base as it is shown, to be freed; `name` may be NULL. NULL: no memory. */
char *vb__place_path(const struct vb__place *place, const char *name);

/* The same as it is; never NULL for want of a name. */
char *vb__place_real_path(const struct vb__place *place, const char *name);

#endif
