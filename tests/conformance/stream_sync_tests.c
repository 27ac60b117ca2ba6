/* SPDX-License-Identifier: Apache-2.0 */
/* Sync: over when the peer's application has all, no sooner, and whatever that one does or does not do next. */
#include <poll.h>
#include <sys/resource.h>

#include "stream_side.h"

#define MIB (1u << 20)

static void sync_server(struct side *side)
{
	struct vb_stream *stream = serve_stream(side, DIRECT_BYTES);
	uint8_t *buffer = malloc(MIB);

	for (uint32_t round = 0; round < 2; round++) {
		size_t len = round ? MIB : 1000;

		read_well(stream, buffer, len - 1);
		sleep_ms(50); /* time enough to come back too early */
		CHECK_EQ(side->shared->note, round);
		side->shared->number[0] = round + 1;
		read_well(stream, buffer, 1);
	}
	expect_end(stream);
	close_stream(stream);
	free(buffer);
}

static void sync_client(struct side *side)
{
	struct vb_stream *stream = connect_stream(side, DIRECT_BYTES);

	for (uint32_t round = 0; round < 2; round++) {
		size_t len = round ? MIB : 1000;

		write_bytes(stream, 0, len, len, 1);
		sync_well(stream);
		CHECK_EQ(side->shared->number[0], round + 1);
		side->shared->note = (int)round + 1;
	}
	close_stream(stream);
}

/* A reader that has all, and then calls the stream no more until the writer's sync is over. */
static const size_t barrier_sizes[] = { 40,	40,  64u << 10,	 64u << 10,
					200000, MIB, 130u << 10, 256u << 10 };
#define BARRIERS (sizeof(barrier_sizes) / sizeof(barrier_sizes[0]))

/* What waits in the writer's block leaves with the sync, or a flush. */
static bool leaves_by_itself(const struct side *side, size_t len)
{
	return len >= 128u << 10 || (len > 16u << 10 && !strcmp(side->fabric, "ofi"));
}

static void barrier_server(struct side *side)
{
	struct vb_stream *stream = serve_stream(side, 0);

	for (unsigned i = 0; i < BARRIERS; i++) {
		read_bytes(stream, 0, barrier_sizes[i], barrier_sizes[i], i);
		if (i % 2 || leaves_by_itself(side, barrier_sizes[i]))
			signal_step(side, 0);
		await_step(side, 1);
	}
	expect_end(stream);
	close_stream(stream);
}

static void pass_barriers(struct side *side, struct vb_stream *stream,
			  void (*sync)(struct vb_stream *stream))
{
	alarm(20);
	for (unsigned i = 0; i < BARRIERS; i++) {
		write_bytes(stream, 0, barrier_sizes[i], barrier_sizes[i], i);
		if (i % 2)
			CHECK_EQ(vb_stream_flush(stream, NULL), 0);
		if (i % 2 || leaves_by_itself(side, barrier_sizes[i]))
			await_step(side, 0);
		sync(stream);
		signal_step(side, 1);
	}
	close_stream(stream);
}

static void barrier_client(struct side *side)
{
	pass_barriers(side, connect_stream(side, 0), sync_well);
}

static void sync_in_loop(struct vb_stream *stream)
{
	struct vb_error err;
	struct pollfd loop = { .fd = vb_stream_fd(stream, &err), .events = POLLIN };
	int rc;

	while ((rc = vb_stream_try_sync(stream, &err)) == VB_ERR_AGAIN)
		CHECK_EQ(poll(&loop, 1, 10000), 1);
	CHECK_EQ(rc, 0);
}

static void looping_barrier_client(struct side *side)
{
	pass_barriers(side, connect_stream(side, 0), sync_in_loop);
}

/* A reader without a wait, and none that would wait: it has all when it is told so. */
static void barrier_loop_server(struct side *side)
{
	struct vb_stream *stream = serve_stream(side, 0);
	uint8_t *buffer = malloc(MIB);
	struct vb_error err;

	for (unsigned i = 0; i < BARRIERS; i++) {
		size_t done = 0;
		ssize_t n;

		while (done < barrier_sizes[i]) {
			n = vb_stream_try_read(stream, buffer, barrier_sizes[i] - done, &err);
			CHECK(n > 0 || n == VB_ERR_AGAIN);
			done += n > 0 ? (size_t)n : 0;
		}
		if (i % 2 || leaves_by_itself(side, barrier_sizes[i]))
			signal_step(side, 0);
		await_step(side, 1);
	}
	expect_end(stream);
	close_stream(stream);
	free(buffer);
}

/* The question comes while the read ends: before it, after it, or in between. */
static unsigned meetings(const struct side *side)
{
	return side->slow || !strcmp(side->fabric, "ofi") ? 300 : 2000;
}

