/* SPDX-License-Identifier: Apache-2.0 */
#include "stream_side.h"

static struct vb_stream_options options_of(const struct side *side, uint64_t direct_bytes)
{
	return (struct vb_stream_options){ .connection = side->options,
					   .direct_bytes = direct_bytes };
}

static struct vb_stream_server *serve_by(struct side *side, const struct vb_stream_options *options)
{
	struct vb_stream_server *server;
	struct vb_error err;

	if (vb_stream_serve(side->address, "0", options, &server, &err) != 0)
		fail_with(&err, "serve");
	side->shared->port = vb_stream_server_port(server);
	sem_post(&side->shared->listening);
	return server;
}

struct vb_stream_server *serve_streams(struct side *side, uint64_t direct_bytes)
{
	struct vb_stream_options options = options_of(side, direct_bytes);

	return serve_by(side, &options);
}

static struct vb_stream *accept_stream(struct vb_stream_server *server)
{
	struct vb_stream *stream;
	struct vb_error err;

	if (vb_stream_accept(server, &stream, &err) != 0)
		fail_with(&err, "accept");
	vb_stream_server_close(server);
	return stream;
}

struct vb_stream *serve_stream(struct side *side, uint64_t direct_bytes)
{
	return accept_stream(serve_streams(side, direct_bytes));
}

struct vb_stream *serve_stream_by(struct side *side, const struct vb_stream_options *options)
{
	return accept_stream(serve_by(side, options));
}

struct vb_stream *connect_stream(struct side *side, uint64_t direct_bytes)
{
	struct vb_stream_options options = options_of(side, direct_bytes);
	struct vb_stream *stream;
	struct vb_error err;

	if (vb_stream_connect(side->address, port_there(side), &options, &stream, &err) != 0)
		fail_with(&err, "connect");
	return stream;
}

void close_stream(struct vb_stream *stream)
{
	struct vb_error err;

	if (vb_stream_close(stream, &err) != 0)
		fail_with(&err, "close");
}

void write_well(struct vb_stream *stream, const void *data, size_t len)
{
	struct vb_error err;

	if (vb_stream_write(stream, data, len, &err) != 0)
		fail_with(&err, "write");
}

void sync_well(struct vb_stream *stream)
{
	struct vb_error err;

	if (vb_stream_sync(stream, &err) != 0)
		fail_with(&err, "sync");
}

void read_well(struct vb_stream *stream, void *data, size_t len)
{
	struct vb_error err;
	ssize_t n = vb_stream_read(stream, data, len, &err);

	if (n < 0)
		fail_with(&err, "read");
	CHECK_EQ(n, len);
}

void expect_end(struct vb_stream *stream)
{
	struct vb_error err;
	uint8_t byte;
	ssize_t n = vb_stream_read(stream, &byte, 1, &err);

	if (n < 0)
		fail_with(&err, "expecting the end");
	CHECK_EQ(n, 0);
}

static uint64_t word_at(uint64_t offset, uint32_t seed)
{
	uint64_t x = (offset / 8 + 1) * UINT64_C(0x9e3779b97f4a7c15) + seed;

	return x ^ x >> 29;
}

void fill_at(uint8_t *to, size_t len, uint64_t offset, uint32_t seed)
{
	uint64_t word;

	for (size_t n, i = 0; i < len; i += n) {
		size_t skip = (offset + i) % 8;

		word = word_at(offset + i, seed);
		n = len - i < 8 - skip ? len - i : 8 - skip;
		memcpy(to + i, (uint8_t *)&word + skip, n);
	}
}

bool is_filled_at(const uint8_t *from, size_t len, uint64_t offset, uint32_t seed)
{
	uint64_t word;

	for (size_t n, i = 0; i < len; i += n) {
		size_t skip = (offset + i) % 8;

		word = word_at(offset + i, seed);
		n = len - i < 8 - skip ? len - i : 8 - skip;
		if (memcmp(from + i, (uint8_t *)&word + skip, n) != 0)
			return false;
	}
	return true;
}

void write_bytes(struct vb_stream *stream, uint64_t from, uint64_t to, size_t each, uint32_t seed)
{
	uint8_t *buffer = malloc(each);

	for (size_t n; from < to; from += n) {
		n = to - from < each ? (size_t)(to - from) : each;
		fill_at(buffer, n, from, seed);
		write_well(stream, buffer, n);
		memset(buffer, 0, n); /* it is ours again */
	}
	free(buffer);
}

void read_bytes(struct vb_stream *stream, uint64_t from, uint64_t to, size_t each, uint32_t seed)
{
	uint8_t *buffer = malloc(each);

	for (size_t n; from < to; from += n) {
		n = to - from < each ? (size_t)(to - from) : each;
		read_well(stream, buffer, n);
		CHECK(is_filled_at(buffer, n, from, seed));
	}
	free(buffer);
}

void hear_word(struct vb_channel *ch, struct vb__loan *loan, struct vb__stream_word *word)
{
	struct vb_error err = { .code = VB_OK };

	do {
		if (vb__channel_recv_loan(ch, loan, &err) != 0)
			fail_with(&err, "hear a word");
		CHECK(vb__stream_word_decode(word, loan->data, loan->bytes));
		if (word->kind == VB__STREAM_LEDGER)
			vb__channel_give_back(ch, loan);
	} while (word->kind == VB__STREAM_LEDGER);
}

unsigned ledgers(const struct side *side)
{
	return strcmp(side->fabric, "ofi") != 0;
}

uint64_t messages_sent(struct vb_stream *stream)
{
	struct vb_stream_counters counters;

	vb_stream_counters(stream, &counters);
	return counters.messages_sent;
}
