/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links and specials: made at once, under their name if that is free, else beside it and moved
 * there. All is done by the name in an open directory; what is found there is never followed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "core/failure.h"
#include "tree/tree_sink.h"

int vb__tree_move(struct vb__tree_sink *s, struct vb__place *place, int dir_fd, const char *temp,
		  const char *name)
{
	int errnum = renameat(dir_fd, temp, dir_fd, name) ? errno : 0;

	if (errnum != EISDIR || !s->tree->delete_others)
		return errnum;
	errnum = vb__tree_remove(s, place, dir_fd, name);
	if (errnum)
		return errnum;
	return renameat(dir_fd, temp, dir_fd, name) ? errno : 0;
}

/* Something that is to be made. */
struct making {
	struct vb__place *place;
	const char *name;
	const struct vb__offer *offer;
	int dir_fd;
	char target[VB__LINK_MAX + 1]; /* of a link */
	uint64_t *counter;
};

static const char *shown_name(const struct vb__tree_sink *s, const struct making *m)
{
	return s->as && !m->place->parent ? s->shown : m->name;
}

static int make_as(const struct making *m, const char *name)
{
	const struct vb__offer *o = m->offer;

	if (o->kind == VB__OFFER_SYMLINK)
		return symlinkat(m->target, m->dir_fd, name);
	/* For its owner alone until it gets its permissions. */
	return mknodat(m->dir_fd, name, (o->mode & S_IFMT) | 0600,
		       makedev(o->device_major, o->device_minor));
}

/* Is what stands there the same? */
static bool is_same(const struct making *m, const struct stat *st)
{
	const struct vb__offer *o = m->offer;
	char have[VB__LINK_MAX + 2];
	ssize_t n;

	if ((st->st_mode & S_IFMT) != (o->mode & S_IFMT))
		return false;
	if (S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode))
		return st->st_rdev == makedev(o->device_major, o->device_minor);
	if (!S_ISLNK(st->st_mode))
		return true;
	n = readlinkat(m->dir_fd, m->name, have, sizeof(have));
	return n > 0 && (size_t)n == strlen(m->target) && memcmp(have, m->target, (size_t)n) == 0;
}

static int dress(struct vb__tree_sink *s, const struct making *m, const char *name, bool fresh,
		 struct vb_error *err)
{
	struct vb__thing thing = {
		.fd = -1, .dir_fd = m->dir_fd, .name = name, .fresh = fresh, .path = m->name
	};
	struct vb__meta meta;
	mode_t mode;
	int rc;

	if (fstatat(m->dir_fd, name, &thing.st, AT_SYMLINK_NOFOLLOW))
		return vb__fail_io(err, errno, "make", m->name);
	if (!vb__meta_take(&s->rules, &meta, m->offer))
		return vb__fail_errno(err, ENOMEM, "malloc", NULL);
	mode = fresh || (s->tree->keep & VB_KEEP_MODE) ? vb__meta_mode(&s->rules, &meta, NULL)
						       : thing.st.st_mode & 07777;
	rc = vb__meta_apply(&s->rules, &meta, mode, &thing, NULL, err);
	vb__meta_free(&meta);
	return rc;
}

/* Beside its place, dressed, and moved there: it is never seen half. */
static int make(struct vb__tree_sink *s, const struct making *m, struct vb_error *err)
{
	struct vb__path_hash hash = vb__place_hash(m->place, m->name);
	struct vb__part_name temp = vb__part_name(s->journal.tag, &hash);
	int rc, errnum;

	if (make_as(m, temp.text) &&
	    (errno != EEXIST || unlinkat(m->dir_fd, temp.text, 0) || make_as(m, temp.text)))
		return vb__fail_io(err, errno, "make", m->name);
	rc = dress(s, m, temp.text, !m->place->default_acl, err);
	errnum = rc ? 0 : vb__tree_move(s, m->place, m->dir_fd, temp.text, m->name);
	if (errnum)
		rc = vb__fail_io(err, errnum, "make", m->name);
	if (rc)
		(void)unlinkat(m->dir_fd, temp.text, 0);
	return rc;
}