enum way {
	AT_ONCE,   /* all in a read */
	THE_LAST,  /* another one for the last byte */
	BY_TRYING, /* likewise, without a wait */
	WAYS,
};

static void read_last(struct side *side, struct vb_stream *stream, unsigned round, uint8_t *to)
{
	struct vb_error err;

	if (round / WAYS % 5 == 0)
		usleep(300); /* the question is here before it */
	side->shared->number[0] = round + 1;
	if (round % WAYS != BY_TRYING)
		read_well(stream, to, 1);
	else
		while (vb_stream_try_read(stream, to, 1, &err) != 1)
			CHECK_EQ(err.code, VB_OK);
}

static void meeting_server(struct side *side)
{
	struct vb_stream *stream = serve_stream(side, 0);
	uint8_t *buffer = malloc(20000);

	for (unsigned i = 0; i < meetings(side); i++) {
		size_t first = i % WAYS == AT_ONCE ? 0 : 19999;

		read_well(stream, buffer, first);
		if (first) {
			read_last(side, stream, i, buffer);
		} else {
			side->shared->number[0] = i + 1;
			read_well(stream, buffer, 20000);
		}
		await_step(side, 1);
	}
	expect_end(stream);
	close_stream(stream);
	free(buffer);
}

static void meeting_client(struct side *side)
{
	struct vb_stream *stream = connect_stream(side, 0);
	uint8_t *buffer = calloc(1, 20000);

	alarm(60);
	for (unsigned i = 0; i < meetings(side); i++) {
		write_well(stream, buffer, 20000);
		CHECK_EQ(vb_stream_flush(stream, NULL), 0);
		for (volatile unsigned turn = i % 50 * 400; turn; turn--)
			;
		sync_well(stream);
		CHECK_EQ(side->shared->number[0], i + 1);
		signal_step(side, 1);
	}
	close_stream(stream);
	free(buffer);
}

/* The read that took the bytes goes on to wait for more. */
static void mid_read_server(struct side *side)
{
	struct vb_stream *stream = serve_stream(side, 0);

	read_bytes(stream, 0, 20, 20, 1);
	expect_end(stream);
	close_stream(stream);
}

static void mid_read_client(struct side *side)
{
	struct vb_stream *stream = connect_stream(side, 0);

	write_bytes(stream, 0, 10, 10, 1);
	sync_well(stream);
	write_bytes(stream, 10, 20, 10, 1);
	close_stream(stream);
}

/* The peer reads only when its own large write is done, and nobody reads that one. */
static void busy_server(struct side *side)
{
	struct vb_stream *stream = serve_stream(side, DIRECT_BYTES);

	write_bytes(stream, 0, 4 * MIB, 4 * MIB, 1);
	read_bytes(stream, 0, 10, 10, 2);
	expect_end(stream);
	close_stream(stream);
}

static void syncing_client(struct side *side)
{
	struct vb_stream *stream = connect_stream(side, DIRECT_BYTES);

	write_bytes(stream, 0, 10, 10, 2);
	sync_well(stream);
	read_bytes(stream, 0, 4 * MIB, MIB, 1);
	close_stream(stream);
}

/* The question comes while the peer writes, which takes it in and has no use for it; then it calls no more. */
#define ANSWERS 40

static void answering_server(struct side *side)
{
	struct vb_stream *stream = serve_stream(side, 0);
	uint8_t *buffer = malloc(64u << 10);

	for (unsigned i = 0; i < ANSWERS; i++) {
		read_well(stream, buffer, 64u << 10);
		signal_step(side, 0);
		usleep(i * 50);
		write_well(stream, buffer, 64u << 10);
		await_step(side, 1);
	}
	expect_end(stream);
	close_stream(stream);
	free(buffer);
}

static void asking_client(struct side *side)
{
	struct vb_stream *stream = connect_stream(side, 0);
	uint8_t *buffer = calloc(1, 64u << 10);

	alarm(20);
	for (unsigned i = 0; i < ANSWERS; i++) {
		write_well(stream, buffer, 64u << 10);
		CHECK_EQ(vb_stream_flush(stream, NULL), 0);
		await_step(side, 0);
		sync_well(stream);
		signal_step(side, 1);
		read_well(stream, buffer, 64u << 10);
	}
	close_stream(stream);
	free(buffer);
}

