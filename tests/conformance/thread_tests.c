/* SPDX-License-Identifier: Apache-2.0 */
/* Several threads on one channel. Run by themselves with --threads, for the thread sanitizer. */
#include <pthread.h>

#include "harness.h"

struct half {
	struct vb_channel *channel;
	unsigned messages;
	size_t len;
};

static void *send_many(void *arg)
{
	struct half *half = arg;
	uint8_t *buffer = malloc(half->len + 1);

	for (unsigned i = 0; i < half->messages; i++) {
		size_t len = half->len * (i % 7 + 1) / 7;

		fill(buffer, len, i);
		send_well(half->channel, buffer, len);
	}
	free(buffer);
	return NULL;
}

static void receive_many(struct half *half)
{
	const void *message;

	for (unsigned i = 0; i < half->messages; i++) {
		size_t len = half->len * (i % 7 + 1) / 7;

		CHECK_EQ(recv_well(half->channel, &message), len);
		CHECK(is_filled(message, len, i));
	}
}

static void both_ways(struct vb_channel *ch, unsigned messages, size_t len)
{
	struct half half = { .channel = ch, .messages = messages, .len = len };
	pthread_t sender;

	CHECK_EQ(pthread_create(&sender, NULL, send_many, &half), 0);
	receive_many(&half);
	pthread_join(sender, NULL);
}

static void small_both(struct side *side, struct vb_channel *ch)
{
	both_ways(ch, side->slow ? 500 : 20000, 100);
	both_ways(ch, side->slow ? 20 : 300, 200000);
	close_well(ch);
}

static void both_server(struct side *side)
{
	small_both(side, serve_one(side));
}

static void both_client(struct side *side)
{
	small_both(side, connect_there(side));
}

#define SENDERS 4
#define EACH 300

struct numbered {
	struct vb_channel *channel;
	uint32_t sender;
};

static void *send_signed(void *arg)
{
	struct numbered *me = arg;

	for (uint32_t i = 0; i < EACH; i++) {
		uint32_t message[2] = { me->sender, i };

		send_well(me->channel, message, sizeof(message));
	}
	return NULL;
}

static void crowd_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	struct numbered senders[SENDERS];
	pthread_t threads[SENDERS];

	for (uint32_t i = 0; i < SENDERS; i++) {
		senders[i] = (struct numbered){ ch, i };
		pthread_create(&threads[i], NULL, send_signed, &senders[i]);
	}
	for (int i = 0; i < SENDERS; i++)
		pthread_join(threads[i], NULL);
	close_well(ch);
}

static void crowd_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);
	uint32_t next[SENDERS] = { 0 }, message[2];
	const void *view;

	for (int i = 0; i < SENDERS * EACH; i++) {
		CHECK_EQ(recv_well(ch, &view), 8);
		memcpy(message, view, 8);
		CHECK(message[0] < SENDERS);
		CHECK_EQ(message[1], next[message[0]]++);
	}
	expect_eof(ch);
	close_well(ch);
}

static void *receive_until_eof(void *arg)
{
	expect_eof(arg);
	return NULL;
}

/* One thread sits in a receive all the while; the other sends. */
static void sitting_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	pthread_t receiver;
	uint8_t buffer[5000];

	pthread_create(&receiver, NULL, receive_until_eof, ch);
	for (uint32_t i = 0; i < 200; i++) {
		fill(buffer, sizeof(buffer), i);
		send_well(ch, buffer, sizeof(buffer));
	}
	signal_step(side, 0);
	pthread_join(receiver, NULL);
	close_well(ch);
}

static void sitting_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);
	struct vb_error err;
	const void *message;

	for (uint32_t i = 0; i < 200; i++) {
		CHECK_EQ(recv_well(ch, &message), 5000);
		CHECK(is_filled(message, 5000, i));
	}
	await_step(side, 0);
	CHECK_EQ(vb_channel_finish(ch, &err), 0);
	expect_eof(ch);
	close_well(ch);
}

const struct test thread_tests[] = {
	{ "both_directions_at_once", both_server, both_client },
	{ "several_threads_may_send", crowd_server, crowd_client },
	{ "one_thread_sends_while_another_waits_in_receive", sitting_server, sitting_client },
	{ NULL },
};
