/* SPDX-License-Identifier: Apache-2.0 */
/* Large writes that go straight into the reader's memory, and what is registered for that. */
#include <sys/mman.h>

#include "channel/inside.h"
#include "fabric/fabric.h"
#ifdef VB_HAVE_VERBS
#include "fabric/verbs/verbs.h"
#endif
#include "stream_side.h"
#include "wire/stream_word.h"

#define MIB (1u << 20)
#define TIMES 8u

static struct vb_stream_counters counters_of(struct vb_stream *stream)
{
	struct vb_stream_counters counters;

	vb_stream_counters(stream, &counters);
	return counters;
}

/* How often this process has registered so much as a MiB. */
static unsigned registered;

int __real_vb__mr_open(struct vb__ep *ep, void *addr, size_t len, unsigned access,
		       struct vb__mr **mr, struct vb_error *err);
int __wrap_vb__mr_open(struct vb__ep *ep, void *addr, size_t len, unsigned access,
		       struct vb__mr **mr, struct vb_error *err);

int __wrap_vb__mr_open(struct vb__ep *ep, void *addr, size_t len, unsigned access,
		       struct vb__mr **mr, struct vb_error *err)
{
	registered += len >= MIB;
	return __real_vb__mr_open(ep, addr, len, access, mr, err);
}

/* What it registers for itself does not count. */
static struct vb_stream *serve_counted(struct side *side)
{
	struct vb_stream *stream = serve_stream(side, DIRECT_BYTES);

	registered = 0;
	return stream;
}

static struct vb_stream *connect_counted(struct side *side)
{
	struct vb_stream *stream = connect_stream(side, DIRECT_BYTES);

	registered = 0;
	return stream;
}

static uint8_t *map_at(void *where)
{
	void *addr = mmap(where, MIB, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | (where ? MAP_FIXED : 0), -1, 0);

	CHECK(addr != MAP_FAILED && (!where || addr == where));
	return addr;
}

/* ---- What is copied, and what is registered ---- */

static void read_mib(struct vb_stream *stream, uint8_t *buffer, uint32_t i)
{
	memset(buffer, 0, MIB);
	read_well(stream, buffer, MIB);
	CHECK(is_filled_at(buffer, MIB, (uint64_t)i * MIB, 1));
}

static void read_often(struct vb_stream *stream, uint8_t *buffer, uint32_t from)
{
	for (uint32_t i = from; i < TIMES; i++)
		read_mib(stream, buffer, i);
	CHECK_EQ(counters_of(stream).bytes_read, TIMES * MIB);
	CHECK_EQ(counters_of(stream).direct_read, TIMES * MIB);
}

static void placed_server(struct side *side)
{
	struct vb_stream *stream = serve_counted(side);
	uint8_t *buffer = malloc(MIB);

	read_often(stream, buffer, 0);
	CHECK_EQ(registered, TIMES);
	CHECK_EQ(counters_of(stream).registrations, TIMES);
	CHECK_EQ(counters_of(stream).registrations_saved, 0);
	expect_end(stream);
	close_stream(stream);
	free(buffer);
}

static void placed_client(struct side *side)
{
	struct vb_stream *stream = connect_stream(side, DIRECT_BYTES);

	write_bytes(stream, 0, TIMES * MIB, MIB, 1);
	CHECK_EQ(counters_of(stream).direct_written, TIMES * MIB);
	/* That it is ready, if nobody had asked before, and that it is there. */
	CHECK(messages_sent(stream) <= ledgers(side) + 2 * TIMES);
	close_stream(stream);
}

/* No device may be asked for more than to read it. */
static void read_only_client(struct side *side)
{
	struct vb_stream *stream = connect_stream(side, DIRECT_BYTES);
	uint8_t *memory = map_at(NULL);

	for (uint32_t i = 0; i < TIMES; i++) {
		CHECK_EQ(mprotect(memory, MIB, PROT_READ | PROT_WRITE), 0);
		fill_at(memory, MIB, (uint64_t)i * MIB, 1);
		CHECK_EQ(mprotect(memory, MIB, PROT_READ), 0);
		write_well(stream, memory, MIB);
	}
	CHECK_EQ(counters_of(stream).direct_written, TIMES * MIB);
	close_stream(stream);
}

