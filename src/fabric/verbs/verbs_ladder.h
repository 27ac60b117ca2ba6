/* SPDX-License-Identifier: Apache-2.0 */
/* The steps from RESET to RTS, for queue pairs that are wired up by TCP. None blocks for long. */
#ifndef VB_FABRIC_VERBS_LADDER_H
#define VB_FABRIC_VERBS_LADDER_H

#include "fabric/verbs/verbs.h"
#include "wire/wireup.h"

/* After this, receives can be posted. */
int verbs_ladder_init(struct verbs_ep *ep, struct vb_error *err);

/* After these, the peer's packets are taken in, and ours go. */
int verbs_ladder_rtr(struct verbs_ep *ep, const struct vb__wireup *peer, struct vb_error *err);
int verbs_ladder_rts(struct verbs_ep *ep, const struct vb__wireup *peer, struct vb_error *err);

/* Whatever its state: what is posted comes back flushed. */
void verbs_ladder_error(struct verbs_ep *ep);

/* The bytes of a packet that both ends take. */
unsigned verbs_ladder_mtu(const struct verbs_ep *ep, const struct vb__wireup *peer);

#endif
