/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Credits, checked against a model of two parties and a network in order.
 * What a party does follows channel_progress.c, packets.c and channel_end.c;
 * when it does it, the dice decide. The books are the real ones.
 */
#include <string.h>

#include "channel/credits.h"
#include "dice.h"
#include "suite.h"
#include "wire/packet.h"

#define NETWORK 4096u

struct flying {
	enum vb__packet_kind kind;
	bool end_seen;
	unsigned credits;
};

/* One party, and what is on its way to it. */
struct party {
	struct vb__credits credits;
	unsigned inbox;	  /* received, not consumed: their receives are not posted again */
	unsigned to_send; /* messages before the END */
	unsigned ends;	  /* ENDs sent: one for finish, a second one for close */
	bool end_seen, peer_ended, end_to_confirm;
	struct flying network[NETWORK];
	unsigned first, count;
};

struct world {
	struct party party[2];
	unsigned ends_wanted[2];
	unsigned most_controls; /* packets without a credit that were under way at once */
};

enum action {
	TAKE,
	CONSUME,
	SEND,
	RETURN_CREDITS,
	FINISH,
	ACTIONS,
};

static void begin(struct world *w, unsigned depth, unsigned messages, struct dice *dice)
{
	memset(w, 0, sizeof(*w));
	for (int i = 0; i < 2; i++) {
		w->party[i].credits = vb__credits_of(depth);
		w->party[i].to_send = messages;
		w->ends_wanted[i] = 1 + dice_throw(dice, 2);
	}
}

static void launch(struct party *from, struct party *to, struct flying packet)
{
	packet.credits = vb__credits_pay(&from->credits);
	assert_in_range(packet.credits, 0, from->credits.depth);
	assert_true(to->count < NETWORK);
	to->network[(to->first + to->count++) % NETWORK] = packet;
	if (packet.kind != VB__PACKET_CREDIT)
		from->credits.held--;
}

/* As vb__channel_progress: handles one packet that has arrived. */
static bool take(struct party *p)
{
	struct flying packet = p->network[p->first];

	if (!p->count)
		return false;
	p->first = (p->first + 1) % NETWORK;
	p->count--;
	assert_true(vb__credits_returned(&p->credits, packet.credits));
	if (packet.kind == VB__PACKET_DATA) {
		assert_false(p->peer_ended);
		p->inbox++;
	} else if (packet.kind == VB__PACKET_END) {
		p->peer_ended = true;
		p->end_to_confirm = true;
		p->credits.owed++;
	} else if (packet.end_seen) {
		p->end_seen = true;
	}
	return true;
}

/* As drop_first. */
static bool consume(struct party *p)
{
	if (!p->inbox)
		return false;
	p->inbox--;
	p->credits.owed++;
	return true;
}

static bool send_data(struct party *p, struct party *peer)
{
	if (!p->to_send || !p->credits.held)
		return false;
	p->to_send--;
	launch(p, peer, (struct flying){ .kind = VB__PACKET_DATA });
	return true;
}

/* As vb__packet_post_credits. */
static bool return_credits(struct party *p, struct party *peer)
{
	bool confirm = p->end_to_confirm;

	if (!confirm && (!vb__credits_due(&p->credits) || p->peer_ended))
		return false;
	p->end_to_confirm = false;
	launch(p, peer, (struct flying){ .kind = VB__PACKET_CREDIT, .end_seen = confirm });
	return true;
}

/* As finish: the first END after the last message, the second when the first is confirmed. */
static bool finish(struct party *p, struct party *peer, unsigned wanted)
{
	if (p->to_send || p->ends == wanted || !p->credits.held || (p->ends && !p->end_seen))
		return false;
	p->ends++;
	p->end_seen = false;
	launch(p, peer, (struct flying){ .kind = VB__PACKET_END });
	return true;
}

static bool act(struct world *w, int who, enum action action)
{
	struct party *p = &w->party[who], *peer = &w->party[!who];

	switch (action) {
	case TAKE:
		return take(p);
	case CONSUME:
		return consume(p);
	case SEND:
		return send_data(p, peer);
	case RETURN_CREDITS:
		return return_credits(p, peer);
	case FINISH:
		return finish(p, peer, w->ends_wanted[who]);
	default:
		return false;
	}
}

static unsigned credits_flying_to(const struct party *p)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < p->count; i++)
		sum += p->network[(p->first + i) % NETWORK].credits;
	return sum;
}

static unsigned controls_flying_to(const struct party *p)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < p->count; i++)
		sum += p->network[(p->first + i) % NETWORK].kind == VB__PACKET_CREDIT;
	return sum;
}

static void check(struct world *w)
{
	for (int i = 0; i < 2; i++) {
		const struct party *p = &w->party[i], *peer = &w->party[!i];
		unsigned controls = controls_flying_to(p), depth = p->credits.depth;

		/* Every packet on its way finds a receive. */
		assert_in_range(p->count + p->inbox, 0, depth + VB__CREDIT_RESERVE);
		assert_in_range(controls, 0, VB__CREDIT_RESERVE);
		/* No credit is lost and none is made. */
		assert_int_equal(peer->credits.held + (p->count - controls) + p->inbox +
					 p->credits.owed + credits_flying_to(peer),
				 depth);
		if (controls > w->most_controls)
			w->most_controls = controls;
	}
}

