/* SPDX-License-Identifier: Apache-2.0 */
/* Directories in which all is done: they get what they have besides what is in them, and go. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "core/failure.h"
#include "tree/tree_sink.h"

static mode_t final_mode(const struct vb__tree_sink *s, const struct vb__place *place,
			 const struct stat *now)
{
	if (s->tree->keep & VB_KEEP_MODE)
		return place->meta.mode & 07777;
	if (place->made) /* what is made in it may have to belong to its group */
		return (place->meta.mode & 0777 & ~s->rules.umask) | (now->st_mode & S_ISGID);
	return (place->old_mode ? place->old_mode : now->st_mode) & 07777;
}

static int dress(struct vb__tree_sink *s, struct vb__place *place, int fd, struct vb_error *err)
{
	struct vb__thing thing = { .fd = fd, .path = place->name };
	int rc;

	if (fstat(fd, &thing.st))
		return vb__fail_io(err, errno, "fstat", place->name);
	rc = vb__meta_apply(&s->rules, &place->meta, final_mode(s, place, &thing.st), &thing, NULL,
			    err);
	place->old_mode = 0;
	/* What is on another file system is not synced with the base. */
	if (rc == 0 && s->options.fsync && place->dev != s->places.base->dev && syncfs(fd))
		rc = vb__fail_io(err, errno, "syncfs", place->name);
	return rc;
}

int vb__tree_complete_place(struct vb__tree_sink *s, struct vb__place *place, struct vb_error *err)
{
	struct vb_error failure = { .code = VB_OK };
	int fd, rc = 0;

	if (place->failed || place->absent)
		return 0;
	rc = vb__tree_sweep(s, place, err);
	if (rc || s->tree->dry_run || !place->described)
		return rc;
	fd = vb__place_hold(&s->places, place);
	if (fd < 0)
		return vb__tree_fail_errno(s, place, NULL, S_IFDIR, errno, "complete", err);
	rc = dress(s, place, fd, &failure);
	vb__place_let_go(&s->places, place);
	return rc ? vb__tree_fail(s, place, NULL, S_IFDIR, &failure, err) : 0;
}

int vb__tree_leave(struct vb__tree_sink *s, struct vb__place *place, struct vb_error *err)
{
	int rc = 0;

	while (place) {
		struct vb__place *parent = place->parent;
		bool last;
		int one;

		pthread_mutex_lock(&s->lock);
		last = --place->refs == 0;
		pthread_mutex_unlock(&s->lock);
		if (!last)
			break;
		one = rc ? 0 : vb__tree_complete_place(s, place, err);
		rc = rc ? rc : one;
		if (rc) /* all ends: closing frees the rest */
			break;
		vb__place_free(&s->places, place);
		place = parent;
	}
	return rc;
}
