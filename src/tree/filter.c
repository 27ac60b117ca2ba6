/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filters. Rules that spell a path out are found by its hash: only those whose path is the one in
 * question or one above it can match. All others are tried one by one.
 */
#include "tree/filter.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "core/failure.h"
#include "tree/rule.h"

#define NONE SIZE_MAX

struct vb__filter {
	struct vb__rule *rules;
	size_t count;

	size_t *others; /* those without an anchor, in their order */
	size_t other_count;

	size_t *slots; /* the first rule by the hash of its anchor, or NONE */
	size_t *next;  /* of each rule with an anchor: the next with the same slot, or NONE */
	size_t slot_mask;
};

static size_t slot_of(const struct vb__filter *f, const char *path, size_t len)
{
	return (size_t)XXH3_64bits(path, len) & f->slot_mask;
}

/* ---- Making ---- */

static bool make_room(struct vb__filter *f, size_t count)
{
	size_t slots = 1;

	while (slots < 2 * count)
		slots *= 2;
	f->slot_mask = slots - 1;
	f->rules = calloc(count + 1, sizeof(*f->rules));
	f->others = calloc(count + 1, sizeof(*f->others));
	f->next = calloc(count + 1, sizeof(*f->next));
	f->slots = malloc(slots * sizeof(*f->slots));
	if (!f->rules || !f->others || !f->next || !f->slots)
		return false;
	for (size_t i = 0; i < slots; i++)
		f->slots[i] = NONE;
	return true;
}

/* From the last to the first, so that the first comes to stand first in its slot. */
static bool sort_in(struct vb__filter *f, const char *const *rules)
{
	for (size_t i = f->count; i-- > 0;) {
		char *anchor = malloc(strlen(rules[i]) + 1);
		size_t *slot;

		if (!anchor)
			return false;
		f->rules[i] = vb__rule_take_apart(rules[i]);
		if (vb__rule_anchor(&f->rules[i], anchor)) {
			slot = &f->slots[slot_of(f, anchor, strlen(anchor))];
			f->next[i] = *slot;
			*slot = i;
		} else {
			f->others[f->count - ++f->other_count] = i;
		}
		free(anchor);
	}
	memmove(f->others, f->others + f->count - f->other_count,
		f->other_count * sizeof(*f->others));
	return true;
}

int vb__filter_create(const char *const *rules, struct vb__filter **filter, struct vb_error *err)
{
	struct vb__filter *f;
	size_t count = 0;

	*filter = NULL;
	for (; rules && rules[count]; count++) {
		const char *wrong = vb__rule_check(rules[count]);

		if (wrong)
			return vb__fail_invalid(err, "filter", "the rule \"%.200s\": %s",
						rules[count], wrong);
	}
	if (!count)
		return 0;
	f = calloc(1, sizeof(*f));
	if (f)
		f->count = count;
	if (!f || !make_room(f, count) || !sort_in(f, rules)) {
		vb__filter_destroy(f);
		return vb__fail_errno(err, ENOMEM, "filter", NULL);
	}
	*filter = f;
	return 0;
}

void vb__filter_destroy(struct vb__filter *filter)
{
	if (!filter)
		return;
	free(filter->rules);
	free(filter->others);
	free(filter->next);
	free(filter->slots);
	free(filter);
}

/* ---- Asking ---- */

/* The first rule that matches, of those whose anchor may be the first `len` bytes of the path, or `best`. */
static size_t first_anchored(const struct vb__filter *f, const char *path, size_t len,
			     bool directory, size_t best)
{
	size_t i = f->slots[slot_of(f, path, len)];

	while (i < best && !vb__rule_matches(&f->rules[i], path, directory))
		i = f->next[i];
	return i < best ? i : best;
}

bool vb__filter_leaves(const struct vb__filter *filter, const char *path, bool directory)
{
	size_t best;

	if (!filter)
		return false;
	best = first_anchored(filter, path, strlen(path), directory, NONE);
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/'))
		best = first_anchored(filter, path, (size_t)(slash - path), directory, best);
	for (size_t i = 0; i < filter->other_count && filter->others[i] < best; i++)
		if (vb__rule_matches(&filter->rules[filter->others[i]], path, directory))
			best = filter->others[i];
	return best != NONE && !filter->rules[best].takes;
}