/* Some actions are made rare in each run, so that extremes come about. */
static void live_at_random(struct world *w, struct dice *dice, unsigned steps)
{
	static const unsigned weights[] = { 1, 4, 32 };
	unsigned weight[2][ACTIONS], sum[2] = { 0, 0 };

	for (int i = 0; i < 2; i++)
		for (int a = 0; a < ACTIONS; a++)
			sum[i] += weight[i][a] = weights[dice_throw(dice, COUNT(weights))];
	while (steps--) {
		int who = (int)dice_throw(dice, 2), action = 0;
		unsigned ticket = dice_throw(dice, sum[who]);

		while (ticket >= weight[who][action])
			ticket -= weight[who][action++];
		if (act(w, who, (enum action)action))
			check(w);
	}
}

/* Both want to send and to consume: everything must come to its end. */
static void live_to_the_end(struct world *w, struct dice *dice)
{
	unsigned idle = 0;

	while (idle < 2 * ACTIONS) {
		unsigned start = dice_throw(dice, 2 * ACTIONS);

		for (idle = 0; idle < 2 * ACTIONS; idle++) {
			unsigned move = (start + idle) % (2 * ACTIONS);

			if (act(w, move & 1, (enum action)(move / 2)))
				break;
		}
		check(w);
	}
	for (int i = 0; i < 2; i++) {
		const struct party *p = &w->party[i];

		assert_int_equal(p->to_send, 0);
		assert_int_equal(p->inbox, 0);
		assert_int_equal(p->count, 0);
		assert_int_equal(p->ends, w->ends_wanted[i]);
		assert_true(p->end_seen);
	}
}

/* The most packets without a credit that were under way at once. */
static unsigned explore(unsigned depth, unsigned runs)
{
	struct dice dice = { .state = depth };
	struct world w;
	unsigned most = 0;

	for (unsigned run = 0; run < runs; run++) {
		begin(&w, depth, dice_throw(&dice, 6 * depth + 1), &dice);
		live_at_random(&w, &dice, 40 + 20 * depth);
		live_to_the_end(&w, &dice);
		if (w.most_controls > most)
			most = w.most_controls;
	}
	return most;
}

static void no_packet_lacks_a_receive_and_nothing_hangs_at_any_depth(void **state)
{
	(void)state;
	for (unsigned depth = 1; depth <= 64; depth++)
		explore(depth, depth <= 8 ? 1000 : 50);
	explore(1024, 2);
}

/* Were this to fail, the reserve would be larger than it must be. */
static void the_whole_reserve_is_needed(void **state)
{
	(void)state;
	assert_int_equal(explore(2, 2000), VB__CREDIT_RESERVE);
	assert_int_equal(explore(4, 2000), VB__CREDIT_RESERVE);
}

static void a_new_side_may_send_its_depth_and_owes_nothing(void **state)
{
	struct vb__credits c = vb__credits_of(7);

	(void)state;
	assert_int_equal(c.held, 7);
	assert_int_equal(vb__credits_used(&c), 0);
	assert_false(vb__credits_due(&c));
	assert_int_equal(vb__credits_pay(&c), 0);
}

static void more_credits_than_are_out_are_refused_and_change_nothing(void **state)
{
	struct vb__credits c = vb__credits_of(4);

	(void)state;
	c.held = 1;
	assert_false(vb__credits_returned(&c, 4));
	assert_false(vb__credits_returned(&c, 65535));
	assert_int_equal(c.held, 1);
	assert_true(vb__credits_returned(&c, 3));
	assert_false(vb__credits_returned(&c, 1));
	assert_true(vb__credits_returned(&c, 0));
	assert_int_equal(c.held, 4);
}

static void credits_are_due_from_half_of_the_depth_rounded_up(void **state)
{
	static const struct {
		unsigned depth, half;
	} cases[] = { { 1, 1 }, { 2, 1 }, { 3, 2 }, { 4, 2 }, { 5, 3 }, { 64, 32 }, { 1023, 512 } };

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct vb__credits c = vb__credits_of(cases[i].depth);

		c.owed = cases[i].half - 1;
		assert_false(vb__credits_due(&c));
		c.owed++;
		assert_true(vb__credits_due(&c));
		assert_int_equal(vb__credits_pay(&c), cases[i].half);
		assert_int_equal(c.owed, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_side_may_send_its_depth_and_owes_nothing),
		cmocka_unit_test(more_credits_than_are_out_are_refused_and_change_nothing),
		cmocka_unit_test(credits_are_due_from_half_of_the_depth_rounded_up),
		cmocka_unit_test(no_packet_lacks_a_receive_and_nothing_hangs_at_any_depth),
		cmocka_unit_test(the_whole_reserve_is_needed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
