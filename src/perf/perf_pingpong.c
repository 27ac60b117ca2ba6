/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Latency: one message at a time. Messages and writes go there and back, and
 * half of it counts; reads and atomic operations bring their own answer.
 */
#include "core/clock.h"
#include "perf/perf_pattern.h"
#include "perf/perf_rig.h"

/* Own operations that are not known to be over; the answer may be there before that is. */
#define UNFINISHED_MAX 8u

/* Between two looks at the queues while memory is looked at. */
#define LOOKS_PER_POLL 16u

/* An answer that has not come by then was lost. */
#define LOST_MS 200u

enum found {
	CAME = 1,
	NOT_YET = 0,
};

static bool is_asleep(const struct vb__perf_rig *rig)
{
	return rig->plan.cell.wait == VB_PERF_EVENT;
}

/* Takes what has completed, or looks around if there is nothing. */
static int poll_or_idle(struct vb__perf_rig *rig, struct vb_error *err)
{
	int n = vb__perf_rail_poll(&rig->plan, &rig->rails[0], err);

	return n ? n : vb__perf_rig_idle(rig, is_asleep(rig), err);
}

static int await_room(struct vb__perf_rig *rig, struct vb_error *err)
{
	const struct vb__perf_rail *rail = &rig->rails[0];
	int rc = 0;

	while (rc >= 0 && rail->posted - rail->completed >= UNFINISHED_MAX)
		rc = poll_or_idle(rig, err);
	return rc < 0 ? rc : 0;
}

static int await_message(struct vb__perf_rig *rig, uint64_t goal, struct vb_error *err)
{
	const struct vb__perf_rail *rail = &rig->rails[0];
	bool lossy = vb__perf_is_lossy(rig->plan.cell.qp);
	uint64_t since = lossy ? vb__now_coarse_ns() : 0;
	int rc = 0;

	while (rail->arrived < goal) {
		rc = poll_or_idle(rig, err);
		if (rc < 0)
			return rc;
		if (lossy && vb__now_coarse_ns() - since > vb__ms(LOST_MS))
			return NOT_YET;
	}
	return CAME;
}

/* One look at the memory: has the write of this number come? Now and then at the queues, too, or always where that moves the data. */
static int look_at_memory(struct vb__perf_rig *rig, uint64_t number, unsigned *looks,
			  struct vb_error *err)
{
	const struct vb__perf_rail *rail = &rig->rails[0];
	bool attended = vb__perf_rail_is_attended(rail);
	int rc;

	if (*vb__perf_rail_mark(&rig->plan, rail) == vb__perf_mark_of(number)) {
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		return CAME;
	}
	if (!attended && ++*looks % LOOKS_PER_POLL)
		return NOT_YET;
	rc = poll_or_idle(rig, err);
	return rc < 0 ? rc : NOT_YET;
}

/* All but the mark, which is the last byte. */
static void check_written(struct vb__perf_rig *rig, uint64_t number)
{
	struct vb__perf_rail *rail = &rig->rails[0];

	if (rig->plan.cell.check)
		rail->corrupt += !vb__perf_pattern_is(rail->memory + rig->plan.layout.in_at,
						      rig->plan.cell.bytes - 1, number);
}

static int await_write(struct vb__perf_rig *rig, uint64_t number, struct vb_error *err)
{
	unsigned looks = 0;
	int rc;

	do {
		rc = look_at_memory(rig, number, &looks, err);
	} while (rc == NOT_YET);
	if (rc == CAME)
		check_written(rig, number);
	return rc;
}

static int await_own(struct vb__perf_rig *rig, struct vb_error *err)
{
	const struct vb__perf_rail *rail = &rig->rails[0];
	int rc = 0;

	while (rc >= 0 && rail->completed < rail->posted)
		rc = poll_or_idle(rig, err);
	return rc < 0 ? rc : CAME;
}

