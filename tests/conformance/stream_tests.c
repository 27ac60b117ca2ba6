/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: exactly the bytes that were written, however they are cut; event loops. */
#include <poll.h>
#include <pthread.h>

#include "stream_side.h"

#define MIB (1u << 20)

static uint64_t much(const struct side *side, unsigned mib)
{
	return (uint64_t)(side->slow ? (mib + 15) / 16 : mib) * MIB;
}

/* ---- Cutting ---- */

/* How one side writes and the other reads: total, each write, each read, from when on nothing is copied at either. */
static const struct cut {
	uint32_t total, write, read;
	uint64_t server, client;
} cuts[] = {
	{ 5000, 1, 5000, 0, 0 },
	{ 5000, 5000, 1, 0, 0 },
	{ 300000, 7, 70001, 0, 0 },
	{ 300000, 70001, 7, 0, 0 },
	{ 3 * MIB, 3 * MIB, 1000, UINT64_MAX, UINT64_MAX },
	{ 3 * MIB, 1000, 3 * MIB, UINT64_MAX, UINT64_MAX },
	{ 3 * MIB, 3 * MIB, 1000, DIRECT_BYTES, DIRECT_BYTES },
	{ 3 * MIB, 1000, 3 * MIB, DIRECT_BYTES, DIRECT_BYTES },
	{ 3 * MIB, MIB, MIB, DIRECT_BYTES, DIRECT_BYTES },
	{ 3 * MIB, MIB / 3, MIB / 2, DIRECT_BYTES, DIRECT_BYTES },
	{ 3 * MIB, MIB / 2 + 1, MIB / 3 + 1, DIRECT_BYTES, DIRECT_BYTES },
	{ 3 * MIB, 40000, 20000, DIRECT_BYTES, DIRECT_BYTES },
	{ 200000, 500, 200, 100, 100 },
	{ 4 * MIB, MIB, MIB, 0, 0 },
	{ 3 * MIB, MIB, MIB, DIRECT_BYTES, UINT64_MAX },
	{ 3 * MIB, MIB, MIB, UINT64_MAX, DIRECT_BYTES },
	{ 3 * MIB, 400000, 300000, 350000, 100000 },
};
#define CUTS (sizeof(cuts) / sizeof(cuts[0]))

static void cuts_server(struct side *side)
{
	struct vb_stream_server *server;
	struct vb_stream *stream;
	struct vb_error err;

	for (uint32_t i = 0; i < CUTS; i++) {
		const struct cut *cut = &cuts[i];

		server = serve_streams(side, cut->server);
		CHECK_EQ(vb_stream_accept(server, &stream, &err), 0);
		vb_stream_server_close(server);
		read_bytes(stream, 0, cut->total, cut->read, i);
		write_bytes(stream, 0, cut->total, cut->write, i + 100);
		expect_end(stream);
		close_stream(stream);
		signal_step(side, 0);
	}
}

static void cuts_client(struct side *side)
{
	for (uint32_t i = 0; i < CUTS; i++) {
		const struct cut *cut = &cuts[i];
		struct vb_stream *stream = connect_stream(side, cut->client);

		CHECK_EQ(sem_trywait(&side->shared->listening), 0); /* the next is another one */
		write_bytes(stream, 0, cut->total, cut->write, i);
		read_bytes(stream, 0, cut->total, cut->read, i + 100);
		close_stream(stream);
		await_step(side, 0);
	}
}

static void nothing_server(struct side *side)
{
	struct vb_stream *stream = serve_stream(side, 0);
	struct vb_error err;
	uint8_t bytes[8];

	CHECK_EQ(vb_stream_read(stream, NULL, 0, &err), 0);
	CHECK_EQ(vb_stream_write(stream, NULL, 0, &err), 0);
	CHECK_EQ(vb_stream_sync(stream, &err), 0); /* nothing was written */
	CHECK_EQ(vb_stream_flush(stream, &err), 0);
	CHECK_EQ(vb_stream_write(stream, NULL, 1, &err), VB_ERR_INVALID);
	CHECK_EQ(vb_stream_read(stream, NULL, 1, &err), VB_ERR_INVALID);
	CHECK(messages_sent(stream) <= ledgers(side));
	/* Less than was asked for only at the end. */
	CHECK_EQ(vb_stream_read(stream, bytes, 8, &err), 5);
	CHECK(!memcmp(bytes, "hello", 5));
	expect_end(stream);
	expect_end(stream);
	close_stream(stream);
}

