/* SPDX-License-Identifier: Apache-2.0 */
/* Streams whose peer dies, closes too early, or does not keep to the protocol. */
#include <signal.h>

#include "../unit/pure/dice.h"
#include "channel/inside.h"
#include "stream_side.h"
#include "wire/stream_word.h"

#define MIB (1u << 20)

/* ---- Death ---- */

static void bereft_reader_server(struct side *side)
{
	struct vb_stream *stream = serve_stream(side, 0);
	uint8_t *buffer = malloc(MIB);
	struct vb_error err;

	read_well(stream, buffer, 1000);
	write_well(stream, "unread", 6);
	signal_step(side, 0);
	CHECK_EQ(vb_stream_read(stream, buffer, MIB, &err), VB_ERR_LOST);
	CHECK(err.object[0] && err.cause[0]);
	CHECK_EQ(vb_stream_read(stream, buffer, 1, &err), VB_ERR_LOST);
	CHECK_EQ(vb_stream_try_read(stream, buffer, 1, &err), VB_ERR_LOST);
	CHECK_EQ(vb_stream_write(stream, buffer, MIB, &err), VB_ERR_LOST);
	CHECK_EQ(vb_stream_sync(stream, &err), VB_ERR_LOST);
	CHECK_EQ(vb_stream_close(stream, &err), VB_ERR_LOST);
	free(buffer);
}

static void dying_writer_client(struct side *side)
{
	struct vb_stream *stream = connect_stream(side, 0);

	write_bytes(stream, 0, 1100, 1100, 1);
	vb_stream_flush(stream, NULL);
	await_step(side, 0);
	raise(SIGKILL);
}

static void aborting_writer_client(struct side *side)
{
	struct vb_stream *stream = connect_stream(side, 0);

	write_bytes(stream, 0, 1100, 1100, 1);
	vb_stream_flush(stream, NULL);
	await_step(side, 0);
	vb_stream_abort(stream);
}

/* Killed in the middle of a write. */
static void mid_write_server(struct side *side)
{
	struct vb_stream *stream = serve_stream(side, DIRECT_BYTES);
	uint8_t *buffer = malloc(4 * MIB);
	struct vb_error err;
	ssize_t n;

	for (int i = 0; (n = vb_stream_read(stream, buffer, 4 * MIB, &err)) > 0; i++) {
		CHECK_EQ(n, 4 * MIB);
		if (i == 2)
			kill(side->shared->client, SIGKILL);
	}
	CHECK_EQ(n, VB_ERR_LOST);
	vb_stream_abort(stream);
	free(buffer);
}

static void endless_client(struct side *side)
{
	struct vb_stream *stream = connect_stream(side, DIRECT_BYTES);
	uint8_t *buffer = calloc(1, 8 * MIB);

	for (;;)
		write_well(stream, buffer, 8 * MIB);
}

static void mid_read_server(struct side *side)
{
	struct vb_stream *stream = serve_stream(side, DIRECT_BYTES);
	uint8_t *buffer = malloc(MIB);

	read_well(stream, buffer, MIB);
	raise(SIGKILL);
}

static void writer_to_the_dead_client(struct side *side)
{
	struct vb_stream *stream = connect_stream(side, DIRECT_BYTES);
	uint8_t *buffer = calloc(1, 4 * MIB);
	struct vb_error err;
	int rc;

	do
		rc = vb_stream_write(stream, buffer, 4 * MIB, &err);
	while (rc == 0);
	CHECK_EQ(rc, VB_ERR_LOST);
	CHECK_EQ(vb_stream_sync(stream, &err), VB_ERR_LOST);
	CHECK_EQ(vb_stream_close(stream, &err), VB_ERR_LOST);
	free(buffer);
}

/* ---- Closing too early ---- */

static void early_closer_server(struct side *side)
{
	struct vb_stream *stream = serve_stream(side, DIRECT_BYTES);
	uint8_t bytes[100];

	read_well(stream, bytes, 100);
	write_well(stream, "enough", 6);
	close_stream(stream); /* what we wrote will be read */
}

