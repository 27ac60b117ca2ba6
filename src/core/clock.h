/* SPDX-License-Identifier: Apache-2.0 */
/* Time: monotonic, and deadlines made of it. */
#ifndef VB_CORE_CLOCK_H
#define VB_CORE_CLOCK_H

#include <limits.h>
#include <stdint.h>
#include <time.h>

static inline uint64_t vb__now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* To some milliseconds only, but next to free even where reading the clock is not. */
static inline uint64_t vb__now_coarse_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline uint64_t vb__ms(uint64_t ms)
{
	return ms * 1000000u;
}

/* What is left until `deadline_ns`, in ms rounded up, for poll and epoll_wait. */
static inline int vb__ms_left(uint64_t deadline_ns)
{
	uint64_t now = vb__now_ns();
	uint64_t ms = deadline_ns > now ? (deadline_ns - now + 999999u) / 1000000u : 0;

	return ms > INT_MAX ? INT_MAX : (int)ms;
}

#endif
