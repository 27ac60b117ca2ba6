/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Orders: one side's part of a copy, whether it is done here or by the far
 * side, to whom it is sent packed. Pure.
 */
#ifndef TOOLS_ORDER_H
#define TOOLS_ORDER_H

#include "common/list.h"
#include "copy/ending.h"

enum role {
	ROLE_SEND = 1,
	ROLE_RECEIVE,
	ROLE_COPY, /* both, on one host */
};

struct order {
	enum role role;
	bool connects;	/* to what `invitation` says; else it opens a door */
	bool tunnelled; /* by way of ssh */
	bool tells;	/* its events and progress are wanted */
	bool stream;	/* one file, not a tree: the other side is a pipe */
	bool glances;	/* it first tells what its tree comes to, see glance.h; by this: */
	uint8_t glance_key[VB_TREE_KEY_BYTES];
	int verbosity;

	struct list paths;  /* ROLE_SEND, ROLE_COPY */
	struct list listed; /* of the one path only these below it; empty: all */
	char *target;	    /* ROLE_RECEIVE, ROLE_COPY */
	struct list rules;
	char *device;

	/* The numbers in them: no callbacks, and nothing that points to anything. */
	struct vb_tree_options tree;
	struct vb_transfer_options transfer;

	struct invitation invitation;
};

/* More than this no far side takes. */
#define ORDER_MAX (64u << 20)

void order_pack(struct pack *pack, const struct order *order);

/* False if it is none. Free it in any case. */
bool order_unpack(struct order *order, const void *bytes, size_t len);

void order_free(struct order *order);

#endif
