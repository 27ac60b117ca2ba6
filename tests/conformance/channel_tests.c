/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between two healthy peers. */
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include "harness.h"

static unsigned some(const struct side *side, unsigned n)
{
	return side->slow ? n / 10 : n;
}

/* A size for message i that visits the odd corners now and then. */
static size_t size_of(unsigned i, size_t max)
{
	static const size_t odd[] = { 0, 1, 7, 8, 9, 63, 64, 1023, 1024, 1025, 2047, 2048, 2049 };

	if (i % 97 == 96)
		return max;
	if (i % 5 == 0)
		return odd[i / 5 % (sizeof(odd) / sizeof(odd[0]))];
	return (i * 7919u) % 5000;
}

static void receive_numbered(struct vb_channel *ch, unsigned n)
{
	const void *message;

	for (unsigned i = 0; i < n; i++) {
		ssize_t len = recv_well(ch, &message);

		CHECK_EQ(len, size_of(i, vb_channel_max_message(ch)));
		CHECK(is_filled(message, (size_t)len, i));
	}
}

static void send_numbered(struct vb_channel *ch, unsigned n)
{
	uint8_t *buffer = malloc(vb_channel_max_message(ch));

	for (unsigned i = 0; i < n; i++) {
		size_t len = size_of(i, vb_channel_max_message(ch));

		fill(buffer, len, i);
		send_well(ch, buffer, len);
		memset(buffer, 0xee, len); /* it is ours again */
	}
	free(buffer);
}

static void order_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);

	receive_numbered(ch, some(side, 3000));
	expect_eof(ch);
	close_well(ch);
}

static void order_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);

	send_numbered(ch, some(side, 3000));
	close_well(ch);
}

static void deep_server(struct side *side)
{
	side->options.depth = 64;
	side->options.max_message_bytes = 8192;
	order_server(side);
}

static void deep_client(struct side *side)
{
	side->options.depth = 64;
	side->options.max_message_bytes = 8192;
	order_client(side);
}

static void shallow_server(struct side *side)
{
	side->options.depth = 1;
	order_server(side);
}

static void shallow_client(struct side *side)
{
	side->options.depth = 1;
	order_client(side);
}

/* Sizes around everything that changes how a message travels. */
static const size_t corners[] = { 0,	 1,	100,   127,   128,   129,     220,    221,  1023,
				  1024,	 1025,	2047,  2048,  2049,  4095,    4096,   4097, 16383,
				  16384, 16385, 65535, 65536, 65537, 1048575, 1048576 };

static void corners_server(struct side *side)
{
	struct vb_channel *ch;
	const void *message;

	side->options.max_message_bytes = 1 << 20;
	ch = serve_one(side);
	for (unsigned i = 0; i < sizeof(corners) / sizeof(corners[0]); i++) {
		CHECK_EQ(recv_well(ch, &message), corners[i]);
		CHECK(is_filled(message, corners[i], i));
		send_well(ch, message, corners[i]);
	}
	expect_eof(ch);
	close_well(ch);
}

static void corners_client(struct side *side)
{
	uint8_t *buffer = malloc(1 << 20);
	struct vb_channel *ch;
	const void *message;

	side->options.max_message_bytes = 1 << 20;
	ch = connect_there(side);
	for (unsigned i = 0; i < sizeof(corners) / sizeof(corners[0]); i++) {
		fill(buffer, corners[i], i);
		send_well(ch, buffer, corners[i]);
		CHECK_EQ(recv_well(ch, &message), corners[i]);
		CHECK(is_filled(message, corners[i], i));
	}
	close_well(ch);
	free(buffer);
}

static void empty_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);
	const void *message;

	for (int i = 0; i < 50; i++)
		CHECK_EQ(recv_well(ch, &message), 0);
	expect_eof(ch);
	close_well(ch);
}

static void empty_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);

	for (int i = 0; i < 50; i++)
		send_well(ch, NULL, 0);
	close_well(ch);
}

