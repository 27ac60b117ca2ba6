/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are offered: left as they are, or asked for, all of them or what is missing. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/failure.h"
#include "tree/content.h"
#include "tree/tree_sink.h"

/* Attributes of files that were asked for: no honest sender goes on so long. */
#define HEAVY_BYTES_MAX (1u << 30)

/* What stands under its name; false: nothing. */
static bool look(struct vb__tree_sink *s, const struct vb__offered *o, struct stat *st)
{
	int dir_fd = o->place->absent || o->place->made ? -1 : vb__place_hold(&s->places, o->place);
	bool found;

	if (dir_fd < 0)
		return false;
	found = fstatat(dir_fd, o->name, st, AT_SYMLINK_NOFOLLOW) == 0;
	vb__place_let_go(&s->places, o->place);
	return found;
}

static bool has_contents(struct vb__tree_sink *s, const struct vb__offered *o)
{
	uint8_t content[VB__CONTENT_BYTES];
	int dir_fd = vb__place_hold(&s->places, o->place), fd;
	bool same;

	if (dir_fd < 0)
		return false;
	fd = openat(dir_fd, o->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	vb__place_let_go(&s->places, o->place);
	if (fd < 0)
		return false;
	same = vb__content_hash(fd, content, NULL, s->options.cancel_fd) == 0 &&
	       memcmp(content, o->offer->content, sizeof(content)) == 0;
	close(fd);
	return same;
}

/* Does what stands there do? */
static bool is_unchanged(struct vb__tree_sink *s, const struct vb__offered *o,
			 const struct stat *st)
{
	const struct vb__offer *offer = o->offer;
	struct vb__path_hash hash;

	if (!S_ISREG(st->st_mode) || (uint64_t)st->st_size != offer->size)
		return false;
	if (s->tree->select == VB_SELECT_CHANGED && st->st_mtim.tv_sec == offer->mtime_s &&
	    st->st_mtim.tv_nsec == offer->mtime_ns)
		return true;
	if (s->journal.resumed) {
		hash = vb__place_hash(o->place, o->name);
		if (vb__journal_has(&s->journal, &hash, offer->identity,
				    vb__journal_target(st, offer->flags & VB__OFFER_LINKED)))
			return true;
	}
	return s->tree->select == VB_SELECT_DIFFERENT && (offer->flags & VB__OFFER_HASHED) &&
	       has_contents(s, o);
}

/* The contents are right; the rest may not be. */
static int mend(struct vb__tree_sink *s, const struct vb__offered *o, const struct stat *st,
		struct vb_error *err)
{
	struct vb_error failure = { .code = VB_OK };
	struct vb__thing thing = { .fd = -1, .name = o->name, .st = *st, .path = o->name };
	struct vb__path_hash hash = vb__place_hash(o->place, o->name);
	bool linked = o->offer->flags & VB__OFFER_LINKED, changed = false;
	mode_t mode = (s->tree->keep & VB_KEEP_MODE ? o->offer->mode : st->st_mode) & 07777;
	struct vb__meta meta = { .xattrs = NULL };
	int rc = 0;

	thing.dir_fd = vb__place_hold(&s->places, o->place);
	if (thing.dir_fd < 0 || !vb__meta_take(&s->rules, &meta, o->offer))
		rc = vb__fail_io(&failure, thing.dir_fd < 0 ? errno : ENOMEM, "set", o->name);
	if (rc == 0)
		rc = vb__meta_apply(&s->rules, &meta, mode, &thing, &changed, &failure);
	/* Or it would be sent again next time. */
	if (rc == 0 && changed && s->journal.resumed &&
	    fstatat(thing.dir_fd, o->name, &thing.st, AT_SYMLINK_NOFOLLOW) == 0)
		vb__journal_add_done(&s->journal, &hash, o->offer->identity,
				     vb__journal_target(&thing.st, linked), false);
	if (thing.dir_fd >= 0)
		vb__place_let_go(&s->places, o->place);
	vb__meta_free(&meta);
	return rc ? vb__tree_fail(s, o->place, vb__offered_shown(o), o->offer->mode, &failure, err)
		  : 0;
}

int vb__tree_remember_first(struct vb__tree_sink *s, struct vb__place *place, const char *name,
			    const struct vb__offer *offer, const struct stat *st,
			    struct vb_error *err)
{
	struct vb__first *first;
	bool added;

	if (!(offer->flags & VB__OFFER_LINKED))
		return 0;
	first = vb__first_new(place, name, st);
	pthread_mutex_lock(&s->lock);
	added = first && vb__numbers_set(&s->firsts, offer->number, first);
	pthread_mutex_unlock(&s->lock);
	if (added)
		return 0;
	free(first);
	return vb__fail_errno(err, ENOMEM, "malloc", NULL);
}

static int remember_first(struct vb__tree_sink *s, const struct vb__offered *o,
			  const struct stat *st, struct vb_error *err)
{
	return vb__tree_remember_first(s, o->place, o->name, o->offer, st, err);
}

static int leave_file(struct vb__tree_sink *s, const struct vb__offered *o, const struct stat *st,
		      struct vb_error *err)
{
	int rc = s->tree->dry_run ? 0 : mend(s, o, st, err);

	if (rc)
		return rc;
	pthread_mutex_lock(&s->lock);
	s->report.unchanged++;
	s->files_done++;
	pthread_mutex_unlock(&s->lock);
	vb__tree_tell(s, &(struct vb__told){
				 .happening = VB_TREE_UNCHANGED,
				 .place = o->place,
				 .name = vb__offered_shown(o),
				 .mode = o->offer->mode,
			 });
	return remember_first(s, o, st, err);
}

static int pretend_file(struct vb__tree_sink *s, const struct vb__offered *o, struct vb_error *err)
{
	static const struct stat none;

	pthread_mutex_lock(&s->lock);
	s->report.files++;
	s->files_done++;
	pthread_mutex_unlock(&s->lock);
	vb__tree_tell(s, &(struct vb__told){
				 .happening = VB_TREE_COPIED,
				 .place = o->place,
				 .name = vb__offered_shown(o),
				 .mode = o->offer->mode,
				 .bytes = o->offer->size,
			 });
	return remember_first(s, o, &none, err);
}

/* Asks for what is missing. It is `placing` meanwhile: whatever comes now was not asked for. */
static int ask_for_rest(struct vb__tree_sink *s, struct vb__arrival *a, struct vb_error *err)
{
	uint64_t offset = 0, length;

	if (a->claimed.bytes == a->size) { /* only its name was missing */
		a->ended = true;
		return vb__arrival_place(s, a, err);
	}
	for (; vb__extents_gap(&a->claimed, &offset, a->size, &length); offset += length)
		vb__answers_add(&s->answers, &(struct vb__answer){ .kind = VB__ANSWER_PART,
								   .number = a->number,
								   .offset = offset,
								   .length = length });
	pthread_mutex_lock(&s->lock);
	a->placing = false; /* before SETTLED, which parts wait for */
	pthread_mutex_unlock(&s->lock);
	return 0;
}

static int enlist(struct vb__tree_sink *s, struct vb__arrival *a)
{
	bool added;
	int many;

	pthread_mutex_lock(&s->lock);
	added = vb__numbers_set(&s->arrivals, a->number, a);
	a->place->refs++;
	s->waiting += !a->resumed;
	s->heavy_bytes += a->meta.xattrs_len;
	s->wanted_bytes += a->size;
	s->stored_bytes += a->stored;
	s->report.resumed_bytes += a->stored;
	many = s->arrivals.count > VB__TREE_FILES_MAX || s->heavy_bytes > HEAVY_BYTES_MAX;
	pthread_mutex_unlock(&s->lock);
	return many ? VB_ERR_PROTOCOL : added ? 0 : VB_ERR_NOMEM;
}

static int want_file(struct vb__tree_sink *s, const struct vb__offered *o, struct vb_error *err)
{
	struct vb__arrival *a = vb__arrival_new(s, o->place, o->name, o->offer);
	bool resumed;
	int errnum, rc;

	if (!a)
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	a->shown = o->shown;
	errnum = s->journal.resumed && a->size > VB__TREE_SMALL ? vb__part_resume(s, a) : 0;
	if (errnum) {
		vb__part_drop(s, a, false);
		vb__arrival_free(a);
		rc = vb__tree_fail_errno(s, o->place, vb__offered_shown(o), o->offer->mode, errnum,
					 "resume", err);
		return rc ? rc : remember_first(s, o, NULL, err);
	}
	resumed = a->placing = a->resumed;
	rc = enlist(s, a);
	if (rc == VB_ERR_PROTOCOL)
		return vb__tree_fail_protocol(s, "too many files at once", err);
	if (rc) {
		vb__part_drop(s, a, false);
		vb__arrival_free(a);
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	}
	if (resumed)
		return ask_for_rest(s, a, err);
	/* From now on it may come at any time, even unasked, and be done with and gone. */
	vb__answers_want(&s->answers, o->offer->number);
	return 0;
}

int vb__tree_take_file(struct vb__tree_sink *s, const struct vb__offered *o, bool admitted,
		       struct vb_error *err)
{
	bool needed = s->tree->select != VB_SELECT_ALL || s->journal.resumed;
	struct stat st;

	pthread_mutex_lock(&s->lock);
	s->report.bytes += o->offer->size;
	s->files_found++;
	pthread_mutex_unlock(&s->lock);
	if (!admitted)
		return remember_first(s, o, NULL, err);
	if (needed && look(s, o, &st) && is_unchanged(s, o, &st))
		return leave_file(s, o, &st, err);
	if (s->tree->dry_run)
		return pretend_file(s, o, err);
	return want_file(s, o, err);
}