static void kept_server(struct side *side)
{
	struct vb_stream *stream = serve_counted(side);
	uint8_t *memory = malloc(2 * MIB);
	unsigned by_keep, in_all;
	struct vb_error err;

	CHECK_EQ(vb_stream_keep(stream, memory, 2 * MIB, &err), 0);
	CHECK_EQ(vb_stream_keep(stream, memory + MIB, MIB, &err), VB_ERR_INVALID);
	by_keep = registered;
	read_mib(stream, memory + MIB, 0);
	in_all = registered;
	CHECK(in_all == 1 || in_all == 2); /* to be written from, and by the peer */
	read_often(stream, memory + 1000, 1);
	CHECK_EQ(registered, in_all);
	CHECK_EQ(counters_of(stream).registrations, in_all);
	CHECK_EQ(counters_of(stream).registrations_saved, TIMES - (in_all - by_keep));
	vb_stream_forget(stream, memory + MIB); /* there is none */
	vb_stream_forget(stream, memory);
	expect_end(stream);
	close_stream(stream);
	free(memory);
}

static void kept_client(struct side *side)
{
	struct vb_stream *stream = connect_counted(side);
	uint8_t *memory = malloc(MIB);
	struct vb_error err;

	CHECK_EQ(vb_stream_keep(stream, memory, MIB, &err), 0);
	for (uint32_t i = 0; i < TIMES; i++) {
		fill_at(memory, MIB, (uint64_t)i * MIB, 1);
		write_well(stream, memory, MIB);
	}
	CHECK_EQ(counters_of(stream).direct_written, TIMES * MIB);
	CHECK(registered <= 1); /* not everywhere it takes one */
	CHECK_EQ(counters_of(stream).registrations, registered);
	CHECK_EQ(counters_of(stream).registrations_saved, registered * TIMES);
	close_stream(stream); /* forgets it */
	free(memory);
}

/* ---- Memory that is unmapped and mapped again ---- */

static bool is_zero(const uint8_t *memory)
{
	return !memory[0] && !memcmp(memory, memory + 1, MIB - 1);
}

/* Here or there, kept or not: what is at a place is new each time. */
static void remapped(struct vb_stream *stream, bool reads)
{
	uint8_t *places[2] = { map_at(NULL), map_at(NULL) }, *memory;
	struct vb_error err;

	for (uint32_t i = 0; i < TIMES; i++) {
		memory = map_at(places[i / 3 % 2]);
		map_at(places[!(i / 3 % 2)]);
		if (i % 2)
			CHECK_EQ(vb_stream_keep(stream, memory, MIB, &err), 0);
		if (reads) {
			read_mib(stream, memory, i);
		} else {
			fill_at(memory, MIB, (uint64_t)i * MIB, 1);
			write_well(stream, memory, MIB);
		}
		CHECK(is_zero(places[!(i / 3 % 2)]));
		vb_stream_forget(stream, memory);
		CHECK_EQ(munmap(memory, MIB), 0);
	}
	CHECK(!reads || registered >= TIMES);
	CHECK_EQ(counters_of(stream).registrations, registered);
}

static void remapped_server(struct side *side)
{
	struct vb_stream *stream = serve_counted(side);

	remapped(stream, true);
	expect_end(stream);
	close_stream(stream);
}

static void remapped_client(struct side *side)
{
	struct vb_stream *stream = connect_counted(side);

	remapped(stream, false);
	close_stream(stream);
}

/* ---- A peer that knows the protocol, and misuses it ---- */

static void say(struct vb_channel *ch, struct vb__stream_word word, const void *token)
{
	struct vb_error err = { .code = VB_OK };
	size_t before = token ? VB__STREAM_TOKEN : 0;
	struct vb__loan loan;

	CHECK_EQ(vb__channel_borrow(ch, &loan, &err), 0);
	if (token)
		memcpy(loan.data, token, before);
	vb__stream_word_encode(loan.data + before, &word);
	CHECK_EQ(vb__channel_send_loan(ch, &loan, before + VB__STREAM_WORD, &err), 0);
}

/* Announces a MiB and waits until it is wanted. */
static struct vb_channel *await_want(struct side *side, struct vb_token *token)
{
	struct vb__stream_word word;
	struct vb_channel *ch;
	struct vb__loan loan;