static void oversize_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);
	const void *message;

	CHECK_EQ(recv_well(ch, &message), 5);
	CHECK(!memcmp(message, "small", 5));
	expect_eof(ch);
	close_well(ch);
}

static void oversize_client(struct side *side)
{
	struct vb_channel *ch;
	struct vb_counters counters, before;
	struct vb_error err;
	uint8_t *big;

	side->options.max_message_bytes = 4096;
	ch = connect_there(side);
	CHECK_EQ(vb_channel_max_message(ch), 4096);
	big = calloc(1, 4097);
	vb_channel_counters(ch, &before);
	CHECK_EQ(vb_channel_send(ch, big, 4097, &err), VB_ERR_TOO_BIG);
	CHECK(strstr(err.hint, "4097") && strstr(err.hint, "4096"));
	vb_channel_counters(ch, &counters);
	CHECK_EQ(counters.messages_sent, 0);
	CHECK_EQ(counters.packets_sent, before.packets_sent);
	send_well(ch, "small", 5);
	close_well(ch);
	free(big);
}

static void agree_server(struct side *side)
{
	struct vb_channel *ch;

	side->options.max_message_bytes = 100000;
	side->options.depth = 3;
	ch = serve_one(side);
	CHECK_EQ(vb_channel_max_message(ch), 50000);
	CHECK_EQ(vb_channel_depth(ch), 3);
	expect_eof(ch);
	close_well(ch);
}

static void agree_client(struct side *side)
{
	struct vb_channel *ch;

	side->options.max_message_bytes = 50000;
	side->options.depth = 9;
	ch = connect_there(side);
	CHECK_EQ(vb_channel_max_message(ch), 50000);
	CHECK_EQ(vb_channel_depth(ch), 3);
	close_well(ch);
}

static void slow_reader_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);
	const void *message;

	for (uint32_t i = 0; i < 20; i++) {
		CHECK_EQ(recv_well(ch, &message), 100000);
		CHECK(is_filled(message, 100000, i));
		sleep_ms(20);
	}
	expect_eof(ch);
	close_well(ch);
}

static void slow_reader_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	struct vb_counters counters;
	uint8_t *buffer = malloc(100000);

	for (uint32_t i = 0; i < 20; i++) {
		fill(buffer, 100000, i);
		send_well(ch, buffer, 100000);
	}
	vb_channel_counters(ch, &counters);
	CHECK(counters.credit_stalls > 0);
	CHECK_EQ(counters.messages_sent, 20);
	CHECK_EQ(counters.bytes_sent, 20 * 100000);
	close_well(ch);
	free(buffer);
}

static void slow_writer_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);
	const void *message;

	for (int i = 0; i < 5; i++) {
		CHECK_EQ(recv_well(ch, &message), 4);
		signal_step(side, 0);
	}
	expect_eof(ch);
	close_well(ch);
}

/* Each message must arrive without any further call of the sender. */
static void slow_writer_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);

	for (int i = 0; i < 5; i++) {
		sleep_ms(30);
		send_well(ch, "tick", 4);
		await_step(side, 0);
	}
	close_well(ch);
}

static void burst_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);
	const void *message;

	for (uint32_t i = 0; i < 500; i++) {
		CHECK_EQ(recv_well(ch, &message), 64);
		CHECK(is_filled(message, 64, i));
	}
	signal_step(side, 0);
	expect_eof(ch);
	close_well(ch);
}

/* Messages that were put together must not stay behind when the sender does something else. */
static void burst_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	uint8_t message[64];

	for (uint32_t i = 0; i < 500; i++) {
		fill(message, sizeof(message), i);
		send_well(ch, message, sizeof(message));
	}
	await_step(side, 0);
	close_well(ch);
}

/* More than sockets and queues on the way take at once; behind it a few small ones. */
#define MASS_BYTES (1u << 20)

static uint32_t mass_depth(const struct side *side)
{
	return side->slow ? 16 : 40;
}