/* What there is to do beside: while a message is under way, so that it costs none of its time. */
static int do_the_rest(struct vb__perf_rig *rig, struct vb_error *err)
{
	int rc = vb__perf_rail_repay(&rig->plan, &rig->rails[0], err);

	if (rc == 0)
		rc = await_room(rig, err);
	if (rc == 0 && vb__perf_rig_is_due(rig))
		rc = vb__perf_rig_tick(rig, err);
	return rc;
}

/* Posts one and waits for what it brings about: CAME, NOT_YET, or a failure. */
static int ping_once(struct vb__perf_rig *rig, struct vb_error *err)
{
	struct vb__perf_rail *rail = &rig->rails[0];
	uint64_t number = rail->posted, arrived = rail->arrived;
	int posted = vb__perf_rail_post(&rig->plan, rail, err), rc;

	if (posted && posted != VB_ERR_AGAIN)
		return posted;
	rc = do_the_rest(rig, err);
	if (rc || posted)
		return rc ? rc : NOT_YET;
	if (vb__perf_takes_receives(rig->plan.cell.op))
		return await_message(rig, arrived + 1, err);
	if (rig->plan.cell.op == VB_PERF_WRITE)
		return await_write(rig, number, err);
	return await_own(rig, err);
}

static int await_figures(struct vb__perf_rig *rig, struct vb_error *err)
{
	int rc = vb__perf_rig_say_done(rig, err);

	while (rc == 0 && !rig->heard) {
		rc = vb__perf_rail_poll(&rig->plan, &rig->rails[0], err);
		if (rc >= 0)
			rc = vb__perf_rig_idle(rig, true, err);
	}
	return rc < 0 ? rc : 0;
}

static bool is_over(const struct vb__perf_rig *rig, uint64_t until_ns)
{
	const struct vb_perf_cell *cell = &rig->plan.cell;

	return cell->count ? rig->times.count + rig->lost >= cell->count
			   : vb__now_coarse_ns() >= until_ns;
}

int vb__perf_ping(struct vb__perf_rig *rig, struct vb_error *err)
{
	const struct vb_perf_cell *cell = &rig->plan.cell;
	unsigned share = vb__perf_takes_receives(cell->op) || cell->op == VB_PERF_WRITE ? 2 : 1;
	uint64_t until = vb__now_coarse_ns() + vb__ms(cell->duration_ms), before, now;
	int rc = 0;

	rig->begun_ns = vb__now_ns();
	before = vb__ticks_now();
	while (!is_over(rig, until)) {
		rc = ping_once(rig, err);
		if (rc < 0)
			return rc;
		now = vb__ticks_now();
		if (rc == CAME)
			vb__histogram_add(&rig->times, vb__ticks_since(before, now) / share);
		rig->lost += rc == NOT_YET;
		before = now;
	}
	rig->sent_ns = vb__now_ns();
	return await_figures(rig, err);
}

/* CAME if there is one to answer, NOT_YET if not yet. */
static int look_for_ping(struct vb__perf_rig *rig, unsigned *looks, struct vb_error *err)
{
	struct vb__perf_rail *rail = &rig->rails[0];
	int rc;

	if (rig->plan.cell.op == VB_PERF_WRITE) {
		rc = look_at_memory(rig, rail->posted, looks, err);
		if (rc == CAME)
			check_written(rig, rail->posted);
		return rc;
	}
	if (rail->arrived > rail->posted)
		return CAME;
	rc = poll_or_idle(rig, err);
	return rc < 0 ? rc : NOT_YET;
}

int vb__perf_pong(struct vb__perf_rig *rig, struct vb_error *err)
{
	struct vb__perf_rail *rail = &rig->rails[0];
	unsigned looks = 0;
	int rc = 0;

	rig->begun_ns = vb__now_ns();
	while (!rig->heard) {
		rc = look_for_ping(rig, &looks, err);
		if (rc < 0)
			return rc;
		if (rc == NOT_YET)
			continue;
		rc = vb__perf_rail_post(&rig->plan, rail, err);
		if (rc == 0 || rc == VB_ERR_AGAIN)
			rc = do_the_rest(rig, err);
		if (rc)
			return rc;
	}
	rig->sent_ns = vb__now_ns();
	return 0;
}
