/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots: buffers for packets, a header and a page-aligned payload each, in one
 * piece of memory that is registered where the fabric wants that.
 */
#ifndef VB_CHANNEL_SLOTS_H
#define VB_CHANNEL_SLOTS_H

#include "fabric/fabric.h"

struct vb__slot {
	struct vb__slot *next_free;
	uint8_t *header;  /* VB__PACKET_HEADER bytes */
	uint8_t *payload; /* NULL if the slots have none */
	unsigned number;
	size_t received; /* bytes of a received packet, header included */
	int64_t serial;	 /* of a data packet being sent */
};

struct vb__slots {
	struct vb__slot *slot;
	struct vb__slot *free;
	unsigned count;
	size_t payload_bytes;
	uint8_t *memory;
	size_t memory_bytes;
	struct vb__mr *mr;
};

/* All slots are free at first. Memory is not touched before it is used. */
int vb__slots_open(struct vb__slots *slots, struct vb__ep *ep, unsigned count, size_t payload_bytes,
		   struct vb_error *err);

struct vb__slot *vb__slot_take(struct vb__slots *slots);
void vb__slot_give_back(struct vb__slots *slots, struct vb__slot *slot);

/* After the endpoint is closed: the registration went with it. */
void vb__slots_close(struct vb__slots *slots);

#endif
