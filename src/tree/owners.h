/* SPDX-License-Identifier: Apache-2.0 */
/* Users and groups by name, asked for once each. For one thread at a time. */
#ifndef VB_TREE_OWNERS_H
#define VB_TREE_OWNERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vb__owners {
	struct vb__owner *list;
	size_t count, room;
	size_t last; /* where the last one was found */
};

/* The number of a user or group of this name here, or `otherwise`. */
uint32_t vb__owners_find(struct vb__owners *owners, bool group, const void *name, size_t len,
			 uint32_t otherwise);
void vb__owners_free(struct vb__owners *owners);

#endif
