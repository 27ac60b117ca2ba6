/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns: pieces that come in any order, each brought by a thread, and are dealt with in theirs. A
 * thread waits for its piece's turn. The first failure is everybody's.
 */
#ifndef VB_TRANSFER_TURNS_H
#define VB_TRANSFER_TURNS_H

#include <pthread.h>
#include <stdint.h>

#include <verbatim/error.h>

struct vb__turns {
	int cancel_fd;	       /* readable: all waiting ends; or -1 */
	const char *operation; /* for errors; both must outlive it */
	const char *object;
	pthread_mutex_t lock;
	struct vb__turn *waiting;
	uint64_t at; /* where the next piece starts */
	struct vb_error failure;
};

void vb__turns_init(struct vb__turns *turns, int cancel_fd, const char *operation,
		    const char *object);
void vb__turns_destroy(struct vb__turns *turns);

/* Waits until it is the turn of what starts at `offset`. VB_ERR_PROTOCOL: that turn is over. */
int vb__turns_take(struct vb__turns *turns, uint64_t offset, struct vb_error *err);

/* The turn is over: the next one's begins, `length` further on, or it has failed for all. */
void vb__turns_pass(struct vb__turns *turns, uint64_t length, const struct vb_error *failure);

/* How many wait for a turn that has not come. */
unsigned vb__turns_waiting(struct vb__turns *turns);

/* Was that all? */
int vb__turns_end(struct vb__turns *turns, uint64_t total, struct vb_error *err);

#endif
