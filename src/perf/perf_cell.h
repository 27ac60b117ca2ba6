/* SPDX-License-Identifier: Apache-2.0 */
/* Cells: what can be measured, on which endpoints, and in how much memory. Pure. */
#ifndef VB_PERF_CELL_H
#define VB_PERF_CELL_H

#include <verbatim/perf.h>

#include "fabric/fabric.h"

/* Puts the defaults where there are zeros, and ones where more would make no sense. */
void vb__perf_cell_settle(struct vb_perf_cell *cell);

/* Whether an endpoint can do it, which is `where` of: VB_ERR_UNSUPPORTED or VB_ERR_TOO_BIG if not. */
int vb__perf_cell_fits(const struct vb_perf_cell *cell, unsigned caps, size_t max_bytes,
		       const char *where, struct vb_error *err);

/* How a settled cell uses the memory of one rail: a page for the ledger, `out` slots, `in` slots. */
struct vb__perf_layout {
	size_t slot_bytes; /* from one slot to the next */
	unsigned out_slots, in_slots;
	unsigned receives; /* posted at once */
	size_t out_at, in_at, bytes;
};

#define VB__PERF_PAGE 4096u

/* VB_ERR_TOO_BIG if all rails together take more than VB_PERF_MEMORY_MAX. */
int vb__perf_layout(const struct vb_perf_cell *cell, struct vb__perf_layout *layout,
		    struct vb_error *err);

/*
 * How long to wait for what is under way at most, milliseconds: `slack_ms`, and
 * all of a settled cell's depth at a slow pace.
 */
uint64_t vb__perf_patience_ms(const struct vb_perf_cell *cell, uint32_t slack_ms);

/* How long the cell itself takes at most; with a count, so many messages at a slow pace. */
uint64_t vb__perf_span_ms(const struct vb_perf_cell *cell);

/*
 * May the other side have sent `said` messages in all? Where it is told how many
 * were taken (`reliable` and received), `arrived` of them are here, and
 * it cannot be further ahead than by the `receives` of all rails.
 */
bool vb__perf_is_possible(const struct vb_perf_cell *cell, uint64_t said, uint64_t arrived,
			  uint64_t receives);

/* The receiver takes a message, so a receive must be there. */
static inline bool vb__perf_takes_receives(enum vb_perf_op op)
{
	return op == VB_PERF_SEND || op == VB_PERF_WRITE_IMM;
}

static inline bool vb__perf_is_atomic(enum vb_perf_op op)
{
	return op == VB_PERF_FETCH_ADD || op == VB_PERF_CAS;
}

/* Latency is that of a ping and a pong; the others bring their own answer. */
static inline bool vb__perf_is_answered(enum vb_perf_op op)
{
	return op != VB_PERF_READ && !vb__perf_is_atomic(op);
}

/* Messages may be lost. */
static inline bool vb__perf_is_lossy(enum vb_perf_qp qp)
{
	return qp != VB_PERF_RC;
}

#endif