/* The peer closes while this one is inside a large write; what it said before can be read. */
static void late_writer_client(struct side *side)
{
	struct vb_stream *stream = connect_stream(side, DIRECT_BYTES);
	uint8_t *buffer = calloc(1, 8 * MIB);
	struct vb_error err;

	CHECK_EQ(vb_stream_write(stream, buffer, 8 * MIB, &err), VB_ERR_CLOSED);
	CHECK(err.object[0] && err.cause[0]);
	CHECK_EQ(vb_stream_write(stream, buffer, 1, &err), VB_ERR_CLOSED);
	CHECK_EQ(vb_stream_sync(stream, &err), VB_ERR_CLOSED);
	read_well(stream, buffer, 6);
	CHECK(!memcmp(buffer, "enough", 6));
	expect_end(stream);
	CHECK_EQ(vb_stream_close(stream, &err), VB_ERR_CLOSED);
	free(buffer);
}

static void unread_server(struct side *side)
{
	struct vb_stream *stream = serve_stream(side, 0);
	uint8_t bytes[100];

	read_well(stream, bytes, 99);
	close_stream(stream);
}

static void unread_client(struct side *side)
{
	struct vb_stream *stream = connect_stream(side, 0);
	struct vb_error err;
	uint8_t byte;

	write_bytes(stream, 0, 100, 100, 1);
	CHECK_EQ(vb_stream_flush(stream, &err), 0);
	CHECK_EQ(vb_stream_read(stream, &byte, 1, &err), 0);
	CHECK_EQ(vb_stream_close(stream, &err), VB_ERR_CLOSED);
	CHECK(strstr(err.cause, "before it had read"));
}

/* Both close at once with unread bytes, more than fit: nobody waits for ever. */
static void deaf_server(struct side *side)
{
	struct vb_stream *stream = serve_stream(side, UINT64_MAX);
	struct vb_error err;
	uint8_t *bytes = calloc(1, MIB);
	ssize_t n;

	while ((n = vb_stream_try_write(stream, bytes, MIB, &err)) > 0)
		;
	CHECK_EQ(n, VB_ERR_AGAIN);
	signal_step(side, 0);
	await_step(side, 1);
	CHECK_EQ(vb_stream_close(stream, &err), VB_ERR_CLOSED);
	free(bytes);
}

static void deaf_client(struct side *side)
{
	struct vb_stream *stream = connect_stream(side, UINT64_MAX);
	struct vb_error err;
	uint8_t *bytes = calloc(1, MIB);
	ssize_t n;

	while ((n = vb_stream_try_write(stream, bytes, MIB, &err)) > 0)
		;
	CHECK_EQ(n, VB_ERR_AGAIN);
	signal_step(side, 1);
	await_step(side, 0);
	CHECK_EQ(vb_stream_close(stream, &err), VB_ERR_CLOSED);
	free(bytes);
}

/* ---- Breaking the protocol ---- */

/* What a hostile peer says, all of it at once; the stream at the other end has written 10 bytes, and reads. */
static const struct hostile {
	const char *what;
	struct vb__stream_word words[3];
	size_t before;
} hostiles[] = {
	{ "garbage", { { .kind = 99 } }, 100 },
	{ "data with a wrong length", { { VB__STREAM_DATA, false, 0, 5 } }, 6 },
	{ "data ahead", { { VB__STREAM_DATA, false, 5, 5 } }, 5 },
	{ "data going backwards",
	  { { VB__STREAM_DATA, false, 0, 5 }, { VB__STREAM_DATA, false, 3, 5 } },
	  5 },
	{ "synced unasked", { { VB__STREAM_SYNCED, false, 5, 0 } }, 0 },
	{ "ready twice",
	  { { VB__STREAM_READY, false, 0, 500 }, { VB__STREAM_READY, false, 0, 500 } },
	  0 },
	{ "ready ahead", { { VB__STREAM_READY, false, 7, 500 } }, 0 },
	{ "ready without end", { { VB__STREAM_READY, false, 0, UINT64_MAX } }, 0 },
	{ "pull of nothing", { { VB__STREAM_PULL, false, 0, 5 } }, 0 },
	{ "placed unwanted", { { VB__STREAM_PLACED, false, 0, 5 } }, 0 },
	{ "want ahead", { { VB__STREAM_WANT, false, 5000, 5 } }, VB__STREAM_TOKEN },
	{ "want without end", { { VB__STREAM_WANT, false, 0, UINT64_MAX } }, VB__STREAM_TOKEN },
	{ "want in want",
	  { { VB__STREAM_WANT, false, 0, 5000 }, { VB__STREAM_WANT, false, 10, 50 } },
	  VB__STREAM_TOKEN },
	{ "bye twice", { { VB__STREAM_BYE, false, 0, 0 }, { VB__STREAM_BYE, false, 0, 0 } }, 0 },
	{ "bye of what was not sent", { { VB__STREAM_BYE, false, 11, 0 } }, 0 },
	{ "a ledger at no place", { { VB__STREAM_LEDGER, false, 0, 0 } }, VB__STREAM_TOKEN },
};
#define HOSTILES (sizeof(hostiles) / sizeof(hostiles[0]))

