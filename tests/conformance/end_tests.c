/* SPDX-License-Identifier: Apache-2.0 */
/* How channels end: well, early, by force. */
#include <signal.h>
#include <time.h>

#include "harness.h"

static void read_all_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);
	struct vb_error err;
	const void *message;

	CHECK_EQ(recv_well(ch, &message), 3);
	expect_eof(ch);
	expect_eof(ch); /* and again */
	CHECK_EQ(vb_channel_send(ch, "late", 4, &err), VB_ERR_CLOSED);
	close_well(ch);
}

static void farewell_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);

	send_well(ch, "bye", 3);
	close_well(ch);
}

static void expect_lost(struct vb_channel *ch)
{
	const void *message;
	struct vb_error err;

	CHECK_EQ(vb_channel_recv(ch, &message, &err), VB_ERR_LOST);
	CHECK(err.object[0] && err.cause[0] && err.hint[0]);
	CHECK_EQ(vb_channel_send(ch, "x", 1, &err), VB_ERR_LOST);
	CHECK_EQ(vb_channel_close(ch, &err), VB_ERR_LOST);
}

static void lost_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);
	const void *message;

	CHECK_EQ(recv_well(ch, &message), 3);
	signal_step(side, 0);
	expect_lost(ch);
}

static void dying_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);

	send_well(ch, "one", 3);
	await_step(side, 0);
	raise(SIGKILL);
}

static void aborting_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);

	send_well(ch, "one", 3);
	await_step(side, 0);
	vb_channel_abort(ch);
}

static void before_loss_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);
	const void *message;

	await_step(side, 0); /* the peer is dead by now, or about to be */
	while (kill(side->shared->client, 0) == 0 && side->shared->note == 0)
		sleep_ms(1);
	CHECK_EQ(recv_well(ch, &message), 3);
	CHECK_EQ(recv_well(ch, &message), 2000);
	CHECK(is_filled(message, 2000, 1));
	expect_lost(ch);
}

static void sending_then_dying_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	uint8_t buffer[2000];

	send_well(ch, "one", 3);
	fill(buffer, sizeof(buffer), 1);
	send_well(ch, buffer, sizeof(buffer));
	sleep_ms(200); /* what was sent is with the peer; there is nothing to wait for */
	signal_step(side, 0);
	side->shared->note = 1;
	raise(SIGKILL);
}

/* Many, and long ones would be possible. Answering somebody who is dead does not lose what is still unread. */
#define UNREAD 60u

static void large(struct side *side)
{
	side->options.depth = 64;
	side->options.max_message_bytes = 1 << 20;
}

static void answering_server(struct side *side)
{
	struct vb_channel *ch;
	const void *message;

	large(side);
	ch = serve_one(side);
	await_step(side, 0);
	while (kill(side->shared->client, 0) == 0 && side->shared->note == 0)
		sleep_ms(1);
	sleep_ms(100);
	for (unsigned i = 0; i < UNREAD; i++) {
		CHECK_EQ(recv_well(ch, &message), 100);
		CHECK(is_filled(message, 100, i));
		vb_channel_send(ch, "thanks", 6, NULL);
	}
	expect_lost(ch);
}

static void prolific_then_dying_client(struct side *side)
{
	struct vb_channel *ch;
	uint8_t buffer[100];

	large(side);
	ch = connect_there(side);
	for (unsigned i = 0; i < UNREAD; i++) {
		fill(buffer, sizeof(buffer), i);
		send_well(ch, buffer, sizeof(buffer));
	}
	sleep_ms(200);
	signal_step(side, 0);
	side->shared->note = 1;
	raise(SIGKILL);
}

static void mid_message_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);
	struct vb_error err;
	const void *message;
	ssize_t n;

	for (uint32_t i = 0;; i++) {
		n = vb_channel_recv(ch, &message, &err);
		if (n < 0)
			break;
		CHECK_EQ(n, 200000); /* never a part of one */
		CHECK(is_filled(message, 4096, i));
		if (i == 3)
			kill(side->shared->client, SIGKILL);
	}
	CHECK_EQ(n, VB_ERR_LOST);
	vb_channel_abort(ch);
}

static void endless_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	uint8_t *buffer = calloc(1, 200000);

	for (uint32_t i = 0;; i++) {
		fill(buffer, 4096, i);
		send_well(ch, buffer, 200000);
	}
}

static void killed_receiver_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);
	const void *message;

	recv_well(ch, &message);
	raise(SIGKILL);
}