static void nothing_client(struct side *side)
{
	struct vb_stream *stream = connect_stream(side, 0);

	write_well(stream, NULL, 0);
	write_well(stream, "hel", 3);
	write_well(stream, "", 0);
	write_well(stream, "lo", 2);
	close_stream(stream);
}

/* ---- How many messages it takes ---- */

#define ROUNDS 50

static void echo_server(struct side *side)
{
	struct vb_stream *stream = serve_stream(side, 0);
	uint8_t bytes[40];

	for (uint32_t i = 0; i < ROUNDS; i++) {
		read_well(stream, bytes, sizeof(bytes));
		write_well(stream, bytes, sizeof(bytes));
	}
	expect_end(stream);
	CHECK_EQ(messages_sent(stream), ledgers(side) + ROUNDS);
	close_stream(stream);
}

static void ping_client(struct side *side)
{
	struct vb_stream *stream = connect_stream(side, 0);
	uint8_t bytes[40];

	for (uint32_t i = 0; i < ROUNDS; i++) {
		fill(bytes, sizeof(bytes), i);
		write_well(stream, bytes, sizeof(bytes));
		memset(bytes, 0, sizeof(bytes));
		read_well(stream, bytes, sizeof(bytes));
		CHECK(is_filled(bytes, sizeof(bytes), i));
	}
	CHECK_EQ(messages_sent(stream), ledgers(side) + ROUNDS);
	close_stream(stream);
}

static void together_server(struct side *side)
{
	struct vb_stream *stream = serve_stream(side, 0);

	read_bytes(stream, 0, 100 * 64, 100 * 64, 1);
	read_bytes(stream, 100 * 64, 200 * 64, 100 * 64, 1);
	expect_end(stream);
	close_stream(stream);
}

static void together_client(struct side *side)
{
	struct vb_stream *stream = connect_stream(side, 0);
	uint64_t before = ledgers(side);
	struct vb_error err;

	write_bytes(stream, 0, 100 * 64, 64, 1);
	CHECK_EQ(messages_sent(stream), before);
	CHECK_EQ(vb_stream_flush(stream, &err), 0);
	CHECK_EQ(messages_sent(stream), before + 1);
	CHECK_EQ(vb_stream_try_flush(stream, &err), 0);
	CHECK_EQ(messages_sent(stream), before + 1);
	write_bytes(stream, 100 * 64, 200 * 64, 64, 1);
	sync_well(stream); /* asks in the same message */
	CHECK_EQ(messages_sent(stream), before + 2);
	sync_well(stream);
	CHECK_EQ(messages_sent(stream), before + 2);
	close_stream(stream);
}

/* ---- Both only write at first ---- */

static void write_then_read(struct side *side, struct vb_stream *stream, size_t each, uint32_t mine)
{
	uint64_t total = much(side, 64);

	write_bytes(stream, 0, total, each, mine);
	read_bytes(stream, 0, total, each, !mine);
	close_stream(stream);
}

static void both_write_server(struct side *side)
{
	write_then_read(side, serve_stream(side, 0), (size_t)much(side, 64), 0);
}

static void both_write_client(struct side *side)
{
	write_then_read(side, connect_stream(side, 0), (size_t)much(side, 64), 1);
}

static void both_write_eagerly_server(struct side *side)
{
	write_then_read(side, serve_stream(side, UINT64_MAX), 3000000, 0);
}

static void both_write_eagerly_client(struct side *side)
{
	write_then_read(side, connect_stream(side, UINT64_MAX), 3000000, 1);
}

static void both_write_directly_server(struct side *side)
{
	write_then_read(side, serve_stream(side, DIRECT_BYTES), 3000000, 0);
}

static void both_write_directly_client(struct side *side)
{
	write_then_read(side, connect_stream(side, DIRECT_BYTES), 3000000, 1);
}

/* ---- Event loops ---- */

struct looping {
	struct vb_stream *stream;
	uint64_t total, written, read;
	uint32_t mine;
	uint8_t buffer[100000];
};

static size_t part(uint64_t done, uint64_t total, size_t most)
{
	return total - done < most ? (size_t)(total - done) : most;
}

