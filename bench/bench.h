/* SPDX-License-Identifier: Apache-2.0 */
/* What the measuring programs have in common. */
#ifndef VB_BENCH_H
#define VB_BENCH_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <verbatim/verbatim.h>

static inline double seconds_of(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static inline double now(void)
{
	return seconds_of(CLOCK_MONOTONIC);
}

/* A result that is negative is the end of the program. */
static inline void must(int64_t rc, const struct vb_error *err)
{
	char line[VB_ERROR_LINE_MAX];

	if (rc >= 0)
		return;
	fprintf(stderr, "%s: %s\n", program_invocation_short_name,
		vb_error_format(err, line, sizeof(line)));
	exit(1);
}

#endif
