/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers that a channel lends: messages made and read in place, and giving up from outside. */
#include <pthread.h>
#include <signal.h>

#include "channel/channel_state.h"
#include "channel/inside.h"
#include "core/clock.h"
#include "harness.h"

#define PAGE 4096u
#define LOANS_MAX 64u

static struct vb__loan borrow_well(struct vb_channel *ch)
{
	struct vb_error err = { .code = VB_OK };
	struct vb__loan loan;

	if (vb__channel_borrow(ch, &loan, &err) != 0)
		fail_with(&err, "borrow");
	CHECK_EQ((uintptr_t)loan.data % PAGE, 0);
	CHECK_EQ(loan.bytes, vb_channel_max_message(ch));
	return loan;
}

static void send_filled(struct vb_channel *ch, size_t len, uint32_t seed)
{
	struct vb_error err = { .code = VB_OK };
	struct vb__loan loan = borrow_well(ch);

	fill(loan.data, len, seed);
	if (vb__channel_send_loan(ch, &loan, len, &err) != 0)
		fail_with(&err, "send a loan");
}

static struct vb__loan recv_filled(struct vb_channel *ch, size_t len, uint32_t seed)
{
	struct vb_error err = { .code = VB_OK };
	struct vb__loan loan;

	if (vb__channel_recv_loan(ch, &loan, &err) != 0)
		fail_with(&err, "receive a loan");
	CHECK_EQ((uintptr_t)loan.data % PAGE, 0);
	CHECK_EQ(loan.bytes, len);
	CHECK(is_filled(loan.data, len, seed));
	return loan;
}

static int recv_code(struct vb_channel *ch)
{
	struct vb_error err = { .code = VB_OK };
	struct vb__loan loan;
	int rc = vb__channel_recv_loan(ch, &loan, &err);

	CHECK_EQ(rc, err.code);
	return rc;
}

/* Until so many threads sleep inside calls on the channel. */
static void await_blocked(struct vb_channel *ch, unsigned threads)
{
	unsigned asleep = 0;

	while (asleep != threads) {
		pthread_mutex_lock(&ch->lock);
		asleep = ch->waiting + (ch->sleeper_for != 0);
		pthread_mutex_unlock(&ch->lock);
		sleep_ms(1);
	}
}

static const size_t sizes[] = { 1, 2, 39, 40, PAGE - 1, PAGE, 5000, 9999, 65536, 70000, 1, 70000 };
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static void lending(struct side *side)
{
	side->options.max_message_bytes = 70000;
	side->options.depth = 4;
}

static void order_server(struct side *side)
{
	struct vb_channel *ch;

	lending(side);
	ch = serve_one(side);
	for (uint32_t i = 0; i < 5 * SIZES; i++) {
		struct vb__loan loan = recv_filled(ch, sizes[i % SIZES], i);

		CHECK_EQ(loan.turn, i);
		vb__channel_give_back(ch, &loan);
	}
	CHECK_EQ(recv_code(ch), VB_ERR_EOF);
	CHECK_EQ(recv_code(ch), VB_ERR_EOF);
	close_well(ch);
}

static void order_client(struct side *side)
{
	struct vb_counters counters;
	struct vb_channel *ch;

	lending(side);
	ch = connect_there(side);
	for (uint32_t i = 0; i < 5 * SIZES; i++)
		send_filled(ch, sizes[i % SIZES], i);
	vb_channel_counters(ch, &counters);
	CHECK_EQ(counters.messages_sent, 5 * SIZES);
	CHECK_EQ(counters.packets_sent >= 5 * SIZES, true);
	close_well(ch);
}

static void shallow_server(struct side *side)
{
	struct vb_channel *ch;

	side->options.depth = 1;
	ch = serve_one(side);
	for (uint32_t i = 0; i < 50; i++) {
		struct vb__loan loan = recv_filled(ch, 100 * i, i);

		vb__channel_give_back(ch, &loan);
	}
	CHECK_EQ(recv_code(ch), VB_ERR_EOF);
	close_well(ch);
}

static void shallow_client(struct side *side)
{
	struct vb_channel *ch;

	side->options.depth = 1;
	ch = connect_there(side);
	for (uint32_t i = 0; i < 50; i++)
		send_filled(ch, 100 * i, i);
	close_well(ch);
}

static void patient_server(struct side *side)
{
	struct vb_channel *ch;

	lending(side);
	ch = serve_one(side);
	CHECK_EQ(recv_code(ch), VB_ERR_EOF);
	close_well(ch);
}

static void *borrow_one(void *arg)
{
	struct vb__loan *loan = malloc(sizeof(*loan));

	*loan = borrow_well(arg);
	return loan;
}

