/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Datagrams: what two endpoints say when one asks for the other, and what
 * stands before a numbered datagram. See docs/protocol.md.
 */
#ifndef VB_WIRE_DATAGRAM_H
#define VB_WIRE_DATAGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VB__DATAGRAM_VERSION 1u
#define VB__GREETING_BYTES 8u
#define VB__NUMBER_BYTES 8u

/* The smallest MTU that there is: nobody can take less. */
#define VB__DATAGRAM_MAX_LEAST 256u

/* In the private data of the question and of the answer. */
struct vb__greeting {
	uint8_t version;
	bool numbered;
	uint16_t max_bytes; /* that the one who says so can receive; 0: it does not tell */
};

enum vb__greeting_verdict {
	VB__GREETING_GOOD = 0,
	VB__GREETING_FOREIGN,	    /* not ours */
	VB__GREETING_OTHER_VERSION, /* ours; only the version can be relied on */
};

void vb__greeting_encode(uint8_t to[VB__GREETING_BYTES], const struct vb__greeting *greeting);

/* `len` may be larger: fabrics pad their private data. */
enum vb__greeting_verdict vb__greeting_decode(struct vb__greeting *greeting, const uint8_t *from,
					      size_t len);

/* Each destination of a sender has a flow of its own, and the datagrams in it are counted from 0. */
struct vb__number {
	uint16_t flow;
	uint32_t sequence; /* begins again at 0 after its end */
};

void vb__number_encode(uint8_t to[VB__NUMBER_BYTES], const struct vb__number *number);

/* False: it is no numbered datagram. */
bool vb__number_decode(struct vb__number *number, const uint8_t *from, size_t len);

/*
 * Around everything where the fabric does not tell the sender, nor carries questions: over libfabric. A
 * question and its answer hold a greeting, data what the application sent.
 */
#define VB__ENVELOPE_BYTES 24u

enum vb__envelope_kind {
	VB__ENVELOPE_DATA = 0,
	VB__ENVELOPE_QUESTION = 1,
	VB__ENVELOPE_ANSWER = 2,
};

struct vb__envelope {
	enum vb__envelope_kind kind;
	bool six; /* else IPv4, in the first 4 bytes */
	uint16_t port;
	uint8_t address[16]; /* of the sender */
};

void vb__envelope_encode(uint8_t to[VB__ENVELOPE_BYTES], const struct vb__envelope *envelope);

/* False: it is no datagram of ours. */
bool vb__envelope_decode(struct vb__envelope *envelope, const uint8_t *from, size_t len);

#endif
