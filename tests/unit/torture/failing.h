/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lets one call that the library makes fail: of the system, or of the fabric
 * below channels. Only those of the thread that asked for it, and of threads that
 * it starts, count, so that a peer in the same process is spared.
 */
#ifndef TORTURE_FAILING_H
#define TORTURE_FAILING_H

/* From now on, in this thread: the `nth` call fails, counted from 1. 0: none. */
void failing_begin(unsigned nth);

/* No more of that. */
void failing_end(void);

/* Since it began: the call that failed, or NULL; and how many there were. */
const char *failing_call(void);
unsigned failing_count(void);

#endif
