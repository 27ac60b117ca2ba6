/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rails of datagrams (UD): endpoints that are not connected. The client asks for
 * the server's by its port, and knocks with the cell's key until the server has
 * heard it and knows in turn where to answer.
 */
#ifndef VB_PERF_DATAGRAMS_H
#define VB_PERF_DATAGRAMS_H

#include "perf/perf_rail.h"

/* The address of ours that the peer is reached from, with port 0. */
int vb__perf_dg_here(const struct vb__address *peer, struct vb__address *here,
		     struct vb_error *err);

/* An endpoint and memory. Checks what it can do. */
int vb__perf_dg_open(const struct vb__perf_plan *plan, struct vb__perf_rail *rail,
		     enum vb_fabric fabric, const struct vb__address *here, struct vb_error *err);

/* The client's: asks who is there; then, as long as nothing is heard, knocks. */
int vb__perf_dg_resolve(struct vb__perf_rail *rail, const struct vb__address *there,
			uint64_t deadline_ns, struct vb_error *err);
void vb__perf_dg_knock(const struct vb__perf_plan *plan, struct vb__perf_rail *rail);

/* As their namesakes of rails. Posting may be VB_ERR_AGAIN. */
int vb__perf_dg_post(const struct vb__perf_plan *plan, struct vb__perf_rail *rail,
		     struct vb_error *err);
int vb__perf_dg_poll(const struct vb__perf_plan *plan, struct vb__perf_rail *rail,
		     struct vb_error *err);

#endif