/* True if there was something to do. */
static bool try_reading(struct looping *l)
{
	struct vb_error err;
	size_t len = part(l->read, l->total, 1 + (size_t)(l->read * 7 % 90000));
	ssize_t n = len ? vb_stream_try_read(l->stream, l->buffer, len, &err) : VB_ERR_AGAIN;

	if (n == VB_ERR_AGAIN)
		return false;
	if (n < 0)
		fail_with(&err, "try to read");
	CHECK(n > 0 && n <= (ssize_t)len);
	CHECK(is_filled_at(l->buffer, (size_t)n, l->read, !l->mine));
	l->read += (uint64_t)n;
	return true;
}

static bool try_writing(struct looping *l)
{
	struct vb_error err;
	size_t len = part(l->written, l->total, 1 + (size_t)(l->written * 13 % 90000));
	ssize_t n = VB_ERR_AGAIN;

	fill_at(l->buffer, len, l->written, l->mine);
	if (len)
		n = vb_stream_try_write(l->stream, l->buffer, len, &err);
	if (n == VB_ERR_AGAIN)
		return false;
	if (n < 0)
		fail_with(&err, "try to write");
	CHECK(n > 0 && n <= (ssize_t)len);
	l->written += (uint64_t)n;
	return true;
}

static void await_readable(struct vb_stream *stream)
{
	struct pollfd fd = { .fd = vb_stream_fd(stream, NULL), .events = POLLIN };

	CHECK(fd.fd >= 0);
	CHECK_EQ(poll(&fd, 1, 20000), 1);
}

static void run_loop(struct side *side, struct vb_stream *stream, uint32_t mine)
{
	struct looping *l = calloc(1, sizeof(*l));
	struct vb_error err;
	bool synced = false;

	*l = (struct looping){ .stream = stream, .total = much(side, 16), .mine = mine };
	while (l->read < l->total || !synced) {
		bool read = try_reading(l), written = try_writing(l), busy = read || written;

		if (l->written == l->total && !synced) {
			int rc = vb_stream_try_sync(stream, &err);

			CHECK(rc == 0 || rc == VB_ERR_AGAIN);
			busy |= synced = rc == 0;
		}
		if (!busy)
			await_readable(stream);
	}
	free(l);
}

static void loop_server(struct side *side)
{
	struct vb_stream_server *server = serve_streams(side, 0);
	struct pollfd fd = { .fd = vb_stream_server_fd(server), .events = POLLIN };
	struct vb_stream *stream;
	struct vb_error err;
	int rc;

	while ((rc = vb_stream_try_accept(server, &stream, &err)) == VB_ERR_AGAIN)
		CHECK_EQ(poll(&fd, 1, 20000), 1);
	CHECK_EQ(rc, 0);
	vb_stream_server_close(server);
	run_loop(side, stream, 0);
	close_stream(stream);
}

static void loop_client(struct side *side)
{
	struct vb_stream *stream = connect_stream(side, 0);

	run_loop(side, stream, 1);
	close_stream(stream);
}

/* What another call takes in must wake the one who waits for it. */
static void taken_in_server(struct side *side)
{
	struct vb_stream *stream = serve_stream(side, 0);
	struct vb_error err;
	uint8_t bytes[5];

	CHECK_EQ(vb_stream_try_read(stream, bytes, 5, &err), VB_ERR_AGAIN);
	write_well(stream, "x", 1);
	signal_step(side, 0);
	while (vb_stream_try_sync(stream, &err) == VB_ERR_AGAIN)
		await_readable(stream);
	await_readable(stream);
	CHECK_EQ(vb_stream_try_read(stream, bytes, 5, &err), 5);
	CHECK_EQ(vb_stream_try_read(stream, bytes, 5, &err), VB_ERR_AGAIN);
	signal_step(side, 1);
	do
		await_readable(stream);
	while (vb_stream_try_read(stream, bytes, 5, &err) == VB_ERR_AGAIN);
	close_stream(stream);
}

static void taken_in_client(struct side *side)
{
	struct vb_stream *stream = connect_stream(side, 0);
	uint8_t byte;

	await_step(side, 0);
	write_well(stream, "hello", 5);
	read_well(stream, &byte, 1);
	await_step(side, 1);
	close_stream(stream);
}

/* A large write is read by an event loop, which cannot wait for it to be placed. */
static void looped_read_server(struct side *side)
{
	struct vb_stream *stream = serve_stream(side, DIRECT_BYTES);
	struct looping *l = calloc(1, sizeof(*l));
	struct vb_error err;

	*l = (struct looping){ .stream = stream, .total = 4 * MIB, .mine = 0 };
	while (l->read < l->total)
		if (!try_reading(l))
			await_readable(stream);
	while (vb_stream_try_read(stream, l->buffer, 1, &err) == VB_ERR_AGAIN)
		await_readable(stream);
	close_stream(stream);
	free(l);
}

