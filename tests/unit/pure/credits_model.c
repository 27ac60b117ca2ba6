/* SPDX-License-Identifier: Apache-2.0 */
/* The model of two parties: what each can do, and what must hold. */
#include "credits_model.h"

#include <string.h>

#include "suite.h"

static void launch(struct party *from, struct party *to, enum vb__packet_kind kind, bool mute)
{
	struct flying packet = { .kind = kind, .seen = from->credits.seen, .mute = mute };

	packet.credits = mute ? 0 : vb__credits_pay(&from->credits);
	assert_true(to->count < NETWORK);
	to->network[(to->first + to->count++) % NETWORK] = packet;
	to->credits_coming += packet.credits;
	to->controls += kind > VB__PACKET_END;
	to->credit_packets += kind == VB__PACKET_CREDIT;
	if (kind <= VB__PACKET_END)
		from->credits.held--;
}

/* As on_control. */
static void take_control(struct party *p, enum vb__packet_kind kind)
{
	switch (kind) {
	case VB__PACKET_END:
		assert_false(p->peer_ended);
		p->peer_ended = true;
		p->end_to_confirm = true;
		p->credits.came++;
		p->credits.owed++;
		break;
	case VB__PACKET_END_SEEN:
		assert_true(p->end_sent && !p->end_seen);
		p->end_seen = true;
		break;
	case VB__PACKET_CLOSING:
		assert_false(p->peer_closing);
		p->peer_closing = true;
		break;
	default:
		p->credits.seen++;
		p->credit_packets--;
	}
	p->controls -= kind > VB__PACKET_END;
}

/* As on_packet, for one packet that has arrived. */
bool party_take(struct party *p)
{
	struct flying packet = p->network[p->first];

	if (!p->count)
		return false;
	p->first = (p->first + 1) % NETWORK;
	p->count--;
	p->credits_coming -= packet.credits;
	if (!packet.mute)
		assert_true(vb__credits_returned(&p->credits, packet.credits, packet.seen));
	if (packet.kind == VB__PACKET_DATA) {
		assert_false(p->peer_ended);
		assert_true(p->inbox < p->credits.depth);
		p->inbox++;
		p->credits.came++;
	} else {
		take_control(p, packet.kind);
	}
	if (packet.mute)
		vb__credits_deduce(&p->credits);
	return true;
}

/* As show_first. */
bool party_consume(struct party *p)
{
	if (!p->inbox || p->closing)
		return false;
	p->inbox--;
	p->received++;
	p->credits.owed++;
	return true;
}

static bool send_data(struct party *p, struct party *peer, bool mute)
{
	if (p->sent == p->script.to_send || !p->credits.held || p->end_sent || p->closing ||
	    p->peer_closing)
		return false;
	p->sent++;
	launch(p, peer, VB__PACKET_DATA, mute);
	return true;
}

bool party_send(struct party *p, struct party *peer)
{
	return send_data(p, peer, p->script.mute);
}

bool party_notify(struct party *p, struct party *peer)
{
	return send_data(p, peer, true);
}

/* As vb__packet_post_control. */
bool party_post_control(struct party *p, struct party *peer, bool blocked)
{
	bool posted = p->end_to_confirm || (p->closing && !p->closing_sent);
	unsigned owed;

	if (p->end_to_confirm)
		launch(p, peer, VB__PACKET_END_SEEN, false);
	p->end_to_confirm = false;
	if (p->closing && !p->closing_sent)
		launch(p, peer, VB__PACKET_CLOSING, false);
	p->closing_sent = p->closing;
	if (p->peer_ended || !vb__credits_due(&p->credits, blocked))
		return posted;
	owed = p->credits.owed;
	launch(p, peer, VB__PACKET_CREDIT, false);
	vb__credits_sent(&p->credits, owed);
	return true;
}

/* As send_end. */
bool party_send_end(struct party *p, struct party *peer)
{
	if (p->end_sent || !p->credits.held)
		return false;
	p->end_sent = true;
	launch(p, peer, VB__PACKET_END, false);
	return true;
}

bool party_close(struct party *p)
{
	if (p->closing)
		return false;
	p->closing = true;
	return true;
}

/* Every packet on its way finds a receive. */
static void check_receives(const struct party *p)
{
	assert_in_range(p->count + p->inbox, 0, p->credits.depth + VB__CREDIT_RESERVE);
	assert_in_range(p->controls, 0, VB__CREDIT_RESERVE);
}

/* No credit is lost and none is made. */
static void check_credits(const struct party *from, const struct party *to)
{
	assert_int_equal(from->credits.held + (to->count - to->controls) + to->inbox +
				 to->credits.owed + from->credits_coming,
			 from->credits.depth);
}

/* confirmed <= seen by the peer <= sent, and never far apart, wherever the counters stand. */
static void check_credit_packets(const struct party *from, const struct party *to)
{
	const struct vb__credits *c = &from->credits;

	assert_in_range((uint32_t)(c->sent - c->confirmed), 0, VB__CREDIT_PACKETS);
	assert_in_range((uint32_t)(to->credits.seen - c->confirmed), 0,
			(uint32_t)(c->sent - c->confirmed));
	assert_int_equal((uint32_t)(c->sent - to->credits.seen), to->credit_packets);
}

void world_check(const struct world *w)
{
	for (int i = 0; i < 2; i++) {
		check_receives(&w->party[i]);
		check_credits(&w->party[i], &w->party[!i]);
		check_credit_packets(&w->party[i], &w->party[!i]);
	}
}

void world_begin(struct world *w, unsigned depth, struct dice *dice)
{
	memset(w, 0, sizeof(*w));
	for (int i = 0; i < 2; i++)
		w->party[i].credits = vb__credits_of(depth);
	for (int i = 0; i < 2; i++) {
		struct vb__credits *c = &w->party[i].credits;

		c->sent = c->confirmed = dice_throw(dice, 2) ? UINT32_MAX - dice_throw(dice, 9) : 0;
		w->party[!i].credits.seen = c->sent;
	}
}