static void wary_server(struct side *side)
{
	struct vb_stream_server *server = serve_streams(side, 0);
	struct vb_stream *stream;
	struct vb_error err;
	uint8_t bytes[100];

	for (unsigned i = 0; i < HOSTILES; i++) {
		CHECK_EQ(vb_stream_accept(server, &stream, &err), 0);
		write_well(stream, "0123456789", 10);
		if (vb_stream_read(stream, bytes, 100, &err) != VB_ERR_PROTOCOL) {
			printf("# %s was believed\n", hostiles[i].what);
			fail_with(&err, hostiles[i].what);
		}
		CHECK_EQ(vb_stream_write(stream, bytes, 100, &err), VB_ERR_PROTOCOL);
		CHECK_EQ(vb_stream_close(stream, &err), VB_ERR_PROTOCOL);
		signal_step(side, 0);
	}
	vb_stream_server_close(server);
}

static void say_hostile(struct vb_channel *ch, const struct vb__stream_word *word, size_t before)
{
	struct vb_error err = { .code = VB_OK };
	struct vb__loan loan;

	CHECK_EQ(vb__channel_borrow(ch, &loan, &err), 0);
	memset(loan.data, 0xa5, before);
	vb__stream_word_encode(loan.data + before, word);
	vb__channel_send_loan(ch, &loan, before + VB__STREAM_WORD, &err);
}

static void hostile_client(struct side *side)
{
	side->options.depth = 16;
	for (unsigned i = 0; i < HOSTILES; i++) {
		struct vb_channel *ch = connect_there(side);
		struct vb__stream_word word;
		struct vb__loan loan;

		/* What it has written must be under way, so that a good BYE may come. */
		hear_word(ch, &loan, &word);
		for (const struct vb__stream_word *w = hostiles[i].words; w->kind; w++)
			say_hostile(ch, w, hostiles[i].before);
		await_step(side, 0);
		vb_channel_abort(ch);
	}
}

/* ---- Anything at all ---- */

static unsigned babbles(const struct side *side)
{
	return side->slow ? 20 : 200;
}

/* Whatever the peer says: bytes, the end or a failure, and neither a crash nor a wait without end. */
static void patient_server(struct side *side)
{
	struct vb_stream_server *server = serve_streams(side, DIRECT_BYTES);
	uint8_t *buffer = calloc(1, 2 * DIRECT_BYTES);
	struct vb_stream *stream;
	struct vb_error err;

	for (unsigned i = 0; i < babbles(side); i++) {
		size_t len = i % 3 ? 50 : DIRECT_BYTES;
		ssize_t n;

		CHECK_EQ(vb_stream_accept(server, &stream, &err), 0);
		vb_stream_write(stream, buffer, 100, &err);
		vb_stream_flush(stream, &err);
		if (i % 4 == 0)
			vb_stream_write(stream, buffer, 2 * DIRECT_BYTES, &err);
		while ((n = vb_stream_read(stream, buffer, len, &err)) > 0)
			;
		if (n != 0 && n != VB_ERR_PROTOCOL && n != VB_ERR_LOST)
			fail_with(&err, "hear anything at all");
		vb_stream_close(stream, &err);
	}
	vb_stream_server_close(server);
	free(buffer);
}

