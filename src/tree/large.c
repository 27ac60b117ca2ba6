/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large files: opened once, dealt out in blocks and holes, read by many threads. When the last block
 * was read the sink is told that all is well, or that it is to give the file up.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/failure.h"
#include "tree/source_state.h"

int vb__item_open(struct vb__tree_source *s, const struct vb__item *item, struct stat *st)
{
	int dir = vb__dir_use(&s->dirs, item->dir), fd, errnum;

	if (dir < 0)
		return dir;
	fd = openat(dir, item->name,
		    O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | (item->follow ? 0 : O_NOFOLLOW));
	errnum = errno;
	vb__dir_release(&s->dirs, item->dir);
	if (fd < 0) /* a symlink has taken its place */
		return errnum == ELOOP && !item->follow ? -ESTALE : -errnum;
	errnum = fstat(fd, st) ? errno : S_ISREG(st->st_mode) ? 0 : ESTALE;
	if (errnum) {
		close(fd);
		return -errnum;
	}
	return fd;
}

bool vb__file_changed(int fd, const struct stat *before)
{
	struct stat st;

	if (fstat(fd, &st))
		return true;
	if (st.st_size != before->st_size)
		return st.st_size < before->st_size;
	return st.st_mtim.tv_sec != before->st_mtim.tv_sec ||
	       st.st_mtim.tv_nsec != before->st_mtim.tv_nsec;
}

struct vb__parcel vb__parcel_of(enum vb__parcel_kind kind, const struct vb__item *item,
				const struct stat *st)
{
	return (struct vb__parcel){
		.kind = kind,
		.number = item->number,
		.size = (uint64_t)st->st_size,
		.mtime_s = st->st_mtim.tv_sec,
		.mtime_ns = (uint32_t)st->st_mtim.tv_nsec,
		.identity = vb__file_identity(st),
	};
}

static void plan_ranges(struct vb__tree_source *s, struct vb__large *l)
{
	struct vb__item *item = l->item;
	uint64_t size = (uint64_t)l->st.st_size;

	l->whole = (struct vb__range){ .start = 0, .end = size };
	l->ranges = &l->whole;
	l->range_count = 1;
	if (item->parts) {
		l->ranges = item->parts;
		l->range_count = item->part_count;
	}
	for (size_t i = 0; i < l->range_count; i++)
		l->left += l->ranges[i].end - l->ranges[i].start;
	l->at = l->data_end = l->ranges[0].start;
	pthread_mutex_lock(&s->lock);
	s->bytes_due += l->left - item->size;
	s->sums.resumed_bytes += size - l->left;
	pthread_mutex_unlock(&s->lock);
}

static void open_reading(struct vb__tree_source *s, struct vb__large *l, int fd)
{
	vb__reading_open(&l->reading, fd, 0, (uint64_t)l->st.st_size, &l->st, s->direct);
	if (s->options->keep & VB_KEEP_HOLES)
		(void)vb__reading_look_for_holes(&l->reading, 0, &l->st);
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
}

static void count_done(struct vb__tree_source *s, bool well, uint64_t bytes)
{
	pthread_mutex_lock(&s->lock);
	s->files_done++;
	s->sums.files += well;
	s->bytes_done += bytes;
	pthread_mutex_unlock(&s->lock);
}

static struct vb__large *create(struct vb__item *item)
{
	struct vb__large *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->item = item;
	l->reading.fd = l->reading.direct.fd = -1;
	l->notice = calloc(1, sizeof(*l->notice));
	if (l->notice)
		return l;
	free(l);
	return NULL;
}

void vb__large_free(struct vb__tree_source *s, struct vb__large *l)
{
	if (l->reading.fd >= 0) {
		vb__reading_close(&l->reading);
		close(l->reading.fd);
	}
	vb__item_free(s, l->item);
	free(l->notice);
	free(l);
}

/* Nothing is to be read: it cannot be, or it is empty by now. Frees it. */
static struct vb__notice *end_early(struct vb__tree_source *s, struct vb__large *l, int errnum)
{
	struct vb__notice *notice = l->notice;

	if (errnum == ESTALE)
		vb__source_miss(s, l->item, 0, VB__CHANGED, notice);
	else if (errnum)
		vb__source_miss(s, l->item, errnum, NULL, notice);
	else
		notice->parcel = vb__parcel_of(VB__PARCEL_END, l->item, &l->st);
	count_done(s, errnum == 0, l->item->size);
	l->notice = NULL;
	vb__large_free(s, l);
	return notice;
}

int vb__large_open(struct vb__tree_source *s, struct vb__item *item, struct vb__large **large,
		   struct vb__notice **notice, struct vb_error *err)
{
	struct vb__large *l = create(item);
	int fd, errnum;

