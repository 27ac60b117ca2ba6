/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions that are waited for until a deadline of clock.h. */
#ifndef VB_CORE_CONDITION_H
#define VB_CORE_CONDITION_H

#include <pthread.h>
#include <stdbool.h>

#include "core/clock.h"

static inline void vb__cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

/* False if the deadline has passed; UINT64_MAX is none. May come back for nothing. */
static inline bool vb__cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t deadline_ns)
{
	struct timespec until = { .tv_sec = (time_t)(deadline_ns / 1000000000u),
				  .tv_nsec = (long)(deadline_ns % 1000000000u) };

	if (deadline_ns == UINT64_MAX)
		return pthread_cond_wait(cond, lock) == 0;
	return pthread_cond_timedwait(cond, lock, &until) == 0;
}

#endif
