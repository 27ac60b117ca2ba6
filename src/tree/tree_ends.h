/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two ends of a tree: a source that walks and reads, and a sink that
 * decides what it needs and writes. Between them go blocks one way and notes
 * the other, see wire/offer.h; how, is the engine's business.
 */
#ifndef VB_TREE_TREE_ENDS_H
#define VB_TREE_TREE_ENDS_H

#include <verbatim/tree.h>

#include "transfer/sink.h"
#include "transfer/source.h"

/*
 * Starts to walk, in a thread of its own, and never gets further ahead of the sink's answers than
 * so many entries: that bounds the memory of both.
 */
#define VB__TREE_AHEAD 16384u

/* A file up to this size goes as a parcel. */
#define VB__TREE_SMALL (128u << 10)

/*
 * The options must outlive the source, and the report too: it is filled in when the source is
 * closed. `direct` as in source.h.
 */
int vb__tree_source_open(const char *const *paths, size_t path_count,
			 const struct vb_tree_options *options, enum vb_direct direct,
			 int cancel_fd, struct vb_tree_report *report, struct vb__source **source,
			 struct vb_error *err);

/* Likewise. `target` as in vb_session_receive_tree. */
int vb__tree_sink_open(const char *target, const struct vb_tree_options *tree_options,
		       const struct vb__sink_options *options, struct vb_tree_report *report,
		       struct vb__sink **sink, struct vb_error *err);

#endif