/* A word that may make sense where the other side is. */
static struct vb__stream_word random_word(struct dice *dice, uint64_t *said)
{
	struct vb__stream_word word = {
		.kind = VB__STREAM_DATA + dice_throw(dice, 8),
		.offset = dice_throw(dice, 4) ? *said : dice_throw(dice, 300),
		.length = 1 + dice_throw(dice, 200),
	};

	if (dice_throw(dice, 2))
		word.kind = VB__STREAM_DATA;
	word.asks = word.kind == VB__STREAM_DATA && dice_throw(dice, 4) == 0;
	if (word.kind == VB__STREAM_LEDGER)
		word.offset = 0;
	if (word.kind == VB__STREAM_SYNCED || word.kind == VB__STREAM_BYE ||
	    word.kind == VB__STREAM_LEDGER)
		word.length = 0;
	if (word.kind == VB__STREAM_DATA)
		*said += word.length;
	return word;
}

static size_t bytes_before(const struct vb__stream_word *word)
{
	if (word->kind == VB__STREAM_WANT || word->kind == VB__STREAM_LEDGER)
		return VB__STREAM_TOKEN;
	return word->kind == VB__STREAM_DATA ? (size_t)word->length : 0;
}

static void babbling_client(struct side *side)
{
	struct dice dice = { .state = 7 };

	side->options.depth = 16;
	for (unsigned i = 0; i < babbles(side); i++) {
		struct vb_channel *ch = connect_there(side);
		unsigned words = 1 + dice_throw(&dice, 14);
		uint64_t said = 0;

		while (words--) {
			struct vb__stream_word word = random_word(&dice, &said);
			struct vb_error err = { .code = VB_OK };
			struct vb__loan loan;

			if (vb__channel_borrow(ch, &loan, &err) != 0)
				break;
			dice_fill(&dice, loan.data, bytes_before(&word));
			vb__stream_word_encode(loan.data + bytes_before(&word), &word);
			vb__channel_send_loan(ch, &loan, bytes_before(&word) + VB__STREAM_WORD,
					      &err);
		}
		vb_channel_abort(ch);
	}
}

static void stranger_server(struct side *side)
{
	struct vb_stream_server *server = serve_streams(side, 0);
	struct vb_stream *stream;
	struct vb_error err;

	CHECK_EQ(vb_stream_accept(server, &stream, &err), VB_ERR_PROTOCOL);
	CHECK(strstr(err.cause, "too narrow"));
	signal_step(side, 0);
	vb_stream_server_close(server);
}

/* A channel as it is by default. It may be thrown out before it knows that it was let in, and then find nobody. */
static void stranger_client(struct side *side)
{
	struct vb_channel *ch;
	struct vb_error err;

	side->options.connect_timeout_ms = 2000;
	if (vb_channel_connect(side->address, port_there(side), &side->options, &ch, &err) != 0)
		return;
	await_step(side, 0);
	vb_channel_abort(ch);
}

const struct test stream_fault_tests[] = {
	{ "stream_reader_hears_of_a_killed_peer", bereft_reader_server, dying_writer_client,
	  RETURNS, DIES },
	{ "stream_reader_hears_of_a_peer_that_aborts", bereft_reader_server,
	  aborting_writer_client },
	{ "stream_writer_is_killed_in_the_middle", mid_write_server, endless_client, RETURNS,
	  DIES },
	{ "stream_writer_hears_of_a_killed_peer", mid_read_server, writer_to_the_dead_client,
	  DIES },
	{ "stream_peer_closes_during_a_write", early_closer_server, late_writer_client },
	{ "stream_close_tells_what_was_not_read", unread_server, unread_client },
	{ "stream_both_close_with_unread_bytes", deaf_server, deaf_client },
	{ "stream_peer_breaks_the_protocol", wary_server, hostile_client },
	{ "stream_peer_says_anything_at_all", patient_server, babbling_client },
	{ "stream_peer_is_a_plain_channel", stranger_server, stranger_client },
	{ NULL },
};
