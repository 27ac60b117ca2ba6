/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way through a tree: into each directory where it is met, and on behind it afterwards. Of the
 * directories that the walk is in, only the innermost are open; of one that has to be closed, the
 * names that are left are kept.
 */
#include "tree/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/failure.h"
#include "transfer/descriptor.h"
#include "tree/filter.h"
#include "tree/top.h"
#include "tree/walk_state.h"

/* So many directories are being read at once. */
#define STREAMS_MAX 64u
#define STOP_EVERY 64u /* names */

struct vb__frame {
	struct vb__dir *dir;
	uint32_t number;
	size_t path_len;
	int errnum; /* it could not be read to its end, and why */

	DIR *stream; /* NULL: it was closed, and then */
	char *names; /* these are left, with their terminators */
	size_t names_len, names_at;
	bool in_use; /* `dir` is, by */
	int fd;
};

static int push_name(struct vb__walker *w, const char *name)
{
	size_t len = strlen(name), need = w->path_len + len + 2;
	char *more;

	if (need > w->path_room) {
		more = realloc(w->path, need * 2);
		if (!more)
			return VB_ERR_NOMEM;
		w->path = more;
		w->path_room = need * 2;
	}
	if (w->path_len && len)
		w->path[w->path_len++] = '/';
	memcpy(w->path + w->path_len, name, len + 1);
	w->path_len += len;
	return 0;
}

static void pop_name(struct vb__walker *w, size_t len)
{
	w->path_len = len;
	w->path[len] = '\0';
}

/* Is this directory one that we are in? Then a symlink leads back to it. Those above the user's
 * own are not ours. */
static bool is_loop(const struct vb__dir *dir, const struct stat *st)
{
	for (; dir && dir->parent; dir = dir->parent)
		if (dir->ino == st->st_ino && dir->dev == st->st_dev)
			return true;
	return false;
}

/* Keeps the names that are left, so that the stream can be closed. */
static int keep_names(struct vb__frame *f)
{
	size_t room = 0;
	struct dirent *entry;
	char *more;

	errno = 0;
	while ((entry = readdir(f->stream))) {
		size_t len = strlen(entry->d_name) + 1;

		if (f->names_len + len > room) {
			room = (f->names_len + len) * 2;
			more = realloc(f->names, room);
			if (!more)
				return VB_ERR_NOMEM;
			f->names = more;
		}
		memcpy(f->names + f->names_len, entry->d_name, len);
		f->names_len += len;
		errno = 0;
	}
	f->errnum = errno;
	closedir(f->stream);
	f->stream = NULL;
	return 0;
}

static int bound_streams(struct vb__walker *w)
{
	int rc = 0;

	for (; rc == 0 && w->depth - w->streams_from > STREAMS_MAX; w->streams_from++)
		if (w->frames[w->streams_from].stream)
			rc = keep_names(&w->frames[w->streams_from]);
	return rc;
}

static int push_frame(struct vb__walker *w, const struct vb__frame *frame)
{
	struct vb__frame *more;

	if (w->depth == w->frame_room) {
		more = realloc(w->frames, (w->frame_room * 2 + 16) * sizeof(*more));
		if (!more)
			return VB_ERR_NOMEM;
		w->frames = more;
		w->frame_room = w->frame_room * 2 + 16;
	}
	w->frames[w->depth++] = *frame;
	return 0;
}

static void close_frame(struct vb__walker *w, struct vb__frame *f)
{
	if (f->in_use)
		vb__dir_release(w->walk->dirs, f->dir);
	if (f->stream)
		closedir(f->stream);
	free(f->names);
	vb__dir_let_go(w->walk->dirs, f->dir);
}

/* Opens the directory for reading. 0 or an errno, or ELOOP for one that we are in already. */
static int open_stream(struct vb__walker *w, const struct vb__spot *spot, struct vb__frame *f)
{
	int fd = openat(spot->dir_fd, spot->name,
			O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC |
				(spot->follow ? 0 : O_NOFOLLOW));
	struct stat st;
	int errnum;

	if (fd < 0)
		return errno;
	errnum = fstat(fd, &st) ? errno : 0;
	if (errnum == 0 && spot->follow && is_loop(spot->dir, &st))
		errnum = ELOOP;
	if (errnum == 0) {
		struct vb__dir_facts facts = { .parent = spot->dir,
					       .name = spot->name,
					       .shown = *spot->shown,
					       .follow = spot->follow,
					       .st = &st };

		f->dir = vb__dir_add(w->walk->dirs, &facts);
		f->stream = f->dir ? fdopendir(fd) : NULL;
		errnum = f->stream ? 0 : ENOMEM;
	}
	if (errnum)
		close(fd);
	return errnum;
}

