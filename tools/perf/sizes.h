/* SPDX-License-Identifier: Apache-2.0 */
/* The sizes to measure, as --size names them. Pure. */
#ifndef TOOLS_PERF_SIZES_H
#define TOOLS_PERF_SIZES_H

#include <stddef.h>
#include <stdint.h>

#define SIZES_MAX 64u

struct sizes {
	uint32_t bytes[SIZES_MAX];
	size_t count;
};

/*
 * "64", "2:8M" (the first, and doubled up to the last), or several of these with
 * commas between. -1 if it is none, or too many.
 */
int sizes_parse(struct sizes *sizes, const char *text);

/* "2", "64K", "8M", or in bytes where it is no whole number of these. Returns `to`. */
char *sizes_text(char to[16], uint32_t bytes);

#endif