static void mass_server(struct side *side)
{
	struct vb_channel *ch;
	const void *message;

	side->options.max_message_bytes = MASS_BYTES;
	side->options.depth = mass_depth(side);
	ch = serve_one(side);
	await_step(side, 1);
	for (uint32_t i = 0; i < mass_depth(side); i++) {
		size_t len = i < mass_depth(side) - 4 ? MASS_BYTES : 100;

		CHECK_EQ(recv_well(ch, &message), len);
		CHECK(is_filled(message, len, i));
	}
	signal_step(side, 0);
	expect_eof(ch);
	close_well(ch);
}

/* They leave one after the other as there is room, whatever the sender does meanwhile. */
static void mass_client(struct side *side)
{
	uint8_t *message = malloc(MASS_BYTES);
	struct vb_channel *ch;
	struct vb_error err;

	side->options.max_message_bytes = MASS_BYTES;
	side->options.depth = mass_depth(side);
	ch = connect_there(side);
	alarm(20);
	for (uint32_t i = 0; i < mass_depth(side); i++) {
		size_t len = i < mass_depth(side) - 4 ? MASS_BYTES : 100;

		fill(message, len, i);
		CHECK_EQ(vb_channel_try_send(ch, message, len, &err), 0);
	}
	signal_step(side, 1);
	await_step(side, 0);
	close_well(ch);
	free(message);
}

/* Both fill all the room there is and then take turns: nobody may be left without credits. */
static void lockstep(struct vb_channel *ch, unsigned rounds)
{
	uint8_t buffer[3000] = { 0 };
	const void *message;

	for (unsigned i = 0; i < vb_channel_depth(ch); i++)
		send_well(ch, buffer, sizeof(buffer));
	for (unsigned i = 0; i < rounds; i++) {
		CHECK_EQ(recv_well(ch, &message), sizeof(buffer));
		send_well(ch, buffer, sizeof(buffer));
	}
	for (unsigned i = 0; i < vb_channel_depth(ch); i++)
		CHECK_EQ(recv_well(ch, &message), sizeof(buffer));
	close_well(ch);
}

static void wait_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	CHECK(poll(&p, 1, 30000) == 1);
}

/* The same in an event loop that sends before it receives. */
static void eager(struct vb_channel *ch, unsigned rounds)
{
	uint8_t buffer[3000] = { 0 };
	const void *message;
	struct vb_error err;
	int rc;

	for (unsigned i = 0; i < vb_channel_depth(ch); i++)
		send_well(ch, buffer, sizeof(buffer));
	for (unsigned i = 0; i < rounds; i++) {
		CHECK_EQ(recv_well(ch, &message), sizeof(buffer));
		while ((rc = vb_channel_try_send(ch, buffer, sizeof(buffer), &err)) == VB_ERR_AGAIN)
			wait_readable(vb_channel_fd(ch, NULL));
		CHECK_EQ(rc, 0);
	}
	for (unsigned i = 0; i < vb_channel_depth(ch); i++)
		CHECK_EQ(recv_well(ch, &message), sizeof(buffer));
	close_well(ch);
}

static void lockstep_server(struct side *side)
{
	struct vb_listener *listener = listen_here(side);

	for (unsigned depth = 1; depth <= 9; depth++) {
		lockstep(accept_one(side, listener), 20);
		eager(accept_one(side, listener), 20);
	}
	vb_listener_close(listener);
}

static void lockstep_client(struct side *side)
{
	for (unsigned depth = 1; depth <= 9; depth++) {
		side->options.depth = depth;
		lockstep(connect_there(side), 20);
		eager(connect_there(side), 20);
	}
}

static void lockstep_server_deep(struct side *side)
{
	side->options.depth = 9;
	lockstep_server(side);
}

static void gather_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);
	const void *message;

	CHECK_EQ(recv_well(ch, &message), 12);
	CHECK(!memcmp(message, "one, two, 3.", 12));
	CHECK_EQ(recv_well(ch, &message), 30 * 40000);
	CHECK(is_filled(message, 30 * 40000, 5));
	CHECK_EQ(recv_well(ch, &message), 0);
	expect_eof(ch);
	close_well(ch);
}

