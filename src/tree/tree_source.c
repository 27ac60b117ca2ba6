/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sending end of a tree: deciding what goes next. Offers go first, in blocks as full as they can be
 * made without waiting long, then what the sink wants of them. `next` leaves a job in the buffer for
 * `fill`; opening and reading small files is done there, by many threads.
 */
#include "tree/tree_ends.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/failure.h"
#include "transfer/descriptor.h"
#include "tree/filter.h"
#include "tree/source_state.h"

/* So long offers may wait for more of them while there is nothing else to send. */
#define RIPE_MS 1u

static struct vb__tree_source *tree_of(struct vb__source *source)
{
	return (struct vb__tree_source *)source;
}

void vb__source_wake(struct vb__tree_source *s)
{
	if (s->waiting)
		(void)eventfd_write(s->wake_fd, 1);
	s->waiting = false;
}

void vb__item_free(struct vb__tree_source *s, struct vb__item *item)
{
	if (!item)
		return;
	vb__dir_let_go(&s->dirs, item->dir);
	free(item->parts);
	free(item);
}

void vb__item_make_ready(struct vb__tree_source *s, struct vb__item *item)
{
	item->next = NULL;
	*s->ready_end = item;
	s->ready_end = &item->next;
	s->ready_count++;
}

void vb__notice_add(struct vb__tree_source *s, struct vb__notice *notice)
{
	notice->next = NULL;
	*s->notices_end = notice;
	s->notices_end = &notice->next;
}

static void free_items(struct vb__tree_source *s, struct vb__item *item)
{
	while (item) {
		struct vb__item *next = item->next;

		vb__item_free(s, item);
		item = next;
	}
}

static void free_notices(struct vb__notice *notice)
{
	while (notice) {
		struct vb__notice *next = notice->next;

		free(notice);
		notice = next;
	}
}

static struct vb__job *add_job(struct vb__tree_source *s)
{
	struct vb__job *job = calloc(1, sizeof(*job));

	if (!job)
		return NULL;
	job->next = s->jobs;
	if (job->next)
		job->next->prev = job;
	s->jobs = job;
	return job;
}

static void free_job(struct vb__tree_source *s, struct vb__job *job)
{
	free_notices(job->notices);
	free_items(s, job->items);
	free(job);
}

void vb__job_end(struct vb__tree_source *s, struct vb__job *job)
{
	*(job->prev ? &job->prev->next : &s->jobs) = job->next;
	if (job->next)
		job->next->prev = job->prev;
	free_job(s, job);
	vb__source_wake(s);
}

static void set_current(struct vb__tree_source *s, const struct vb__item *item)
{
	if (item->dir != s->current_dir) {
		vb__dir_hold(&s->dirs, item->dir);
		vb__dir_let_go(&s->dirs, s->current_dir);
		s->current_dir = item->dir;
	}
	snprintf(s->current_name, sizeof(s->current_name), "%s", item->name);
}

/* Opens the next large file, so that there is something to deal out. The lock is given up meanwhile. */
static int open_next(struct vb__tree_source *s, struct vb_error *err)
{
	struct vb__item *item = s->ready;
	struct vb__large *large;
	struct vb__notice *notice;
	int rc;

	s->ready = item->next;
	if (!s->ready)
		s->ready_end = &s->ready;
	s->ready_count--;
	pthread_cond_broadcast(&s->changed);
	set_current(s, item);
	pthread_mutex_unlock(&s->lock);
	rc = vb__large_open(s, item, &large, &notice, err);
	pthread_mutex_lock(&s->lock);
	if (large)
		vb__large_add(s, large);
	if (notice)
		vb__notice_add(s, notice);
	return rc;
}

/* What has been offered and wanted: 1, 0 if there is none, or an error. */
static int take_data(struct vb__tree_source *s, void *buffer, struct vb__block *block,
		     struct vb_error *err)
{
	struct vb__large *large = vb__large_undealt(s);
	struct vb__job *job;
	int rc;

