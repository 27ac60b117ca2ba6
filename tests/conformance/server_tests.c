/* SPDX-License-Identifier: Apache-2.0 */
/* Servers: many clients, one wait. */
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>

#include "core/clock.h"
#include "server_side.h"

/* ---- One client ---- */

static void visit_server(struct side *side)
{
	int fds = count_fds();
	struct vb_server *server = plain_server(side);
	struct vb_server_event joined, event;

	joined = expect_event(server, VB_CLIENT_JOINED);
	CHECK_EQ(vb_server_clients(server), 1);
	CHECK_EQ(vb_channel_max_message(joined.client), 4096);
	CHECK(!*joined.user);
	*joined.user = side;
	event = expect_event(server, VB_CLIENT_MESSAGE);
	CHECK(event.client == joined.client && *event.user == side);
	CHECK_EQ(event.len, 5);
	CHECK(!memcmp(event.message, "hello", 5));
	send_well(event.client, "good day", 8);
	event = expect_event(server, VB_CLIENT_LEFT);
	CHECK(event.client == joined.client && *event.user == side);
	CHECK_EQ(event.why.code, VB_ERR_EOF);
	nobody_is_left(server);
	if (!strcmp(side->fabric, "verbs")) /* libfabric keeps some for itself */
		CHECK(count_fds() <= fds + 3);
}

static void visit_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	const void *message;

	send_well(ch, "hello", 5);
	CHECK_EQ(recv_well(ch, &message), 8);
	close_well(ch);
}

/* Who has finished may still be answered, until the next wait. */
static void last_words_server(struct side *side)
{
	struct vb_server *server = plain_server(side);
	struct vb_server_event event;

	expect_event(server, VB_CLIENT_JOINED);
	expect_event(server, VB_CLIENT_MESSAGE);
	event = expect_event(server, VB_CLIENT_LEFT);
	send_well(event.client, "sum", 3);
	CHECK_EQ(vb_server_wait(server, 100, &event, NULL), VB_ERR_AGAIN);
	await_step(side, 0);
	nobody_is_left(server);
}

static void last_words_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	const void *message;

	send_well(ch, "figures", 7);
	CHECK_EQ(vb_channel_finish(ch, NULL), 0);
	CHECK_EQ(recv_well(ch, &message), 3);
	expect_eof(ch);
	signal_step(side, 0);
	close_well(ch);
}

static void killed_server(struct side *side)
{
	struct vb_server *server = plain_server(side);
	struct vb_server_event event;

	expect_event(server, VB_CLIENT_JOINED);
	expect_event(server, VB_CLIENT_MESSAGE);
	event = expect_event(server, VB_CLIENT_LEFT);
	CHECK_EQ(event.why.code, VB_ERR_LOST);
	CHECK(event.why.cause[0]);
	nobody_is_left(server);
}

static void killed_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);

	send_well(ch, "hello", 5);
	sleep_ms(side->slow ? 300 : 50); /* not faster than the network */
	kill(getpid(), SIGKILL);
}

static void shown_out_server(struct side *side)
{
	struct vb_server *server = plain_server(side);
	struct vb_server_event event = expect_event(server, VB_CLIENT_JOINED);

	send_well(event.client, "go", 2);
	CHECK_EQ(vb_server_close_client(server, event.client, NULL), 0);
	CHECK_EQ(vb_server_clients(server), 0);
	/* Nothing is heard of it any more. */
	CHECK_EQ(vb_server_wait(server, side->slow ? 1000 : 200, &event, NULL), VB_ERR_AGAIN);
	await_step(side, 0);
	nobody_is_left(server);
}

static void shown_out_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	const void *message;

	/* Where the side that accepts may not speak first, it hears this one before it can answer. */
	vb_channel_try_send(ch, "hello", 5, NULL);
	CHECK_EQ(recv_well(ch, &message), 2);
	expect_eof(ch);
	signal_step(side, 0);
	vb_channel_close(ch, NULL);
}