	side->options.depth = 16;
	ch = connect_there(side);
	say(ch, (struct vb__stream_word){ .kind = VB__STREAM_READY, .length = MIB }, NULL);
	hear_word(ch, &loan, &word);
	CHECK_EQ(word.kind, VB__STREAM_WANT);
	CHECK_EQ(word.offset, 0);
	CHECK_EQ(word.length, MIB);
	memcpy(token, loan.data, sizeof(*token));
	vb__channel_give_back(ch, &loan);
	return ch;
}

/* When the read is over, nobody writes into its buffer any more. */
static void revoking_server(struct side *side)
{
	struct vb_stream *stream = serve_stream(side, DIRECT_BYTES);
	uint8_t *buffer = malloc(MIB), byte;
	struct vb_error err;

	read_well(stream, buffer, MIB);
	CHECK(is_filled(buffer, MIB, 1));
	fill(buffer, MIB, 2);
	signal_step(side, 0);
	CHECK(vb_stream_read(stream, &byte, 1, &err) < 0);
	CHECK(is_filled(buffer, MIB, 2));
	vb_stream_abort(stream);
	free(buffer);
}

/* Nor into kept memory, when it is forgotten. */
static void forgetting_server(struct side *side)
{
	struct vb_stream *stream = serve_stream(side, DIRECT_BYTES);
	uint8_t *memory = map_at(NULL), byte;
	struct vb_error err;

	CHECK_EQ(vb_stream_keep(stream, memory, MIB, &err), 0);
	read_well(stream, memory, MIB);
	CHECK(is_filled(memory, MIB, 1));
	vb_stream_forget(stream, memory);
	map_at(memory);
	signal_step(side, 0);
	CHECK(vb_stream_read(stream, &byte, 1, &err) < 0);
	CHECK(is_zero(memory));
	vb_stream_abort(stream);
}

#ifdef VB_HAVE_VERBS
/* As in memory_bounds_tests.c; this side is the one that gives rights. */
static void kept_windows_server(struct side *side)
{
	verbs_any_windows = true;
	kept_server(side);
}

static void forgetting_windows_server(struct side *side)
{
	verbs_any_windows = true;
	forgetting_server(side);
}
#endif

static void persistent_client(struct side *side)
{
	uint8_t *data = malloc(MIB);
	struct vb_token token;
	struct vb_channel *ch = await_want(side, &token);
	struct vb_error err;

	fill(data, MIB, 1);
	CHECK_EQ(vb_put(ch, &token, 0, data, MIB, &err), 0);
	say(ch, (struct vb__stream_word){ .kind = VB__STREAM_PLACED, .length = MIB }, NULL);
	await_step(side, 0);
	while (vb_put(ch, &token, 0, data, MIB, &err) == 0)
		; /* not every fabric tells at once that it was refused */
	vb_channel_abort(ch);
	free(data);
}

static void overwhelmed_server(struct side *side)
{
	struct vb_stream *stream = serve_stream(side, DIRECT_BYTES);
	uint8_t *buffer = malloc(MIB);
	struct vb_error err;

	CHECK_EQ(vb_stream_read(stream, buffer, MIB, &err), VB_ERR_PROTOCOL);
	CHECK(strstr(err.cause, "more was placed"));
	vb_stream_abort(stream);
	free(buffer);
}

static void overwhelming_client(struct side *side)
{
	struct vb_token token;
	struct vb_channel *ch = await_want(side, &token);
	struct vb_error err = { .code = VB_OK };
	struct vb__loan loan;

	say(ch, (struct vb__stream_word){ .kind = VB__STREAM_PLACED, .length = MIB + 1 }, NULL);
	CHECK(vb__channel_recv_loan(ch, &loan, &err) < 0);
	vb_channel_abort(ch);
}

static void misled_server(struct side *side)
{
	struct vb_stream *stream = serve_stream(side, DIRECT_BYTES);
	uint8_t *buffer = calloc(1, MIB);
	struct vb_error err;

	CHECK_EQ(vb_stream_write(stream, buffer, MIB, &err), VB_ERR_PROTOCOL);
	vb_stream_abort(stream);
	free(buffer);
}