	while (!large && !s->notices && s->ready && !vb__item_is_small(s, s->ready)) {
		rc = open_next(s, err);
		if (rc)
			return rc;
		large = vb__large_undealt(s);
	}
	if (!large && !s->notices && !s->ready)
		return 0;
	job = add_job(s);
	if (!job)
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	*block = (struct vb__block){ .flags = VB__BLOCK_PARCELS };
	block->length = s->notices || !large ? vb__parcels_take(s, job, !large) : 0;
	if (!block->length) {
		job->large = large;
		vb__large_deal(s, large, block);
	}
	if (job->items)
		set_current(s, job->items);
	memcpy(buffer, &job, sizeof(struct vb__job *));
	return 1;
}

static int take_offers(struct vb__tree_source *s, void *buffer, struct vb__block *block,
		       struct vb_error *err)
{
	size_t len = vb__outbox_take(s, buffer, s->room);

	if (!len) /* it was made for a larger block */
		return vb__fail(err, &(struct vb__failure){ .code = VB_ERR_TOO_BIG,
							    .operation = "offer" });
	*block = (struct vb__block){ .flags = VB__BLOCK_OFFERS,
				     .offset = s->offers_offset,
				     .length = len };
	s->offers_offset += len;
	return 1;
}

static bool is_over(const struct vb__tree_source *s)
{
	return s->walk_ended && s->settled == s->last_number && !s->jobs && !s->larges &&
	       !s->ready && !s->notices;
}

/*
 * What is next: 1, 0 at the end, VB_ERR_AGAIN if nothing yet, or an error. Offers that are not ripe go
 * only if there is nothing else, and after a while: `*timeout_ms`.
 */
static int choose(struct vb__tree_source *s, void *buffer, struct vb__block *block, int *timeout_ms,
		  struct vb_error *err)
{
	size_t offers = s->outbox_len - s->outbox_at;
	int rc;

	*timeout_ms = -1;
	if (s->walk_failure.code)
		return vb__fail_again(err, &s->walk_failure);
	if (offers && (offers >= s->room || s->walk_ended || s->walker_waits))
		return take_offers(s, buffer, block, err);
	rc = take_data(s, buffer, block, err);
	if (rc)
		return rc;
	if (!offers)
		return is_over(s) ? 0 : VB_ERR_AGAIN;
	*timeout_ms = vb__ms_left(s->outbox_since_ns + vb__ms(RIPE_MS));
	return *timeout_ms ? VB_ERR_AGAIN : take_offers(s, buffer, block, err);
}

/* Until something has changed. The lock is given up meanwhile. */
static int await_change(struct vb__tree_source *s, int timeout_ms, struct vb_error *err)
{
	eventfd_t wakes;
	int rc;

	s->waiting = true;
	pthread_mutex_unlock(&s->lock);
	rc = vb__fd_wait(s->wake_fd, POLLIN, s->base.cancel_fd, timeout_ms);
	(void)eventfd_read(s->wake_fd, &wakes);
	pthread_mutex_lock(&s->lock);
	s->waiting = false;
	return rc < 0 ? vb__fail_cancelled(err, "send", "the files") : 0;
}

static int tree_next(struct vb__source *source, void *buffer, size_t room, struct vb__block *block,
		     struct vb_error *err)
{
	struct vb__tree_source *s = tree_of(source);
	int timeout_ms, rc;

	pthread_mutex_lock(&s->lock);
	if (s->room != room)
		pthread_cond_broadcast(&s->changed);
	s->room = room;
	do {
		rc = choose(s, buffer, block, &timeout_ms, err);
		if (rc == VB_ERR_AGAIN && await_change(s, timeout_ms, err) < 0)
			rc = VB_ERR_INTERRUPTED;
	} while (rc == VB_ERR_AGAIN);
	pthread_mutex_unlock(&s->lock);
	return rc;
}

static int tree_fill(struct vb__source *source, void *buffer, struct vb__block *block,
		     struct vb_error *err)
{
	struct vb__tree_source *s = tree_of(source);
	struct vb__job *job;

	if (block->flags & VB__BLOCK_OFFERS)
		return 0;
	memcpy(&job, buffer, sizeof(struct vb__job *));
	if (!job->large)
		return vb__parcels_fill(s, job, buffer, block, err);
	vb__large_fill(s, job, buffer, block);
	return 0;
}

