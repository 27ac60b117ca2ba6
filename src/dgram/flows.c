/* SPDX-License-Identifier: Apache-2.0 */
#include "dgram/flows.h"

#include <string.h>

/* What is further behind is not late: the sender has begun anew. */
#define LATE_MAX 1024

unsigned vb__origin_hash(const struct vb__origin *from, unsigned sets)
{
	uint32_t hash = 2166136261u;

	for (unsigned i = 0; i < sizeof(from->bytes); i++)
		hash = (hash ^ from->bytes[i]) * 16777619u;
	return (hash ^ hash >> 16) % sets;
}

static bool is(const struct vb__flow *flow, const struct vb__origin *from, uint16_t number)
{
	return flow->used && flow->number == number && !memcmp(&flow->from, from, sizeof(*from));
}

static struct vb__flow *find(struct vb__flows *flows, const struct vb__origin *from,
			     uint16_t number)
{
	unsigned set = (vb__origin_hash(from, VB__FLOWS_SETS) + number) % VB__FLOWS_SETS;
	struct vb__flow *oldest = flows->flows[set];

	for (unsigned i = 0; i < VB__FLOWS_WAYS; i++) {
		struct vb__flow *flow = &flows->flows[set][i];

		if (is(flow, from, number))
			return flow;
		if (flow->touched < oldest->touched)
			oldest = flow;
	}
	*oldest = (struct vb__flow){ .used = false, .from = *from, .number = number };
	return oldest;
}

static struct vb__flow_news begin(struct vb__flow *flow, uint32_t sequence)
{
	flow->used = true;
	flow->expected = sequence + 1;
	flow->missing = 0;
	return (struct vb__flow_news){ .lost = 0 };
}

struct vb__flow_news vb__flows_note(struct vb__flows *flows, const struct vb__origin *from,
				    const struct vb__number *number)
{
	struct vb__flow *flow = find(flows, from, number->flow);
	int32_t ahead = (int32_t)(number->sequence - flow->expected);

	flow->touched = ++flows->clock;
	if (!flow->used)
		return begin(flow, number->sequence);
	if (ahead >= 0) {
		flow->expected = number->sequence + 1;
		flow->missing += (uint32_t)ahead;
		return (struct vb__flow_news){ .lost = (uint32_t)ahead };
	}
	if (ahead < -LATE_MAX || !flow->missing)
		return begin(flow, number->sequence);
	flow->missing--;
	return (struct vb__flow_news){ .late = true };
}
