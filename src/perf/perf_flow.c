/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bandwidth: as much under way as the depth allows, on all rails in turn.
 * Either side sends, takes what the other sends, or does both; or it is only
 * worked on, and just waits.
 */
#include "core/clock.h"
#include "perf/perf_rig.h"

/* What may be lost is waited for so long after the last of it. */
#define LATE_MS 100u

struct flow {
	struct vb__perf_rig *rig;
	bool sending, takes;
	bool over; /* nothing more is posted */
	bool asleep;
	uint64_t until_ns; /* coarse */
	int found;	   /* since the last look around */
};

static bool may_post(const struct flow *f, const struct vb__perf_rail *rail)
{
	const struct vb_perf_cell *cell = &f->rig->plan.cell;

	return !f->over && (!cell->count || rail->posted < cell->count) &&
	       vb__perf_rail_has_room(rail, cell->depth);
}

/* How much was found; negative is a failure. */
static int turn(struct flow *f, struct vb_error *err)
{
	struct vb__perf_rig *rig = f->rig;
	int found = 0;

	rig->awaits_ledger = false;
	rig->sends = f->sending && !f->over;
	for (unsigned i = 0; i < rig->count; i++) {
		struct vb__perf_rail *rail = &rig->rails[i];
		int rc = 0;

		/* Datagrams complete at once: of these, too, the depth is enough for one turn. */
		for (unsigned n = 0;
		     rc == 0 && f->sending && n < rig->plan.cell.depth && may_post(f, rail); n++)
			rc = vb__perf_rail_post(&rig->plan, rail, err);
		rc = rc == VB_ERR_AGAIN ? 0 : rc;
		rig->awaits_ledger |= f->sending && rail->ledger_mr &&
				      rail->posted - rail->completed < rig->plan.cell.depth;
		if (rc == 0)
			rc = vb__perf_rail_poll(&rig->plan, rail, err);
		if (rc < 0)
			return rc;
		found += rc;
		rc = vb__perf_rail_repay(&rig->plan, rail, err);
		if (rc)
			return rc;
	}
	return found;
}

static bool is_sent(const struct flow *f)
{
	const struct vb_perf_cell *cell = &f->rig->plan.cell;

	for (unsigned i = 0; i < f->rig->count; i++) {
		const struct vb__perf_rail *rail = &f->rig->rails[i];

		if (rail->completed != rail->posted || (cell->count && rail->posted < cell->count))
			return false;
	}
	return f->over || cell->count;
}

static int end_sending(struct flow *f, struct vb_error *err)
{
	struct vb__perf_rig *rig = f->rig;

	rig->sent_ns = vb__now_ns();
	f->sending = false;
	/* Where the device moves the data by itself there is nothing to do but to wait. */
	f->asleep |= !f->takes && !vb__perf_rail_is_attended(&rig->rails[0]);
	return vb__perf_rig_say_done(rig, err);
}

/* All is done here and there, and what was sent to us has come. */
static bool is_complete(const struct flow *f)
{
	const struct vb__perf_rig *rig = f->rig;

	if (f->sending || !rig->heard)
		return false;
	if (!f->takes || vb__perf_rig_arrived(rig) >= rig->word.figures.messages)
		return true;
	return vb__perf_is_lossy(rig->plan.cell.qp) &&
	       vb__now_coarse_ns() - rig->busy_ns > vb__ms(LATE_MS);
}

static int look_around(struct flow *f, int found, struct vb_error *err)
{
	bool sleeps = !found && f->asleep;
	uint64_t now;

	f->found |= found;
	if (!sleeps && !vb__perf_rig_is_due(f->rig))
		return 0;
	now = vb__now_coarse_ns();
	if (f->found)
		f->rig->busy_ns = now;
	f->found = 0;
	if (!f->rig->plan.cell.count && now >= f->until_ns)
		f->over = true;
	return sleeps ? vb__perf_rig_idle(f->rig, true, err) : vb__perf_rig_tick(f->rig, err);
}

static struct flow begin(struct vb__perf_rig *rig)
{
	const struct vb_perf_cell *cell = &rig->plan.cell;
	bool two = cell->both_ways, attended = vb__perf_rail_is_attended(&rig->rails[0]);
	struct flow f = {
		.rig = rig,
		.sending = !rig->serves || two,
		.takes = vb__perf_takes_receives(cell->op) && (rig->serves || two) &&
			 cell->kind == VB_PERF_BANDWIDTH,
		.until_ns = vb__now_coarse_ns() + vb__ms(cell->duration_ms),
	};

	f.asleep = cell->wait == VB_PERF_EVENT || (!f.sending && !f.takes && !attended);
	rig->begun_ns = vb__now_ns();
	return f;
}

int vb__perf_flow(struct vb__perf_rig *rig, struct vb_error *err)
{
	struct flow f = begin(rig);
	int rc = 0;

	while (rc == 0 && !is_complete(&f)) {
		int found = turn(&f, err);

		if (found < 0)
			return found;
		if (f.sending && is_sent(&f))
			rc = end_sending(&f, err);
		if (rc == 0)
			rc = look_around(&f, found, err);
	}
	return rc;
}
