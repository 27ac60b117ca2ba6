/* SPDX-License-Identifier: Apache-2.0 */
/* Listings: what the user of rdcp sees of a copy while it goes on, and at its end. */
#ifndef TOOLS_LISTING_H
#define TOOLS_LISTING_H

#include "common/arguments.h"
#include "common/progress.h"
#include "copy/ending.h"

struct listing {
	bool names; /* of all that is copied, not of failures only */
	bool dry_run;
	bool stats;
	bool recursive;
	const char *source; /* what the user has called it, if there is one only */
	struct progress progress;
};

void listing_open(struct listing *listing, const struct arguments *arguments);

/* Around each copy. `data_fd`: stdin or stdout if the data goes there, else -1. */
void listing_begin(struct listing *listing, int data_fd);
void listing_end(struct listing *listing, const struct ending *ending);

/* A vb_tree_event_fn and a vb_progress_fn: what happens. */
void listing_event(void *listing, const struct vb_tree_event *event);
void listing_progress(void *listing, const struct vb_progress *progress);

/* The end of all. `total` is what the copies came to. */
void listing_sum_up(const struct listing *listing, const struct ending *total, enum exit_code code);

#endif
