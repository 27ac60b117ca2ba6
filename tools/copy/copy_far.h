/* SPDX-License-Identifier: Apache-2.0 */
/* The far side of a copy, as the client knows it: what it has told of the order under way. */
#ifndef TOOLS_COPY_FAR_H
#define TOOLS_COPY_FAR_H

#include "copy/glance.h"
#include "copy/listing.h"
#include "copy/order.h"
#include "copy/tunnel.h"
#include "remote/far.h"

struct copy_far {
	struct far far;
	struct tunnel_slot slot;  /* where streams through ssh end, if here */
	struct copy_far *partner; /* or they go on to this one */
	struct listing *listing;
	const struct glance *glance; /* what is looked at here meanwhile, or NULL */

	/* Under far.lock. */
	bool invited, ended, looked; /* by the order under way; the details: */
	struct invitation invitation;
	struct glimpse glimpse;
	struct ending ending;
	bool moved; /* data, as it has told */
};

/* Starts it; see far_open. */
int copy_far_open(struct copy_far *side, const struct arguments *arguments, const char *host,
		  struct listing *listing, int news, struct vb_error *err, enum exit_code *code);

/* Orders something; what was told of the order before is forgotten. */
void copy_far_order(struct copy_far *side, const struct order *order);

/* What is known by now. */
bool copy_far_has_moved(struct copy_far *side);
bool copy_far_has_invited(struct copy_far *side, struct invitation *invitation);
bool copy_far_has_looked(struct copy_far *side, struct glimpse *glimpse);
bool copy_far_has_ended(struct copy_far *side, struct ending *ending);

/* As far_close. `partner` must not speak to it any more. */
int copy_far_close(struct copy_far *side, bool at_once);

#endif