static void sender_of_killed_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	uint8_t *buffer = calloc(1, 100000);
	struct vb_error err;
	int rc;

	do
		rc = vb_channel_send(ch, buffer, 100000, &err);
	while (rc == 0);
	CHECK_EQ(rc, VB_ERR_LOST);
	CHECK_EQ(vb_channel_close(ch, &err), VB_ERR_LOST);
	free(buffer);
}

/* The sender waits for credits that never come, then the peer dies. */
static void stuck_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);

	(void)ch;
	await_step(side, 0);
	raise(SIGKILL);
}

static void stuck_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	struct vb_error err;
	uint8_t buffer[5000] = { 0 };
	int rc = 0;

	while (rc == 0)
		rc = vb_channel_try_send(ch, buffer, sizeof(buffer), &err);
	CHECK_EQ(rc, VB_ERR_AGAIN);
	signal_step(side, 0);
	CHECK_EQ(vb_channel_send(ch, buffer, sizeof(buffer), &err), VB_ERR_LOST);
	CHECK_EQ(vb_channel_close(ch, &err), VB_ERR_LOST);
}

static void closing_early_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);
	const void *message;

	for (int i = 0; i < 3; i++)
		recv_well(ch, &message);
	close_well(ch); /* while the other side goes on sending */
}

static void sending_on_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	uint8_t *buffer = calloc(1, 50000);
	struct vb_error err;
	int rc;

	do
		rc = vb_channel_send(ch, buffer, 50000, &err);
	while (rc == 0);
	CHECK_EQ(rc, VB_ERR_CLOSED);
	expect_eof(ch);
	rc = vb_channel_close(ch, &err); /* some may not have been taken */
	CHECK(rc == 0 || rc == VB_ERR_CLOSED);
	free(buffer);
}

/* Nothing is read: the sender has filled all the room there is when the other side closes. */
static void deaf_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);

	await_step(side, 0);
	close_well(ch);
}

static void filling_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	uint8_t buffer[5000] = { 0 };
	struct vb_error err;
	int rc = 0;

	while (rc == 0)
		rc = vb_channel_try_send(ch, buffer, sizeof(buffer), &err);
	CHECK_EQ(rc, VB_ERR_AGAIN);
	signal_step(side, 0);
	CHECK_EQ(vb_channel_send(ch, buffer, sizeof(buffer), &err), VB_ERR_CLOSED);
	CHECK_EQ(vb_channel_close(ch, &err), VB_ERR_CLOSED);
}

/* Both have sent all they may and read nothing; then one closes. */
static void crossed_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);
	struct vb_error err;

	/* Waits for the credits that over iWARP the other side has to bring. */
	send_well(ch, "x", 1);
	while (vb_channel_try_send(ch, "x", 1, &err) == 0)
		;
	CHECK_EQ(err.code, VB_OK); /* try again later is no failure */
	signal_step(side, 0);
	await_step(side, 1);
	CHECK_EQ(vb_channel_close(ch, &err), VB_ERR_CLOSED);
}

static void crossed_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	struct vb_error err;
	uint8_t buffer[5000] = { 0 };
	int rc = 0;

	await_step(side, 0);
	while (rc == 0)
		rc = vb_channel_try_send(ch, buffer, sizeof(buffer), &err);
	signal_step(side, 1);
	CHECK_EQ(vb_channel_send(ch, buffer, sizeof(buffer), &err), VB_ERR_CLOSED);
	CHECK_EQ(vb_channel_close(ch, &err), VB_ERR_CLOSED);
}

static void both_close_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);

	send_well(ch, "hello", 5);
	signal_step(side, 0);
	await_step(side, 1);
	vb_channel_close(ch, NULL); /* CLOSED if the peer was quicker: it did not read */
}

static void both_close_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	struct vb_error err;
	int rc;

	signal_step(side, 1);
	await_step(side, 0);
	rc = vb_channel_close(ch, &err);
	CHECK(rc == 0);
}

static void half_close_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);
	const void *message;
	int count = 0;
	struct vb_error err;

	while (vb_channel_recv(ch, &message, &err) >= 0)
		count++;
	CHECK_EQ(err.code, VB_ERR_EOF);
	CHECK_EQ(count, 100);
	for (int i = 0; i < 100; i++)
		send_well(ch, &count, sizeof(count));
	close_well(ch);
}

