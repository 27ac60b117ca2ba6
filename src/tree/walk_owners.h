/* SPDX-License-Identifier: Apache-2.0 */
/* The names of users and groups, remembered: asking for them can take long. */
#ifndef VB_TREE_WALK_OWNERS_H
#define VB_TREE_WALK_OWNERS_H

#include <sys/types.h>

#include "wire/offer.h"

struct vb__owners;

/* NULL: no memory. */
struct vb__owners *vb__owners_create(void);
void vb__owners_destroy(struct vb__owners *owners);

/* Valid until the next call; empty if there is none. One thread at a time. */
struct vb__slice vb__owners_user(struct vb__owners *owners, uid_t uid);
struct vb__slice vb__owners_group(struct vb__owners *owners, gid_t gid);

#endif
