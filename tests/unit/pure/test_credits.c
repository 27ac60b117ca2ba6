/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Credits: the books alone, and in the hands of two parties that do anything
 * at any moment, as many threads would: no packet may lack a receive.
 */
#include "credits_model.h"
#include "suite.h"

/* ---- The books alone ---- */

static void a_new_side_may_send_its_depth_and_owes_nothing(void **state)
{
	struct vb__credits c = vb__credits_of(7);

	(void)state;
	assert_int_equal(c.held, 7);
	assert_int_equal(vb__credits_used(&c), 0);
	assert_false(vb__credits_due(&c, false));
	assert_false(vb__credits_due(&c, true));
	assert_int_equal(vb__credits_pay(&c), 0);
}

static void more_credits_than_are_out_are_refused_and_change_nothing(void **state)
{
	struct vb__credits c = vb__credits_of(4);

	(void)state;
	c.held = 1;
	c.sent = 1;
	assert_false(vb__credits_returned(&c, 4, 1));
	assert_false(vb__credits_returned(&c, 65535, 1));
	assert_int_equal(c.held, 1);
	assert_int_equal(c.confirmed, 0);
	assert_true(vb__credits_returned(&c, 3, 0));
	assert_false(vb__credits_returned(&c, 1, 0));
	assert_true(vb__credits_returned(&c, 0, 0));
	assert_int_equal(c.held, 4);
}

static void only_what_was_sent_can_have_been_seen_and_nothing_is_unseen_again(void **state)
{
	static const uint32_t starts[] = { 0, 1, 1000, UINT32_MAX - 2, UINT32_MAX - 1, UINT32_MAX };

	(void)state;
	for (size_t i = 0; i < COUNT(starts); i++) {
		uint32_t at = starts[i];
		struct vb__credits c = vb__credits_of(4);

		c.held = 2;
		c.confirmed = at;
		c.sent = at + 2;
		assert_false(vb__credits_returned(&c, 1, at + 3));
		assert_false(vb__credits_returned(&c, 1, at - 1));
		assert_false(vb__credits_returned(&c, 1, at + (UINT32_C(1) << 31)));
		assert_int_equal(c.held, 2);
		assert_int_equal(c.confirmed, at);
		assert_true(vb__credits_returned(&c, 0, at));
		assert_true(vb__credits_returned(&c, 0, at + 1));
		assert_false(vb__credits_returned(&c, 0, at));
		assert_true(vb__credits_returned(&c, 1, at + 2));
		assert_int_equal(c.held, 3);
	}
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
		assert_false(vb__credits_due(&c, false));
		assert_int_equal(vb__credits_due(&c, true), c.owed > 0);
		c.owed++;
		assert_true(vb__credits_due(&c, false));
		assert_true(vb__credits_due(&c, true));
		assert_int_equal(vb__credits_pay(&c), cases[i].half);
		assert_int_equal(c.owed, 0);
	}
}

static void no_credit_packet_is_due_until_one_of_two_is_confirmed(void **state)
{
	struct vb__credits c = vb__credits_of(8);

	(void)state;
	c.owed = 8;
	c.confirmed = UINT32_MAX;
	c.sent = c.confirmed + VB__CREDIT_PACKETS - 1;
	assert_true(vb__credits_due(&c, false));
	c.sent++;
	assert_false(vb__credits_due(&c, false));
	assert_false(vb__credits_due(&c, true));
	assert_true(vb__credits_returned(&c, 0, c.confirmed + 1));
	assert_true(vb__credits_due(&c, false));
}

/* ---- Two parties at large ---- */

enum action {
	TAKE,
	CONSUME,
	SEND,
	NOTIFY,
	POST_CONTROL,
	POST_CONTROL_BLOCKED,
	END,
	CLOSE,
	ACTIONS,
};

static bool act(struct world *w, int who, enum action action)
{
	struct party *p = &w->party[who], *peer = &w->party[!who];

	switch (action) {
	case TAKE:
		return party_take(p);
	case CONSUME:
		return party_consume(p);
	case SEND:
		return party_send(p, peer);
	case NOTIFY:
		return party_notify(p, peer);
	case POST_CONTROL:
		return party_post_control(p, peer, false);
	case POST_CONTROL_BLOCKED:
		return party_post_control(p, peer, true);
	case END:
		return party_send_end(p, peer);
	default:
		return party_close(p);
	}
}

/* Some actions are made rare in each run, so that extremes come about. */
static void live_at_large(struct world *w, struct dice *dice, unsigned steps)
{
	static const unsigned weights[] = { 4, 16, 128 }, last_weights[] = { 0, 0, 1, 4 };
	unsigned weight[2][ACTIONS], sum[2] = { 0, 0 };

	for (int i = 0; i < 2; i++) {
		for (int a = 0; a < END; a++)
			sum[i] += weight[i][a] = weights[dice_throw(dice, COUNT(weights))];
		for (int a = END; a < ACTIONS; a++)
			sum[i] += weight[i][a] =
				last_weights[dice_throw(dice, COUNT(last_weights))];
	}
	while (steps--) {
		int who = (int)dice_throw(dice, 2), action = 0;
		unsigned ticket = dice_throw(dice, sum[who]);

		while (ticket >= weight[who][action])
			ticket -= weight[who][action++];
		if (act(w, who, (enum action)action))
			world_check(w);
	}
}