static int tree_finish(struct vb__source *source, struct vb_error *err)
{
	(void)source, (void)err;
	return 0;
}

static void tree_progress(struct vb__source *source, struct vb_progress *progress)
{
	struct vb__tree_source *s = tree_of(source);
	size_t room = sizeof(progress->name) - 1, len;
	char *path = NULL;

	pthread_mutex_lock(&s->lock);
	progress->files = s->files_done;
	progress->total_files = s->files_found;
	progress->bytes = s->bytes_done;
	progress->total_bytes = s->bytes_due;
	progress->counting = !s->walk_ended;
	if (s->current_dir)
		path = vb__dir_path(s->current_dir, s->current_name);
	pthread_mutex_unlock(&s->lock);
	len = path ? strlen(path) : 0;
	if (path)
		memcpy(progress->name, path + (len > room ? len - room : 0),
		       (len > room ? room : len) + 1);
	free(path);
}

static void free_all(struct vb__tree_source *s)
{
	while (s->jobs) {
		struct vb__job *next = s->jobs->next;

		free_job(s, s->jobs);
		s->jobs = next;
	}
	while (s->larges) {
		struct vb__large *next = s->larges->next;

		vb__large_free(s, s->larges);
		s->larges = next;
	}
	free_items(s, s->ready);
	free_notices(s->notices);
	for (size_t i = 0; i < VB__TREE_AHEAD; i++)
		vb__item_free(s, s->ring[i]);
	vb__dir_let_go(&s->dirs, s->current_dir);
	free(s->outbox);
}

static void destroy(struct vb__tree_source *s)
{
	free_all(s);
	vb__filter_destroy(s->filter);
	vb__dirs_destroy(&s->dirs);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	pthread_mutex_destroy(&s->telling);
	if (s->wake_fd >= 0)
		close(s->wake_fd);
	free(s);
}

static void tree_close(struct vb__source *source)
{
	struct vb__tree_source *s = tree_of(source);

	atomic_store(&s->stop, true);
	pthread_mutex_lock(&s->lock);
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->walker, NULL);
	if (s->report)
		*s->report = s->sums;
	destroy(s);
}

static const struct vb__source_ops tree_ops = {
	.next = tree_next,
	.fill = tree_fill,
	.finish = tree_finish,
	.close = tree_close,
	.hear = vb__source_hear,
	.progress = tree_progress,
};

static struct vb__tree_source *create(void)
{
	struct vb__tree_source *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->base = (struct vb__source){ .ops = &tree_ops, .total_bytes = UINT64_MAX };
	s->base_number = 1;
	s->ready_end = &s->ready;
	s->notices_end = &s->notices;
	vb__dirs_init(&s->dirs);
	pthread_mutex_init(&s->lock, NULL);
	pthread_mutex_init(&s->telling, NULL);
	pthread_cond_init(&s->changed, NULL);
	s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return s;
}

/* With all signals blocked: they are the user's. 0 or an errno. */
static int start_walker(struct vb__tree_source *s)
{
	sigset_t all, before;
	int errnum;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	errnum = pthread_create(&s->walker, NULL, vb__source_walk, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return errnum;
}

int vb__tree_source_open(const char *const *paths, size_t path_count,
			 const struct vb_tree_options *options, enum vb_direct direct,
			 int cancel_fd, struct vb_tree_report *report, struct vb__source **source,
			 struct vb_error *err)
{
	struct vb__filter *filter;
	struct vb__tree_source *s;
	int errnum, rc = vb__filter_create(options->rules, &filter, err);

	if (rc)
		return rc;
	s = create();
	if (!s) {
		vb__filter_destroy(filter);
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	}
	s->filter = filter;
	s->base.cancel_fd = cancel_fd;
	s->paths = paths;
	s->path_count = path_count;
	s->options = options;
	s->direct = direct;
	s->report = report;
	errnum = s->wake_fd < 0 ? EMFILE : start_walker(s);
	if (errnum) {
		destroy(s);
		return vb__fail_errno(err, errnum, "start to walk", NULL);
	}
	*source = &s->base;
	return 0;
}