static void borrow_all(struct vb_channel *ch, struct vb__loan *loans)
{
	for (unsigned i = 0; i < ch->tx.count; i++)
		loans[i] = borrow_well(ch);
}

static void exhausting_client(struct side *side)
{
	struct vb__loan loans[LOANS_MAX], *further;
	struct vb_channel *ch;
	pthread_t borrower;
	uint64_t start;
	void *got;

	lending(side);
	ch = connect_there(side);
	CHECK(ch->tx.count >= vb_channel_depth(ch));
	borrow_all(ch, loans);
	pthread_create(&borrower, NULL, borrow_one, ch);
	await_blocked(ch, 1);
	start = vb__now_ns();
	vb__channel_give_back_unsent(ch, &loans[1]);
	pthread_join(borrower, &got);
	CHECK(vb__now_ns() - start < vb__ms(1000)); /* not only at the next keep-alive */
	further = got;
	CHECK(further->data == loans[1].data);
	vb__channel_give_back_unsent(ch, further);
	for (unsigned i = 0; i < ch->tx.count; i++)
		if (i != 1)
			vb__channel_give_back_unsent(ch, &loans[i]);
	free(further);
	close_well(ch);
}

/* All that may be sent is received and kept; the sender is stuck until some is given back. */
static void keeping_server(struct side *side)
{
	struct vb__loan loans[4];
	struct vb_channel *ch;

	lending(side);
	ch = serve_one(side);
	for (uint32_t i = 0; i < 4; i++)
		loans[i] = recv_filled(ch, 70000, i);
	await_step(side, 0);
	CHECK_EQ(side->shared->note, 0);
	for (uint32_t i = 0; i < 4; i++)
		CHECK(is_filled(loans[i].data, loans[i].bytes, i));
	vb__channel_give_back(ch, &loans[3]);
	vb__channel_give_back(ch, &loans[1]);
	loans[1] = recv_filled(ch, 1000, 4);
	CHECK(is_filled(loans[0].data, 70000, 0) && is_filled(loans[2].data, 70000, 2));
	for (int i = 0; i < 3; i++)
		vb__channel_give_back(ch, &loans[i]);
	CHECK_EQ(recv_code(ch), VB_ERR_EOF);
	close_well(ch);
}

static void *send_fifth(void *arg)
{
	struct side *side = ((void **)arg)[0];

	send_filled(((void **)arg)[1], 1000, 4);
	side->shared->note = 1;
	return NULL;
}

static void stuck_client(struct side *side)
{
	struct vb_counters counters;
	struct vb_channel *ch;
	pthread_t sender;
	void *args[2];

	lending(side);
	ch = connect_there(side);
	for (uint32_t i = 0; i < 4; i++)
		send_filled(ch, 70000, i);
	CHECK_EQ(vb__channel_filled(ch), 100);
	args[0] = side, args[1] = ch;
	pthread_create(&sender, NULL, send_fifth, args);
	await_blocked(ch, 1);
	signal_step(side, 0);
	pthread_join(sender, NULL);
	vb_channel_counters(ch, &counters);
	CHECK_EQ(counters.messages_sent, 5);
	CHECK_EQ(counters.credit_stalls, 1);
	close_well(ch);
}

struct blocked {
	struct vb_channel *channel;
	struct vb__loan loan;
	int rc;
	struct vb_error err;
};

static void *block_in_borrow(void *arg)
{
	struct blocked *b = arg;

	b->rc = vb__channel_borrow(b->channel, &b->loan, &b->err);
	return NULL;
}

static void *block_in_send(void *arg)
{
	struct blocked *b = arg;

	b->rc = vb__channel_send_loan(b->channel, &b->loan, 10, &b->err);
	return NULL;
}

static void *block_in_receive(void *arg)
{
	struct blocked *b = arg;

	b->rc = vb__channel_recv_loan(b->channel, &b->loan, &b->err);
	return NULL;
}

static void deaf_server(struct side *side)
{
	struct vb_channel *ch;

	lending(side);
	ch = serve_one(side);
	await_step(side, 0);
	vb_channel_abort(ch);
}

