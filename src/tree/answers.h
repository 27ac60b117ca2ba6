/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers that wait to be said to the sender: encoded, in their order, wants next to each other
 * put together. Any number of threads.
 */
#ifndef VB_TREE_ANSWERS_H
#define VB_TREE_ANSWERS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/offer.h"

struct vb__answers {
	int wake_fd;   /* an eventfd: there is something to say; or -1 */
	int cancel_fd; /* readable: nobody waits any longer; or -1 */
	pthread_mutex_t lock;
	pthread_cond_t said;
	uint8_t *bytes; /* records, each with its length before it */
	size_t start, end, room;
	uint32_t first, count; /* wants that are not among them yet */
	bool lost;	       /* no memory */
};

void vb__answers_open(struct vb__answers *answers, int wake_fd, int cancel_fd);
void vb__answers_close(struct vb__answers *answers);

/* Adds one; a want is only seen when something else is added. */
void vb__answers_want(struct vb__answers *answers, uint32_t number);
void vb__answers_add(struct vb__answers *answers, const struct vb__answer *answer);

/* Wants are to be seen now. */
void vb__answers_insist(struct vb__answers *answers);

/* As vb__sink_ops.speak. */
size_t vb__answers_speak(struct vb__answers *answers, void *note, size_t room);

/* Waits while much is to be said: a sender that does not listen is not told more and more. */
int vb__answers_wait(struct vb__answers *answers, struct vb_error *err);

#endif