	*large = NULL;
	*notice = NULL;
	if (!l) {
		vb__item_free(s, item);
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	}
	fd = vb__item_open(s, item, &l->st);
	errnum = fd < 0 ? -fd : 0;
	if (fd >= 0)
		open_reading(s, l, fd);
	/* Parts of another file would be of no use. */
	if (fd >= 0 && item->parts && vb__file_identity(&l->st) != item->identity)
		errnum = ESTALE;
	if (errnum || l->st.st_size == 0) {
		*notice = end_early(s, l, errnum);
		return 0;
	}
	plan_ranges(s, l);
	*large = l;
	return 0;
}

void vb__large_add(struct vb__tree_source *s, struct vb__large *l)
{
	l->prev = s->last_large;
	*(l->prev ? &l->prev->next : &s->larges) = l;
	s->last_large = l;
}

static void take_off(struct vb__tree_source *s, struct vb__large *l)
{
	*(l->prev ? &l->prev->next : &s->larges) = l->next;
	*(l->next ? &l->next->prev : &s->last_large) = l->prev;
}

/* They are few: as many as threads that read, and one. */
struct vb__large *vb__large_undealt(const struct vb__tree_source *s)
{
	struct vb__large *l = s->larges;

	while (l && l->dealt)
		l = l->next;
	return l;
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void next_range(struct vb__large *l)
{
	l->range++;
	l->dealt = l->range == l->range_count;
	if (l->dealt)
		return;
	l->at = l->ranges[l->range].start;
	if (l->data_end < l->at)
		l->data_end = l->at;
}

void vb__large_deal(struct vb__tree_source *s, struct vb__large *l, struct vb__block *block)
{
	uint64_t end = l->ranges[l->range].end, hole = 0;

	if (l->at == l->data_end)
		hole = vb__reading_find_data(&l->reading, l->at, &l->data_end);
	*block = (struct vb__block){ .file = l->item->number, .offset = l->at };
	if (hole) {
		block->flags = VB__BLOCK_HOLE;
		block->length = min_u64(hole, end - l->at);
	} else { /* up to a multiple of the room: that keeps blocks aligned */
		block->length =
			min_u64(s->room - l->at % s->room, min_u64(l->data_end, end) - l->at);
	}
	l->at += block->length;
	l->reading_now++;
	if (l->at == end)
		next_range(l);
}

/* A block that could not be read says so instead; only the first one tells the user. */
static void fail_block(struct vb__tree_source *s, struct vb__large *l, int errnum, uint8_t *buffer,
		       struct vb__block *block)
{
	struct vb__notice notice = {
		.parcel = { .kind = VB__PARCEL_MISSED,
			    .number = l->item->number,
			    .error = VB_ERR_IO },
		.words = VB__CHANGED,
	};
	bool first;

	pthread_mutex_lock(&s->lock);
	first = !l->failed;
	l->failed = l->dealt = true;
	pthread_mutex_unlock(&s->lock);
	if (first)
		vb__source_miss(s, l->item, errnum, errnum ? NULL : VB__CHANGED, &notice);
	*block = (struct vb__block){ .flags = VB__BLOCK_PARCELS };
	block->length = vb__notice_write(&notice, buffer);
}

/* All of it was read. */
static void conclude(struct vb__tree_source *s, struct vb__large *l)
{
	struct vb__notice *notice = l->notice;

	if (!l->failed && vb__file_changed(l->reading.fd, &l->st)) {
		l->failed = true;
		vb__source_miss(s, l->item, 0, VB__CHANGED, notice);
	} else if (l->failed) {
		notice = NULL;
	} else {
		notice->parcel = vb__parcel_of(VB__PARCEL_END, l->item, &l->st);
	}
	count_done(s, !l->failed, l->left);
	if (notice) {
		l->notice = NULL;
		pthread_mutex_lock(&s->lock);
		vb__notice_add(s, notice);
		pthread_mutex_unlock(&s->lock);
	}
	vb__large_free(s, l);
}

static void read_block(struct vb__tree_source *s, struct vb__large *l, uint8_t *buffer,
		       struct vb__block *block)
{
	size_t len = vb__block_data_bytes(block);
	ssize_t n = vb__reading_read(&l->reading, buffer, len, block->offset);

	if (n < 0)
		fail_block(s, l, errno, buffer, block);
	else if ((size_t)n < len)
		fail_block(s, l, 0, buffer, block);
}

void vb__large_fill(struct vb__tree_source *s, struct vb__job *job, uint8_t *buffer,
		    struct vb__block *block)
{
	struct vb__large *l = job->large;
	bool last, data;

	if (!(block->flags & VB__BLOCK_HOLE))
		read_block(s, l, buffer, block);
	pthread_mutex_lock(&s->lock);
	data = !(block->flags & VB__BLOCK_PARCELS);
	s->bytes_done += data ? block->length : 0;
	s->sums.sent_bytes += data ? vb__block_data_bytes(block) : 0;
	l->left -= data ? block->length : 0;
	last = --l->reading_now == 0 && l->dealt;
	if (last)
		take_off(s, l);
	pthread_mutex_unlock(&s->lock);
	if (last)
		conclude(s, l);
	pthread_mutex_lock(&s->lock);
	job->large = NULL;
	vb__job_end(s, job);
	pthread_mutex_unlock(&s->lock);
}