/* All that may be done is done, in any order, but nobody ends before the last message. */
static void live_to_the_end(struct world *w, struct dice *dice)
{
	unsigned idle = 0;

	while (idle < 2 * CLOSE) {
		unsigned start = dice_throw(dice, 2 * CLOSE);

		for (idle = 0; idle < 2 * CLOSE; idle++) {
			unsigned move = (start + idle) % (2 * CLOSE);
			const struct party *p = &w->party[move & 1];

			if (move / 2 == END && p->sent < p->script.to_send && !p->closing &&
			    !p->peer_closing)
				continue;
			if (act(w, move & 1, (enum action)(move / 2)))
				break;
		}
		world_check(w);
	}
}

static void check_the_end(const struct world *w)
{
	bool closed = w->party[0].closing || w->party[1].closing;

	for (int i = 0; i < 2; i++) {
		const struct party *p = &w->party[i], *peer = &w->party[!i];

		assert_int_equal(p->count, 0);
		assert_true(p->end_seen || p->peer_closing);
		assert_int_equal(p->closing, peer->peer_closing);
		if (closed)
			continue;
		assert_true(p->end_seen);
		assert_int_equal(p->received, peer->sent);
	}
}

static void explore(unsigned depth, unsigned runs)
{
	struct dice dice = { .state = depth };
	struct world w;

	for (unsigned run = 0; run < runs; run++) {
		world_begin(&w, depth, &dice);
		for (int i = 0; i < 2; i++) {
			w.party[i].script.to_send = dice_throw(&dice, 6 * depth + 1);
			w.party[i].script.mute = dice_throw(&dice, 4) == 0;
		}
		live_at_large(&w, &dice, 60 + 30 * depth);
		live_to_the_end(&w, &dice);
		check_the_end(&w);
	}
}

static void no_packet_lacks_a_receive_and_all_ends_at_any_depth(void **state)
{
	(void)state;
	for (unsigned depth = 1; depth <= DEPTHS; depth++)
		explore(depth, depth <= 8 ? 2000 : 200);
	explore(1024, 4);
}

static void must_act(struct world *w, int who, enum action action)
{
	assert_true(act(w, who, action));
	world_check(w);
}

/* Were this to fail, the reserve would be larger than it must be. */
static void the_whole_reserve_is_needed(void **state)
{
	struct dice dice = { .state = 1 };

	(void)state;
	for (unsigned depth = 3; depth <= DEPTHS; depth++) {
		struct world w;

		world_begin(&w, depth, &dice);
		w.party[0].script.to_send = depth;
		w.party[1].script.to_send = depth - 1;
		for (unsigned i = 1; i < depth; i++)
			must_act(&w, 1, SEND);
		must_act(&w, 1, END);
		for (unsigned i = 0; i < VB__CREDIT_PACKETS; i++) {
			must_act(&w, 0, TAKE);
			must_act(&w, 0, CONSUME);
			must_act(&w, 0, POST_CONTROL_BLOCKED);
		}
		while (act(&w, 0, TAKE) || act(&w, 0, SEND))
			world_check(&w);
		must_act(&w, 0, CLOSE);
		must_act(&w, 0, POST_CONTROL);
		assert_int_equal(w.party[1].controls, VB__CREDIT_RESERVE);
		assert_int_equal(w.party[1].count, depth + VB__CREDIT_RESERVE);
	}
}

static void who_must_not_speak_first_gets_all_credits_from_the_other(void **state)
{
	struct vb__credits accepted = vb__credits_of(5), connected = vb__credits_of(5);

	(void)state;
	vb__credits_withhold(&accepted);
	vb__credits_grant(&connected);
	assert_int_equal(accepted.held, 0);
	assert_int_equal(connected.held, 5);
	assert_true(vb__credits_due(&connected, false));
	assert_true(vb__credits_returned(&accepted, vb__credits_pay(&connected), 0));
	assert_int_equal(accepted.held, 5);
	assert_false(vb__credits_returned(&accepted, 1, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_side_may_send_its_depth_and_owes_nothing),
		cmocka_unit_test(more_credits_than_are_out_are_refused_and_change_nothing),
		cmocka_unit_test(only_what_was_sent_can_have_been_seen_and_nothing_is_unseen_again),
		cmocka_unit_test(credits_are_due_from_half_of_the_depth_rounded_up),
		cmocka_unit_test(no_credit_packet_is_due_until_one_of_two_is_confirmed),
		cmocka_unit_test(no_packet_lacks_a_receive_and_all_ends_at_any_depth),
		cmocka_unit_test(the_whole_reserve_is_needed),
		cmocka_unit_test(who_must_not_speak_first_gets_all_credits_from_the_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
