/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words of a stream: what one message of its channel says. A word stands behind
 * what it is about, the bytes of the stream or a token. See docs/protocol.md.
 */
#ifndef VB_WIRE_STREAM_WORD_H
#define VB_WIRE_STREAM_WORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VB__STREAM_WORD 24u
#define VB__STREAM_TOKEN 32u

/* Offsets in a stream end here: sums of an offset and a length never overflow. */
#define VB__STREAM_END (UINT64_C(1) << 62)

enum vb__stream_kind {
	VB__STREAM_DATA = 1,   /* bytes from `offset` on, before the word */
	VB__STREAM_SYNCED = 2, /* the application has read everything up to `offset` */
	VB__STREAM_READY = 3,  /* `length` bytes from `offset` on wait to be fetched */
	VB__STREAM_PULL = 4,   /* send so many of them as DATA */
	VB__STREAM_WANT = 5,   /* write them straight to where the token before the word leads */
	VB__STREAM_PLACED = 6, /* they were written there */
	VB__STREAM_BYE = 7,    /* nothing from `offset` on will be read any more */
	VB__STREAM_LEDGER = 8, /* how far was read stands where the token before the word leads */
};

struct vb__stream_word {
	enum vb__stream_kind kind;
	bool asks; /* DATA: answer with SYNCED when the last of it has been read */
	uint64_t offset, length;
};

void vb__stream_word_encode(uint8_t to[VB__STREAM_WORD], const struct vb__stream_word *word);

/* `from` is the whole message. False: it makes no sense. */
bool vb__stream_word_decode(struct vb__stream_word *word, const uint8_t *from, size_t len);

#endif
