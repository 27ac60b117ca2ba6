/* SPDX-License-Identifier: Apache-2.0 */
/* What is done about each thing that is offered: made at once, asked for, or left as it is. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/failure.h"
#include "tree/filter.h"
#include "tree/tree_sink.h"

/* Attributes of files that were asked for; beyond, the sender has to wait. */
#define HEAVY_BYTES (16u << 20)

/* ---- What was asked for. ---- */

/* Is this name, or none, what the path comes to at the target? */
static bool comes_to(const char *path, const struct vb__slice *name)
{
	size_t len = strlen(path);
	const char *last;

	while (len > 1 && path[len - 1] == '/')
		len--;
	last = memrchr(path, '/', len);
	last = last ? last + 1 : path;
	len -= (size_t)(last - path);
	/* As walk.c has it: the contents of these, and not they themselves. */
	if (len <= 2 && memcmp(last, "..", len) == 0)
		return name->len == 0;
	return name->len == len && memcmp(name->data, last, len) == 0;
}

static bool is_asked_for(const struct vb__tree_sink *s, const struct vb__offer *offer)
{
	const char *const *asked = s->tree->asked;

	if (offer->parent || !asked)
		return true;
	while (*asked && !comes_to(*asked, &offer->name))
		asked++;
	return *asked;
}

/* Would an honest sender have left it? */
static bool is_left_out(const struct vb__tree_sink *s, const struct vb__offered *o)
{
	bool left;
	char *path;

	if (!s->tree->asked || !s->filter || !o->offer->name.len)
		return false;
	path = vb__place_path(o->place, vb__offered_shown(o));
	left = !path || vb__filter_leaves(s->filter, path, o->offer->kind == VB__OFFER_DIRECTORY);
	free(path);
	return left;
}

static int not_asked_for(const struct vb__tree_sink *s, struct vb_error *err)
{
	return vb__tree_fail_protocol(s, "something came that was not asked for", err);
}

/* ---- Where it goes. ---- */

static int fail_several(struct vb__tree_sink *s, const char *hint, struct vb_error *err)
{
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_IO,
				     .native_kind = VB_NATIVE_ERRNO,
				     .native = ENOTDIR,
				     .operation = "receive to",
				     .object = s->target.path,
				     .cause = "is not a directory",
				     .hint = hint,
			     });
}

static enum vb__journal_wish journal_wish(const struct vb__tree_sink *s)
{
	if (s->tree->no_resume)
		return VB__JOURNAL_NONE;
	return s->options.sealed ? VB__JOURNAL_KEEP_SEALED : VB__JOURNAL_KEEP;
}

/* The first thing has come: now it is clear where all goes. */
static int begin(struct vb__tree_sink *s, const char *offered, struct vb_error *err)
{
	bool check_acls = s->tree->keep & VB_KEEP_ACLS;
	uint64_t tag;
	int base_fd = vb__target_choose(&s->target, offered, &s->as, &tag), errnum;

	errnum = vb__places_open(&s->places, base_fd, check_acls);
	if (errnum) {
		vb__places_close(&s->places);
		return vb__fail_io(err, errnum, "receive to", s->target.path);
	}
	s->places.base->refs = 1; /* it never goes */
	s->begun = true;
	vb__journal_open(&s->journal, s->tree->dry_run ? -1 : base_fd, tag, journal_wish(s));
	s->shown = s->as ? strdup(offered) : NULL;
	return s->as && !s->shown ? vb__fail_errno(err, ENOMEM, "strdup", NULL) : 0;
}

/* Something that is in nothing else. */
static int place_top(struct vb__tree_sink *s, struct vb__offered *o, struct vb_error *err)
{
	bool nameless = !o->offer->name.len;
	int rc = 0;

	if (!s->begun)
		rc = begin(s, o->name, err);
	if (rc)
		return rc;
	o->place = s->places.base;
	if (!s->as)
		return 0;
	if (s->tops > 0 && !(nameless && s->contents))
		return fail_several(s, "several things come: name a directory", err);
	if (s->target.slash && o->offer->kind != VB__OFFER_DIRECTORY)
		return fail_several(s, "no directory comes, but the slash asks for one", err);
	snprintf(o->name, sizeof(o->name), "%s", s->target.name);
	o->shown = s->shown;
	return 0;
}

static int place_below(struct vb__tree_sink *s, struct vb__offered *o, struct vb_error *err)
{
	pthread_mutex_lock(&s->lock);
	o->place = vb__numbers_get(&s->directories, o->offer->parent);
	pthread_mutex_unlock(&s->lock);
	if (!o->place)
		return vb__tree_fail_protocol(s, "an entry is in no directory", err);
	return 0;
}