static void gather_client(struct side *side)
{
	struct iovec few[] = { { "one, ", 5 }, { NULL, 0 }, { "two, ", 5 }, { "3.", 2 } };
	struct iovec many[30];
	uint8_t *buffer = malloc(30 * 40000);
	struct vb_channel *ch;
	struct vb_error err;

	side->options.max_message_bytes = 2 << 20;
	ch = connect_there(side);
	fill(buffer, 30 * 40000, 5);
	for (int i = 0; i < 30; i++)
		many[i] = (struct iovec){ buffer + i * 40000, 40000 };
	CHECK_EQ(vb_channel_sendv(ch, few, 4, &err), 0);
	CHECK_EQ(vb_channel_sendv(ch, many, 30, &err), 0);
	CHECK_EQ(vb_channel_sendv(ch, NULL, 0, &err), 0);
	CHECK_EQ(vb_channel_sendv(ch, NULL, 1, &err), VB_ERR_INVALID);
	CHECK_EQ(vb_channel_sendv(ch, few, -1, &err), VB_ERR_INVALID);
	close_well(ch);
	free(buffer);
}

static void gather_server_big(struct side *side)
{
	side->options.max_message_bytes = 2 << 20;
	gather_server(side);
}

#define ZC_LEN 200000

static void zero_copy_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);
	const void *message;

	for (uint32_t i = 0; i < 41; i++) {
		CHECK_EQ(recv_well(ch, &message), ZC_LEN);
		CHECK(is_filled(message, ZC_LEN, i));
	}
	expect_eof(ch);
	close_well(ch);
}

static void zero_copy_client(struct side *side)
{
	struct vb_region *region, *other;
	uint8_t *memory = malloc(4 * ZC_LEN);
	int64_t tickets[4] = { 0 };
	struct vb_counters counters;
	struct vb_channel *ch;
	struct vb_error err;

	side->options.depth = 4;
	ch = connect_there(side);
	CHECK_EQ(vb_region_open(ch, memory, 4 * ZC_LEN, &region, &err), 0);
	CHECK_EQ(vb_region_open(ch, memory + 10, 20, &other, &err), VB_ERR_INVALID);
	for (uint32_t i = 0; i < 40; i++) {
		uint8_t *part = memory + i % 4 * ZC_LEN;
		struct iovec pieces[2] = { { part, 1000 }, { part + 1000, ZC_LEN - 1000 } };

		CHECK_EQ(vb_channel_wait(ch, tickets[i % 4], &err), 0);
		fill(part, ZC_LEN, i);
		tickets[i % 4] = vb_channel_post(ch, pieces, 2, &err);
		CHECK(tickets[i % 4] > 0);
	}
	CHECK_EQ(vb_channel_wait(ch, tickets[3], &err), 0);
	CHECK_EQ(vb_channel_wait(ch, tickets[3] + 1000, &err), VB_ERR_INVALID);
	fill(memory, ZC_LEN, 40);
	CHECK_EQ(vb_channel_send(ch, memory, ZC_LEN, &err), 0);
	memset(memory, 0, ZC_LEN); /* it is ours again */
	vb_channel_counters(ch, &counters);
	CHECK_EQ(counters.bytes_sent, 41 * ZC_LEN);
	CHECK_EQ(counters.bytes_copied, 0);
	vb_region_close(region);
	CHECK_EQ(vb_region_open(ch, memory + 10, 20, &other, &err), 0);
	vb_region_close(other);
	close_well(ch);
	free(memory);
}

static void zero_copy_server_deep(struct side *side)
{
	side->options.depth = 4;
	zero_copy_server(side);
}

