/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Credits: who may send how much. Pure book-keeping, no I/O.
 *
 * Each side posts depth + VB__CREDIT_RESERVE receives. A packet that takes a
 * credit is sent only while the sender holds one; the receiver returns it
 * when the packet is consumed and its receive is posted again. So a packet
 * never arrives without a receive.
 *
 * Returns ride on packets that go the other way anyway. A packet of its own for
 * them is sent only when half of the depth is owed. Such a packet takes no
 * credit; the reserve is its place. Two are enough: the peer cannot use the
 * credits of such a packet before it has taken it (and posted its receive
 * again), and three of them would return more credits than there are. The one
 * that confirms an END may return fewer, but then at most one other is under way.
 */
#ifndef VB_CHANNEL_CREDITS_H
#define VB_CHANNEL_CREDITS_H

#include <stdbool.h>

#define VB__CREDIT_RESERVE 2u

struct vb__credits {
	unsigned depth;
	unsigned held; /* packets that we may send now */
	unsigned owed; /* packets that the peer may send again but does not know it yet */
};

static inline struct vb__credits vb__credits_of(unsigned depth)
{
	return (struct vb__credits){ .depth = depth, .held = depth };
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

/* The peer returns `n`; false if that is more than it ever had. */
static inline bool vb__credits_returned(struct vb__credits *c, unsigned n)
{
	if (n > vb__credits_used(c))
		return false;
	c->held += n;
	return true;
}

/* It is time to return credits by a packet of their own. */
static inline bool vb__credits_due(const struct vb__credits *c)
{
	return c->owed >= vb__credits_half(c);
}

/* What goes into the next packet. */
static inline unsigned vb__credits_pay(struct vb__credits *c)
{
	unsigned n = c->owed;

	c->owed = 0;
	return n;
}

#endif
