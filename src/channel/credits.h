/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Credits: who may send how much. Pure book-keeping, no I/O.
 *
 * Each side posts depth + VB__CREDIT_RESERVE receives. A packet with messages,
 * or the END, is sent only while its sender holds a credit; the receiver
 * returns the credit when the packet is consumed and its receive is posted
 * again. So a packet never arrives without a receive. (Where it could wait for
 * one, VB__CAP_PATIENT, some of them are posted later.)
 *
 * Returned credits ride on any packet that goes the other way. If there is
 * none, a CREDIT packet carries them: when half of the depth is owed, or any
 * at all while a sender of ours is blocked (then nothing else will take them
 * along, and the peer may be blocked as well). Packets without a credit have
 * the reserve for their place: two CREDIT packets, of which every packet of
 * the peer tells how many it has seen; one END_SEEN; one CLOSING. A notice that
 * comes as immediate data takes a credit, too, but tells nothing: then a CREDIT
 * packet has been seen if more has come than could have come without it.
 */
#ifndef VB_CHANNEL_CREDITS_H
#define VB_CHANNEL_CREDITS_H

#include <stdbool.h>
#include <stdint.h>

#define VB__CREDIT_PACKETS 2u
#define VB__CREDIT_RESERVE (VB__CREDIT_PACKETS + 2u)

struct vb__credits {
	unsigned depth;
	unsigned held;	    /* packets that we may send now */
	unsigned owed;	    /* packets that the peer may send again but does not know it yet */
	uint32_t sent;	    /* CREDIT packets sent */
	uint32_t confirmed; /* of which the peer has seen so many */
	uint32_t seen;	    /* CREDIT packets received */
	uint32_t came;	    /* packets and notices that took a credit of the peer's */
	uint32_t paid;	    /* credits returned so far */
	uint32_t paid_before[VB__CREDIT_PACKETS]; /* by CREDIT packet: what `paid` was then */
};

static inline struct vb__credits vb__credits_of(unsigned depth)
{
	return (struct vb__credits){ .depth = depth, .held = depth };
}

/*
 * Where the side that accepts must not speak first (iWARP), it starts without
 * credits, and the side that connected owes it all of them.
 */
static inline void vb__credits_withhold(struct vb__credits *c)
{
	c->held = 0;
}

static inline void vb__credits_grant(struct vb__credits *c)
{
	c->owed = c->depth;
}

static inline unsigned vb__credits_half(const struct vb__credits *c)
{
	return (c->depth + 1) / 2;
}

/* Packets under way that the peer has not returned. */
static inline unsigned vb__credits_used(const struct vb__credits *c)
{
	return c->depth - c->held;
}

/* A packet came with `n` credits for us, from a peer that had seen `seen` CREDIT packets. */
static inline bool vb__credits_returned(struct vb__credits *c, unsigned n, uint32_t seen)
{
	if (n > vb__credits_used(c) || seen - c->confirmed > c->sent - c->confirmed)
		return false; /* more than there can be */
	c->held += n;
	c->confirmed = seen;
	return true;
}

/* It is time for a CREDIT packet, and there is a place for it. */
static inline bool vb__credits_due(const struct vb__credits *c, bool blocked)
{
	return c->owed >= (blocked ? 1 : vb__credits_half(c)) &&
	       c->sent - c->confirmed < VB__CREDIT_PACKETS;
}

/* What goes into the next packet. */
static inline unsigned vb__credits_pay(struct vb__credits *c)
{
	unsigned n = c->owed;

	c->owed = 0;
	c->paid += n;
	return n;
}

/* A CREDIT packet was sent, with the last `n` credits that were paid. */
static inline void vb__credits_sent(struct vb__credits *c, unsigned n)
{
	c->paid_before[c->sent++ % VB__CREDIT_PACKETS] = c->paid - n;
}

/* A notice came that could not tell what the peer has seen. */
static inline void vb__credits_deduce(struct vb__credits *c)
{
	while (c->confirmed != c->sent &&
	       (int32_t)(c->came - c->depth - c->paid_before[c->confirmed % VB__CREDIT_PACKETS]) >
		       0)
		c->confirmed++;
}

#endif
