/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two parties and a network in order, for tests of the credits. What a party
 * does follows channel_progress.c, packets.c and channel_end.c; when it does
 * it is the test's to say. The books are the real ones.
 */
#ifndef VB_TEST_CREDITS_MODEL_H
#define VB_TEST_CREDITS_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "channel/credits.h"
#include "dice.h"
#include "wire/packet.h"

#define NETWORK 2048u
#define DEPTHS 64u /* all up to this are tried */

struct flying {
	enum vb__packet_kind kind;
	unsigned credits;
	uint32_t seen;
	bool mute; /* a notice by immediate data, which tells neither of these */
};

/* What a single-threaded program does, before it closes. */
struct script {
	unsigned to_send, to_receive;
	unsigned ahead; /* so much it may have sent more than received */
	bool mute;	/* sends notices only */
	bool finishes;	/* after the last message, and goes on receiving */
};

/* One party, and what is on its way to it. */
struct party {
	struct vb__credits credits;
	struct script script;
	unsigned inbox; /* received, not consumed: their receives are not posted again */
	unsigned sent, received;
	bool end_sent, end_seen, peer_ended, end_to_confirm;
	bool closing, closing_sent, peer_closing;
	bool gone;
	struct flying network[NETWORK];
	unsigned first, count;
	unsigned controls, credit_packets, credits_coming; /* among these */
};

struct world {
	struct party party[2];
};

/* Both have all their credits. The counters start anywhere, often just before they wrap around. */
void world_begin(struct world *world, unsigned depth, struct dice *dice);

/* What must hold at every moment. */
void world_check(const struct world *world);

/* What a party can do; true if it did. */
bool party_take(struct party *party); /* one packet that has arrived */
bool party_consume(struct party *party);
bool party_send(struct party *party, struct party *peer);
bool party_notify(struct party *party, struct party *peer);
bool party_post_control(struct party *party, struct party *peer, bool blocked);
bool party_send_end(struct party *party, struct party *peer);

/* Sends and consumes no more; the notice of it goes with the next party_post_control. */
bool party_close(struct party *party);

#endif
