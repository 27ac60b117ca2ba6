/* SPDX-License-Identifier: Apache-2.0 */
/* Extended attributes of what is walked over, ACLs among them, as an offer carries them. */
#ifndef VB_TREE_WALK_XATTRS_H
#define VB_TREE_WALK_XATTRS_H

#include <stdbool.h>
#include <sys/types.h>

#include "wire/offer.h"

/* More than this of one entry is not even read: it would fit into no block. */
#define VB__XATTRS_MAX (1u << 20)

/* Zero it. One thread at a time. */
struct vb__xattr_reader {
	unsigned keep; /* VB_KEEP_... */
	char *names;
	uint8_t *value;
	uint8_t *run;
	size_t run_len;
};

/* Of `name` in the directory, not what a symlink points to unless `follow`. An entry of `mode`. */
struct vb__xattr_place {
	int dir_fd;
	const char *name;
	mode_t mode;
	bool follow;
};

/*
 * Reads those that are to be kept; `*run` is valid until the next call. Returns 0 or an errno: E2BIG
 * if they are too many.
 */
int vb__xattrs_read(struct vb__xattr_reader *reader, const struct vb__xattr_place *place,
		    struct vb__slice *run);
void vb__xattr_reader_close(struct vb__xattr_reader *reader);

#endif
