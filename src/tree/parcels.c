/* SPDX-License-Identifier: Apache-2.0 */
/* Parcels: many small files in one block, each opened, read and closed where the block is filled. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/failure.h"
#include "tree/source_state.h"

/* One with holes goes by blocks: a parcel has none. */
bool vb__item_is_small(const struct vb__tree_source *s, const struct vb__item *item)
{
	bool holes = item->sparse && s->options->keep & VB_KEEP_HOLES;

	return item->size <= VB__TREE_SMALL && item->size + VB__PARCEL_HEADER <= s->room && !holes;
}

/* There must always be room to say that it could not be read. */
static size_t room_for(const struct vb__item *item)
{
	return VB__PARCEL_HEADER +
	       (item->size > VB__PARCEL_WORDS ? (size_t)item->size : VB__PARCEL_WORDS);
}

static size_t take_notices(struct vb__tree_source *s, struct vb__job *job)
{
	struct vb__notice **end = &job->notices;
	size_t len = 0;

	while (s->notices && len + VB__PARCEL_HEADER + VB__PARCEL_WORDS <= s->room) {
		struct vb__notice *notice = s->notices;

		s->notices = notice->next;
		if (!s->notices)
			s->notices_end = &s->notices;
		notice->next = NULL;
		*end = notice;
		end = &notice->next;
		len += VB__PARCEL_HEADER + strlen(notice->words);
	}
	return len;
}

static size_t take_items(struct vb__tree_source *s, struct vb__job *job, size_t room)
{
	struct vb__item **end = &job->items;
	size_t len = 0;

	while (s->ready && vb__item_is_small(s, s->ready) && len + room_for(s->ready) <= room) {
		struct vb__item *item = s->ready;

		s->ready = item->next;
		if (!s->ready)
			s->ready_end = &s->ready;
		s->ready_count--;
		item->next = NULL;
		*end = item;
		end = &item->next;
		len += room_for(item);
	}
	return len;
}

size_t vb__parcels_take(struct vb__tree_source *s, struct vb__job *job, bool items)
{
	size_t len = take_notices(s, job);

	if (items)
		len += take_items(s, job, s->room - len);
	if (job->items)
		pthread_cond_broadcast(&s->changed);
	return len;
}

size_t vb__notice_write(const struct vb__notice *notice, uint8_t *to)
{
	struct vb__parcel parcel = notice->parcel;

	parcel.data.len = strlen(notice->words);
	vb__parcel_encode(to, &parcel);
	memcpy(to + VB__PARCEL_HEADER, notice->words, parcel.data.len);
	return VB__PARCEL_HEADER + parcel.data.len;
}

/* 0, or an errno: EFBIG if it has grown, ESTALE if it changed. */
static int read_whole(struct vb__tree_source *s, const struct vb__item *item, uint8_t *to,
		      struct stat *st)
{
	int fd = vb__item_open(s, item, st), errnum = 0;
	size_t done = 0, size;
	ssize_t n = 1;

	if (fd < 0)
		return -fd;
	size = (size_t)st->st_size;
	if ((uint64_t)st->st_size > item->size)
		errnum = EFBIG;
	while (errnum == 0 && n > 0 && done < size) {
		n = pread(fd, to + done, size - done, (off_t)done);
		if (n < 0 && errno == EINTR)
			n = 1;
		else if (n < 0)
			errnum = errno;
		else
			done += (size_t)n;
	}
	if (errnum == 0 && (done < size || vb__file_changed(fd, st)))
		errnum = ESTALE;
	close(fd);
	return errnum;
}

/* What came of a job. */
struct packed {
	size_t len;
	uint64_t files_done, files, sent_bytes;
	uint64_t due_bytes, done_bytes; /* as they were offered, or found later */
	struct vb__item *grown;
};

/* It needs more room than it has here. */
static void put_off(struct vb__item *item, const struct stat *st, struct packed *p)
{
	p->due_bytes += (uint64_t)st->st_size - item->size;
	item->size = (uint64_t)st->st_size;
	item->next = p->grown;
	p->grown = item;
}

static void pack(struct vb__tree_source *s, struct vb__item *item, uint8_t *to, struct packed *p)
{
	struct vb__parcel parcel;
	struct vb__notice notice;
	struct stat st;
	int errnum = read_whole(s, item, to + p->len + VB__PARCEL_HEADER, &st);

	if (errnum == EFBIG) {
		put_off(item, &st, p);
		return;
	}
	if (errnum) {
		vb__source_miss(s, item, errnum == ESTALE ? 0 : errnum,
				errnum == ESTALE ? VB__CHANGED : NULL, &notice);
		p->len += vb__notice_write(&notice, to + p->len);
	} else {
		parcel = vb__parcel_of(VB__PARCEL_WHOLE, item, &st);
		parcel.data.len = (size_t)st.st_size;
		vb__parcel_encode(to + p->len, &parcel);
		p->len += VB__PARCEL_HEADER + parcel.data.len;
		p->files++;
		p->sent_bytes += parcel.data.len;
	}
	p->files_done++;
	p->done_bytes += item->size;
	vb__item_free(s, item);
}

static struct packed pack_all(struct vb__tree_source *s, struct vb__job *job, uint8_t *to)
{
	struct packed p = { .len = 0 };
	struct vb__item *item;

	for (struct vb__notice *n = job->notices; n; n = n->next)
		p.len += vb__notice_write(n, to + p.len);
	while ((item = job->items)) {
		job->items = item->next;
		pack(s, item, to, &p);
	}
	return p;
}

/* Nothing is in the block: a file that has become too large for it begins here. */
static int begin_large(struct vb__tree_source *s, struct vb__job *job, uint8_t *buffer,
		       struct vb__block *block, struct vb_error *err)
{
	struct vb__item *item = job->items;
	struct vb__large *large;
	struct vb__notice *notice;
	int rc;

	job->items = NULL;
	rc = vb__large_open(s, item, &large, &notice, err);
	if (rc)
		return rc;
	pthread_mutex_lock(&s->lock);
	if (large) {
		vb__large_add(s, large);
		vb__large_deal(s, large, block);
		job->large = large;
	} else {
		block->length = vb__notice_write(notice, buffer);
		free(notice);
		vb__job_end(s, job);
	}
	pthread_mutex_unlock(&s->lock);
	if (large)
		vb__large_fill(s, job, buffer, block);
	return 0;
}

int vb__parcels_fill(struct vb__tree_source *s, struct vb__job *job, uint8_t *buffer,
		     struct vb__block *block, struct vb_error *err)
{
	struct packed p = pack_all(s, job, buffer);
	struct vb__item *item;
	bool begin = !p.len;

	if (begin) {
		job->items = p.grown;
		p.grown = p.grown->next;
		job->items->next = NULL;
	}
	pthread_mutex_lock(&s->lock);
	s->files_done += p.files_done;
	s->sums.files += p.files;
	s->sums.sent_bytes += p.sent_bytes;
	s->bytes_due += p.due_bytes;
	s->bytes_done += p.done_bytes;
	while ((item = p.grown)) {
		p.grown = item->next;
		vb__item_make_ready(s, item);
	}
	if (!begin)
		vb__job_end(s, job);
	pthread_mutex_unlock(&s->lock);
	if (begin)
		return begin_large(s, job, buffer, block, err);
	block->length = p.len;
	return 0;
}
