/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the numbers of datagrams tell: how many are missing. A flow is what one
 * sender sends to one destination. Pure; for one thread at a time.
 */
#ifndef VB_DGRAM_FLOWS_H
#define VB_DGRAM_FLOWS_H

#include "fabric/dgrams.h"
#include "wire/datagram.h"

#define VB__FLOWS_SETS 256u
#define VB__FLOWS_WAYS 4u

struct vb__flow {
	bool used;
	struct vb__origin from;
	uint16_t number;
	uint32_t expected;
	uint32_t missing; /* of those before `expected` */
	uint64_t touched;
};

/* All zero at first. Of more flows than there is room for, those that were silent longest are forgotten. */
struct vb__flows {
	struct vb__flow flows[VB__FLOWS_SETS][VB__FLOWS_WAYS];
	uint64_t clock;
};

struct vb__flow_news {
	uint32_t lost; /* directly before this one */
	bool late;     /* it was told as lost before */
};

struct vb__flow_news vb__flows_note(struct vb__flows *flows, const struct vb__origin *from,
				    const struct vb__number *number);

/* Where to look for an origin in a table of `sets`. */
unsigned vb__origin_hash(const struct vb__origin *from, unsigned sets);

#endif
