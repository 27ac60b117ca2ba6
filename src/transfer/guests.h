/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Those who stand in a door: they came, and have not proven the key. There are
 * only so many of them. A guest says the first word, and an honest one says it
 * at once; until then it has its small channel and nothing else. Few may talk
 * at the same time, a wrong key keeps its place for a second, and where others wait
 * whoever does not go on makes room.
 *
 * All of it is for one thread, and none of it blocks.
 */
#ifndef VB_TRANSFER_GUESTS_H
#define VB_TRANSFER_GUESTS_H

#include <poll.h>

#include "channel/inside.h"
#include "core/warnings.h"
#include "transfer/parley.h"

#define VB__GUESTS_MAX 64u

struct vb__guest {
	struct vb_channel *channel;
	struct vb__parley *parley; /* NULL: it has said nothing yet, or was turned away */
	bool spoken, turned_away;
	bool stirred; /* there may be something new */
	size_t heard_bytes;
	uint64_t came_ns, heard_ns;
	uint64_t leaves_ns; /* it goes then, whatever it does */
};

struct vb__guests {
	struct vb__warnings warnings;
	const struct vb__secret *secret;
	uint32_t peer_timeout_ms;
	unsigned count, most;
	struct vb__guest guest[VB__GUESTS_MAX];
};

/* As many as descriptors allow, and, if their channels are `pinned`, the memory that may be. The secret stays the caller's. */
void vb__guests_open(struct vb__guests *guests, const struct vb__settings *settings,
		     const struct vb__secret *secret, bool pinned);
void vb__guests_close(struct vb__guests *guests);

/* There is a place. */
bool vb__guests_have_room(const struct vb__guests *guests);

/* Takes the channel over. There must be room. */
void vb__guests_welcome(struct vb__guests *guests, struct vb_channel *channel);

/* Those whose time is over go; with `others_wait` and no room, also the one who has been silent for the longest time. */
void vb__guests_make_room(struct vb__guests *guests, bool others_wait);

/* Hears all; takes one out who has proven, and hands over channel and parley. False: there is none. */
bool vb__guests_take_proven(struct vb__guests *guests, struct vb_channel **channel,
			    struct vb__parley **parley);

/* When one leaves by itself, could make room, or is to be told of. Those who are due are told of first. */
uint64_t vb__guests_next_ns(struct vb__guests *guests);

/* There is no room, but one who would go if others waited. */
bool vb__guests_could_make_room(struct vb__guests *guests);

/* One entry for each, to wait for what it says, and how many they are; then what was seen there. */
unsigned vb__guests_poll(const struct vb__guests *guests, struct pollfd *fds);
void vb__guests_polled(struct vb__guests *guests, const struct pollfd *fds);

#endif
