/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rails: the connections that are measured, each with its memory, and the
 * books of what was posted on it, has completed and has arrived.
 *
 * Messages that take a receive never find none, where nothing may be lost: the
 * receiver writes into the sender's ledger how many it has taken, and the
 * sender goes no further ahead than there are receives. With hundreds of them
 * that is one small write for hundreds of messages.
 */
#ifndef VB_PERF_RAIL_H
#define VB_PERF_RAIL_H

#include "fabric/dgrams.h"
#include "fabric/fabric.h"
#include "perf/perf_cell.h"
#include "wire/perf_word.h"

struct vb__perf_rail {
	struct vb__ep *ep;
	struct vb__dg *dg;	/* in its place, for datagrams; see perf_datagrams.h */
	struct vb__dg_peer *to; /* where they go, once that is known */
	uint8_t *memory;	/* layout.bytes of it */
	struct vb__mr *ledger_mr, *out_mr, *in_mr;
	struct vb__perf_pass peer;
	bool expects_opening; /* iWARP: the first message is none of those that are counted */

	uint64_t posted, completed; /* of ours */
	uint64_t arrived;	    /* of the peer's, where that takes a receive */
	uint64_t told;		    /* of these, what its ledger says */
	bool telling;
	unsigned receives; /* posted at once: as many as wanted, or as the device takes */
	unsigned owed;	   /* receives to be posted again */
	uint64_t recvs;	   /* posted, ever */
	uint64_t corrupt;
};

/* What all rails of a cell have in common. */
struct vb__perf_plan {
	struct vb_perf_cell cell;
	struct vb__perf_layout layout;
	const struct vb__settings *settings;
	uint64_t key;	/* that data connections show */
	bool is_target; /* the peer works on our memory */
};

/* What to ask the fabric for. */
struct vb__ep_attr vb__perf_rail_attr(const struct vb__perf_plan *plan);

/* Memory, registrations and receives, for a rail whose endpoint is new. Checks what the endpoint can do. */
int vb__perf_rail_equip(const struct vb__perf_plan *plan, struct vb__perf_rail *rail,
			struct vb_error *err);

/* What to tell the peer while connecting. */
struct vb__perf_pass vb__perf_rail_pass(const struct vb__perf_plan *plan,
					const struct vb__perf_rail *rail, unsigned number);

/* Frees all of it, from any state. */
void vb__perf_rail_close(const struct vb__perf_plan *plan, struct vb__perf_rail *rail);

/* Where there is something to wait for, and getting ready to: as vb__ep_arm. */
int vb__perf_rail_fd(const struct vb__perf_rail *rail);
int vb__perf_rail_arm(const struct vb__perf_rail *rail, bool sends);

/* The peer's accesses go on only while we poll. */
bool vb__perf_rail_is_attended(const struct vb__perf_rail *rail);

/* May another message be posted? */
bool vb__perf_rail_has_room(const struct vb__perf_rail *rail, unsigned depth);

/* Posts the next message. VB_ERR_AGAIN, without details: not now. */
int vb__perf_rail_post(const struct vb__perf_plan *plan, struct vb__perf_rail *rail,
		       struct vb_error *err);

/* Posts a message of one byte, which is no part of the measurement. */
int vb__perf_rail_open_talk(struct vb__perf_rail *rail, struct vb_error *err);

/* Takes what has completed: how many, or why the connection is down. What has arrived is owed. */
int vb__perf_rail_poll(const struct vb__perf_plan *plan, struct vb__perf_rail *rail,
		       struct vb_error *err);

/* Posts the owed receives, and writes the peer's ledger when it is time. */
int vb__perf_rail_repay(const struct vb__perf_plan *plan, struct vb__perf_rail *rail,
			struct vb_error *err);

/* The last byte of a message in our memory, by which its arrival is seen. */
static inline volatile uint8_t *vb__perf_rail_mark(const struct vb__perf_plan *plan,
						   const struct vb__perf_rail *rail)
{
	return rail->memory + plan->layout.in_at + plan->cell.bytes - 1;
}

/* What it is for this message; never 0, and never that of its neighbours. */
static inline uint8_t vb__perf_mark_of(uint64_t number)
{
	return (uint8_t)(number % 255 + 1);
}

/* Compares what was written into our memory last with itself, where it could not be done message by message. */
void vb__perf_rail_check_memory(const struct vb__perf_plan *plan, struct vb__perf_rail *rail);

#endif
