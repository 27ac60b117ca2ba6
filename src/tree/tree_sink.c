/* SPDX-License-Identifier: Apache-2.0 */
#include "core/failure.h"
#include "tree/tree_ends.h"

int vb__tree_sink_open(const char *target, const struct vb_tree_options *tree_options,
		       const struct vb__sink_options *options, struct vb_tree_report *report,
		       struct vb__sink **sink, struct vb_error *err)
{
	(void)target, (void)tree_options, (void)options, (void)report, (void)sink;
	return vb__fail_invalid(err, "receive", "not written yet");
}
