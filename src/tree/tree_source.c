/* SPDX-License-Identifier: Apache-2.0 */
#include "core/failure.h"
#include "tree/tree_ends.h"

int vb__tree_source_open(const char *const *paths, size_t path_count,
			 const struct vb_tree_options *options, enum vb_direct direct,
			 int cancel_fd, struct vb_tree_report *report, struct vb__source **source,
			 struct vb_error *err)
{
	(void)paths, (void)path_count, (void)options, (void)direct, (void)cancel_fd, (void)report;
	(void)source;
	return vb__fail_invalid(err, "send", "not written yet");
}
