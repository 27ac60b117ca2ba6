/* SPDX-License-Identifier: Apache-2.0 */
/* What a user's path means as a target. */
#include "tree/target.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "core/failure.h"
#include "transfer/tempfile.h"
#include "tree/journal.h"

static int fail(struct vb_error *err, int errnum, const char *path, const char *hint)
{
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_IO,
				     .native_kind = VB_NATIVE_ERRNO,
				     .native = errnum,
				     .operation = "receive to",
				     .object = path,
				     .cause = errnum == ENOTDIR ? "is not a directory" : NULL,
				     .hint = hint,
			     });
}

/* One may be allowed to make files in it and yet not to list it. */
static int open_directory(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 && errno == EACCES)
		fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd;
}

/* The name at the end, without slashes behind it; NULL if it is none of its own. */
static char *last_name(char *path)
{
	size_t len = strlen(path);
	char *name;

	while (len > 1 && path[len - 1] == '/')
		path[--len] = '\0';
	name = strrchr(path, '/');
	name = name ? name + 1 : path;
	return !*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ? NULL : name;
}

/* 0, or an errno; a path that ends in dots has no parent, which is no error. */
static int open_parent(struct vb__target *t)
{
	char where[PATH_MAX];
	int errnum = vb__follow_links(t->path, where);
	char *name = errnum ? NULL : last_name(where);

	if (!name)
		return errnum;
	t->name = strdup(name);
	memcpy(name, ".", 2); /* there is room: a name has at least one character */
	t->parent_fd = open_directory(where);
	return t->parent_fd < 0 ? errno : t->name ? 0 : ENOMEM;
}

/* It is a directory, or is made one. */
static int open_as_directory(struct vb__target *t, const struct vb_tree_options *options,
			     struct vb_error *err)
{
	if (options->into_directory && mkdir(t->path, 0777) && errno != EEXIST)
		return fail(err, errno, t->path,
			    errno == ENOENT ? "the directory above it does not exist" : NULL);
	t->dir_fd = open_directory(t->path);
	return t->dir_fd < 0 ? fail(err, errno, t->path, NULL) : 0;
}

static int open_target(struct vb__target *t, const struct vb_tree_options *options,
		       struct vb_error *err)
{
	struct stat st;
	int errnum = stat(t->path, &st) ? errno : 0;

	if (errnum && errnum != ENOENT)
		return fail(err, errnum, t->path, NULL);
	if (!errnum && !S_ISDIR(st.st_mode) && (options->into_directory || t->slash))
		return fail(err, ENOTDIR, t->path, NULL);
	if (options->into_directory && errnum && options->dry_run) {
		t->absent = true;
		return 0;
	}
	if (options->into_directory)
		return open_as_directory(t, options, err);
	if (!errnum && S_ISDIR(st.st_mode)) {
		(void)open_parent(t); /* only to look for a journal */
		return open_as_directory(t, options, err);
	}
	errnum = open_parent(t);
	if (errnum || !t->name)
		return fail(err, errnum ? errnum : ENOENT, t->path,
			    errnum == ENOENT ? "its directory does not exist: make it first"
					     : NULL);
	return 0;
}

int vb__target_open(struct vb__target *t, const char *path, const struct vb_tree_options *options,
		    struct vb_error *err)
{
	size_t len;
	int rc;

	*t = (struct vb__target){ .dir_fd = -1, .parent_fd = -1 };
	t->path = strdup(*path ? path : ".");
	if (!t->path)
		return vb__fail_errno(err, ENOMEM, "strdup", NULL);
	len = strlen(t->path);
	while (len > 1 && t->path[len - 1] == '/') {
		t->slash = true;
		t->path[--len] = '\0';
	}
	rc = open_target(t, options, err);
	if (rc)
		vb__target_close(t);
	return rc;
}

void vb__target_close(struct vb__target *t)
{
	if (t->dir_fd >= 0)
		close(t->dir_fd);
	if (t->parent_fd >= 0)
		close(t->parent_fd);
	free(t->path);
	free(t->name);
	*t = (struct vb__target){ .dir_fd = -1, .parent_fd = -1 };
}

/* Other names, another journal: two that write to one directory do not disturb each other. */
static uint64_t tag_of(const char *name, const char *offered)
{
	return XXH3_64bits_withSeed(offered, strlen(offered),
				    name ? XXH3_64bits(name, strlen(name)) : 0);
}

static int take_over(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

int vb__target_choose(struct vb__target *t, const char *offered, bool *as, uint64_t *tag)
{
	bool directory = t->dir_fd >= 0 || t->absent;

	*tag = t->name ? tag_of(t->name, offered) : 0;
	*as = t->name && t->parent_fd >= 0 &&
	      (!directory || vb__journal_exists(t->parent_fd, *tag));
	if (*as)
		return take_over(&t->parent_fd);
	*tag = tag_of(NULL, offered);
	return take_over(&t->dir_fd);
}
