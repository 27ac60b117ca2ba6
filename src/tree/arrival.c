/* SPDX-License-Identifier: Apache-2.0 */
/* Files under way: what comes for them, and how they come to stand. */
#include "tree/arrival.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/failure.h"
#include "tree/tree_sink.h"

struct vb__arrival *vb__arrival_new(struct vb__tree_sink *s, struct vb__place *place,
				    const char *name, const struct vb__offer *offer)
{
	size_t len = strlen(name) + 1;
	struct vb__arrival *a = calloc(1, sizeof(*a) + len);

	if (!a)
		return NULL;
	a->number = offer->number;
	a->place = place;
	a->hash = vb__place_hash(place, name);
	a->size = offer->size;
	a->identity = a->end_identity = offer->identity;
	a->end_size = offer->size;
	a->linked = offer->flags & VB__OFFER_LINKED;
	a->sparse = (offer->flags & VB__OFFER_SPARSE) && (s->tree->keep & VB_KEEP_HOLES);
	memcpy(a->name, name, len);
	if (vb__meta_take(&s->rules, &a->meta, offer))
		return a;
	free(a);
	return NULL;
}

void vb__arrival_free(struct vb__arrival *a)
{
	while (a->links) {
		struct vb__further *next = a->links->next;

		free(a->links);
		a->links = next;
	}
	vb__extents_free(&a->claimed);
	vb__meta_free(&a->meta);
	free(a);
}

static void count(struct vb__tree_sink *s, struct vb__arrival *a)
{
	size_t len = strlen(a->name);

	s->report.files++;
	snprintf(s->current, sizeof(s->current), "%s",
		 len < sizeof(s->current) ? a->name : a->name + len - sizeof(s->current) + 1);
}

/* It stands, or will never. Frees it. */
static int conclude(struct vb__tree_sink *s, struct vb__arrival *a, const struct stat *now,
		    struct vb_error *err)
{
	struct vb__first *first = a->linked ? vb__first_new(a->place, a->name, now) : NULL;
	struct vb__place *place = a->place;
	struct vb__further *links;
	int rc = 0, left;

	pthread_mutex_lock(&s->lock);
	vb__numbers_remove(&s->arrivals, a->number);
	if (a->linked && (!first || !vb__numbers_set(&s->firsts, a->number, first)))
		rc = VB_ERR_NOMEM;
	links = a->links;
	a->links = NULL;
	s->waiting -= !a->resumed;
	s->heavy_bytes -= a->meta.xattrs_len;
	s->files_done++;
	if (now)
		count(s, a);
	if (s->unsettled)
		vb__tree_settle(s);
	pthread_mutex_unlock(&s->lock);
	if (rc) {
		free(first);
		first = NULL;
		rc = vb__fail_errno(err, ENOMEM, "malloc", NULL);
	}
	vb__arrival_free(a);
	left = vb__tree_make_further(s, links, first, rc ? NULL : err);
	rc = rc ? rc : left;
	left = vb__tree_leave(s, place, rc ? NULL : err);
	return rc ? rc : left;
}

/* It stands. */
static int welcome(struct vb__tree_sink *s, struct vb__arrival *a, const struct stat *now,
		   struct vb_error *err)
{
	vb__journal_add_done(&s->journal, &a->hash, a->end_identity,
			     vb__journal_target(now, a->linked), s->options.fsync && a->part);
	vb__tree_tell(s, &(struct vb__told){
				 .happening = VB_TREE_COPIED,
				 .place = a->place,
				 .name = vb__arrival_shown(a),
				 .mode = a->meta.mode,
				 .bytes = (uint64_t)now->st_size,
			 });
	vb__part_drop(s, a, false);
	return conclude(s, a, now, err);
}

static int give_up(struct vb__tree_sink *s, struct vb__arrival *a, const struct vb_error *failure,
		   struct vb_error *err)
{
	int rc = vb__tree_fail(s, a->place, vb__arrival_shown(a), a->meta.mode, failure, err);

	if (rc) /* all ends, and what came of it may be used next time */
		return rc;
	vb__part_drop(s, a, true);
	return conclude(s, a, NULL, err);
}

/* Calls `store` with its directory open, and does what has to be done then. */
static int place_it(struct vb__tree_sink *s, struct vb__arrival *a, const struct vb__parcel *whole,
		    struct vb_error *err)
{
	int dir_fd = vb__place_hold(&s->places, a->place), rc;
	struct vb_error failure = { .code = VB_OK };
	struct stat now;

	if (dir_fd < 0) {
		vb__fail_io(&failure, errno, "write", a->name);
		return give_up(s, a, &failure, err);
	}
	rc = whole ? vb__store_whole(s, a, whole, dir_fd, &now, &failure)
		   : vb__store_part(s, a, dir_fd, &now, &failure);
	vb__place_let_go(&s->places, a->place);
	return rc ? give_up(s, a, &failure, err) : welcome(s, a, &now, err);
}

int vb__arrival_place(struct vb__tree_sink *s, struct vb__arrival *a, struct vb_error *err)
{
	return place_it(s, a, NULL, err);
}

