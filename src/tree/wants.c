/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hearing answers. Whatever the sink says, it gets no more than files that were offered, each at
 * most once; what makes no sense ends the transfer.
 */
#include <errno.h>
#include <stdlib.h>

#include "core/failure.h"
#include "tree/source_state.h"

static int fail_answer(struct vb_error *err, const char *cause)
{
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_PROTOCOL,
				     .operation = "hear the receiver",
				     .cause = cause,
			     });
}

/* The item that may still be wanted, or NULL. */
static struct vb__item *item_of(const struct vb__tree_source *s, uint32_t number)
{
	if (number <= s->settled || number > s->told)
		return NULL;
	return s->ring[number % VB__TREE_AHEAD];
}

static int hear_want(struct vb__tree_source *s, const struct vb__answer *a, struct vb_error *err)
{
	if (a->number <= s->settled || a->number + (a->count - 1) > s->told)
		return fail_answer(err, "it wants what was not offered");
	for (uint32_t n = a->number; n <= a->number + (a->count - 1); n++) {
		struct vb__item *item = item_of(s, n);

		if (!item)
			return fail_answer(err, "it wants twice, or what is no file");
		if (item->parts)
			return fail_answer(err, "it wants all and parts of a file");
		s->ring[n % VB__TREE_AHEAD] = NULL;
		vb__item_make_ready(s, item);
	}
	return 0;
}

static int add_part(struct vb__item *item, uint64_t start, uint64_t end, struct vb_error *err)
{
	size_t room = item->part_room ? item->part_room * 2 : 4;
	struct vb__range *more;

	if (item->part_count == item->part_room) {
		more = realloc(item->parts, room * sizeof(*more));
		if (!more)
			return vb__fail_errno(err, ENOMEM, "realloc", NULL);
		item->parts = more;
		item->part_room = room;
	}
	item->parts[item->part_count++] = (struct vb__range){ .start = start, .end = end };
	return 0;
}

static int hear_part(struct vb__tree_source *s, const struct vb__answer *a, struct vb_error *err)
{
	struct vb__item *item = item_of(s, a->number);
	uint64_t end = a->offset + a->length;

	if (!item)
		return fail_answer(err, "it wants a part of what was not offered");
	if (end > item->size)
		return fail_answer(err, "it wants what is behind a file's end");
	if (item->part_count && a->offset < item->parts[item->part_count - 1].end)
		return fail_answer(err, "it wants parts out of order");
	if (s->part_count++ >= VB__PARTS_MAX)
		return fail_answer(err, "it wants too many parts");
	return add_part(item, a->offset, end, err);
}

/* Nothing more will be wanted of it. */
static void settle(struct vb__tree_source *s, struct vb__item *item)
{
	if (item->parts) {
		vb__item_make_ready(s, item);
		return;
	}
	s->sums.unchanged++;
	s->files_done++;
	s->bytes_due -= item->size;
	vb__item_free(s, item);
}

static int hear_settled(struct vb__tree_source *s, const struct vb__answer *a, struct vb_error *err)
{
	if (a->number < s->settled || a->number > s->told)
		return fail_answer(err, "it settles what was not offered");
	while (s->settled < a->number) {
		struct vb__item **place = &s->ring[++s->settled % VB__TREE_AHEAD];

		if (*place)
			settle(s, *place);
		*place = NULL;
	}
	s->base_number = s->settled + 1;
	return 0;
}

static int hear_one(struct vb__tree_source *s, const struct vb__answer *a, struct vb_error *err)
{
	switch (a->kind) {
	case VB__ANSWER_WANT:
		return hear_want(s, a, err);
	case VB__ANSWER_PART:
		return hear_part(s, a, err);
	case VB__ANSWER_SETTLED:
		return hear_settled(s, a, err);
	case VB__ANSWER_HAPPENED:
		break;
	}
	return 0;
}

int vb__source_hear(struct vb__source *source, const void *note, size_t len, struct vb_error *err)
{
	struct vb__tree_source *s = (struct vb__tree_source *)source;
	struct vb__answer answer;
	size_t at = 0;
	int rc = 0;

	while (at < len && rc == 0) {
		if (!vb__answer_decode(&answer, note, len, &at))
			return fail_answer(err, "an answer makes no sense");
		if (answer.kind == VB__ANSWER_HAPPENED) {
			vb__source_tell_happened(s, &answer);
			continue;
		}
		pthread_mutex_lock(&s->lock);
		rc = hear_one(s, &answer, err);
		vb__source_wake(s);
		pthread_cond_broadcast(&s->changed);
		pthread_mutex_unlock(&s->lock);
	}
	return rc;
}
