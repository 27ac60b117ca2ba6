/* SPDX-License-Identifier: Apache-2.0 */
#include "core/failure.h"
#include "tree/tree_ends.h"

int vb_tree_copy(const char *const *paths, size_t path_count, const char *target,
		 const struct vb_tree_options *options, const struct vb_transfer_options *transfer,
		 struct vb_tree_report *report, struct vb_error *err)
{
	(void)paths, (void)path_count, (void)target, (void)options, (void)transfer, (void)report;
	return vb__fail_invalid(err, "copy", "not written yet");
}