/* Tells of a directory and goes into it. */
static int enter(struct vb__walker *w, const struct vb__spot *spot, const struct stat *st)
{
	struct vb__frame frame = { .path_len = w->path_len };
	uint32_t before = w->last_number;
	int rc = vb__walk_offer(w, spot, st), errnum;

	if (rc || w->last_number == before)
		return rc;
	frame.number = w->last_number;
	errnum = open_stream(w, spot, &frame);
	if (errnum) {
		close_frame(w, &frame);
		rc = vb__walk_miss(w, spot, st->st_mode, errnum, NULL);
		return rc ? rc : vb__walk_listed(w, frame.number, true);
	}
	rc = push_frame(w, &frame);
	if (rc)
		close_frame(w, &frame);
	return rc ? rc : bound_streams(w);
}

/* A symlink that is to be followed: what it points to. */
static int look_behind(struct vb__walker *w, const struct vb__spot *spot, struct stat *st)
{
	if (fstatat(spot->dir_fd, spot->name, st, 0))
		return vb__walk_miss(w, spot, S_IFLNK, errno,
				     errno == ENOENT ? "a symlink that leads nowhere" : NULL);
	if (S_ISDIR(st->st_mode) && is_loop(spot->dir, st))
		return vb__walk_miss(w, spot, S_IFLNK, ELOOP, "a symlink that leads back up");
	return 1;
}

static bool is_left(const struct vb__walker *w, bool directory)
{
	return vb__filter_leaves(w->walk->filter, w->path, directory);
}

static int tell(struct vb__walker *w, const struct vb__spot *spot, const struct stat *st)
{
	const struct vb_tree_options *options = w->walk->options;

	if (S_ISDIR(st->st_mode) && !options->recursive)
		return vb__walk_miss(w, spot, st->st_mode, EISDIR,
				     "a directory, and only files were asked for");
	if (S_ISDIR(st->st_mode))
		return enter(w, spot, st);
	if (!S_ISREG(st->st_mode) && !S_ISLNK(st->st_mode) && !(options->keep & VB_KEEP_SPECIALS))
		return vb__walk_miss(w, spot, st->st_mode, 0, "not a regular file");
	return vb__walk_offer(w, spot, st);
}

/* The entry whose name was pushed. */
static int visit(struct vb__walker *w, const struct vb__spot *at)
{
	struct vb__spot spot = *at;
	struct stat st;
	int rc;

	if (*spot.shown && is_left(w, false) && is_left(w, true))
		return 0;
	if (fstatat(spot.dir_fd, spot.name, &st, AT_SYMLINK_NOFOLLOW))
		return vb__walk_miss(w, &spot, 0, errno, NULL);
	spot.follow &= S_ISLNK(st.st_mode);
	if (spot.follow) {
		rc = look_behind(w, &spot, &st);
		if (rc <= 0)
			return rc;
	}
	if (*spot.shown && is_left(w, S_ISDIR(st.st_mode)))
		return 0;
	return tell(w, &spot, &st);
}

/* The next name, or NULL at the end. */
static const char *next_name(struct vb__frame *f)
{
	struct dirent *entry;
	const char *name;

	if (!f->stream) {
		name = f->names_at < f->names_len ? f->names + f->names_at : NULL;
		f->names_at += name ? strlen(name) + 1 : 0;
		return name;
	}
	errno = 0;
	entry = readdir(f->stream);
	f->errnum = entry ? 0 : errno;
	return entry ? entry->d_name : NULL;
}

/* Its descriptor, or -1: it is given up. */
static int frame_fd(struct vb__walker *w, struct vb__frame *f)
{
	if (f->stream)
		return dirfd(f->stream);
	if (f->in_use)
		return f->fd;
	f->fd = vb__dir_use(w->walk->dirs, f->dir);
	f->in_use = f->fd >= 0;
	if (f->in_use)
		return f->fd;
	f->errnum = -f->fd;
	f->names_at = f->names_len;
	return -1;
}

