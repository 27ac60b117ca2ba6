/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walking: from the user's paths down to every entry, which becomes an offer. Directories are read
 * as they are walked through, never held as a whole, and no symlink is followed that is not asked
 * for. What is done with the offers is not its business.
 */
#ifndef VB_TREE_WALK_H
#define VB_TREE_WALK_H

#include <stdatomic.h>
#include <sys/stat.h>

#include <verbatim/tree.h>

#include "tree/dirs.h"
#include "tree/filter.h"
#include "wire/offer.h"

/* An offer, and where it comes from. All of it is valid only while it is being taken. */
struct vb__walked {
	const struct vb__offer *offer;
	const char *path; /* in the target; not of LISTED */
	mode_t mode;	  /* MISSED: what it is, or 0 */

	/* To open it by; not of LISTED and MISSED. */
	struct vb__dir *dir;
	const char *name;
	bool follow; /* it may be reached by a symlink */
};

struct vb__walk {
	const char *const *paths; /* as in vb_session_send_tree */
	size_t path_count;
	const struct vb_tree_options *options;
	const struct vb__filter *filter; /* of their rules */
	struct vb__dirs *dirs;
	const atomic_bool *stop; /* true: come back soon */
	int stop_fd;		 /* 0: none; readable: the same */

	/* Takes an offer; may block. Not 0: the walk ends, and returns that. */
	int (*take)(void *arg, const struct vb__walked *walked);
	void *arg;
};

/*
 * Walks. Returns 0, what `take` did, VB_ERR_INTERRUPTED after a stop, VB_ERR_NOMEM, or VB_ERR_TOO_BIG
 * where there are more entries than numbers. What is not there, or cannot be read, is offered as
 * MISSED.
 */
int vb__walk(const struct vb__walk *walk, struct vb_error *err);

/* Changes when the file does. */
uint64_t vb__file_identity(const struct stat *st);

#endif