/* ---- What comes. ---- */

/* As it was read, which may be later than it was offered. */
static void renew(struct vb__arrival *a, const struct vb__parcel *parcel)
{
	a->meta.mtime_s = parcel->mtime_s;
	a->meta.mtime_ns = parcel->mtime_ns;
	a->end_identity = parcel->identity;
	a->end_size = parcel->size;
}

static int take_whole(struct vb__tree_sink *s, const struct vb__parcel *parcel,
		      struct vb_error *err)
{
	struct vb__arrival *a;
	bool right;

	pthread_mutex_lock(&s->lock);
	a = vb__numbers_get(&s->arrivals, parcel->number);
	right = a && !a->placing && !a->ended && !a->resumed && !a->claimed.count;
	if (right) {
		a->placing = true;
		renew(a, parcel);
		s->report.sent_bytes += parcel->size;
		s->stored_bytes += a->size;
	}
	pthread_mutex_unlock(&s->lock);
	if (!right)
		return vb__tree_fail_protocol(s, "a file came that was not wanted", err);
	return place_it(s, a, parcel, err);
}

/* Lock held. Is all there that will come, and nobody at it? Then the caller is. */
static bool is_ripe(struct vb__arrival *a)
{
	uint64_t offset = 0, length;

	if (!a->ended || a->placing || a->told_of || a->stored != a->claimed.bytes)
		return false;
	if (!a->missed && vb__extents_gap(&a->claimed, &offset, a->end_size, &length))
		return false;
	a->placing = true;
	return true;
}

/* It was told of: whoever was done with it meanwhile has left it to us. */
static bool is_ripe_now(struct vb__tree_sink *s, struct vb__arrival *a)
{
	bool ripe;

	pthread_mutex_lock(&s->lock);
	a->told_of = false;
	ripe = is_ripe(a);
	pthread_mutex_unlock(&s->lock);
	return ripe;
}

static int place_if_ripe(struct vb__tree_sink *s, struct vb__arrival *a, bool ripe,
			 struct vb_error *err)
{
	if (!ripe)
		return 0;
	if (!a->failed)
		return vb__arrival_place(s, a, err);
	vb__part_drop(s, a, true);
	return conclude(s, a, NULL, err);
}

/* What came now does not belong to what came before. */
static void tell_mixed(struct vb__tree_sink *s, const struct vb__arrival *a)
{
	struct vb_error failure = { .code = VB_OK };

	vb__fail(&failure, &(struct vb__failure){
				   .code = VB_ERR_IO,
				   .operation = "resume",
				   .object = vb__arrival_shown(a),
				   .cause = "it was changed while it was copied",
			   });
	vb__tree_tell(s, &(struct vb__told){
				 .happening = VB_TREE_FAILED,
				 .place = a->place,
				 .name = vb__arrival_shown(a),
				 .mode = a->meta.mode,
				 .failure = &failure,
			 });
}

/* It may have grown since it was offered; but then no parts of it are sent. */
static uint64_t longest(const struct vb__arrival *a)
{
	return a->resumed ? a->size : INT64_MAX;
}

static int take_end(struct vb__tree_sink *s, const struct vb__parcel *parcel, struct vb_error *err)
{
	struct vb__arrival *a;
	bool right, ripe = false, mixed = false;

	pthread_mutex_lock(&s->lock);
	a = vb__numbers_get(&s->arrivals, parcel->number);
	right = a && !a->placing && !a->ended && parcel->size <= longest(a);
	if (right) {
		mixed = a->resumed && a->identity != parcel->identity && !a->failed;
		a->failed |= mixed;
		renew(a, parcel);
		a->ended = true;
		a->told_of = mixed;
		ripe = is_ripe(a);
	}
	pthread_mutex_unlock(&s->lock);
	if (!right)
		return vb__tree_fail_protocol(s, "the end of a file came that was not wanted", err);
	if (mixed) {
		tell_mixed(s, a);
		ripe = is_ripe_now(s, a);
	}
	return place_if_ripe(s, a, ripe, err);
}

/* Lock held. Blocks of it may still be under way. */
static bool bury(struct vb__tree_sink *s, uint32_t number)
{
	uint32_t *slot = &s->gone_ring[s->gone_at++ % VB__TREE_GONE_MAX];

	if (*slot)
		vb__numbers_remove(&s->gone, *slot);
	*slot = number;
	return vb__numbers_set(&s->gone, number, s);
}

static void tell_missed(struct vb__tree_sink *s, const struct vb__arrival *a,
			const struct vb__parcel *parcel)
{
	struct vb_error failure = { .code = VB_OK };
	char cause[sizeof(failure.cause)];

	snprintf(cause, sizeof(cause), "%.*s", (int)parcel->data.len,
		 (const char *)parcel->data.data);
	vb__fail(&failure, &(struct vb__failure){
				   .code = parcel->error,
				   .native_kind = parcel->native ? VB_NATIVE_ERRNO : VB_NATIVE_NONE,
				   .native = parcel->native,
				   .operation = "read",
				   .object = vb__arrival_shown(a),
				   .cause = *cause ? cause : NULL,
			   });
	vb__tree_tell(s, &(struct vb__told){
				 .happening = parcel->vanished ? VB_TREE_VANISHED : VB_TREE_FAILED,
				 .place = a->place,
				 .name = vb__arrival_shown(a),
				 .mode = a->meta.mode,
				 .at_peer = true,
				 .failure = &failure,
			 });
}