/* Done with the innermost. */
static int leave(struct vb__walker *w)
{
	struct vb__frame f = w->frames[--w->depth];
	struct vb__spot spot = { .shown = f.dir->shown, .top = w->depth == 0 };
	int rc = 0;

	if (w->streams_from > w->depth)
		w->streams_from = w->depth;
	if (w->depth)
		spot.parent = w->frames[w->depth - 1].number;
	if (f.errnum)
		rc = vb__walk_miss(w, &spot, S_IFDIR, f.errnum, NULL);
	if (rc == 0)
		rc = vb__walk_listed(w, f.number, f.errnum);
	close_frame(w, &f);
	return rc;
}

/* One more entry of the innermost directory. */
static int step(struct vb__walker *w)
{
	struct vb__frame *f = &w->frames[w->depth - 1];
	struct vb__spot spot = { .dir = f->dir, .parent = f->number };
	int rc;

	pop_name(w, f->path_len);
	spot.name = spot.shown = next_name(f);
	if (!spot.name)
		return leave(w);
	if (strcmp(spot.name, ".") == 0 || strcmp(spot.name, "..") == 0)
		return 0;
	spot.dir_fd = frame_fd(w, f);
	if (spot.dir_fd < 0)
		return 0;
	spot.follow = !(w->walk->options->keep & VB_KEEP_SYMLINKS);
	rc = push_name(w, spot.name);
	return rc ? rc : visit(w, &spot);
}

static bool is_stopped(struct vb__walker *w)
{
	const struct vb__walk *walk = w->walk;

	return atomic_load_explicit(walk->stop, memory_order_relaxed) ||
	       (walk->stop_fd > 0 && w->steps++ % STOP_EVERY == 0 &&
		vb__fd_cancelled(walk->stop_fd));
}

/* Down to the end of what has been entered. */
static int descend(struct vb__walker *w)
{
	int rc = 0;

	while (rc == 0 && w->depth) {
		if (is_stopped(w))
			return VB_ERR_INTERRUPTED;
		rc = step(w);
	}
	return rc;
}

static int start(struct vb__walker *w, const struct vb__top *top)
{
	struct vb__dir_facts facts = { .name = top->dir, .follow = true };
	struct vb__dir *dir = vb__dir_add(w->walk->dirs, &facts);
	struct vb__spot spot = {
		.dir = dir,
		.name = top->name,
		.shown = vb__top_shown(top),
		.top = true,
		.follow = top->slash || !(w->walk->options->keep & VB_KEEP_SYMLINKS),
	};
	int rc;

	if (!dir)
		return VB_ERR_NOMEM;
	pop_name(w, 0);
	rc = push_name(w, spot.shown);
	spot.dir_fd = vb__dir_use(w->walk->dirs, dir);
	if (rc == 0)
		rc = spot.dir_fd < 0 ? vb__walk_miss(w, &spot, 0, -spot.dir_fd, NULL)
				     : visit(w, &spot);
	if (spot.dir_fd >= 0)
		vb__dir_release(w->walk->dirs, dir);
	vb__dir_let_go(w->walk->dirs, dir);
	return rc ? rc : descend(w);
}

static int walk_all(struct vb__walker *w)
{
	int rc = push_name(w, "");

	for (size_t i = 0; i < w->walk->path_count && rc == 0; i++) {
		struct vb__top top;

		rc = vb__top_open(&top, w->walk->paths[i]) ? start(w, &top) : VB_ERR_NOMEM;
		vb__top_close(&top);
	}
	return rc;
}

int vb__walk(const struct vb__walk *walk, struct vb_error *err)
{
	struct vb__walker w = {
		.walk = walk,
		.owners = vb__owners_create(),
		.links = vb__links_create(),
		.xattrs.keep = walk->options->keep,
	};
	int rc = w.owners && w.links ? walk_all(&w) : VB_ERR_NOMEM;

	while (w.depth)
		close_frame(&w, &w.frames[--w.depth]);
	vb__owners_destroy(w.owners);
	vb__links_destroy(w.links);
	vb__xattr_reader_close(&w.xattrs);
	free(w.frames);
	free(w.path);
	if (rc < 0)
		vb__fail(err, &(struct vb__failure){ .code = (enum vb_err)rc,
						     .operation = "walk through the files" });
	return rc;
}
