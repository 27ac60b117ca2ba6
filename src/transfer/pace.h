/* SPDX-License-Identifier: Apache-2.0 */
/* A limit of the rate. For one thread at a time. */
#ifndef VB_TRANSFER_PACE_H
#define VB_TRANSFER_PACE_H

#include <stdint.h>

struct vb__pace {
	uint64_t bytes_per_second; /* 0: none */
	uint64_t next_ns;	   /* when more may go */
};

/* Waits until so many bytes may go, or `cancel_fd` is readable. */
void vb__pace_keep(struct vb__pace *pace, uint64_t bytes, int cancel_fd);

/* So many of those bytes did not go after all: others may in their place. */
void vb__pace_refund(struct vb__pace *pace, uint64_t bytes);

/* The most that should go at once, of `room`: with a limit, at least several blocks in a second. */
uint32_t vb__pace_room(const struct vb__pace *pace, uint32_t room);

#endif
