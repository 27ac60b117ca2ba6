/* SPDX-License-Identifier: Apache-2.0 */
/* A tree's sink: blocks in, answers out, the beginning and the end. See tree_sink.h. */
#include "tree/tree_sink.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "core/failure.h"
#include "tree/filter.h"

static struct vb__tree_sink *tree_of(struct vb__sink *sink)
{
	return (struct vb__tree_sink *)sink;
}

static int put_offers(struct vb__tree_sink *s, const struct vb__block *block, const void *data,
		      struct vb_error *err)
{
	struct vb_error failure = { .code = VB_OK };
	int rc = vb__turns_take(&s->turns, block->offset, err);

	if (rc)
		return rc;
	rc = vb__tree_take_offers(s, data, block->length, &failure);
	vb__turns_pass(&s->turns, block->length, &failure);
	return rc ? vb__fail_again(err, &failure) : 0;
}

static int tree_put(struct vb__sink *sink, const struct vb__block *block, const void *data,
		    struct vb_error *err)
{
	struct vb__tree_sink *s = tree_of(sink);

	if (block->flags & (VB__BLOCK_OFFERS | VB__BLOCK_PARCELS) && block->file != 0)
		return vb__tree_fail_protocol(s, "a block makes no sense", err);
	if (block->flags & VB__BLOCK_OFFERS)
		return put_offers(s, block, data, err);
	if (block->flags & VB__BLOCK_PARCELS)
		return vb__tree_take_parcels(s, data, block->length, err);
	return vb__tree_take_block(s, block, data, err);
}

static unsigned tree_waiting(struct vb__sink *sink)
{
	return vb__turns_waiting(&tree_of(sink)->turns);
}

/* Was all of it said and sent? */
static int check_whole(struct vb__tree_sink *s, struct vb_error *err)
{
	bool whole;

	pthread_mutex_lock(&s->lock);
	whole = s->directories.count == 0 && s->arrivals.count == 0;
	pthread_mutex_unlock(&s->lock);
	return whole ? 0 : vb__tree_fail_protocol(s, "the end came before all of the data", err);
}

static int sync_all(struct vb__tree_sink *s, struct vb_error *err)
{
	int fd, rc = 0;

	if (!s->options.fsync || s->tree->dry_run || s->places.base->absent)
		return 0;
	fd = vb__place_hold(&s->places, s->places.base);
	if (fd < 0 || syncfs(fd))
		rc = vb__fail_io(err, errno, "sync", s->target.path);
	if (fd >= 0)
		vb__place_let_go(&s->places, s->places.base);
	return rc;
}

static void report(struct vb__tree_sink *s)
{
	struct vb__answer answer = { .kind = VB__ANSWER_REPORT };

	memcpy(answer.counts, &s->report, sizeof(answer.counts));
	vb__answers_add(&s->answers, &answer);
}

static int tree_finish(struct vb__sink *sink, uint64_t total_bytes, struct vb_error *err)
{
	struct vb__tree_sink *s = tree_of(sink);
	int rc = check_whole(s, err);

	(void)total_bytes; /* of all blocks: the engine has compared that */
	/* What it would have had in the target is not known: nothing there is superfluous. */
	if (s->contents)
		s->contents->incomplete |= s->top_missed;
	if (rc == 0 && s->begun && s->contents && s->contents != s->places.base)
		rc = vb__tree_leave(s, s->contents, err);
	if (rc == 0 && s->begun) {
		/* Now, because it changes the time of the directory that it is in. */
		vb__journal_remove(&s->journal);
		rc = vb__tree_complete_place(s, s->places.base, err);
	}
	if (rc == 0 && s->begun)
		rc = sync_all(s, err);
	if (rc == 0)
		report(s);
	return rc;
}

static void free_numbers(struct vb__numbers *numbers)
{
	size_t at = 0;
	void *what;

	while ((what = vb__numbers_next(numbers, &at)))
		free(what);
	vb__numbers_free(numbers);
}

/* What is left of files under way stays for the next time, if it can be found then. */
static void free_arrivals(struct vb__tree_sink *s)
{
	bool keep = s->journal.fd >= 0 && !s->tree->no_resume;
	struct vb__arrival *a;
	size_t at = 0;

	while ((a = vb__numbers_next(&s->arrivals, &at))) {
		vb__part_drop(s, a, !keep);
		vb__arrival_free(a);
	}
	vb__numbers_free(&s->arrivals);
}

static void tree_close(struct vb__sink *sink)
{
	struct vb__tree_sink *s = tree_of(sink);

	*s->report_to = s->report;
	free_arrivals(s);
	if (s->begun) {
		if (s->tree->no_resume)
			vb__journal_remove(&s->journal);
		vb__journal_close(&s->journal);
		vb__places_close(&s->places);
	}
	free_numbers(&s->firsts);
	vb__numbers_free(&s->directories);
	vb__numbers_free(&s->gone);
	vb__target_close(&s->target);
	vb__filter_destroy(s->filter);
	vb__meta_rules_close(&s->rules);
	vb__answers_close(&s->answers);
	vb__turns_destroy(&s->turns);
	pthread_mutex_destroy(&s->telling);
	pthread_mutex_destroy(&s->opening);
	pthread_mutex_destroy(&s->lock);
	free(s->shown);
	free(s);
}

static size_t tree_speak(struct vb__sink *sink, void *note, size_t room)
{
	return vb__answers_speak(&tree_of(sink)->answers, note, room);
}

static void tree_progress(struct vb__sink *sink, struct vb_progress *progress)
{
	struct vb__tree_sink *s = tree_of(sink);

	pthread_mutex_lock(&s->lock);
	progress->bytes = s->stored_bytes;
	progress->total_bytes = s->wanted_bytes;
	progress->files = s->files_done;
	progress->total_files = s->files_found;
	progress->counting = s->directories.count > 0;
	memcpy(progress->name, s->current, sizeof(progress->name));
	pthread_mutex_unlock(&s->lock);
}

static const struct vb__sink_ops tree_ops = {
	.put = tree_put,
	.waiting = tree_waiting,
	.finish = tree_finish,
	.close = tree_close,
	.speak = tree_speak,
	.progress = tree_progress,
};

int vb__tree_sink_open(const char *target, const struct vb_tree_options *tree_options,
		       const struct vb__sink_options *options, struct vb_tree_report *report,
		       struct vb__sink **sink, struct vb_error *err)
{
	struct vb__tree_sink *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	rc = vb__filter_create(tree_options->rules, &s->filter, err);
	if (rc == 0)
		rc = vb__target_open(&s->target, target, tree_options, err);
	if (rc) {
		vb__filter_destroy(s->filter);
		free(s);
		return rc;
	}
	s->base.ops = &tree_ops;
	s->tree = tree_options;
	s->options = *options;
	s->report_to = report;
	s->journal.fd = -1;
	(void)!getrandom(&s->seed, sizeof(s->seed), 0);
	/* A file without a name gets one by way of /proc, unless we are privileged. */
	s->nameless = access("/proc/self/fd", X_OK) == 0;
	vb__meta_rules_open(&s->rules, tree_options->keep);
	vb__turns_init(&s->turns, options->cancel_fd, "receive to", s->target.path);
	vb__answers_open(&s->answers, options->wake_fd, options->cancel_fd);
	pthread_mutex_init(&s->telling, NULL);
	pthread_mutex_init(&s->opening, NULL);
	pthread_mutex_init(&s->lock, NULL);
	*sink = &s->base;
	return 0;
}
