/* SPDX-License-Identifier: Apache-2.0 */
/* One side of a test of streams: the usual beginnings, ends, and bytes that tell their place. */
#ifndef CONFORMANCE_STREAM_SIDE_H
#define CONFORMANCE_STREAM_SIDE_H

#include "channel/inside.h"
#include "harness.h"
#include "wire/stream_word.h"

/* From this size on nothing is copied, in tests that are about that. */
#define DIRECT_BYTES (32u << 10)

/* A failure ends the process with the error's text. With options of 0: as the side's. */
struct vb_stream *serve_stream(struct side *side, uint64_t direct_bytes);
struct vb_stream *serve_stream_by(struct side *side, const struct vb_stream_options *options);
struct vb_stream *connect_stream(struct side *side, uint64_t direct_bytes);
struct vb_stream_server *serve_streams(struct side *side, uint64_t direct_bytes);
void close_stream(struct vb_stream *stream);

void write_well(struct vb_stream *stream, const void *data, size_t len);
void sync_well(struct vb_stream *stream);

/* All of it, no less. */
void read_well(struct vb_stream *stream, void *data, size_t len);
void expect_end(struct vb_stream *stream);

/* A stream's bytes from an offset on; each stream has a seed. */
void fill_at(uint8_t *to, size_t len, uint64_t offset, uint32_t seed);
bool is_filled_at(const uint8_t *from, size_t len, uint64_t offset, uint32_t seed);

/* Writes or reads so much of these bytes, in calls of such a size. */
void write_bytes(struct vb_stream *stream, uint64_t from, uint64_t to, size_t each, uint32_t seed);
void read_bytes(struct vb_stream *stream, uint64_t from, uint64_t to, size_t each, uint32_t seed);

uint64_t messages_sent(struct vb_stream *stream);

/* How many of these are said at the beginning, to tell where the ledger is. */
unsigned ledgers(const struct side *side);

/* What a stream says, to one that talks to it by hand, after that. The loan is the caller's. */
void hear_word(struct vb_channel *ch, struct vb__loan *loan, struct vb__stream_word *word);

#endif