static void cancelled_client(struct side *side)
{
	void *(*const calls[])(void *) = { block_in_borrow, block_in_send, block_in_receive };
	const struct vb_error why = { .code = VB_ERR_INTERRUPTED, .cause = "enough of it" };
	struct vb__loan loans[LOANS_MAX];
	struct blocked blocked[3];
	struct vb_channel *ch;
	pthread_t threads[3];
	uint64_t start;

	lending(side);
	ch = connect_there(side);
	for (uint32_t i = 0; i < 4; i++)
		send_filled(ch, 10, i);
	borrow_all(ch, loans);
	for (int i = 0; i < 3; i++) {
		blocked[i] = (struct blocked){ .channel = ch, .loan = loans[0] };
		pthread_create(&threads[i], NULL, calls[i], &blocked[i]);
	}
	await_blocked(ch, 3);
	start = vb__now_ns();
	vb__channel_cancel(ch, &why);
	for (int i = 0; i < 3; i++) {
		pthread_join(threads[i], NULL);
		CHECK_EQ(blocked[i].rc, VB_ERR_INTERRUPTED);
		CHECK(!strcmp(blocked[i].err.cause, "enough of it"));
	}
	CHECK(vb__now_ns() - start < vb__ms(1000));
	CHECK_EQ(vb__channel_borrow(ch, &loans[0], NULL), VB_ERR_INTERRUPTED);
	CHECK_EQ(vb_channel_close(ch, NULL), VB_ERR_INTERRUPTED);
	signal_step(side, 0);
}

/* Holds a received and a borrowed buffer while the peer goes. */
static void bereft_server(struct side *side)
{
	struct vb__loan received, borrowed, further;
	struct vb_channel *ch;
	struct vb_error err = { .code = VB_OK };

	lending(side);
	ch = serve_one(side);
	received = recv_filled(ch, 70000, 7);
	borrowed = borrow_well(ch);
	signal_step(side, 0);
	CHECK_EQ(recv_code(ch), VB_ERR_LOST);
	CHECK(is_filled(received.data, 70000, 7));
	vb__channel_give_back(ch, &received);
	CHECK_EQ(vb__channel_send_loan(ch, &borrowed, 10, &err), VB_ERR_LOST);
	CHECK(err.object[0] && err.cause[0]);
	CHECK_EQ(vb__channel_borrow(ch, &further, NULL), VB_ERR_LOST);
	CHECK_EQ(vb_channel_close(ch, NULL), VB_ERR_LOST);
}

static struct vb_channel *send_and_await(struct side *side)
{
	struct vb_channel *ch;

	lending(side);
	ch = connect_there(side);
	send_filled(ch, 70000, 7);
	await_step(side, 0);
	return ch;
}

static void dying_client(struct side *side)
{
	send_and_await(side);
	raise(SIGKILL);
}

static void aborting_client(struct side *side)
{
	struct vb_channel *ch = send_and_await(side);

	borrow_well(ch);
	vb_channel_abort(ch);
}

static void framed_server(struct side *side)
{
	struct vb_error err = { .code = VB_OK };
	struct vb__loan loan;
	struct vb_channel *ch;

	lending(side);
	ch = serve_one(side);
	CHECK_EQ(vb__channel_recv_loan(ch, &loan, &err), VB_ERR_PROTOCOL);
	CHECK(strstr(err.cause, "where blocks belong"));
	CHECK_EQ(recv_code(ch), VB_ERR_PROTOCOL);
	vb_channel_abort(ch);
	signal_step(side, 0);
}

/* Two small messages in one packet, which verbs would not put together by itself. */
static void framed_client(struct side *side)
{
	struct vb__packet packet = { .kind = VB__PACKET_DATA,
				     .flags = VB__PACKET_FRAMED,
				     .messages = 2 };
	struct vb__slot *slot;
	struct vb_channel *ch;

	lending(side);
	ch = connect_there(side);
	pthread_mutex_lock(&ch->lock);
	slot = vb__slot_take(&ch->tx);
	for (int i = 0; i < 2; i++) {
		fill(vb__frame_begin(slot->bytes + slot->filled, 40), 40, (uint32_t)i);
		slot->filled += vb__frame_room(40);
	}
	CHECK_EQ(vb__packet_post(ch, slot, packet, NULL, 0), 0);
	pthread_mutex_unlock(&ch->lock);
	await_step(side, 0);
	vb_channel_abort(ch);
}

static void unhurried_server(struct side *side)
{
	struct vb_channel *ch;

	lending(side);
	ch = serve_one(side);
	for (uint32_t i = 0; i < 3; i++) {
		struct vb__loan loan = recv_filled(ch, 70000, i);

		vb__channel_give_back(ch, &loan);
	}
	CHECK_EQ(recv_code(ch), VB_ERR_EOF);
	close_well(ch);
}

static void tended_client(struct side *side)
{
	struct vb__loan loans[LOANS_MAX];
	struct vb_channel *ch;

	lending(side);
	ch = connect_there(side);
	for (uint32_t i = 0; i < 3; i++)
		send_filled(ch, 70000, i);
	while (vb__channel_tend(ch))
		sleep_ms(1);
	CHECK_EQ(ch->done, ch->posted);
	borrow_all(ch, loans); /* without waiting for any */
	for (unsigned i = 0; i < ch->tx.count; i++)
		vb__channel_give_back_unsent(ch, &loans[i]);
	close_well(ch);
}

