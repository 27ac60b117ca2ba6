/* SPDX-License-Identifier: Apache-2.0 */
/* Progress: on a terminal one line that changes, with --json an object a second. */
#ifndef TOOLS_PROGRESS_H
#define TOOLS_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <verbatim/transfer.h>

#define PROGRESS_SAMPLES 16u

struct progress {
	bool line; /* may be drawn, as far as the data does not go to the same terminal */
	struct progress_sample {
		uint64_t bytes, elapsed_ns;
	} samples[PROGRESS_SAMPLES]; /* a ring: the rate is that of the last seconds */
	size_t count;
	uint64_t next_line_ns, next_json_ns;
	bool shown;
};

/* For the next transfer. `data_fd` is where the data comes from or goes to; -1 if that is no matter. */
void progress_begin(struct progress *progress, int data_fd);

/* A vb_progress_fn. */
void progress_show(void *progress, const struct vb_progress *now);

/* Completes the line with what came of it, or erases it if that is NULL. */
void progress_end(struct progress *progress, const struct vb_report *report);

/* The pure parts. The rate in bytes a second, `now` taken into account. */
uint64_t progress_rate(struct progress *progress, const struct vb_progress *now);

/*
 * The line, in less than `width` columns: what does not fit is left out, the least important first.
 * Of a tree, which has a number of files, it ends with the name of one that is under way.
 */
char *progress_line(char *to, size_t size, unsigned width, const struct vb_progress *now,
		    uint64_t rate);

/* Seconds that it will take at the average rate; UINT64_MAX: who knows. */
uint64_t progress_eta(const struct vb_progress *now);

#endif
