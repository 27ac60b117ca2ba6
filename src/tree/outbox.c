/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outbox: what the walker has found and nobody has been told yet. The walker waits while there
 * is much of it, and while the sink is too far behind with its answers.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/failure.h"
#include "tree/source_state.h"
#include "tree/walk_xattrs.h"
#include "wire/bytes.h"

#define MARK 8u /* before each offer: its length and number */
#define RECORD_MAX (VB__XATTRS_MAX + 8192u)

/* The walker's own. */
struct finder {
	struct vb__tree_source *source;
	uint8_t *record; /* the offer that is being taken */
};

static bool is_numbered(const struct vb__offer *offer)
{
	return offer->kind != VB__OFFER_LISTED && offer->kind != VB__OFFER_MISSED;
}

/* The lock is held. */
static bool must_wait(const struct vb__tree_source *s, const struct vb__offer *offer, size_t len)
{
	/* A large one can be judged only when it is known how long a block is. */
	if (len > VB_BLOCK_MIN && !s->room)
		return true;
	if (s->outbox_len - s->outbox_at >= VB__OUTBOX_BYTES)
		return true;
	return is_numbered(offer) &&
	       offer->number - s->base_number + s->ready_count >= VB__TREE_AHEAD;
}

/* The lock is held. False: it is to stop. */
static bool wait_for_room(struct vb__tree_source *s, const struct vb__offer *offer, size_t len)
{
	while (!atomic_load(&s->stop) && must_wait(s, offer, len)) {
		s->walker_waits = true;
		vb__source_wake(s);
		pthread_cond_wait(&s->changed, &s->lock);
	}
	s->walker_waits = false;
	return !atomic_load(&s->stop);
}

/* The lock is held. */
static int put_record(struct vb__tree_source *s, const uint8_t *record, size_t len, uint32_t number)
{
	size_t need = s->outbox_len + MARK + len;
	uint8_t *more;

	if (need > s->outbox_room && s->outbox_at) {
		memmove(s->outbox, s->outbox + s->outbox_at, s->outbox_len - s->outbox_at);
		s->outbox_len -= s->outbox_at;
		s->outbox_at = 0;
		need = s->outbox_len + MARK + len;
	}
	if (need > s->outbox_room) {
		more = realloc(s->outbox, need * 2);
		if (!more)
			return VB_ERR_NOMEM;
		s->outbox = more;
		s->outbox_room = need * 2;
	}
	if (s->outbox_at == s->outbox_len)
		s->outbox_since_ns = vb__now_ns();
	vb__put32(s->outbox + s->outbox_len, (uint32_t)len);
	vb__put32(s->outbox + s->outbox_len + 4, number);
	memcpy(s->outbox + s->outbox_len + MARK, record, len);
	s->outbox_len = need;
	return 0;
}

static struct vb__item *make_item(struct vb__tree_source *s, const struct vb__walked *walked)
{
	const struct vb__offer *offer = walked->offer;
	size_t name = strlen(walked->name) + 1;
	struct vb__item *item = calloc(1, sizeof(*item) + name);

	if (!item)
		return NULL;
	item->number = offer->number;
	item->follow = walked->follow;
	item->sparse = offer->flags & VB__OFFER_SPARSE;
	item->mode = offer->mode;
	item->size = offer->size;
	item->identity = offer->identity;
	item->dir = walked->dir;
	memcpy(item->name, walked->name, name);
	vb__dir_hold(&s->dirs, item->dir);
	return item;
}

/* The lock is held. */
static void count(struct vb__tree_source *s, const struct vb__offer *offer)
{
	s->sums.directories += offer->kind == VB__OFFER_DIRECTORY;
	s->sums.symlinks += offer->kind == VB__OFFER_SYMLINK;
	s->sums.specials += offer->kind == VB__OFFER_SPECIAL;
	s->sums.hardlinks += offer->kind == VB__OFFER_HARDLINK;
	if (offer->kind != VB__OFFER_FILE)
		return;
	s->files_found++;
	s->sums.bytes += offer->size;
	s->bytes_due += offer->size;
}