static void large_write_client(struct side *side)
{
	struct vb_stream *stream = connect_stream(side, DIRECT_BYTES);

	write_bytes(stream, 0, 4 * MIB, 2 * MIB, 1);
	close_stream(stream);
}

/* ---- Looking at it ---- */

static void looked_at_server(struct side *side)
{
	struct vb_stream *stream = serve_stream(side, 0);

	read_bytes(stream, 0, 1000, 1000, 1);
	expect_end(stream);
	close_stream(stream);
}

static void looked_at_client(struct side *side)
{
	struct vb_stream *stream = connect_stream(side, 0);
	struct vb_stream_counters counters;

	CHECK(strstr(vb_stream_description(stream), side->fabric));
	CHECK(strstr(vb_stream_peer(stream), side->address));
	write_bytes(stream, 0, 1000, 100, 1);
	vb_stream_counters(stream, &counters);
	CHECK_EQ(counters.bytes_written, 1000);
	CHECK_EQ(counters.bytes_read, 0);
	CHECK_EQ(counters.direct_written, 0);
	close_stream(stream);
}

/* What has been written leaves as there is room, whatever the writer does meanwhile: full blocks, more of them than leave at once. */
#define WIDE_DEPTH 12u

/* One more than there is room for. */
static uint64_t full_bytes(const struct side *side)
{
	return (WIDE_DEPTH - ledgers(side)) << 20;
}

static void be_wide(struct side *side)
{
	side->options.depth = WIDE_DEPTH;
	side->options.max_message_bytes = (1u << 20) + VB__STREAM_WORD;
}

static void mass_server(struct side *side)
{
	struct vb_stream *stream;

	be_wide(side);
	stream = serve_stream(side, UINT64_MAX);
	await_step(side, 0);
	read_bytes(stream, 0, full_bytes(side), 64u << 10, 1);
	signal_step(side, 1);
	expect_end(stream);
	close_stream(stream);
}

static void mass_client(struct side *side)
{
	struct vb_stream *stream;

	be_wide(side);
	stream = connect_stream(side, UINT64_MAX);
	alarm(20);
	write_bytes(stream, 0, full_bytes(side), 4096, 1);
	signal_step(side, 0);
	await_step(side, 1);
	close_stream(stream);
}

/* And small writes, for which there was no room when a read came that they should go with. */
#define NARROW_BLOCK (64u << 10)
#define NARROW_DEPTH 6u

/* All that there is room for. */
static uint64_t narrow_bytes(const struct side *side)
{
	return (NARROW_DEPTH - 1 - ledgers(side)) * NARROW_BLOCK;
}

static void be_narrow(struct side *side)
{
	side->options.depth = NARROW_DEPTH;
	side->options.max_message_bytes = NARROW_BLOCK + VB__STREAM_WORD;
}

/* All of it arrives before the writer makes another call. */
static void read_late(struct side *side, struct vb_stream *stream)
{
	await_step(side, 0);
	read_bytes(stream, 0, narrow_bytes(side), NARROW_BLOCK, 1);
	read_bytes(stream, 0, 100, 100, 3);
	side->shared->note = 1;
	signal_step(side, 1);
	await_step(side, 2);
	vb_stream_abort(stream);
}

static void late_server(struct side *side)
{
	struct vb_stream *stream;

	be_narrow(side);
	stream = serve_stream(side, UINT64_MAX);
	write_bytes(stream, 0, 3 * NARROW_BLOCK, NARROW_BLOCK, 2);
	CHECK_EQ(vb_stream_flush(stream, NULL), 0);
	read_late(side, stream);
}

static struct vb_stream *write_late(struct side *side)
{
	struct vb_stream *stream;

	be_narrow(side);
	stream = connect_stream(side, UINT64_MAX);
	alarm(20);
	read_bytes(stream, 0, 1, 1, 2);
	sleep_ms(side->slow ? 300 : 50); /* the rest is here as well */
	write_bytes(stream, 0, narrow_bytes(side), NARROW_BLOCK, 1);
	write_bytes(stream, 0, 100, 100, 3);
	read_bytes(stream, 1, 2, 1, 2);
	signal_step(side, 0);
	return stream;
}

