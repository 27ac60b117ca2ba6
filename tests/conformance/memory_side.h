/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of one-sided memory have in common. The server owns the memory. A failure ends the process. */
#ifndef CONFORMANCE_MEMORY_SIDE_H
#define CONFORMANCE_MEMORY_SIDE_H

#include "harness.h"

#define KIB 1024u
#define ALL_BUT_ATOMIC (VB_RIGHT_READ | VB_RIGHT_WRITE)

struct vb_region *alloc_well(struct vb_channel *ch, size_t len);

struct vb_grant *grant_well(struct vb_region *region, size_t offset, size_t len, unsigned rights);

/* And sends the token. */
struct vb_grant *grant_and_tell(struct vb_channel *ch, struct vb_region *region, size_t offset,
				size_t len, unsigned rights);

uint32_t notice_well(struct vb_channel *ch);

/* The one that comes next. */
struct vb_token token_well(struct vb_channel *ch);

void put_well(struct vb_channel *ch, const struct vb_token *token, uint64_t offset,
	      const void *data, size_t len);

void get_well(struct vb_channel *ch, const struct vb_token *token, uint64_t offset, void *data,
	      size_t len);

/* Until the connection is gone; returns why. */
int await_end(struct vb_channel *ch);

#endif