/* Who reads without a wait just when everything is full of what it writes cannot answer. */
static void full_server(struct side *side)
{
	struct vb_stream *stream;
	uint8_t *buffer, bytes[40];
	struct vb_error err;
	size_t len;

	side->options.max_message_bytes = MIB;
	stream = serve_stream(side, UINT64_MAX);
	len = 16 * MIB;
	buffer = calloc(1, len);
	await_step(side, 0);
	sleep_ms(side->slow ? 200 : 50); /* the question is here */
	CHECK(vb_stream_try_write(stream, buffer, len, &err) > 0);
	CHECK_EQ(vb_stream_try_read(stream, bytes, sizeof(bytes), &err), sizeof(bytes));
	await_step(side, 1);
	vb_stream_abort(stream);
	free(buffer);
}

static void full_client(struct side *side)
{
	struct vb_stream *stream;
	uint8_t bytes[40] = { 0 };
	struct vb_error err;

	side->options.max_message_bytes = MIB;
	stream = connect_stream(side, UINT64_MAX);
	alarm(20);
	write_well(stream, bytes, sizeof(bytes));
	CHECK_EQ(vb_stream_try_sync(stream, &err),
		 VB_ERR_AGAIN); /* the question leaves with the bytes */
	signal_step(side, 0);
	sync_well(stream);
	signal_step(side, 1);
	vb_stream_abort(stream);
}

/* Just as full, and the peer is in no call, so nobody makes room: a read that has all its bytes does not wait for that. */
#define SMALL_BLOCK 1024u

static void be_narrow(struct side *side)
{
	side->options.depth = 4;
	side->options.max_message_bytes = SMALL_BLOCK + VB__STREAM_WORD;
}

static void crammed_server(struct side *side)
{
	uint8_t blocks[3 * SMALL_BLOCK] = { 0 };
	struct vb_stream *stream;
	struct vb_error err;

	be_narrow(side);
	stream = serve_stream(side, UINT64_MAX);
	alarm(20);
	await_step(side, 0);
	sleep_ms(side->slow ? 200 : 50); /* the question is here */
	CHECK(vb_stream_try_write(stream, blocks, sizeof(blocks), &err) > 0);
	CHECK_EQ(vb_stream_try_sync(stream, &err), VB_ERR_AGAIN); /* by the last credit */
	read_well(stream, blocks, 40);
	signal_step(side, 1);
	await_step(side, 2);
	vb_stream_abort(stream);
}

static void absent_client(struct side *side)
{
	struct vb_stream *stream;
	uint8_t bytes[40] = { 0 };
	struct vb_error err;

	be_narrow(side);
	stream = connect_stream(side, UINT64_MAX);
	alarm(20);
	write_well(stream, bytes, sizeof(bytes));
	CHECK_EQ(vb_stream_try_sync(stream, &err), VB_ERR_AGAIN);
	signal_step(side, 0);
	await_step(side, 1);
	sync_well(stream);
	signal_step(side, 2);
	vb_stream_abort(stream);
}

/* Whoever waits for data sleeps, also where a thread stands in for who does not. */
static unsigned switches(void)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	return (unsigned)use.ru_nvcsw;
}

static void sleeping_server(struct side *side)
{
	struct vb_stream *stream = serve_stream(side, 0);
	unsigned before;

	read_bytes(stream, 0, 10, 10, 1);
	before = switches();
	signal_step(side, 0);
	read_bytes(stream, 10, 20, 10, 1);
	CHECK(switches() - before < 50);
	expect_end(stream);
	close_stream(stream);
}

static void late_client(struct side *side)
{
	struct vb_stream *stream = connect_stream(side, 0);

	write_bytes(stream, 0, 10, 10, 1);
	CHECK_EQ(vb_stream_flush(stream, NULL), 0);
	await_step(side, 0);
	sleep_ms(500);
	write_bytes(stream, 10, 20, 10, 1);
	close_stream(stream);
}

const struct test stream_sync_tests[] = {
	{ "stream_sync_waits_until_the_peer_has_read", sync_server, sync_client },
	{ "stream_sync_needs_no_further_call_of_the_reader", barrier_server, barrier_client },
	{ "stream_sync_of_an_event_loop_needs_no_further_call", barrier_server,
	  looping_barrier_client },
	{ "stream_sync_needs_no_further_call_of_an_event_loop", barrier_loop_server,
	  barrier_client },
	{ "stream_sync_meets_the_end_of_a_read", meeting_server, meeting_client },
	{ "stream_sync_is_answered_in_the_middle_of_a_read", mid_read_server, mid_read_client },
	{ "stream_sync_makes_way_for_what_the_peer_writes", busy_server, syncing_client },
	{ "stream_sync_during_a_write_needs_no_further_call", answering_server, asking_client },
	{ "stream_sync_of_a_reader_without_room", full_server, full_client },
	{ "stream_reader_has_all_and_no_room_to_say_so", crammed_server, absent_client },
	{ "stream_waiting_reader_sleeps", sleeping_server, late_client },
	{ NULL },
};
