/* SPDX-License-Identifier: Apache-2.0 */
/* A series: what a run has measured, size by size; in memory, and as lines of JSON that can be read again. */
#ifndef TOOLS_PERF_SERIES_H
#define TOOLS_PERF_SERIES_H

#include <stdbool.h>
#include <stdint.h>
#include <verbatim/perf.h>

#include "perf/sizes.h"

#define SERIES_LABEL 96

/* Of one size. */
struct series_row {
	uint32_t size;
	bool has_bandwidth, has_latency;
	struct vb_perf_result bandwidth, latency;
};

struct series {
	char label[SERIES_LABEL];
	struct series_row row[SIZES_MAX];
	size_t count;
};

/* One line of JSON, with a newline; the caller frees it. NULL if memory was short. */
char *series_row_json(const struct series_row *row);

/*
 * Adds what a line of --json says: a label, a row, or nothing of interest. -1 if
 * it is no such line, or one row too many.
 */
int series_read_line(struct series *series, const char *line);

/* Reads a whole file, whose name is the label if there is none in it. VB_ERR_IO if it is not one of ours. */
int series_read_file(struct series *series, const char *path, struct vb_error *err);

#endif