/* Wants it at a place that is none. */
static void misleading_client(struct side *side)
{
	struct vb_error err = { .code = VB_OK };
	struct vb_token token;
	struct vb_channel *ch;
	struct vb__loan loan;

	memset(&token, 0x5a, sizeof(token));
	side->options.depth = 16;
	ch = connect_there(side);
	say(ch, (struct vb__stream_word){ .kind = VB__STREAM_WANT, .length = MIB }, &token);
	while (vb__channel_recv_loan(ch, &loan, &err) == 0)
		vb__channel_give_back(ch, &loan);
	vb_channel_abort(ch);
}

/* The answer has no room, and then the peer asks again, about more than was read. */
static void late_answer_server(struct side *side)
{
	struct vb_stream *stream = serve_stream(side, UINT64_MAX);
	size_t len = 64 * MIB;
	uint8_t *buffer = calloc(1, len), bytes[40];
	struct vb_error err;

	await_step(side, 0);
	sleep_ms(50); /* the question is here */
	CHECK(vb_stream_try_write(stream, buffer, len, &err) > 0);
	while (vb_stream_try_write(stream, buffer, len, &err) > 0)
		;
	/* The answer to the first question takes the last room. */
	CHECK_EQ(vb_stream_try_read(stream, bytes, 20, &err), 20);
	signal_step(side, 1);
	await_step(side, 0);
	sleep_ms(50);
	while (vb_stream_try_read(stream, bytes, 20, &err) != 20)
		;
	signal_step(side, 1);
	await_step(side, 2);
	CHECK_EQ(vb_stream_read(stream, bytes, 10, &err), 10);
	signal_step(side, 3);
	vb_stream_read(stream, bytes, 1, &err);
	vb_stream_abort(stream);
	free(buffer);
}

/* Takes in what comes until there was nothing for a while, or it was confirmed that 50 were read. */
static bool hears_of_50(struct vb_channel *ch)
{
	struct vb_error err = { .code = VB_OK };
	struct vb__stream_word word;
	struct vb__loan loan;

	for (unsigned quiet = 0; quiet < 100; quiet++) {
		while (vb__channel_try_recv_loan(ch, &loan, &err) == 0) {
			quiet = 0;
			CHECK(vb__stream_word_decode(&word, loan.data, loan.bytes));
			vb__channel_give_back(ch, &loan);
			if (word.kind == VB__STREAM_SYNCED && word.offset == 50)
				return true;
		}
		vb__channel_listen(ch);
		sleep_ms(1);
	}
	return false;
}

static void say_bytes(struct vb_channel *ch, uint64_t offset, uint64_t len)
{
	struct vb__stream_word word = {
		.kind = VB__STREAM_DATA, .asks = true, .offset = offset, .length = len
	};
	struct vb_error err = { .code = VB_OK };
	struct vb__loan loan;

	CHECK_EQ(vb__channel_borrow(ch, &loan, &err), 0);
	memset(loan.data, 0, len);
	vb__stream_word_encode(loan.data + len, &word);
	CHECK_EQ(vb__channel_send_loan(ch, &loan, len + VB__STREAM_WORD, &err), 0);
}

static void impatient_client(struct side *side)
{
	struct vb_channel *ch;

	side->options.depth = 16;
	ch = connect_there(side);
	for (unsigned i = 0; i < 2; i++) {
		say_bytes(ch, i * 20, 20);
		signal_step(side, 0);
		await_step(side, 1);
	}
	say_bytes(ch, 40, 10);
	CHECK(!hears_of_50(ch));
	signal_step(side, 2);
	CHECK(hears_of_50(ch));
	await_step(side, 3);
	vb_channel_abort(ch);
}

/* The peer's ledger tells that more was read than was sent. Over libfabric there is none at all. */
static void deceived_server(struct side *side)
{
	struct vb_stream *stream = serve_stream(side, DIRECT_BYTES);
	struct vb_error err;

	write_well(stream, "12345", 5);
	CHECK_EQ(vb_stream_flush(stream, &err), 0);
	CHECK_EQ(vb_stream_sync(stream, &err), VB_ERR_PROTOCOL);
	vb_stream_abort(stream);
}

