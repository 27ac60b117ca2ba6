/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removing: what stands in a directory that was copied and is not at the sender, and files of ours
 * that an earlier run has left. By descriptor and one name at a time; links are removed, not followed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/failure.h"
#include "tree/filter.h"
#include "tree/tree_sink.h"

/* Each level takes a descriptor. */
#define DEPTH_MAX 256

/* What is removed, on the way down. */
struct sweep {
	struct vb__tree_sink *sink;
	struct vb__place *place; /* where it began */
	dev_t dev;
	struct vb_error *err;
	char *path; /* from the place, of what is dealt with */
	size_t room;
};

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* A stream of its own: the offset of a descriptor is shared. */
static DIR *open_stream(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

/* Puts a name behind the path of `len`; returns the new length, 0 if there is no memory. */
static size_t extend(struct sweep *w, size_t len, const char *name)
{
	size_t part = strlen(name), need = len + part + 2;

	if (need > w->room) {
		char *path = realloc(w->path, 2 * need);

		if (!path)
			return 0;
		w->path = path;
		w->room = 2 * need;
	}
	if (len)
		w->path[len++] = '/';
	memcpy(w->path + len, name, part + 1);
	return len + part;
}

/* Is what `path` says excluded? */
static bool stays(const struct sweep *w, bool directory)
{
	char *whole;
	bool yes;

	if (!w->sink->filter)
		return false;
	whole = vb__place_path(w->place, w->path);
	yes = !whole || vb__filter_leaves(w->sink->filter, whole, directory);
	free(whole);
	return yes;
}

static void tell_deleted(const struct sweep *w, mode_t mode)
{
	vb__tree_count(w->sink, &w->sink->report.deleted, 1);
	vb__tree_tell(w->sink, &(struct vb__told){
				       .happening = VB_TREE_DELETED,
				       .place = w->place,
				       .name = w->path,
				       .mode = mode,
			       });
}

static int remove_one(struct sweep *w, int dir_fd, const char *name, size_t len, int depth);

/* All that is in it. 0, or the first errno; ENOTEMPTY, something has to stay. */
static int remove_inside(struct sweep *w, int dir_fd, const char *name, size_t len, int depth)
{
	DIR *dir = depth < DEPTH_MAX ? open_stream(dir_fd, name) : NULL;
	int errnum = depth < DEPTH_MAX ? 0 : ENAMETOOLONG;
	struct dirent *entry;

	if (!dir)
		return errnum ? errnum : errno;
	while ((entry = readdir(dir))) {
		int one;

		if (is_dots(entry->d_name))
			continue;
		one = remove_one(w, dirfd(dir), entry->d_name, len, depth + 1);
		errnum = errnum ? errnum : one;
	}
	closedir(dir);
	return errnum;
}

static int remove_one(struct sweep *w, int dir_fd, const char *name, size_t len, int depth)
{
	bool directory, dry = w->sink->tree->dry_run;
	int errnum = 0;
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : errno;
	directory = S_ISDIR(st.st_mode);
	len = extend(w, len, name);
	if (!len)
		return ENOMEM;
	if (stays(w, directory))
		return ENOTEMPTY;
	if (directory && st.st_dev != w->dev)
		return EBUSY; /* something is mounted there */
	if (directory)
		errnum = remove_inside(w, dir_fd, name, len, depth);
	if (!errnum && !dry && unlinkat(dir_fd, name, directory ? AT_REMOVEDIR : 0) &&
	    errno != ENOENT)
		errnum = errno;
	w->path[len] = '\0';
	if (!errnum)
		tell_deleted(w, st.st_mode);
	return errnum;
}

int vb__tree_remove(struct vb__tree_sink *s, struct vb__place *place, int dir_fd, const char *name)
{
	struct sweep w = { .sink = s, .place = place };
	int errnum;

	w.dev = place->dev;
	errnum = remove_one(&w, dir_fd, name, 0, 0);
	free(w.path);
	return errnum;
}

/* A name in a directory that was copied. */
static int sweep_name(struct sweep *w, int dir_fd, const char *name)
{
	struct vb__tree_sink *s = w->sink;
	bool all = s->tree->delete_others && !w->place->incomplete && w->place->described;
	int errnum;

	if (vb__is_reserved(name)) {
		if (vb__is_part_of(name, s->journal.tag) && !s->tree->dry_run)
			(void)unlinkat(dir_fd, name, 0);
		return 0;
	}
	if (!all || vb__nameset_has(&w->place->names, s->seed, name, strlen(name)))
		return 0;
	errnum = remove_one(w, dir_fd, name, 0, 0);
	if (!errnum || errnum == ENOTEMPTY) /* what has to stay is no failure */
		return 0;
	return vb__tree_fail_errno(s, w->place, name, 0, errnum, "delete", w->err);
}

int vb__tree_sweep(struct vb__tree_sink *s, struct vb__place *place, struct vb_error *err)
{
	struct sweep w = { .sink = s, .place = place, .err = err };
	struct dirent *entry;
	bool deletes = s->tree->delete_others && place->described;
	DIR *dir = NULL;
	int dir_fd, rc = 0;

	if (place->made || !(deletes || s->journal.resumed))
		return 0;
	w.dev = place->dev;
	dir_fd = vb__place_hold(&s->places, place);
	if (dir_fd >= 0) {
		dir = open_stream(dir_fd, ".");
		vb__place_let_go(&s->places, place);
	}
	if (!dir) /* without that nothing could be deleted there */
		return deletes ? vb__tree_fail_errno(s, place, NULL, S_IFDIR, errno, "read", err)
			       : 0;
	while (rc == 0 && (entry = readdir(dir)))
		if (!is_dots(entry->d_name))
			rc = sweep_name(&w, dirfd(dir), entry->d_name);
	closedir(dir);
	free(w.path);
	return rc;
}