static void tell(struct vb__tree_sink *s, const struct making *m, bool unchanged)
{
	vb__tree_count(s, unchanged ? &s->report.unchanged : m->counter, 1);
	vb__tree_tell(s, &(struct vb__told){
				 .happening = unchanged ? VB_TREE_UNCHANGED : VB_TREE_COPIED,
				 .place = m->place,
				 .name = shown_name(s, m),
				 .mode = m->offer->mode,
			 });
}

static int make_or_leave(struct vb__tree_sink *s, struct making *m, struct vb_error *err)
{
	struct vb_error failure = { .code = VB_OK };
	struct stat st;
	bool same = false;
	int rc = 0;

	m->dir_fd = m->place->absent ? -1 : vb__place_hold(&s->places, m->place);
	if (m->dir_fd < 0 && !m->place->absent)
		return vb__tree_fail_errno(s, m->place, shown_name(s, m), m->offer->mode, errno,
					   "make", err);
	if (m->dir_fd >= 0 && !m->place->made)
		same = fstatat(m->dir_fd, m->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		       is_same(m, &st);
	if (!s->tree->dry_run)
		rc = same ? dress(s, m, m->name, false, &failure) : make(s, m, &failure);
	if (m->dir_fd >= 0)
		vb__place_let_go(&s->places, m->place);
	if (rc)
		return vb__tree_fail(s, m->place, shown_name(s, m), m->offer->mode, &failure, err);
	tell(s, m, same);
	return 0;
}

int vb__tree_make_symlink(struct vb__tree_sink *s, struct vb__place *place, const char *name,
			  const struct vb__offer *offer, struct vb_error *err)
{
	struct making m = { .place = place, .name = name, .offer = offer };

	memcpy(m.target, offer->target.data, offer->target.len);
	m.counter = &s->report.symlinks;
	return make_or_leave(s, &m, err);
}

int vb__tree_make_special(struct vb__tree_sink *s, struct vb__place *place, const char *name,
			  const struct vb__offer *offer, struct vb_error *err)
{
	struct making m = { .place = place, .name = name, .offer = offer };

	m.counter = &s->report.specials;
	return make_or_leave(s, &m, err);
}

/* ---- Further names of files. ---- */

struct vb__first *vb__first_new(const struct vb__place *place, const char *name,
				const struct stat *st)
{
	char *path = st ? vb__place_real_path(place, name) : NULL;
	size_t len = path ? strlen(path) + 1 : 1;
	struct vb__first *first = !st || path ? calloc(1, sizeof(*first) + len) : NULL;

	if (first) {
		first->failed = !st;
		first->dev = st ? st->st_dev : 0;
		first->ino = st ? st->st_ino : 0;
		if (path)
			memcpy(first->path, path, len);
	}
	free(path);
	return first;
}

/* The directory of a path from the base, one name at a time; `*name` is what is behind. */
static int open_way(struct vb__tree_sink *s, char *path, char **name)
{
	int fd = vb__place_hold(&s->places, s->places.base), next, errnum;
	char *slash;

	if (fd < 0)
		return -1;
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	vb__place_let_go(&s->places, s->places.base);
	for (; fd >= 0 && (slash = strchr(path, '/')); path = slash + 1) {
		*slash = '\0';
		next = openat(fd, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		errnum = errno;
		close(fd);
		errno = errnum;
		fd = next;
	}
	*name = path;
	return fd;
}

static bool is_first(const struct vb__first *first, int dir_fd, const char *name)
{
	struct stat st;

	return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino == first->ino &&
	       st.st_dev == first->dev;
}

/* Under a name of ours first: if somebody has put something else there, it goes again. */
static int link_first(struct vb__tree_sink *s, struct vb__place *place, int dir_fd,
		      const char *name, const struct vb__first *first)
{
	struct vb__path_hash hash = vb__place_hash(place, name);
	struct vb__part_name temp = vb__part_name(s->journal.tag, &hash);
	char *path = strdup(first->path), *old_name = NULL;
	int from_fd = path ? open_way(s, path, &old_name) : -1, errnum = 0;

	if (from_fd < 0) {
		errnum = path ? errno : ENOMEM;
		free(path);
		return errnum;
	}
	if (linkat(from_fd, old_name, dir_fd, temp.text, 0) &&
	    (errno != EEXIST || unlinkat(dir_fd, temp.text, 0) ||
	     linkat(from_fd, old_name, dir_fd, temp.text, 0)))
		errnum = errno;
	close(from_fd);
	free(path);
	if (errnum)
		return errnum;
	errnum = is_first(first, dir_fd, temp.text)
			 ? vb__tree_move(s, place, dir_fd, temp.text, name)
			 : ESTALE;
	if (errnum)
		(void)unlinkat(dir_fd, temp.text, 0);
	return errnum;
}

static int link_here(struct vb__tree_sink *s, struct vb__place *place, const char *name,
		     const struct vb__first *first, bool *same)
{
	int dir_fd, errnum;

	*same = false;
	if (s->tree->dry_run)
		return 0;
	dir_fd = vb__place_hold(&s->places, place);
	if (dir_fd < 0)
		return errno;
	*same = is_first(first, dir_fd, name);
	errnum = *same ? 0 : link_first(s, place, dir_fd, name, first);
	vb__place_let_go(&s->places, place);
	return errnum;
}

static int fail_first(struct vb__tree_sink *s, struct vb__place *place, const char *shown)
{
	struct vb_error failure = { .code = VB_OK };

	vb__fail(&failure, &(struct vb__failure){
				   .code = VB_ERR_IO,
				   .operation = "link",
				   .object = shown,
				   .cause = "the file that it is a further name of is not there",
			   });
	return vb__tree_fail(s, place, shown, S_IFREG, &failure, NULL);
}

static int add_name(struct vb__tree_sink *s, struct vb__place *place, const char *name,
		    const char *shown, const struct vb__first *first, struct vb_error *err)
{
	bool same;
	int errnum;

	if (!first || first->failed)
		return fail_first(s, place, shown);
	errnum = link_here(s, place, name, first, &same);
	if (errnum)
		return vb__tree_fail_errno(s, place, shown, S_IFREG, errnum, "link", err);
	vb__tree_count(s, same ? &s->report.unchanged : &s->report.hardlinks, 1);
	vb__tree_tell(s, &(struct vb__told){
				 .happening = same ? VB_TREE_UNCHANGED : VB_TREE_COPIED,
				 .place = place,
				 .name = shown,
				 .mode = S_IFREG,
			 });
	return 0;
}

int vb__tree_make_further(struct vb__tree_sink *s, struct vb__further *further,
			  const struct vb__first *first, struct vb_error *err)
{
	int rc = 0;

	while (further) {
		struct vb__further *next = further->next;
		struct vb__place *place = further->place;
		int left;

		if (rc == 0)
			rc = add_name(s, place, further->name, further->name, first, err);
		free(further);
		left = vb__tree_leave(s, place, rc ? NULL : err);
		rc = rc ? rc : left;
		further = next;
	}
	return rc;
}

static struct vb__further *new_further(struct vb__place *place, const char *name)
{
	size_t len = strlen(name) + 1;
	struct vb__further *further = calloc(1, sizeof(*further) + len);

	if (further) {
		further->place = place;
		memcpy(further->name, name, len);
	}
	return further;
}

int vb__tree_make_hardlink(struct vb__tree_sink *s, struct vb__place *place, const char *name,
			   const struct vb__offer *offer, struct vb_error *err)
{
	struct vb__further *further = new_further(place, name);
	struct vb__arrival *a;
	struct vb__first *first;

	if (!further)
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	pthread_mutex_lock(&s->lock);
	a = vb__numbers_get(&s->arrivals, offer->first);
	first = vb__numbers_get(&s->firsts, offer->first);
	if (a && a->linked) {
		further->next = a->links;
		a->links = further;
		place->refs++;
	}
	pthread_mutex_unlock(&s->lock);
	if (a && a->linked)
		return 0;
	free(further);
	if (!first)
		return vb__tree_fail_protocol(s, "a further name of no file came", err);
	return add_name(s, place, name, name, first, err);
}
