/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time stamps for who takes one with every message, and must not measure the
 * clock instead: reading that may be a system call (in guests whose counter the
 * kernel does not trust) of several microseconds. On x86 they are the processor's
 * counter, of which the clock tells, over all of a measurement, how fast it runs. Elsewhere
 * they are the clock.
 */
#ifndef VB_PERF_STOPWATCH_H
#define VB_PERF_STOPWATCH_H

#include "core/clock.h"

static inline uint64_t vb__ticks_now(void)
{
#ifdef __x86_64__
	return __builtin_ia32_rdtsc();
#else
	return vb__now_ns();
#endif
}

/* What counters of two processors disagree on is no time. */
static inline uint64_t vb__ticks_since(uint64_t before, uint64_t now)
{
	return now > before ? now - before : 0;
}

/* A moment, by both. */
struct vb__moment {
	uint64_t ns, ticks;
};

static inline struct vb__moment vb__moment_now(void)
{
	return (struct vb__moment){ .ns = vb__now_ns(), .ticks = vb__ticks_now() };
}

/* Counters run at some GHz. One that seems to be far from that was stopped, set or another processor's meanwhile. */
#define VB__TICK_FACTOR_MAX 20u

/* So many ticks in nanoseconds, if they were as fast from `begin` to `end`. 0: the counter did not tell the time. */
static inline uint64_t vb__ticks_in_ns(uint64_t ticks, const struct vb__moment *begin,
				       const struct vb__moment *end)
{
	uint64_t span = vb__ticks_since(begin->ticks, end->ticks);
	uint64_t ns = vb__ticks_since(begin->ns, end->ns);

	if (!span || span / VB__TICK_FACTOR_MAX > ns || ns / VB__TICK_FACTOR_MAX > span)
		return 0;
	return (uint64_t)((__uint128_t)ticks * ns / span);
}

#endif