static void half_close_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	const void *message;
	struct vb_error err;

	for (int i = 0; i < 100; i++)
		send_well(ch, "question", 8);
	CHECK_EQ(vb_channel_finish(ch, &err), 0);
	CHECK_EQ(vb_channel_finish(ch, &err), 0); /* once is enough */
	CHECK_EQ(vb_channel_send(ch, "x", 1, &err), VB_ERR_INVALID);
	for (int i = 0; i < 100; i++)
		CHECK_EQ(recv_well(ch, &message), 4);
	expect_eof(ch);
	close_well(ch);
}

static void slow_close_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);
	const void *message;

	await_step(side, 0);
	sleep_ms(300); /* the client is in close all the while */
	for (uint32_t i = 0; i < 2; i++) {
		CHECK_EQ(recv_well(ch, &message), 60000);
		CHECK(is_filled(message, 60000, i));
	}
	expect_eof(ch);
	close_well(ch);
}

static void slow_close_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	uint8_t buffer[60000];

	for (uint32_t i = 0; i < 2; i++) {
		fill(buffer, sizeof(buffer), i);
		send_well(ch, buffer, sizeof(buffer));
	}
	signal_step(side, 0);
	close_well(ch);
}

/* A peer that is stopped is not dead: its host still answers. */
static void stopped_server(struct side *side)
{
	struct vb_channel *ch;
	const void *message;

	side->options.peer_timeout_ms = 1000;
	ch = serve_one(side);
	CHECK_EQ(recv_well(ch, &message), 5);
	kill(side->shared->client, SIGSTOP);
	for (int i = 0; i < 10; i++) {
		struct vb_error err;

		CHECK_EQ(vb_channel_try_recv(ch, &message, &err), VB_ERR_AGAIN);
		sleep_ms(250);
	}
	kill(side->shared->client, SIGCONT);
	send_well(ch, "go on", 5);
	CHECK_EQ(recv_well(ch, &message), 4);
	expect_eof(ch);
	close_well(ch);
}

static void stopped_client(struct side *side)
{
	struct vb_channel *ch;
	const void *message;

	side->options.peer_timeout_ms = 1000;
	ch = connect_there(side);
	send_well(ch, "first", 5);
	CHECK_EQ(recv_well(ch, &message), 5);
	send_well(ch, "last", 4);
	close_well(ch);
}

/* An idle peer that is not in the library for longer than the peer time-out is not lost either. */
static void absent_server(struct side *side)
{
	struct vb_channel *ch;

	side->options.peer_timeout_ms = 800;
	ch = serve_one(side);
	expect_eof(ch);
	close_well(ch);
}

static void absent_client(struct side *side)
{
	struct vb_channel *ch;

	side->options.peer_timeout_ms = 800;
	ch = connect_there(side);
	sleep_ms(2000);
	close_well(ch);
}

const struct test end_tests[] = {
	{ "end_of_stream_is_not_a_lost_peer", read_all_server, farewell_client },
	{ "killed_peer_is_lost_and_not_the_end_of_the_stream", lost_server, dying_client, RETURNS,
	  DIES },
	{ "aborted_channel_is_lost_at_the_peer", lost_server, aborting_client },
	{ "what_arrived_before_the_loss_is_received_first", before_loss_server,
	  sending_then_dying_client, RETURNS, DIES },
	{ "what_arrived_is_received_though_answers_fail", answering_server,
	  prolific_then_dying_client, RETURNS, DIES, "ofi" },
	{ "peer_killed_in_mid_message_leaves_no_partial_message", mid_message_server,
	  endless_client, RETURNS, DIES },
	{ "sender_learns_that_the_receiver_was_killed", killed_receiver_server,
	  sender_of_killed_client, DIES, RETURNS },
	{ "sender_waiting_for_credits_learns_of_the_loss", stuck_server, stuck_client, DIES,
	  RETURNS },
	{ "close_while_the_other_side_sends", closing_early_server, sending_on_client },
	{ "close_frees_a_sender_that_has_no_room", deaf_server, filling_client },
	{ "close_when_both_sides_are_full", crossed_server, crossed_client },
	{ "both_sides_close_at_once", both_close_server, both_close_client },
	{ "finished_side_can_still_receive", half_close_server, half_close_client },
	{ "close_waits_until_the_peer_has_everything", slow_close_server, slow_close_client },
	{ "stopped_peer_is_not_lost", stopped_server, stopped_client },
	{ "idle_peer_outside_the_library_is_not_lost", absent_server, absent_client },
	{ NULL },
};