static void no_client_server(struct side *side)
{
	struct vb_server *server = plain_server(side), *other = plain_server(side);
	struct vb_server_event event;
	struct vb_error err;

	event = expect_event(other, VB_CLIENT_JOINED);
	CHECK_EQ(vb_server_close_client(server, event.client, &err), VB_ERR_INVALID);
	vb_server_close(server);
	vb_server_close(other);
}

static void no_client_client(struct side *side)
{
	struct vb_channel *ch;

	while (sem_wait(&side->shared->listening) != 0) /* of the first one */
		;
	ch = connect_there(side);
	expect_eof(ch);
	vb_channel_close(ch, NULL);
}

/* ---- Many ---- */

static void crowd_server(struct side *side)
{
	struct vb_server *server = plain_server(side);

	echo_until_left(server, crowd_size(side));
	nobody_is_left(server);
}

static void crowd_client(struct side *side)
{
	struct vb_channel *ch[CROWD_MAX];
	unsigned n = crowd_size(side), rounds = side->slow ? 5 : 100;

	connect_crowd(side, ch, n);
	for (uint32_t r = 0; r < rounds; r++) {
		for (uint32_t i = 0; i < n; i++)
			send_marked(ch[i], i, r, length_of(i, r));
		for (uint32_t i = 0; i < n; i++)
			take_marked(ch[i], i, r, length_of(i, r));
	}
	close_crowd(ch, n);
}

/* One sends without pause until the other one has been heard; if it never were, this would not end. */
static void fair_server(struct side *side)
{
	struct vb_server_options options = { .connection.depth = 64 };
	struct vb_server *server = server_here(side, &options);
	unsigned loud = 0, left = 0;
	struct vb_server_event event;

	while (left < 2) {
		event = next_event(server);
		left += event.kind == VB_CLIENT_LEFT;
		if (event.kind != VB_CLIENT_MESSAGE)
			continue;
		loud += event.len == 4;
		if (event.len != 4)
			send_well(event.client, "heard", 5);
	}
	CHECK(loud > 100);
	nobody_is_left(server);
}

static void *be_loud(void *arg)
{
	struct side *side = arg;
	struct vb_channel *ch;

	side->options.depth = 64;
	ch = connect_there(side);
	for (unsigned i = 0; !side->shared->note; i++) {
		send_well(ch, "loud", 4);
		if (i == 100)
			signal_step(side, 1);
	}
	close_well(ch);
	return NULL;
}

static void fair_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	const void *message;
	pthread_t loud;

	CHECK_EQ(pthread_create(&loud, NULL, be_loud, side), 0);
	await_step(side, 1);
	for (int i = 0; i < 10; i++) {
		send_well(ch, "quiet!", 6);
		CHECK_EQ(recv_well(ch, &message), 5);
	}
	side->shared->note = 1;
	pthread_join(loud, NULL);
	close_well(ch);
}

static void full_server(struct side *side)
{
	struct vb_server_options options = { .max_clients = 2 };
	struct vb_server *server = server_here(side, &options);
	struct vb_server_event event;

	expect_event(server, VB_CLIENT_JOINED);
	expect_event(server, VB_CLIENT_JOINED);
	/* One was refused meanwhile; when another one has gone there is room. */
	expect_event(server, VB_CLIENT_LEFT);
	CHECK_EQ(vb_server_clients(server), 1);
	expect_event(server, VB_CLIENT_JOINED);
	while (vb_server_clients(server))
		event = expect_event(server, VB_CLIENT_LEFT);
	CHECK_EQ(event.why.code, VB_ERR_EOF);
	vb_server_close(server);
}

static void full_client(struct side *side)
{
	struct vb_channel *first = connect_there(side), *second = connect_there(side), *third;
	struct vb_error err;

	side->options.listener_is_up = true;
	CHECK_EQ(vb_channel_connect(side->address, port_there(side), &side->options, &third, &err),
		 VB_ERR_REFUSED);
	CHECK(strstr(err.cause, "busy"));
	close_well(first);
	side->options.listener_is_up = false;
	third = connect_there(side);
	close_well(third);
	close_well(second);
}