/* 1: it is to be dealt with; 0: it has failed and was told. */
static int admit(struct vb__tree_sink *s, const struct vb__offered *o, struct vb_error *err)
{
	bool again = !o->offer->name.len && (s->contents || !s->as);
	int new;

	if (o->place->failed)
		return 0;
	if (vb__is_reserved(o->name))
		return vb__tree_fail_errno(s, o->place, vb__offered_shown(o), o->offer->mode,
					   EINVAL, "use the reserved name", err);
	new = again ? 1 : vb__nameset_add(&o->place->names, s->seed, o->name, strlen(o->name));
	if (new < 0)
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	return new ? 1
		   : vb__tree_fail_errno(s, o->place, vb__offered_shown(o), o->offer->mode, EEXIST,
					 "receive a second", err);
}

/* ---- Directories. ---- */

static int add_directory(struct vb__tree_sink *s, uint32_t number, struct vb__place *place,
			 struct vb_error *err)
{
	bool added, many;

	pthread_mutex_lock(&s->lock);
	added = vb__numbers_set(&s->directories, number, place);
	many = s->directories.count > VB__TREE_PLACES_MAX;
	place->unlisted++;
	place->refs++;
	pthread_mutex_unlock(&s->lock);
	if (many)
		return vb__tree_fail_protocol(s, "too many directories at once", err);
	return added ? 0 : vb__fail_errno(err, ENOMEM, "calloc", NULL);
}

static int enter(struct vb__tree_sink *s, struct vb__place *place, const struct vb__offer *offer)
{
	int errnum;

	if (place->depth > VB__PLACE_DEPTH_MAX)
		return ENAMETOOLONG;
	if (s->tree->dry_run) {
		errnum = vb__place_look(&s->places, place);
		place->absent |= errnum == ENOTDIR && s->tree->delete_others;
		return place->absent ? 0 : errnum;
	}
	errnum = vb__place_enter(&s->places, place, offer->mode);
	if (errnum == ENOTDIR && s->tree->delete_others) {
		int dir_fd = vb__place_hold(&s->places, place->parent);

		if (dir_fd < 0)
			return errno;
		errnum = vb__tree_remove(s, place->parent, dir_fd, place->name);
		vb__place_let_go(&s->places, place->parent);
		if (!errnum)
			errnum = vb__place_enter(&s->places, place, offer->mode);
	}
	return errnum;
}

static void tell_directory(struct vb__tree_sink *s, const struct vb__place *place,
			   const struct vb__offered *o)
{
	bool new = place->made || place->absent;

	vb__tree_count(s, new ? &s->report.directories : &s->report.unchanged, 1);
	vb__tree_tell(s, &(struct vb__told){
				 .happening = new ? VB_TREE_COPIED : VB_TREE_UNCHANGED,
				 .place = o->place,
				 .name = vb__offered_shown(o),
				 .mode = o->offer->mode,
			 });
}

/* The contents of a directory come to stand in the target: once, or once more. */
static int take_contents(struct vb__tree_sink *s, const struct vb__offered *o, struct vb_error *err)
{
	struct vb__place *place = s->contents ? s->contents : s->places.base;

	if (!s->contents) {
		s->contents = place;
		place->described = vb__meta_take(&s->rules, &place->meta, o->offer);
		tell_directory(s, place, o);
	}
	return add_directory(s, o->offer->number, place, err);
}

static int take_directory(struct vb__tree_sink *s, const struct vb__offered *o, bool admitted,
			  struct vb_error *err)
{
	bool nameless = !o->offer->name.len;
	struct vb__place *place;
	int rc, errnum;

	if (nameless && (!s->as || s->contents))
		return take_contents(s, o, err);
	place = vb__place_add(&s->places, o->place, o->offer->number, o->name);
	if (!place)
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	place->shown = o->shown;
	pthread_mutex_lock(&s->lock);
	o->place->refs++;
	pthread_mutex_unlock(&s->lock);
	place->failed = !admitted;
	rc = add_directory(s, o->offer->number, place, err);
	if (rc || !admitted)
		return rc;
	if (nameless) { /* more may come for it, up to the end */
		s->contents = place;
		place->refs++;
	}
	place->described = vb__meta_take(&s->rules, &place->meta, o->offer);
	errnum = enter(s, place, o->offer);
	place->failed = errnum != 0;
	if (errnum)
		return vb__tree_fail_errno(s, o->place, vb__offered_shown(o), o->offer->mode,
					   errnum, "make the directory", err);
	/* By its journal the target will be known: else, next time, all would come into it. */
	if (s->as && place->made && !o->offer->parent)
		vb__journal_keep(&s->journal);
	tell_directory(s, place, o);
	return 0;
}

static int take_listed(struct vb__tree_sink *s, const struct vb__offer *offer, struct vb_error *err)
{
	struct vb__place *place;

	pthread_mutex_lock(&s->lock);
	place = vb__numbers_get(&s->directories, offer->number);
	if (place) {
		vb__numbers_remove(&s->directories, offer->number);
		place->unlisted--;
		place->incomplete |= (offer->flags & VB__OFFER_INCOMPLETE) != 0;
	}
	pthread_mutex_unlock(&s->lock);
	if (!place)
		return vb__tree_fail_protocol(s, "the end of no directory came", err);
	return vb__tree_leave(s, place, err);
}

/* ---- All. ---- */

