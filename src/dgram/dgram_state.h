/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of datagrams share. Everything under the endpoint's lock. */
#ifndef VB_DGRAM_STATE_H
#define VB_DGRAM_STATE_H

#include <pthread.h>

#include <verbatim/dgram.h>

#include "core/settings.h"
#include "dgram/flows.h"
#include "fabric/dgrams.h"

#define SENDER_SETS 64u
#define SENDER_WAYS 4u

struct vb_dgram_peer {
	struct vb_dgram *dgram;
	struct vb_dgram_peer *next; /* of the application's own */
	struct vb__dg_peer *way;    /* NULL: a sender's that was not needed so far */
	size_t max_bytes;	    /* of the application's */
	uint16_t flow;
	uint32_t sequence; /* of the next one */

	struct vb__address group; /* that was joined; length 0: none */
	char text[VB__ADDRESS_TEXT];

	/* Of senders only. */
	struct vb__origin origin;
	unsigned ways_changed; /* when the way was made */
	bool used;
	uint64_t touched;
};

struct vb_dgram {
	pthread_mutex_t lock;
	struct vb__dg *dg;
	struct vb__settings settings;
	bool numbered;
	int family;
	uint16_t next_flow;
	size_t max_bytes;
	struct vb_dgram_counters counters;
	char description[200];
	struct vb_dgram_peer *named; /* the application's own */

	bool showing; /* `shown` is the application's until the next receive */
	unsigned shown;
	uint64_t clock; /* for the senders, so that the oldest is known */
	struct vb_dgram_peer senders[SENDER_SETS][SENDER_WAYS];
	struct vb__flows flows;
};

/* dgram_peers.c */

/* The peer that a datagram came from, without a way to there so far. Of too many the one that was silent longest is forgotten. */
struct vb_dgram_peer *vb__dgram_sender(struct vb_dgram *dgram, const struct vb__origin *origin);

/* Sees to it that there is a way to the peer. */
int vb__dgram_find_way(struct vb_dgram_peer *peer, struct vb_error *err);

#endif