const struct test lend_tests[] = {
	{ "loans_arrive_in_order_with_their_bytes_and_then_the_end", order_server, order_client },
	{ "loans_arrive_at_depth_1", shallow_server, shallow_client },
	{ "borrow_waits_until_a_loan_is_free", patient_server, exhausting_client },
	{ "received_loan_stays_and_its_credit_returns_with_it", keeping_server, stuck_client },
	{ "cancel_wakes_whoever_borrows_sends_or_receives", deaf_server, cancelled_client },
	{ "loans_outlive_a_killed_peer", bereft_server, dying_client, RETURNS, DIES },
	{ "loans_outlive_a_peer_that_aborts", bereft_server, aborting_client },
	{ "small_messages_for_a_receiver_of_loans_break_the_protocol", framed_server,
	  framed_client },
	{ "tending_completes_sends_that_nobody_waits_for", unhurried_server, tended_client },
	{ NULL },
};

#define SENDERS 4u
#define RECEIVERS 3u

static unsigned each(const struct side *side)
{
	return side->slow ? 30 : 300;
}

struct crowd {
	struct vb_channel *channel;
	unsigned each, next_sender;
	pthread_mutex_t lock;
	bool seen[SENDERS][300];
};

static size_t crowd_len(uint32_t sender, uint32_t i)
{
	return 8 + (i * 7919u + sender * 131u) % 60000u;
}

static void *send_signed(void *arg)
{
	struct vb_error err = { .code = VB_OK };
	struct crowd *crowd = arg;
	uint32_t who[2];

	pthread_mutex_lock(&crowd->lock);
	who[0] = crowd->next_sender++;
	pthread_mutex_unlock(&crowd->lock);
	for (who[1] = 0; who[1] < crowd->each; who[1]++) {
		struct vb__loan loan = borrow_well(crowd->channel);
		size_t len = crowd_len(who[0], who[1]);

		memcpy(loan.data, who, 8);
		fill(loan.data + 8, len - 8, who[1]);
		if (vb__channel_send_loan(crowd->channel, &loan, len, &err) != 0)
			fail_with(&err, "send a loan");
	}
	return NULL;
}

static void note_seen(struct crowd *crowd, const struct vb__loan *loan)
{
	uint32_t who[2];

	memcpy(who, loan->data, 8);
	CHECK(who[0] < SENDERS && who[1] < crowd->each);
	CHECK_EQ(loan->bytes, crowd_len(who[0], who[1]));
	CHECK(is_filled(loan->data + 8, loan->bytes - 8, who[1]));
	pthread_mutex_lock(&crowd->lock);
	CHECK(!crowd->seen[who[0]][who[1]]);
	crowd->seen[who[0]][who[1]] = true;
	pthread_mutex_unlock(&crowd->lock);
}

static void *receive_signed(void *arg)
{
	struct vb_error err = { .code = VB_OK };
	struct crowd *crowd = arg;
	struct vb__loan loan;

	while (vb__channel_recv_loan(crowd->channel, &loan, &err) == 0) {
		note_seen(crowd, &loan);
		vb__channel_give_back(crowd->channel, &loan);
	}
	CHECK_EQ(err.code, VB_ERR_EOF);
	return NULL;
}

static void run_crowd(struct crowd *crowd, void *(*member)(void *), unsigned members)
{
	pthread_t threads[SENDERS];

	pthread_mutex_init(&crowd->lock, NULL);
	for (unsigned i = 0; i < members; i++)
		pthread_create(&threads[i], NULL, member, crowd);
	for (unsigned i = 0; i < members; i++)
		pthread_join(threads[i], NULL);
	close_well(crowd->channel);
}

static void crowd_server(struct side *side)
{
	struct crowd crowd = { .each = each(side) };

	lending(side);
	crowd.channel = serve_one(side);
	run_crowd(&crowd, receive_signed, RECEIVERS);
	for (unsigned s = 0; s < SENDERS; s++)
		for (unsigned i = 0; i < crowd.each; i++)
			CHECK(crowd.seen[s][i]);
}

static void crowd_client(struct side *side)
{
	struct crowd crowd = { .each = each(side) };

	lending(side);
	crowd.channel = connect_there(side);
	run_crowd(&crowd, send_signed, SENDERS);
}

const struct test lend_thread_tests[] = {
	{ "several_threads_send_loans_and_several_receive", crowd_server, crowd_client },
	{ "cancel_wakes_all_threads", deaf_server, cancelled_client },
	{ NULL },
};