/* The lock is held. Takes the item over. */
static int put(struct vb__tree_source *s, const struct vb__offer *offer, const uint8_t *record,
	       size_t len, struct vb__item *item)
{
	bool was_empty;
	int rc;

	if (!wait_for_room(s, offer, len)) {
		vb__item_free(s, item);
		return VB_ERR_INTERRUPTED;
	}
	was_empty = s->outbox_at == s->outbox_len;
	rc = len > VB_BLOCK_MIN && len > s->room
		     ? VB_ERR_TOO_BIG
		     : put_record(s, record, len, is_numbered(offer) ? offer->number : 0);
	if (rc) {
		vb__item_free(s, item);
		return rc;
	}
	if (is_numbered(offer)) {
		s->last_number = offer->number;
		s->ring[offer->number % VB__TREE_AHEAD] = item;
	}
	count(s, offer);
	/* Not for every one: it waits a little for more. */
	if (was_empty || s->outbox_len - s->outbox_at >= s->room)
		vb__source_wake(s);
	return 0;
}

static int take_offer(struct finder *f, const struct vb__walked *walked,
		      const struct vb__offer *offer)
{
	struct vb__tree_source *s = f->source;
	size_t len = vb__offer_encode(f->record, RECORD_MAX, offer);
	struct vb__item *item = NULL;
	int rc;

	if (!len)
		return VB_ERR_TOO_BIG;
	if (offer->kind == VB__OFFER_FILE && walked->name) {
		item = make_item(s, walked);
		if (!item)
			return VB_ERR_NOMEM;
	}
	pthread_mutex_lock(&s->lock);
	rc = put(s, offer, f->record, len, item);
	pthread_mutex_unlock(&s->lock);
	return rc;
}

/* An offer that fits into no block: what can be done without is left out. */
static int take_less(struct finder *f, const struct vb__walked *walked)
{
	static const char attributes[] = "its extended attributes are too large for a block";
	static const char target[] = "its target is too long for a block";
	const char *why = walked->offer->xattrs.len ? attributes : target;
	struct vb__offer less = *walked->offer, missed = {
		.kind = VB__OFFER_MISSED,
		.parent = less.parent,
		.name = less.name,
		.target = { .data = (const uint8_t *)why, .len = strlen(why) },
		.error = VB_ERR_IO,
		.native = E2BIG,
	};
	struct vb__walked miss = { .offer = &missed, .path = walked->path, .mode = walked->mode };
	int rc = 0;

	less.xattrs.len = 0;
	if (walked->offer->xattrs.len)
		rc = take_offer(f, walked, &less);
	if (rc && rc != VB_ERR_TOO_BIG)
		return rc;
	vb__source_tell_missed(f->source, &miss);
	return take_offer(f, &miss, &missed);
}

static int take(void *arg, const struct vb__walked *walked)
{
	struct finder *f = arg;
	int rc;

	if (walked->offer->kind == VB__OFFER_MISSED)
		vb__source_tell_missed(f->source, walked);
	rc = take_offer(f, walked, walked->offer);
	return rc == VB_ERR_TOO_BIG ? take_less(f, walked) : rc;
}

void *vb__source_walk(void *arg)
{
	struct vb__tree_source *s = arg;
	struct finder finder = { .source = s, .record = malloc(RECORD_MAX) };
	struct vb__walk walk = {
		.paths = s->paths,
		.path_count = s->path_count,
		.options = s->options,
		.filter = s->filter,
		.dirs = &s->dirs,
		.stop = &s->stop,
		.take = take,
		.arg = &finder,
	};
	struct vb_error failure = { .code = VB_OK };

	if (finder.record)
		vb__walk(&walk, &failure);
	else
		vb__fail_errno(&failure, ENOMEM, "malloc", NULL);
	free(finder.record);
	pthread_mutex_lock(&s->lock);
	s->walk_failure = failure;
	s->walk_ended = true;
	vb__source_wake(s);
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

size_t vb__outbox_take(struct vb__tree_source *s, uint8_t *to, size_t room)
{
	size_t len, taken = 0;
	uint32_t number;

	while (s->outbox_at < s->outbox_len) {
		len = vb__get32(s->outbox + s->outbox_at);
		number = vb__get32(s->outbox + s->outbox_at + 4);
		if (len > room - taken)
			break;
		memcpy(to + taken, s->outbox + s->outbox_at + MARK, len);
		s->told = number ? number : s->told;
		s->outbox_at += MARK + len;
		taken += len;
	}
	if (s->outbox_at == s->outbox_len)
		s->outbox_at = s->outbox_len = 0;
	pthread_cond_broadcast(&s->changed);
	return taken;
}
