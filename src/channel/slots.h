/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots: buffers for packets, with room for the payload and the trailer behind
 * it, in one piece of memory that is registered where the fabric wants that.
 * Those for messages are page-aligned.
 */
#ifndef VB_CHANNEL_SLOTS_H
#define VB_CHANNEL_SLOTS_H

#include "fabric/fabric.h"

struct vb__slot {
	struct vb__slot *next_free;
	uint8_t *bytes;
	size_t filled; /* payload copied here to be sent */
	unsigned number;
	int64_t serial; /* of a data packet being sent */
};

struct vb__slots {
	struct vb__slot *slot;
	struct vb__slot *free;
	unsigned count;
	size_t room; /* bytes in each: the largest payload and a trailer */
	uint8_t *memory;
	size_t memory_bytes;
	struct vb__mr *mr;
};

/* All slots are free at first. Memory is not touched before it is used. */
int vb__slots_open(struct vb__slots *slots, struct vb__ep *ep, unsigned count, size_t payload_bytes,
		   struct vb_error *err);

/* With nothing in it; NULL if none is free. */
struct vb__slot *vb__slot_take(struct vb__slots *slots);
void vb__slot_give_back(struct vb__slots *slots, struct vb__slot *slot);

/* After the endpoint is closed: the registration went with it. */
void vb__slots_close(struct vb__slots *slots);

#endif