/* From a region, with its end outside, and from elsewhere. */
static const struct lent_case {
	size_t at, len, copied_ofi, copied_verbs;
} lent_cases[] = {
	{ 0, 2048, 2048, 0 }, /* only where posting is slow it may travel together */
	{ 0, 2049, 0, 0 },
	{ 0, 16384, 0, 0 },
	{ 3000, 16384, 0, 0 },
	{ 20000 - 16383, 16384, 16384, 16384 },
	{ 20000, 16384, 16384, 16384 },
};

static void lent_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);
	const void *message;

	for (uint32_t i = 0; i < sizeof(lent_cases) / sizeof(lent_cases[0]); i++) {
		CHECK_EQ(recv_well(ch, &message), lent_cases[i].len);
		CHECK(is_filled(message, lent_cases[i].len, i));
	}
	expect_eof(ch);
	close_well(ch);
}

static void lent_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	struct vb_counters before, after;
	struct vb_region *region;
	uint8_t *memory = malloc(40000);
	struct vb_error err;

	CHECK_EQ(vb_region_open(ch, memory, 20000, &region, &err), 0);
	vb_channel_counters(ch, &before);
	for (uint32_t i = 0; i < sizeof(lent_cases) / sizeof(lent_cases[0]); i++) {
		const struct lent_case *c = &lent_cases[i];

		fill(memory + c->at, c->len, i);
		CHECK_EQ(vb_channel_send(ch, memory + c->at, c->len, &err), 0);
		memset(memory + c->at, 0, c->len);
		vb_channel_counters(ch, &after);
		CHECK_EQ(after.bytes_copied - before.bytes_copied,
			 strcmp(side->fabric, "ofi") ? c->copied_verbs : c->copied_ofi);
		before = after;
	}
	vb_region_close(region);
	close_well(ch);
	free(memory);
}

/* An echo in one event loop, without a blocking call. */
static void echo_all(struct vb_channel *ch)
{
	const void *message;
	struct vb_error err;
	ssize_t n;

	for (;;) {
		while ((n = vb_channel_try_recv(ch, &message, &err)) == VB_ERR_AGAIN)
			wait_readable(vb_channel_fd(ch, NULL));
		if (n == VB_ERR_EOF)
			return;
		CHECK(n >= 0);
		while (vb_channel_try_send(ch, message, (size_t)n, &err) == VB_ERR_AGAIN)
			wait_readable(vb_channel_fd(ch, NULL));
		CHECK_EQ(err.code, VB_OK);
	}
}

static void nonblocking_server(struct side *side)
{
	struct vb_listener *listener = listen_here(side);
	struct vb_channel *ch;
	struct vb_error err;

	CHECK_EQ(vb_listener_try_accept(listener, &ch, &err), VB_ERR_AGAIN);
	signal_step(side, 0);
	while (vb_listener_try_accept(listener, &ch, &err) == VB_ERR_AGAIN)
		wait_readable(vb_listener_fd(listener));
	CHECK_EQ(err.code, VB_OK);
	vb_listener_close(listener);
	echo_all(ch);
	while (vb_channel_try_finish(ch, &err) == VB_ERR_AGAIN)
		wait_readable(vb_channel_fd(ch, NULL));
	CHECK_EQ(err.code, VB_OK);
	while (vb_channel_try_close(ch, &err) == VB_ERR_AGAIN)
		wait_readable(vb_channel_fd(ch, NULL));
	CHECK_EQ(err.code, VB_OK);
}

static void nonblocking_client(struct side *side)
{
	unsigned n = some(side, 500);
	struct vb_channel *ch;
	const void *message;
	uint8_t buffer[3000];
	struct vb_error err;

	await_step(side, 0);
	ch = connect_there(side);
	CHECK_EQ(vb_channel_try_recv(ch, &message, &err), VB_ERR_AGAIN);
	for (uint32_t i = 0; i < n; i++) {
		size_t len = i * 37 % sizeof(buffer);

		fill(buffer, len, i);
		send_well(ch, buffer, len);
		CHECK_EQ(recv_well(ch, &message), len);
		CHECK(is_filled(message, len, i));
	}
	CHECK_EQ(vb_channel_finish(ch, &err), 0);
	expect_eof(ch);
	close_well(ch);
}