static int take_missed(struct vb__tree_sink *s, struct vb__offered *o, struct vb_error *err)
{
	const struct vb__offer *offer = o->offer;
	struct vb_error failure = { .code = VB_OK };
	struct vb__told told = {
		.happening = offer->flags & VB__OFFER_VANISHED ? VB_TREE_VANISHED : VB_TREE_FAILED,
		.name = o->name,
		.at_peer = true,
		.failure = &failure,
	};
	char cause[sizeof(failure.cause)];

	if (offer->parent) {
		int rc = place_below(s, o, err);

		if (rc)
			return rc;
		told.place = o->place;
		/* It is there: not to be deleted here. */
		(void)vb__nameset_add(&o->place->names, s->seed, o->name, strlen(o->name));
	}
	s->top_missed |= !offer->parent;
	snprintf(cause, sizeof(cause), "%.*s", (int)offer->target.len,
		 (const char *)offer->target.data);
	vb__fail(&failure, &(struct vb__failure){
				   .code = offer->error,
				   .native_kind = offer->native ? VB_NATIVE_ERRNO : VB_NATIVE_NONE,
				   .native = offer->native,
				   .operation = "read",
				   .object = o->name,
				   .cause = *cause ? cause : NULL,
			   });
	vb__tree_tell(s, &told);
	return 0;
}

static bool is_of_kind_asked_for(const struct vb__tree_sink *s, enum vb__offer_kind kind)
{
	unsigned keep = s->tree->keep;

	return !(kind == VB__OFFER_SYMLINK && !(keep & VB_KEEP_SYMLINKS)) &&
	       !(kind == VB__OFFER_SPECIAL && !(keep & VB_KEEP_SPECIALS)) &&
	       !(kind == VB__OFFER_HARDLINK && !(keep & VB_KEEP_HARDLINKS)) &&
	       !(kind == VB__OFFER_DIRECTORY && !s->tree->recursive);
}

static int take_kind(struct vb__tree_sink *s, const struct vb__offered *o, bool admitted,
		     struct vb_error *err)
{
	if (o->offer->kind == VB__OFFER_FILE)
		return vb__tree_take_file(s, o, admitted, err);
	if (o->offer->kind == VB__OFFER_DIRECTORY)
		return take_directory(s, o, admitted, err);
	if (!admitted)
		return vb__tree_remember_first(s, o->place, o->name, o->offer, NULL, err);
	if (o->offer->kind == VB__OFFER_SYMLINK)
		return vb__tree_make_symlink(s, o->place, o->name, o->offer, err);
	if (o->offer->kind == VB__OFFER_SPECIAL)
		return vb__tree_make_special(s, o->place, o->name, o->offer, err);
	return vb__tree_make_hardlink(s, o->place, o->name, o->offer, err);
}

static int take(struct vb__tree_sink *s, const struct vb__offer *offer, struct vb_error *err)
{
	struct vb__offered o = { .offer = offer };
	int rc, admitted;

	if (offer->kind == VB__OFFER_LISTED)
		return take_listed(s, offer, err);
	memcpy(o.name, offer->name.data, offer->name.len);
	if (offer->kind == VB__OFFER_MISSED)
		return take_missed(s, &o, err);
	if (offer->number <= s->last_number)
		return vb__tree_fail_protocol(s, "an entry was offered twice", err);
	if (!is_of_kind_asked_for(s, offer->kind) || !is_asked_for(s, offer))
		return not_asked_for(s, err);
	s->last_number = offer->number;
	rc = offer->parent ? place_below(s, &o, err) : place_top(s, &o, err);
	if (rc)
		return rc;
	if (is_left_out(s, &o))
		return not_asked_for(s, err);
	admitted = admit(s, &o, err);
	if (admitted < 0)
		return admitted;
	rc = take_kind(s, &o, admitted, err);
	s->tops += offer->parent == 0;
	return rc;
}

void vb__tree_settle(struct vb__tree_sink *s)
{
	s->unsettled = s->waiting > VB__TREE_AHEAD || s->heavy_bytes > HEAVY_BYTES;
	if (!s->unsettled && s->settled != s->decided) {
		s->settled = s->decided;
		vb__answers_add(&s->answers, &(struct vb__answer){ .kind = VB__ANSWER_SETTLED,
								   .number = s->settled });
	}
}

int vb__tree_take_offers(struct vb__tree_sink *s, const uint8_t *data, size_t len,
			 struct vb_error *err)
{
	struct vb__offer offer;
	size_t at = 0;
	int rc = vb__answers_wait(&s->answers, err);

	while (rc == 0 && at < len) {
		if (!vb__offer_decode(&offer, data, len, &at))
			return vb__tree_fail_protocol(s, "an offer makes no sense", err);
		rc = take(s, &offer, err);
	}
	pthread_mutex_lock(&s->lock);
	s->decided = s->last_number;
	if (rc == 0)
		vb__tree_settle(s);
	if (s->unsettled) /* what was asked for must come, or it stays so for ever */
		vb__answers_insist(&s->answers);
	pthread_mutex_unlock(&s->lock);
	return rc;
}
