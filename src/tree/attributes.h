/* SPDX-License-Identifier: Apache-2.0 */
/* Extended attributes, and the ACLs that are kept in them. See meta.h for when. */
#ifndef VB_TREE_ATTRIBUTES_H
#define VB_TREE_ATTRIBUTES_H

#include "tree/meta.h"

/* Removes those that are not given. Both set `*changed` if they did anything. */
int vb__attributes_prune(const struct vb__meta_rules *rules, const struct vb__meta *meta,
			 const struct vb__thing *thing, bool *changed, struct vb_error *err);

/* Sets those that are given. */
int vb__attributes_set(const struct vb__meta_rules *rules, const struct vb__meta *meta,
		       const struct vb__thing *thing, bool *changed, struct vb_error *err);

#endif