static void leave_late(struct side *side, struct vb_stream *stream)
{
	await_step(side, 1);
	signal_step(side, 2);
	vb_stream_abort(stream);
}

static void late_client(struct side *side)
{
	leave_late(side, write_late(side));
}

/* By reads of what is here already, which have no need to look for more. */
static void late_reading_client(struct side *side)
{
	struct vb_stream *stream = write_late(side);

	for (uint64_t at = 2; !side->shared->note; at++) {
		read_bytes(stream, at, at + 1, 1, 2);
		usleep(1000);
	}
	signal_step(side, 2);
	vb_stream_abort(stream);
}

/* By a read that found nothing. */
static void silent_server(struct side *side)
{
	be_narrow(side);
	read_late(side, serve_stream(side, UINT64_MAX));
}

static void trying_client(struct side *side)
{
	struct vb_stream *stream;
	struct vb_error err;
	uint8_t byte;

	be_narrow(side);
	stream = connect_stream(side, UINT64_MAX);
	alarm(20);
	write_bytes(stream, 0, narrow_bytes(side), NARROW_BLOCK, 1);
	write_bytes(stream, 0, 100, 100, 3);
	CHECK_EQ(vb_stream_try_read(stream, &byte, 1, &err), VB_ERR_AGAIN);
	signal_step(side, 0);
	leave_late(side, stream);
}

/* Nobody reads: whoever waits for room is not woken again and again, by itself or by a reader beside it. */
static void deaf_server(struct side *side)
{
	struct vb_stream *stream;

	be_narrow(side);
	stream = serve_stream(side, UINT64_MAX);
	await_step(side, 0);
	vb_stream_abort(stream);
}

static void *read_to_the_end(void *stream)
{
	uint8_t byte;

	CHECK(vb_stream_read(stream, &byte, 1, NULL) <= 0);
	return NULL;
}

static void patient_client(struct side *side)
{
	struct vb_stream *stream;
	struct pollfd loop = { .events = POLLIN };
	uint8_t *block = calloc(1, NARROW_BLOCK);
	struct vb_error err;
	unsigned wakes = 0;
	pthread_t reader;

	be_narrow(side);
	stream = connect_stream(side, UINT64_MAX);
	CHECK_EQ(pthread_create(&reader, NULL, read_to_the_end, stream), 0);
	loop.fd = vb_stream_fd(stream, &err);
	for (unsigned ticks = 0; ticks < 10;) {
		if (vb_stream_try_write(stream, block, NARROW_BLOCK, &err) != VB_ERR_AGAIN)
			continue;
		if (poll(&loop, 1, 100) == 1)
			CHECK(++wakes < 500);
		else
			ticks++;
	}
	signal_step(side, 0);
	pthread_join(reader, NULL);
	vb_stream_abort(stream);
	free(block);
}

const struct test stream_tests[] = {
	{ "stream_blocks_need_no_further_call_of_the_writer", mass_server, mass_client },
	{ "stream_small_writes_behind_them_do_not_either", late_server, late_client },
	{ "stream_small_writes_leave_while_reads_go_on", late_server, late_reading_client },
	{ "stream_small_writes_leave_after_a_read_of_nothing", silent_server, trying_client },
	{ "stream_event_loop_without_room_sleeps", deaf_server, patient_client },
	{ "stream_carries_the_bytes_however_they_are_cut", cuts_server, cuts_client },
	{ "stream_takes_nothing_and_reads_less_only_at_the_end", nothing_server, nothing_client },
	{ "stream_round_trip_of_40_bytes_is_one_message_each_way", echo_server, ping_client },
	{ "stream_puts_small_writes_together", together_server, together_client },
	{ "stream_both_write_much_before_they_read", both_write_server, both_write_client },
	{ "stream_both_write_eagerly_before_they_read", both_write_eagerly_server,
	  both_write_eagerly_client },
	{ "stream_both_write_directly_before_they_read", both_write_directly_server,
	  both_write_directly_client },
	{ "stream_in_an_event_loop", loop_server, loop_client },
	{ "stream_wakes_for_what_another_call_took_in", taken_in_server, taken_in_client },
	{ "stream_large_write_is_read_by_an_event_loop", looped_read_server, large_write_client },
	{ "stream_can_be_looked_at", looked_at_server, looked_at_client },
	{ NULL },
};
