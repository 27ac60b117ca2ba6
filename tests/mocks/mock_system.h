/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls and calloc of the code under test, wrapped at link time
 * (-Wl,--wrap=...), so that they fail on request like the mocked library, and
 * so that time and limits are the test's to choose.
 */
#ifndef VB_TESTS_MOCK_SYSTEM_H
#define VB_TESTS_MOCK_SYSTEM_H

#include <stddef.h>
#include <stdint.h>

void mock_system_reset(void);

/* What clock_gettime says; 0: the real time. */
extern uint64_t mock_clock_ns;

/* What getrlimit says of RLIMIT_MEMLOCK; starts as unlimited. */
extern uint64_t mock_memlock_bytes;

/* For other mocks: memory that never fails, and an event descriptor that counts down by one. */
void *mock_system_calloc(size_t size);
int mock_system_eventfd(void);
void mock_system_raise(int fd);
void mock_system_take(int fd);

/* Whether O_NONBLOCK is set. */
int mock_system_nonblocking(int fd);

#endif
