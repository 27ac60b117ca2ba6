/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one descriptor of an endpoint: an epoll set over a backend's own
 * descriptors, a clock tick for keep-alives, and a way to wake a sleeper.
 */
#ifndef VB_FABRIC_WAITER_H
#define VB_FABRIC_WAITER_H

#include <stdbool.h>
#include <stdint.h>

#include <verbatim/error.h>

enum {
	VB__READY_TICK = 1,
	VB__READY_WAKE = 2,
	VB__READY_OWN = 4, /* and 8, 16, ...: what the backend added */
};

/*
 * For those who poll and never sleep: when to look after events all the same.
 * A few times in a hundredth of a second, without a system call in between.
 */
struct vb__idle {
	unsigned polls;
	uint64_t looked_ns;
};

bool vb__idle_enough(struct vb__idle *idle);

/* The same for those who come rarely enough to look at the clock each time. */
bool vb__idle_long(struct vb__idle *idle);

struct vb__waiter {
	int epoll;
	int tick;
	int wake;
};

/* For use before open: nothing to close. */
#define VB__WAITER_NONE ((struct vb__waiter){ .epoll = -1, .tick = -1, .wake = -1 })

/* `tick_ms` 0: no ticks. On failure there is nothing to close. */
int vb__waiter_open(struct vb__waiter *w, uint32_t tick_ms, struct vb_error *err);

/* Adds a descriptor that will show up as `ready_bit`. */
int vb__waiter_add(struct vb__waiter *w, int fd, uint32_t ready_bit, struct vb_error *err);

void vb__waiter_remove(struct vb__waiter *w, int fd);

/*
 * What is ready now, as bits. Does not block. Of ticks and wakes those in
 * `take` are taken; a wake is for the thread that sleeps or is about to.
 */
uint32_t vb__waiter_check(struct vb__waiter *w, uint32_t take);

/* Sleeps until something is ready or the deadline (UINT64_MAX: none). Takes nothing. */
void vb__waiter_sleep(int epoll_fd, uint64_t deadline_ns);

/* From any thread. */
void vb__waiter_wake(struct vb__waiter *w);

void vb__waiter_close(struct vb__waiter *w);

#endif