#define POSTS 9u
#define POST_LEN (4u << 20)

/* Until the buffer is ours again; what other calls take in meanwhile is not missed. */
static void await_buffer(struct vb_channel *ch, int64_t ticket)
{
	const void *message;
	struct vb_error err;

	while (vb_channel_try_wait(ch, ticket, &err) == VB_ERR_AGAIN) {
		CHECK_EQ(vb_channel_try_recv(ch, &message, &err), VB_ERR_AGAIN);
		wait_readable(vb_channel_fd(ch, NULL));
	}
	CHECK_EQ(err.code, VB_OK);
}

/* The peer takes nothing before it is told to, and so no buffer but what the network holds is free. */
static void post_all(struct side *side, struct vb_channel *ch, uint8_t *memory)
{
	int64_t tickets[4] = { 0 };
	struct vb_error err;

	for (uint32_t i = 0; i < POSTS; i++) {
		struct iovec piece = { memory + i % 4 * POST_LEN, POST_LEN };

		if (i == 4) {
			int rc = vb_channel_try_wait(ch, tickets[3], &err);

			CHECK(rc == VB_ERR_AGAIN || (rc == 0 && strcmp(side->fabric, "ofi") != 0));
			signal_step(side, 0);
		}
		await_buffer(ch, tickets[i % 4]);
		fill(piece.iov_base, POST_LEN, i);
		while ((tickets[i % 4] = vb_channel_try_post(ch, &piece, 1, &err)) == VB_ERR_AGAIN)
			wait_readable(vb_channel_fd(ch, NULL));
		CHECK(tickets[i % 4] > 0);
	}
	CHECK_EQ(vb_channel_try_wait(ch, tickets[(POSTS - 1) % 4] + 1, &err), VB_ERR_INVALID);
	await_buffer(ch, tickets[(POSTS - 1) % 4]);
}

static void posting_server(struct side *side)
{
	struct vb_channel *ch;
	const void *message;

	side->options.max_message_bytes = POST_LEN;
	side->options.depth = 8;
	ch = serve_one(side);
	await_step(side, 0);
	for (uint32_t i = 0; i < POSTS; i++) {
		CHECK_EQ(recv_well(ch, &message), POST_LEN);
		CHECK(is_filled(message, POST_LEN, i));
	}
	expect_eof(ch);
	close_well(ch);
}

static void posting_client(struct side *side)
{
	struct vb_counters counters;
	struct vb_region *region;
	struct vb_channel *ch;

	side->options.max_message_bytes = POST_LEN;
	side->options.depth = 4;
	ch = connect_there(side);
	CHECK_EQ(vb_region_alloc(ch, 4 * POST_LEN, &region, NULL), 0);
	post_all(side, ch, vb_region_addr(region));
	vb_channel_counters(ch, &counters);
	CHECK_EQ(counters.bytes_copied, 0);
	vb_region_close(region);
	close_well(ch);
}

/* Credits that a call for something else takes in must still wake the loop that waits for them. */
static void taken_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);
	const void *message;

	await_step(side, 0);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(recv_well(ch, &message), 3000);
	CHECK_EQ(vb_channel_try_recv(ch, &message, NULL), VB_ERR_AGAIN); /* returns the credits */
	signal_step(side, 1);
	await_step(side, 2);
	CHECK_EQ(recv_well(ch, &message), 1);
	expect_eof(ch);
	close_well(ch);
}

static void taken_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	struct pollfd p = { .fd = vb_channel_fd(ch, NULL), .events = POLLIN };
	uint8_t buffer[3000] = { 0 };
	const void *message;
	struct vb_error err;

	while (vb_channel_try_send(ch, buffer, sizeof(buffer), &err) == 0)
		;
	signal_step(side, 0);
	await_step(side, 1);
	sleep_ms(50); /* the credits are here, or nearly */
	CHECK_EQ(vb_channel_try_recv(ch, &message, &err), VB_ERR_AGAIN);
	CHECK_EQ(poll(&p, 1, 1500), 1); /* less than a tick of the keep-alive */
	CHECK_EQ(vb_channel_try_send(ch, buffer, 1, &err), 0);
	signal_step(side, 2);
	close_well(ch);
}