/* ---- The end, and event loops ---- */

static void closing_server(struct side *side)
{
	struct vb_server *server = plain_server(side);
	unsigned heard = 0;

	while (heard < 20)
		heard += next_event(server).kind == VB_CLIENT_MESSAGE;
	vb_server_close(server);
	signal_step(side, 0);
}

static void closing_client(struct side *side)
{
	struct vb_channel *ch[4];
	struct vb_error err;
	bool open[4] = { true, true, true, true };
	int rc;

	connect_crowd(side, ch, 4);
	for (unsigned left = 4; left;) {
		for (int i = 0; i < 4; i++) {
			rc = open[i] ? vb_channel_try_send(ch[i], "more", 4, &err) : VB_ERR_AGAIN;
			if (rc == 0 || rc == VB_ERR_AGAIN)
				continue;
			if (rc != VB_ERR_CLOSED && rc != VB_ERR_LOST)
				fail_with(&err, "send");
			open[i] = false;
			left--;
		}
		sleep_ms(1);
	}
	await_step(side, 0);
	for (int i = 0; i < 4; i++)
		vb_channel_abort(ch[i]);
}

/* In an epoll set: the descriptor is readable when there is something, and only then for long. */
static void loop_server(struct side *side)
{
	struct vb_server *server = plain_server(side);
	struct epoll_event readable = { .events = EPOLLIN };
	unsigned messages = 0, left = 0, in_vain = 0;
	int rc, epoll = epoll_create1(EPOLL_CLOEXEC);
	struct vb_server_event event;

	CHECK_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, vb_server_fd(server), &readable), 0);
	while (left < 2) {
		rc = vb_server_wait(server, 0, &event, NULL);
		if (rc == VB_ERR_AGAIN) {
			CHECK_EQ(epoll_wait(epoll, &readable, 1, 20000), 1);
			CHECK(in_vain++ < 5000);
			continue;
		}
		CHECK_EQ(rc, 0);
		messages += event.kind == VB_CLIENT_MESSAGE;
		left += event.kind == VB_CLIENT_LEFT;
		if (event.kind == VB_CLIENT_MESSAGE)
			send_well(event.client, event.message, event.len);
	}
	CHECK_EQ(messages, 40);
	vb_server_close(server);
	close(epoll);
}

static void loop_client(struct side *side)
{
	struct vb_channel *a = connect_there(side), *b = connect_there(side);

	for (uint32_t i = 0; i < 20; i++) {
		talk_once(a, i);
		if (i == 10)
			sleep_ms(50);
		talk_once(b, i);
	}
	close_well(a);
	close_well(b);
}

static void patience_server(struct side *side)
{
	struct vb_server *server = plain_server(side);
	struct vb_server_event event;
	uint64_t start = vb__now_ns();

	CHECK_EQ(vb_server_wait(server, 0, &event, NULL), VB_ERR_AGAIN);
	CHECK_EQ(vb_server_wait(server, 100, &event, NULL), VB_ERR_AGAIN);
	CHECK(vb__now_ns() - start >= vb__ms(100));
	signal_step(side, 1);
	expect_event(server, VB_CLIENT_JOINED);
	expect_event(server, VB_CLIENT_MESSAGE);
	start = vb__now_ns();
	CHECK_EQ(vb_server_wait(server, 100, &event, NULL), VB_ERR_AGAIN);
	CHECK(vb__now_ns() - start >= vb__ms(100));
	signal_step(side, 0);
	expect_event(server, VB_CLIENT_LEFT);
	nobody_is_left(server);
}

static void patience_client(struct side *side)
{
	struct vb_channel *ch;

	await_step(side, 1);
	ch = connect_there(side);
	send_well(ch, "hello", 5);
	await_step(side, 0);
	close_well(ch);
}

/* ---- Memory ---- */

