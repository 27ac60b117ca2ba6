/* SPDX-License-Identifier: Apache-2.0 */
/* The engine, for those who bring sources and sinks of their own. */
#ifndef VB_TRANSFER_ENGINE_H
#define VB_TRANSFER_ENGINE_H

#include "transfer/session_state.h"
#include "transfer/sink.h"
#include "transfer/source.h"

/* Where the source of a transfer comes from; meant to be embedded. The engine closes the source. */
struct vb__supply {
	int (*open)(const struct vb__supply *supply, const struct vb__plan *plan, int cancel_fd,
		    struct vb__source **source, struct vb_error *err);
};

/* As vb_session_send. */
int vb__session_supply(struct vb_session *session, const struct vb__supply *supply,
		       struct vb_report *report, struct vb_error *err);

/* Likewise for sinks. `open` may take its time. */
struct vb__demand {
	int (*open)(const struct vb__demand *demand, const struct vb__origin *origin,
		    const struct vb__sink_options *options, struct vb__sink **sink,
		    struct vb_error *err);
	bool tree; /* it wants trees, and speaks */
};

/* As vb_session_receive. */
int vb__session_demand(struct vb_session *session, const struct vb__demand *demand,
		       struct vb_report *report, struct vb_error *err);

#endif
