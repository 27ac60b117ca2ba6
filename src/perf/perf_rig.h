/* SPDX-License-Identifier: Apache-2.0 */
/* A rig: everything that one side needs to measure one cell, and the loops that do it. */
#ifndef VB_PERF_RIG_H
#define VB_PERF_RIG_H

#include "perf/histogram.h"
#include "perf/perf_rail.h"
#include "perf/perf_talk.h"
#include "perf/stopwatch.h"

struct vb__perf_rig {
	struct vb__perf_plan plan;
	struct vb__perf_talk *talk;
	struct vb__address there; /* of the client's */
	bool serves;
	unsigned count;
	struct vb__perf_rail rails[VB_PERF_RAILS_MAX];

	/* What came of it. */
	uint64_t begun_ns, sent_ns;   /* of sending: the first post, the last completion */
	uint64_t cpu_ns;	      /* of all of it */
	struct vb__moment begin, end; /* likewise */
	uint64_t lost;		      /* pings that were not answered */
	struct vb__histogram times;   /* of latency, in ticks */
	struct vb__perf_word word;    /* the other side's last one: it is done */
	bool heard;		      /* there is one */

	unsigned turns;			       /* of a loop; see vb__perf_rig_is_due */
	bool sends;			       /* just now */
	bool awaits_ledger;		       /* which is written without an event */
	uint64_t ticked_ns, shown_ns, busy_ns; /* coarse: last look around, progress, completion */

	uint64_t deadline_ns; /* coarse: it is over by then, or has failed; 0: not begun */
	uint64_t patience_ns; /* with a count: so long from one sign of life to the next */
	uint64_t signs;	      /* of life: what was posted, has completed and has arrived */
};

/* For a settled cell. */
int vb__perf_rig_plan(struct vb__perf_rig *rig, struct vb__perf_talk *talk, bool serves,
		      const struct vb_perf_cell *cell, const struct vb__settings *settings,
		      struct vb_error *err);

/* The side that asks: endpoints and memory, then, with the key that the other side has told, their connections. */
int vb__perf_rig_open(struct vb__perf_rig *rig, const struct vb__fabric *fabric,
		      const struct vb__address *there, struct vb_error *err);
int vb__perf_rig_connect(struct vb__perf_rig *rig, const struct vb__perf_word *ready,
			 struct vb_error *err);
int vb__perf_rig_await_begin(struct vb__perf_rig *rig, uint64_t deadline_ns, struct vb_error *err);

/* The serving side's endpoints for datagrams, whose ports become the tail of its READY. */
int vb__perf_rig_offer(struct vb__perf_rig *rig, enum vb_fabric fabric, struct vb__perf_word *ready,
		       struct vb_error *err);

/* The side that serves: takes the connections that show the key, until all stand. */
int vb__perf_rig_accept(struct vb__perf_rig *rig, struct vb__pep *pep, struct vb_error *err);

/* From any state; NULL is fine. */
void vb__perf_rig_close(struct vb__perf_rig *rig);

/*
 * Measures. The serving side returns when the other one is done, the other when it
 * has the figures; either with VB_ERR_TIMEOUT when that has not come to pass by
 * the duration, or with a count nothing moves any more, and the peer time-out is over.
 */
int vb__perf_rig_run(struct vb__perf_rig *rig, struct vb_error *err);

/* ---- For the loops ---- */

/* Bandwidth; also the side that is only worked on. */
int vb__perf_flow(struct vb__perf_rig *rig, struct vb_error *err);
/* Latency. */
int vb__perf_ping(struct vb__perf_rig *rig, struct vb_error *err);
int vb__perf_pong(struct vb__perf_rig *rig, struct vb_error *err);

/*
 * Every now and then: does somebody want to stop, is the time over, has the other
 * side said something, progress, and whatever else the talk's owner has to do.
 */
int vb__perf_rig_tick(struct vb__perf_rig *rig, struct vb_error *err);

/* Once in a while, counted in turns of a loop: looking at a clock costs more than many of these. */
static inline bool vb__perf_rig_is_due(struct vb__perf_rig *rig)
{
	return ++rig->turns % 32 == 0;
}

/* The time limit: begins now; VB_ERR_TIMEOUT when it is over. `now_ns` is coarse. */
void vb__perf_time_start(struct vb__perf_rig *rig);
int vb__perf_time_check(struct vb__perf_rig *rig, uint64_t now_ns, struct vb_error *err);

/* When nothing was found: now and then a tick; if `asleep`, always, and sleeps until there may be something. */
int vb__perf_rig_idle(struct vb__perf_rig *rig, bool asleep, struct vb_error *err);

/* The client's sending is over: says so. */
int vb__perf_rig_say_done(struct vb__perf_rig *rig, struct vb_error *err);

uint64_t vb__perf_rig_posted(const struct vb__perf_rig *rig);
uint64_t vb__perf_rig_arrived(const struct vb__perf_rig *rig);

#endif
