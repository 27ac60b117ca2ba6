/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of servers have in common. */
#include "server_side.h"

struct vb_server *server_here(struct side *side, struct vb_server_options *options)
{
	struct vb_server *server;
	struct vb_error err;

	options->connection.fabric = side->options.fabric;
	options->connection.device = side->options.device;
	if (!options->connection.log) {
		options->connection.log = side->options.log;
		options->connection.log_level = side->options.log_level;
	}
	if (vb_server_open(side->address, "0", options, &server, &err) != 0)
		fail_with(&err, "open the server");
	side->shared->port = vb_server_port(server);
	sem_post(&side->shared->listening);
	return server;
}

struct vb_server *plain_server(struct side *side)
{
	struct vb_server_options options = { .max_clients = 0 };

	return server_here(side, &options);
}

struct vb_server_event next_event(struct vb_server *server)
{
	struct vb_server_event event;
	struct vb_error err;

	if (vb_server_wait(server, -1, &event, &err) != 0)
		fail_with(&err, "wait");
	return event;
}

struct vb_server_event expect_event(struct vb_server *server, enum vb_server_event_kind kind)
{
	struct vb_server_event event = next_event(server);

	if (event.kind != kind && event.kind == VB_CLIENT_LEFT)
		fail_with(&event.why, "a client left");
	CHECK_EQ(event.kind, kind);
	return event;
}

void nobody_is_left(struct vb_server *server)
{
	struct vb_server_event event;

	CHECK_EQ(vb_server_clients(server), 0);
	CHECK_EQ(vb_server_wait(server, 0, &event, NULL), VB_ERR_AGAIN);
	vb_server_close(server);
}

unsigned crowd_size(const struct side *side)
{
	return side->slow ? 12 : CROWD_MAX;
}

void echo_until_left(struct vb_server *server, unsigned clients)
{
	uint32_t next_number[CROWD_MAX] = { 0 };
	struct vb_server_event event;
	struct mark mark;
	unsigned left = 0;

	while (left < clients) {
		event = next_event(server);
		if (event.kind == VB_CLIENT_LEFT) {
			if (event.why.code != VB_ERR_EOF)
				fail_with(&event.why, "a client left");
			left++;
		}
		if (event.kind != VB_CLIENT_MESSAGE)
			continue;
		CHECK(event.len >= sizeof(mark));
		memcpy(&mark, event.message, sizeof(mark));
		CHECK(mark.client < clients);
		CHECK_EQ(mark.number, next_number[mark.client]++);
		send_well(event.client, event.message, event.len);
	}
}

void connect_crowd(struct side *side, struct vb_channel **ch, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		ch[i] = connect_there(side);
}

void send_marked(struct vb_channel *ch, uint32_t client, uint32_t number, size_t len)
{
	uint8_t message[4096];
	struct mark mark = { client, number };

	fill(message, len, client + number);
	memcpy(message, &mark, sizeof(mark));
	send_well(ch, message, len);
}

void take_marked(struct vb_channel *ch, uint32_t client, uint32_t number, size_t len)
{
	uint8_t expected[4096];
	struct mark mark = { client, number };
	const void *message;

	fill(expected, len, client + number);
	memcpy(expected, &mark, sizeof(mark));
	CHECK_EQ(recv_well(ch, &message), len);
	CHECK(!memcmp(message, expected, len));
}

size_t length_of(uint32_t client, uint32_t number)
{
	return sizeof(struct mark) + (client * 977 + number * 131) % 4000;
}

void close_crowd(struct vb_channel **ch, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		close_well(ch[i]);
}

void talk_once(struct vb_channel *ch, uint32_t number)
{
	send_marked(ch, 0, number, 2000);
	take_marked(ch, 0, number, 2000);
}
