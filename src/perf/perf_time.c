/* SPDX-License-Identifier: Apache-2.0 */
/* The time limit of a measurement: a side that is stopped or cut off must not hold up the other. */
#include <stdio.h>

#include "core/clock.h"
#include "perf/perf_rig.h"

static uint64_t signs_of_life(const struct vb__perf_rig *rig)
{
	uint64_t sum = vb__perf_rig_posted(rig) + vb__perf_rig_arrived(rig);

	for (unsigned i = 0; i < rig->count; i++)
		sum += rig->rails[i].completed;
	return sum;
}

/* The other side works on our memory, and we see nothing of it. */
static bool is_passive(const struct vb__perf_rig *rig)
{
	const struct vb_perf_cell *cell = &rig->plan.cell;

	if (!rig->serves || cell->both_ways || vb__perf_takes_receives(cell->op))
		return false;
	return cell->kind == VB_PERF_BANDWIDTH || !vb__perf_is_answered(cell->op);
}

void vb__perf_time_start(struct vb__perf_rig *rig)
{
	const struct vb_perf_cell *cell = &rig->plan.cell;
	uint64_t now = vb__now_coarse_ns();

	rig->ticked_ns = rig->shown_ns = rig->busy_ns = now;
	rig->patience_ns = vb__ms(vb__perf_patience_ms(cell, rig->plan.settings->peer_timeout_ms));
	rig->deadline_ns = now + rig->patience_ns;
	if (!cell->count || is_passive(rig))
		rig->deadline_ns += vb__ms(vb__perf_span_ms(cell));
}

static int fail_late(const struct vb__perf_rig *rig, struct vb_error *err)
{
	double seconds = (double)rig->patience_ns / 1e9;
	char cause[120];

	snprintf(cause, sizeof(cause),
		 rig->plan.cell.count ? "nothing has moved for %.1f s"
				      : "it should have been over %.1f s ago",
		 seconds);
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_TIMEOUT,
				     .operation = "measure with",
				     .object = vb_channel_peer(rig->talk->channel),
				     .cause = cause,
				     .hint = "does the other side still run, and is the link up?",
			     });
}

int vb__perf_time_check(struct vb__perf_rig *rig, uint64_t now, struct vb_error *err)
{
	uint64_t signs = signs_of_life(rig);

	if (rig->plan.cell.count && signs != rig->signs)
		rig->deadline_ns = now + rig->patience_ns;
	rig->signs = signs;
	return now > rig->deadline_ns ? fail_late(rig, err) : 0;
}
