/* SPDX-License-Identifier: Apache-2.0 */
/* A chart: bandwidth and latency by size, of several series, as SVG. */
#ifndef TOOLS_PERF_CHART_H
#define TOOLS_PERF_CHART_H

#include <stdio.h>

#include "perf/series.h"

#define CHART_SERIES 16u

/* Writes a whole document. What no series has, has no panel. */
void chart_write(FILE *out, const char *title, const struct series *series, size_t count);

/* The same into a file, of which nothing is left if that fails. */
int chart_save(const char *path, const char *title, const struct series *series, size_t count,
	       struct vb_error *err);

#endif