/* Granted to one client: it puts, and the server hears of it by a message. */
/* The first that the server sends is a notice, behind bytes in a client's memory. */
static void notifying_server(struct side *side)
{
	struct vb_server *server = plain_server(side);
	struct vb_server_event event = expect_event(server, VB_CLIENT_JOINED);
	struct vb_channel *client = event.client;
	struct vb_token token;
	struct vb_error err;

	event = expect_event(server, VB_CLIENT_MESSAGE);
	CHECK_EQ(event.len, sizeof(token));
	memcpy(&token, event.message, sizeof(token));
	if (vb_put_notify(client, &token, 0, "12345678", 8, 42, &err) != 0)
		fail_with(&err, "put and notify");
	expect_event(server, VB_CLIENT_LEFT);
	nobody_is_left(server);
}

static void notified_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	struct vb_region *region;
	struct vb_grant *grant;
	struct vb_error err;
	uint32_t number;

	CHECK_EQ(vb_region_alloc(ch, 8, &region, &err), 0);
	CHECK_EQ(vb_grant(region, 0, 8, VB_RIGHT_WRITE, &grant, &err), 0);
	send_well(ch, vb_grant_token(grant), sizeof(struct vb_token));
	CHECK_EQ(vb_notice_wait(ch, &number, &err), 0);
	CHECK_EQ(number, 42);
	CHECK(!memcmp(vb_region_addr(region), "12345678", 8));
	vb_region_close(region);
	close_well(ch);
}

static void lending_server(struct side *side)
{
	struct vb_server *server = plain_server(side);
	struct vb_server_event event = expect_event(server, VB_CLIENT_JOINED);
	struct vb_region *region;
	struct vb_grant *grant;
	struct vb_error err;
	int rc;

	CHECK_EQ(vb_region_alloc(event.client, 4096, &region, &err), 0);
	rc = vb_grant(region, 0, 4096, VB_RIGHT_WRITE, &grant, &err);
	/* Refused where other clients could use it as well. */
	CHECK(rc == 0 || (rc == VB_ERR_UNSUPPORTED && !strcmp(side->fabric, "verbs")));
	side->shared->number[0] = rc == 0;
	expect_event(server, VB_CLIENT_MESSAGE);
	send_well(event.client, rc ? "no" : (const void *)vb_grant_token(grant),
		  rc ? 2 : sizeof(struct vb_token));
	expect_event(server, VB_CLIENT_MESSAGE);
	if (rc == 0)
		CHECK(is_filled(vb_region_addr(region), 1000, 7));
	vb_region_close(region);
	expect_event(server, VB_CLIENT_LEFT);
	nobody_is_left(server);
}

static void lending_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	struct vb_token token;
	uint8_t data[1000];
	const void *message;
	struct vb_error err;

	send_well(ch, "may I?", 6);
	if (recv_well(ch, &message) == sizeof(token)) {
		memcpy(&token, message, sizeof(token));
		fill(data, sizeof(data), 7);
		if (vb_put(ch, &token, 0, data, sizeof(data), &err) != 0)
			fail_with(&err, "put");
	}
	send_well(ch, "done", 4);
	close_well(ch);
}

const struct test server_tests[] = {
	{ "server_tells_who_joins_speaks_and_leaves", visit_server, visit_client },
	{ "server_may_answer_who_has_finished", last_words_server, last_words_client },
	{ "server_tells_a_killed_client_from_one_that_left", killed_server, killed_client, RETURNS,
	  DIES },
	{ "server_ends_a_client_in_good_order", shown_out_server, shown_out_client },
	{ "server_does_not_end_what_is_no_client_of_its", no_client_server, no_client_client },
	{ "server_keeps_the_order_of_each_of_many_clients", crowd_server, crowd_client },
	{ "server_hears_the_quiet_beside_the_loud", fair_server, fair_client },
	{ "server_refuses_as_busy_beyond_its_limit", full_server, full_client },
	{ "server_closes_while_clients_send", closing_server, closing_client },
	{ "server_grants_memory_to_a_client", lending_server, lending_client },
	{ "server_may_notify_before_it_sends", notifying_server, notified_client },
	{ "server_stands_in_an_event_loop", loop_server, loop_client },
	{ "server_waits_no_longer_than_it_is_told", patience_server, patience_client },
	{ NULL },
};
