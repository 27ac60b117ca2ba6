/* SPDX-License-Identifier: Apache-2.0 */
/* The far side, as the client knows it: a process that takes orders, and what it has told. */
#ifndef TOOLS_FAR_H
#define TOOLS_FAR_H

#include "copy/launch.h"
#include "copy/listing.h"
#include "copy/order.h"
#include "copy/tunnel.h"

struct far {
	char *host;
	struct launch launch;
	struct link link;
	struct tunnel_slot slot; /* where streams through ssh end, if here */
	struct far *partner;	 /* or they go on to this one */
	struct listing *listing;
	int news; /* an eventfd of the client's: written to when something below changes */

	pthread_mutex_t lock;
	bool invited, ended; /* by the order under way; the details: */
	struct invitation invitation;
	struct ending ending;
	bool moved; /* data, as it has told */
	bool gone;  /* no more will come, */
	bool wrong; /* because what came made no sense */
};

/* Starts it. Fails with the details in `err` and the exit code. */
int far_open(struct far *far, const struct arguments *arguments, const char *host,
	     struct listing *listing, int news, struct vb_error *err, enum exit_code *code);

/* Orders something; what was told of the order before is forgotten. */
void far_order(struct far *far, const struct order *order);

/* That it is not wanted any more. It ends all the same. */
void far_stop(struct far *far);

/* What is known by now. */
bool far_is_gone(struct far *far);
bool far_is_wrong(struct far *far);
bool far_has_moved(struct far *far);
bool far_has_invited(struct far *far, struct invitation *invitation);
bool far_has_ended(struct far *far, struct ending *ending);

/*
 * Ends it, soon with `at_once`. Returns the exit status of what has started it, -1 if it was ended.
 * `partner` must not speak to it any more.
 */
int far_close(struct far *far, bool at_once);

#endif