/* Threads may be writing to it: the last of them ends it. */
static int take_missed(struct vb__tree_sink *s, const struct vb__parcel *parcel,
		       struct vb_error *err)
{
	struct vb__arrival *a;
	bool right, tell = false, ripe = false, buried = true;

	pthread_mutex_lock(&s->lock);
	a = vb__numbers_get(&s->arrivals, parcel->number);
	right = (a && !a->placing && !a->ended) || vb__numbers_get(&s->gone, parcel->number);
	if (right && a && !a->missed) {
		buried = bury(s, parcel->number);
		tell = a->told_of = buried && !a->failed;
		a->failed = a->missed = a->ended = true;
		ripe = buried && is_ripe(a);
	}
	pthread_mutex_unlock(&s->lock);
	if (!right)
		return vb__tree_fail_protocol(s, "a file was given up that was not wanted", err);
	if (!buried)
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	if (tell) {
		tell_missed(s, a, parcel);
		ripe = is_ripe_now(s, a);
	}
	return place_if_ripe(s, a, ripe, err);
}

int vb__tree_take_parcels(struct vb__tree_sink *s, const uint8_t *data, size_t len,
			  struct vb_error *err)
{
	struct vb__parcel parcel;
	size_t at = 0;
	int rc = vb__answers_wait(&s->answers, err);

	while (rc == 0 && at < len) {
		if (!vb__parcel_decode(&parcel, data, len, &at))
			return vb__tree_fail_protocol(s, "a parcel makes no sense", err);
		if (parcel.kind == VB__PARCEL_WHOLE)
			rc = take_whole(s, &parcel, err);
		else if (parcel.kind == VB__PARCEL_END)
			rc = take_end(s, &parcel, err);
		else
			rc = take_missed(s, &parcel, err);
	}
	if (rc == 0)
		vb__journal_flush(&s->journal);
	return rc;
}

/* 1: it is to be written; 0: thrown away; or an error. */
static int claim(struct vb__tree_sink *s, const struct vb__block *block, struct vb__arrival **found,
		 struct vb_error *err)
{
	struct vb__arrival *a = vb__numbers_get(&s->arrivals, block->file);
	enum vb__extents_added added;

	if (!a || a->missed)
		return vb__numbers_get(&s->gone, block->file)
			       ? 0
			       : vb__tree_fail_protocol(s, "a block came that was not wanted", err);
	if (a->placing || block->offset > longest(a) || block->length > longest(a) - block->offset)
		return vb__tree_fail_protocol(s, "a block is beyond its file's end", err);
	added = vb__extents_add(&a->claimed, block->offset, block->length);
	if (added == VB__EXTENTS_OVERLAP)
		return vb__tree_fail_protocol(s, "a block came twice", err);
	if (added == VB__EXTENTS_FULL)
		return vb__fail_errno(err, ENOMEM, "realloc", NULL);
	*found = a;
	s->report.sent_bytes += vb__block_data_bytes(block);
	return 1;
}

/* The first of its blocks that could not be written: told, or the end of all. */
static int fail_block(struct vb__tree_sink *s, struct vb__arrival *a, int errnum,
		      struct vb_error *err)
{
	struct vb_error failure = { .code = VB_OK };
	bool first;

	pthread_mutex_lock(&s->lock);
	first = !a->failed;
	a->failed = true;
	pthread_mutex_unlock(&s->lock);
	vb__fail_filing(&failure, errnum, a->name);
	return first ? vb__tree_fail(s, a->place, vb__arrival_shown(a), a->meta.mode, &failure, err)
		     : 0;
}

int vb__tree_take_block(struct vb__tree_sink *s, const struct vb__block *block, const void *data,
			struct vb_error *err)
{
	struct vb__arrival *a = NULL;
	bool failed, ripe;
	int rc, errnum = 0;

	pthread_mutex_lock(&s->lock);
	rc = claim(s, block, &a, err);
	failed = a && a->failed;
	pthread_mutex_unlock(&s->lock);
	if (!a)
		return rc;
	if (!failed)
		errnum = vb__part_write(s, a, block, data);
	if (!failed && !errnum)
		vb__journal_add_part(&s->journal, &a->hash, a->identity, block);
	if (errnum) {
		rc = fail_block(s, a, errnum, err);
		if (rc < 0)
			return rc;
	}
	pthread_mutex_lock(&s->lock);
	a->stored += block->length;
	s->stored_bytes += block->length;
	ripe = is_ripe(a);
	pthread_mutex_unlock(&s->lock);
	return place_if_ripe(s, a, ripe, err);
}
