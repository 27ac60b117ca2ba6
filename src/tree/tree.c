/* SPDX-License-Identifier: Apache-2.0 */
/* Trees over a session: the two ends, and the engine between them. */
#include <string.h>

#include "core/clock.h"
#include "transfer/engine.h"
#include "tree/tree_ends.h"

/* What the engine knows better. */
static void take_over(struct vb_tree_report *report, const struct vb_report *moved)
{
	report->elapsed_ns = moved->elapsed_ns;
	report->moved_bytes = moved->bytes - moved->hole_bytes;
	report->wire_bytes = moved->wire_bytes;
	report->pack_ns = moved->pack_ns;
}

struct tree_supply {
	struct vb__supply supply;
	const char *const *paths;
	size_t path_count;
	const struct vb_tree_options *options;
	struct vb_tree_report *report;
};

static int open_source(const struct vb__supply *supply, const struct vb__plan *plan, int cancel_fd,
		       struct vb__source **source, struct vb_error *err)
{
	const struct tree_supply *t = (const struct tree_supply *)supply;

	return vb__tree_source_open(t->paths, t->path_count, t->options, plan->direct, cancel_fd,
				    t->report, source, err);
}

int vb_session_send_tree(struct vb_session *session, const char *const *paths, size_t path_count,
			 const struct vb_tree_options *options, struct vb_tree_report *report,
			 struct vb_error *err)
{
	static const struct vb_tree_options defaults;
	struct vb_tree_report local = { .files = 0 };
	struct tree_supply supply = {
		.supply.open = open_source,
		.paths = paths,
		.path_count = path_count,
		.options = options ? options : &defaults,
		.report = &local,
	};
	struct vb_report moved = { .elapsed_ns = 0 };
	int rc = vb__session_supply(session, &supply.supply, &moved, err);

	take_over(&local, &moved);
	if (report)
		*report = local;
	return rc;
}

struct tree_demand {
	struct vb__demand demand;
	const char *target;
	const struct vb_tree_options *options;
	struct vb_tree_report *report;
};

static int open_sink(const struct vb__demand *demand, const struct vb__origin *origin,
		     const struct vb__sink_options *options, struct vb__sink **sink,
		     struct vb_error *err)
{
	const struct tree_demand *t = (const struct tree_demand *)demand;

	(void)origin;
	return vb__tree_sink_open(t->target, t->options, options, t->report, sink, err);
}

int vb_session_receive_tree(struct vb_session *session, const char *path,
			    const struct vb_tree_options *options, struct vb_tree_report *report,
			    struct vb_error *err)
{
	static const struct vb_tree_options defaults;
	struct vb_tree_report local = { .files = 0 };
	struct tree_demand demand = {
		.demand = { .open = open_sink, .tree = true },
		.target = path,
		.options = options ? options : &defaults,
		.report = &local,
	};
	struct vb_report moved = { .elapsed_ns = 0 };
	int rc = vb__session_demand(session, &demand.demand, &moved, err);

	take_over(&local, &moved);
	if (report)
		*report = local;
	return rc;
}