static void deceiving_client(struct side *side)
{
	struct vb_error err = { .code = VB_OK };
	struct vb_region *ledger;
	struct vb_grant *grant;
	struct vb_channel *ch;
	struct vb__loan loan;

	side->options.depth = 16;
	ch = connect_there(side);
	CHECK_EQ(vb_region_alloc(ch, 16, &ledger, &err), 0);
	memset(vb_region_addr(ledger), 6, 16);
	CHECK_EQ(vb_grant(ledger, 0, 16, VB_RIGHT_READ, &grant, &err), 0);
	say(ch, (struct vb__stream_word){ .kind = VB__STREAM_LEDGER }, vb_grant_token(grant));
	while (vb__channel_recv_loan(ch, &loan, &err) == 0)
		vb__channel_give_back(ch, &loan);
	vb_channel_abort(ch);
}

#ifdef VB_HAVE_VERBS
/* A place that is no ledger; and a second one. */
static const struct {
	size_t len;
	unsigned rights, times;
} odd_ledgers[] = {
	{ 8, VB_RIGHT_READ, 1 },
	{ 4096, VB_RIGHT_READ, 1 },
	{ 16, VB_RIGHT_WRITE, 1 },
	{ 16, VB_RIGHT_READ, 2 },
};
#define ODD_LEDGERS (sizeof(odd_ledgers) / sizeof(odd_ledgers[0]))

static void choosy_server(struct side *side)
{
	struct vb_stream_server *server = serve_streams(side, DIRECT_BYTES);
	struct vb_stream *stream;
	struct vb_error err;
	uint8_t byte;

	for (unsigned i = 0; i < ODD_LEDGERS; i++) {
		CHECK_EQ(vb_stream_accept(server, &stream, &err), 0);
		CHECK_EQ(vb_stream_read(stream, &byte, 1, &err), VB_ERR_PROTOCOL);
		vb_stream_abort(stream);
	}
	vb_stream_server_close(server);
}

static void odd_client(struct side *side)
{
	struct vb__stream_word word = { .kind = VB__STREAM_LEDGER };
	struct vb_error err = { .code = VB_OK };

	side->options.depth = 16;
	for (unsigned i = 0; i < ODD_LEDGERS; i++) {
		struct vb_channel *ch = connect_there(side);
		struct vb_region *memory;
		struct vb_grant *grant;
		struct vb__loan loan;

		CHECK_EQ(vb_region_alloc(ch, 4096, &memory, &err), 0);
		CHECK_EQ(vb_grant(memory, 0, odd_ledgers[i].len, odd_ledgers[i].rights, &grant,
				  &err),
			 0);
		for (unsigned n = 0; n < odd_ledgers[i].times; n++)
			say(ch, word, vb_grant_token(grant));
		while (vb__channel_recv_loan(ch, &loan, &err) == 0)
			vb__channel_give_back(ch, &loan);
		vb_channel_abort(ch);
		vb__error_clear(&err);
	}
}
#endif

const struct test stream_direct_tests[] = {
	{ "stream_large_writes_are_placed_without_a_copy", placed_server, placed_client },
	{ "stream_read_only_memory_is_placed_without_a_copy", placed_server, read_only_client },
	{ "stream_kept_memory_is_registered_once", kept_server, kept_client },
	{ "stream_memory_mapped_anew_is_not_taken_for_what_was_there", remapped_server,
	  remapped_client },
	{ "stream_buffer_is_out_of_reach_when_the_read_is_over", revoking_server,
	  persistent_client },
	{ "stream_forgotten_memory_is_out_of_reach", forgetting_server, persistent_client },
#ifdef VB_HAVE_VERBS
	{ "stream_kept_memory_by_windows_is_registered_once", kept_windows_server, kept_client,
	  .only = "verbs" },
	{ "stream_forgotten_memory_by_windows_is_out_of_reach", forgetting_windows_server,
	  persistent_client, .only = "verbs" },
	{ "stream_peer_s_ledger_is_none", choosy_server, odd_client, .only = "verbs" },
#endif
	{ "stream_peer_places_more_than_was_wanted", overwhelmed_server, overwhelming_client },
	{ "stream_peer_wants_it_where_there_is_no_place", misled_server, misleading_client },
	{ "stream_answers_only_for_what_was_read", late_answer_server, impatient_client },
	{ "stream_peer_tells_of_more_than_was_sent", deceived_server, deceiving_client },
	{ NULL },
};
