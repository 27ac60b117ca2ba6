/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that come to stand under their names complete or not at all: written beside the place,
 * without a name where the file system can, and moved there at the end.
 */
#ifndef VB_TRANSFER_TEMPFILE_H
#define VB_TRANSFER_TEMPFILE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include <verbatim/error.h>

struct vb__tempfile {
	int fd;		    /* to write to; -1: none */
	int dir_fd;	    /* where it will stand... */
	char *name;	    /* ...and under which name */
	char temp_name[64]; /* what it is called until then; empty: it has no name yet */
	struct stat old;    /* what it replaces; st_mode is 0 if there is nothing */
};

/*
 * Makes one for `path`, readable to nobody else. If that is a link, what it points to will be
 * replaced. `path` is for errors only afterwards.
 */
int vb__tempfile_open(struct vb__tempfile *temp, const char *path, struct vb_error *err);

/* Moves it to its place. With `sync` the file must be on the disk already; its name will be. */
int vb__tempfile_commit(struct vb__tempfile *temp, bool sync, const char *path,
			struct vb_error *err);

/* Frees everything. What was not committed is gone. */
void vb__tempfile_close(struct vb__tempfile *temp);

/*
 * Follows the last part of a path while it is a link, whether or not it leads to anything. 0 or an
 * errno.
 */
int vb__follow_links(const char *path, char where[PATH_MAX]);

#endif
