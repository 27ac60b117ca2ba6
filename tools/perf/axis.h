/* SPDX-License-Identifier: Apache-2.0 */
/* Axes of a chart: where the values are, and the ticks that people like to read. Pure. */
#ifndef TOOLS_PERF_AXIS_H
#define TOOLS_PERF_AXIS_H

#include <stdbool.h>
#include <stddef.h>

#define AXIS_TICKS 32u

struct axis {
	bool logarithmic;
	double low, high; /* the values at both ends */
	double from, to;  /* where these are drawn */
	double tick[AXIS_TICKS];
	size_t count;
};

/* From 0 to `most` or a little more, in steps of 1, 2 or 5 times a power of ten: 4 to 10 of them. */
void axis_linear(struct axis *axis, double most);

/* Around `least` to `most`: powers of ten and, where these are few, 2 and 5 times them. */
void axis_log10(struct axis *axis, double least, double most);

/* From `least` to `most`: powers of two, of which so many have a tick that they do not crowd. */
void axis_log2(struct axis *axis, double least, double most);

/* Where a value is drawn; never outside. */
double axis_place(const struct axis *axis, double value);

#endif