/* Reads nothing until it is told to. */
static void busy_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);
	const void *message;
	ssize_t n;

	await_step(side, 0);
	while ((n = vb_channel_recv(ch, &message, NULL)) >= 0)
		CHECK_EQ(n, 100);
	CHECK_EQ(n, VB_ERR_EOF);
	close_well(ch);
}

/* While a thread of the library may be waiting for room, the loop's calls come back, and it sleeps. */
static void loop_without_room_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	struct pollfd p = { .fd = vb_channel_fd(ch, NULL), .events = POLLIN };
	uint8_t buffer[100] = { 0 };
	const void *message;
	unsigned wakes = 0;

	while (vb_channel_try_send(ch, buffer, sizeof(buffer), NULL) == 0)
		;
	for (int i = 0; i < 5; i++) {
		sleep_ms(20); /* it has fallen asleep by now, or not: both must do */
		CHECK_EQ(vb_channel_try_recv(ch, &message, NULL), VB_ERR_AGAIN);
		CHECK_EQ(vb_channel_try_send(ch, buffer, sizeof(buffer), NULL), VB_ERR_AGAIN);
		while (poll(&p, 1, 50) > 0 && wakes++ < 100)
			vb_channel_try_recv(ch, &message, NULL);
	}
	CHECK(wakes < 100);
	signal_step(side, 0);
	close_well(ch);
}

/* Whatever is missing, nothing stays open, and when it is there again the loop works. */
static void loop_without_descriptors_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	struct rlimit before, now;
	int lowest = dup(0);

	close(lowest);
	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
	for (unsigned room = 0; room < 2; room++) {
		struct vb_error err;

		now = before;
		now.rlim_cur = (rlim_t)lowest + room;
		CHECK_EQ(setrlimit(RLIMIT_NOFILE, &now), 0);
		CHECK_EQ(vb_channel_fd(ch, &err), VB_ERR_SYSTEM);
		CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
		CHECK_EQ(err.native, EMFILE);
		CHECK(strstr(err.hint, "ulimit -n"));
		CHECK_EQ(dup(0), lowest);
		close(lowest);
	}
	signal_step(side, 0);
	CHECK_EQ(vb_channel_fd(ch, NULL), lowest);
	CHECK_EQ(vb_channel_fd(ch, NULL), lowest);
	close_well(ch);
}

#define MANY 100

/* Answers and closes whatever comes, in whichever order: that of the clients may be another. */
static int look_after_all(struct vb_channel **channels)
{
	const void *message;
	struct vb_error err;
	int left = 0;

	for (int i = 0; i < MANY; i++) {
		ssize_t len = channels[i] ? vb_channel_try_recv(channels[i], &message, &err) : 0;

		if (len == VB_ERR_EOF) {
			close_well(channels[i]);
			channels[i] = NULL;
		} else if (len == 4) {
			send_well(channels[i], message, 4);
		} else if (channels[i]) {
			CHECK_EQ(len, VB_ERR_AGAIN);
		}
		left += channels[i] != NULL;
	}
	return left;
}

static void many_server(struct side *side)
{
	struct vb_channel *channels[MANY];
	struct vb_listener *listener = listen_here(side);

	for (int i = 0; i < MANY; i++)
		channels[i] = accept_one(side, listener);
	vb_listener_close(listener);
	while (look_after_all(channels))
		sleep_ms(1);
}

static void many_client(struct side *side)
{
	struct vb_channel *channels[MANY];
	const void *message;

	for (int i = 0; i < MANY; i++)
		channels[i] = connect_there(side);
	for (int i = 0; i < MANY; i++)
		send_well(channels[i], &i, 4);
	for (int i = 0; i < MANY; i++) {
		CHECK_EQ(recv_well(channels[i], &message), 4);
		CHECK(!memcmp(message, &i, 4));
		close_well(channels[i]);
	}
}

