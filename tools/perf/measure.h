/* SPDX-License-Identifier: Apache-2.0 */
/* A run of rdperf: size by size, with what is said and written meanwhile. */
#ifndef TOOLS_PERF_MEASURE_H
#define TOOLS_PERF_MEASURE_H

#include "common/arguments.h"
#include "common/exit_code.h"
#include "perf/series.h"

/*
 * Measures all sizes and prints them as they come; `series` has what there is, also after a failure. Returns
 * 0, or the failure and the phase that it happened in.
 */
int measure(const struct arguments *arguments, const struct sizes *sizes, struct series *series,
	    enum phase *phase, struct vb_error *err);

#endif
