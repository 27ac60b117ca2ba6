/* SPDX-License-Identifier: Apache-2.0 */
/* A sorted array: blocks come nearly in order, so there are few ranges. */
#include "tree/extents.h"

#include <stdlib.h>
#include <string.h>

#define ROOM_MIN 4u

/* The first that ends at or behind `offset`. */
static size_t find(const struct vb__extents *x, uint64_t offset)
{
	size_t low = 0, high = x->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (x->list[middle].end < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool make_room(struct vb__extents *x)
{
	size_t room = x->room ? 2 * x->room : ROOM_MIN;
	struct vb__extent *list;

	if (x->count < x->room)
		return true;
	if (room > VB__EXTENTS_MAX)
		return false;
	list = realloc(x->list, room * sizeof(*list));
	if (!list)
		return false;
	x->list = list;
	x->room = room;
	return true;
}

static bool insert(struct vb__extents *x, size_t at, struct vb__extent extent)
{
	if (!make_room(x))
		return false;
	memmove(x->list + at + 1, x->list + at, (x->count - at) * sizeof(extent));
	x->list[at] = extent;
	x->count++;
	return true;
}

/* The one at `at` has grown: does it touch the next? */
static void join_next(struct vb__extents *x, size_t at)
{
	if (at + 1 == x->count || x->list[at].end != x->list[at + 1].start)
		return;
	x->list[at].end = x->list[at + 1].end;
	x->count--;
	memmove(x->list + at + 1, x->list + at + 2, (x->count - at - 1) * sizeof(*x->list));
}

enum vb__extents_added vb__extents_add(struct vb__extents *x, uint64_t offset, uint64_t length)
{
	struct vb__extent new = { .start = offset, .end = offset + length };
	size_t at = find(x, offset);
	bool touches = at < x->count && x->list[at].end == offset;
	size_t next = at + touches;

	if (next < x->count && x->list[next].start < new.end)
		return VB__EXTENTS_OVERLAP;
	if (touches)
		x->list[at].end = new.end;
	else if (at < x->count && x->list[at].start == new.end)
		x->list[at].start = offset;
	else if (!insert(x, at, new))
		return VB__EXTENTS_FULL;
	join_next(x, at);
	x->bytes += length;
	return VB__EXTENTS_NEW;
}

bool vb__extents_gap(const struct vb__extents *x, uint64_t *offset, uint64_t end, uint64_t *length)
{
	size_t at = find(x, *offset);

	if (at < x->count && x->list[at].start <= *offset) {
		*offset = x->list[at].end;
		at++;
	}
	if (*offset >= end)
		return false;
	*length = (at < x->count && x->list[at].start < end ? x->list[at].start : end) - *offset;
	return true;
}

void vb__extents_free(struct vb__extents *x)
{
	free(x->list);
	*x = (struct vb__extents){ .list = NULL };
}