static void small_many_server(struct side *side)
{
	side->options.max_message_bytes = 4096;
	many_server(side);
}

static void small_many_client(struct side *side)
{
	side->options.max_message_bytes = 4096;
	many_client(side);
}

static void again_server(struct side *side)
{
	struct vb_listener *listener = listen_here(side);
	int fds = 0;

	for (int i = 0; i < 20; i++) {
		struct vb_channel *ch = accept_one(side, listener);

		expect_eof(ch);
		close_well(ch);
		if (i == 1)
			fds = count_fds();
	}
	CHECK_EQ(count_fds(), fds);
	vb_listener_close(listener);
}

static void again_client(struct side *side)
{
	int fds = 0;

	for (int i = 0; i < 20; i++) {
		close_well(connect_there(side));
		if (i == 1)
			fds = count_fds();
	}
	CHECK_EQ(count_fds(), fds);
}

static void describe_server(struct side *side)
{
	struct vb_listener *listener = listen_here(side);
	struct vb_channel *ch;

	CHECK(strstr(vb_listener_description(listener), side->fabric));
	ch = accept_one(side, listener);
	vb_listener_close(listener);
	CHECK(strstr(vb_channel_description(ch), side->fabric));
	CHECK(strstr(vb_channel_peer(ch), "port"));
	CHECK(vb_channel_device(ch)[0]);
	expect_eof(ch);
	close_well(ch);
}

static void describe_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);

	CHECK(strstr(vb_channel_description(ch), "it was asked for"));
	CHECK(strstr(vb_channel_peer(ch), side->address));
	close_well(ch);
}

const struct test channel_tests[] = {
	{ "messages_arrive_in_order_with_their_boundaries", order_server, order_client },
	{ "messages_arrive_in_order_at_depth_64", deep_server, deep_client },
	{ "messages_arrive_in_order_at_depth_1", shallow_server, shallow_client },
	{ "every_size_comes_back_as_it_went", corners_server, corners_client },
	{ "empty_messages_are_messages", empty_server, empty_client },
	{ "oversize_message_is_refused_before_anything_is_sent", oversize_server, oversize_client },
	{ "limits_are_the_smaller_of_both_ends", agree_server, agree_client },
	{ "slow_receiver_holds_the_sender_by_credits", slow_reader_server, slow_reader_client },
	{ "lone_message_needs_no_further_call_of_the_sender", slow_writer_server,
	  slow_writer_client },
	{ "burst_of_small_messages_needs_no_further_call_of_the_sender", burst_server,
	  burst_client },
	{ "mass_of_messages_needs_no_further_call_of_the_sender", mass_server, mass_client },
	{ "full_channels_in_lockstep_do_not_deadlock", lockstep_server_deep, lockstep_client },
	{ "message_is_gathered_from_pieces", gather_server_big, gather_client },
	{ "messages_leave_a_region_without_a_copy_and_its_buffers_come_back", zero_copy_server_deep,
	  zero_copy_client },
	{ "send_copies_only_small_messages_of_a_region", lent_server, lent_client },
	{ "event_loop_needs_no_blocking_call", nonblocking_server, nonblocking_client },
	{ "event_loop_posts_from_a_region", posting_server, posting_client },
	{ "event_loop_is_woken_for_what_another_call_took", taken_server, taken_client },
	{ "event_loop_without_room_sleeps", busy_server, loop_without_room_client },
	{ "event_loop_without_descriptors_is_told_so", busy_server,
	  loop_without_descriptors_client },
	{ "hundred_connections_to_one_listener", small_many_server, small_many_client },
	{ "descriptors_are_given_back_after_each_connection", again_server, again_client },
	{ "channel_and_listener_tell_what_was_chosen", describe_server, describe_client },
	{ NULL },
};
