/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Credits in the hands of two programs with one thread each, which block where
 * the library blocks: nothing may hang, whoever sends, receives or closes when.
 */
#include "credits_model.h"
#include "suite.h"

/* ---- What a program does; false: it waits, and in vain unless the peer acts ---- */

/* As wait_for, and as vb__channel_would_block of a program that calls again and again. */
static bool wait_blocking(struct party *p, struct party *peer, bool sender)
{
	bool taken = party_take(p);

	return party_post_control(p, peer, sender) || taken;
}

/* As vb_channel_send. */
static bool step_send(struct party *p, struct party *peer)
{
	return party_send(p, peer) || wait_blocking(p, peer, true);
}

/* As receive. */
static bool step_receive(struct party *p, struct party *peer)
{
	return party_post_control(p, peer, false) || party_consume(p) ||
	       wait_blocking(p, peer, false);
}

static bool is_finished(const struct party *p)
{
	return p->end_seen || p->peer_closing;
}

/* As finish. */
static bool step_finish(struct party *p, struct party *peer)
{
	return party_send_end(p, peer) || wait_blocking(p, peer, true);
}

/* As untaken: messages that the peer has not consumed, as far as it told. */
static unsigned untaken(const struct party *p)
{
	unsigned end = p->end_sent && !p->end_seen, used = vb__credits_used(&p->credits);

	return used > end ? used - end : 0;
}

/* As vb_channel_close. */
static bool step_close(struct party *p, struct party *peer)
{
	if (party_close(p))
		return party_post_control(p, peer, false);
	if (!is_finished(p))
		return step_finish(p, peer);
	/* A close that says that the peer took everything does not lie. */
	if (!p->end_seen && !untaken(p))
		assert_int_equal(peer->received, p->sent);
	p->gone = !p->end_to_confirm;
	return p->gone || party_post_control(p, peer, true);
}

/* False: the program waits, and in vain unless the peer does something. */
static bool step(struct world *w, int who)
{
	struct party *p = &w->party[who], *peer = &w->party[!who];
	const struct script *s = &p->script;
	bool sends = p->sent < s->to_send && !p->peer_closing;

	if (p->gone)
		return false;
	if (p->closing)
		return step_close(p, peer);
	if (sends && p->sent < s->ahead + p->received)
		return step_send(p, peer);
	if (!sends && s->finishes && !is_finished(p))
		return step_finish(p, peer);
	if (p->received < s->to_receive && (p->inbox || !p->peer_ended))
		return step_receive(p, peer);
	return step_close(p, peer);
}

/* Each acts while it can, for a moment of any length, until both have closed. */
static void live_on_one_thread(struct world *w, struct dice *dice)
{
	unsigned patience = 1 + dice_throw(dice, 3 * w->party[0].credits.depth);

	while (!w->party[0].gone || !w->party[1].gone) {
		int who = (int)dice_throw(dice, 2);
		bool acted = false;

		for (unsigned n = dice_throw(dice, patience) + 1; n && step(w, who); n--) {
			acted = true;
			world_check(w);
		}
		if (!acted && !step(w, !who))
			fail_msg("depth %u hangs: %u and %u sent, %u and %u received",
				 w->party[0].credits.depth, w->party[0].sent, w->party[1].sent,
				 w->party[0].received, w->party[1].received);
		world_check(w);
	}
}

/* Both send ahead what there is room for, or less; then an answer for each message. */
static void both_sending_and_receiving_in_turns_never_hang(void **state)
{
	(void)state;
	for (unsigned depth = 1; depth <= DEPTHS; depth++) {
		struct dice dice = { .state = depth };
		struct world w;

		for (unsigned ahead = 1; ahead <= depth; ahead++) {
			unsigned messages = 1 + dice_throw(&dice, 6 * depth);
			struct script script = { messages, messages, ahead, false };

			world_begin(&w, depth, &dice);
			script.finishes = ahead < depth && dice_throw(&dice, 2);
			w.party[0].script = script;
			script.ahead = dice_throw(&dice, ahead + 1);
			w.party[1].script = script;
			live_on_one_thread(&w, &dice);
			for (int i = 0; i < 2; i++) {
				assert_int_equal(w.party[i].sent, messages);
				assert_int_equal(w.party[i].received, messages);
				assert_true(w.party[i].end_seen || !untaken(&w.party[i]));
			}
		}
	}
}

static void a_sender_and_one_that_closes_never_hang(void **state)
{
	(void)state;
	for (unsigned depth = 1; depth <= DEPTHS; depth++) {
		struct dice dice = { .state = depth };
		struct world w;

		for (unsigned run = 0; run < 100; run++) {
			unsigned many = dice_throw(&dice, 6 * depth + 1);
			unsigned some = dice_throw(&dice, 4 * depth);
			unsigned few = dice_throw(&dice, depth + 1);

			world_begin(&w, depth, &dice);
			w.party[0].script = (struct script){ many, 0, many, false };
			w.party[1].script = (struct script){ few, some, few, false };
			live_on_one_thread(&w, &dice);
		}
	}
}

/* The one waits for as many messages as come, or fewer; the other for any number. */
static void both_closing_at_any_moment_never_hang(void **state)
{
	(void)state;
	for (unsigned depth = 1; depth <= DEPTHS; depth++) {
		struct dice dice = { .state = depth };
		struct world w;

		for (unsigned run = 0; run < 100; run++) {
			unsigned mine = dice_throw(&dice, depth + 1);
			unsigned yours = dice_throw(&dice, depth + 1);
			unsigned some = dice_throw(&dice, 4 * depth);

			world_begin(&w, depth, &dice);
			w.party[0].script = (struct script){ mine, some, mine, false };
			w.party[1].script =
				(struct script){ yours, dice_throw(&dice, mine + 1), yours, false };
			live_on_one_thread(&w, &dice);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_sending_and_receiving_in_turns_never_hang),
		cmocka_unit_test(a_sender_and_one_that_closes_never_hang),
		cmocka_unit_test(both_closing_at_any_moment_never_hang),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
