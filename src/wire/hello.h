/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hello: what each side says in the private data of the connection
 * request and of the answer to it. See docs/protocol.md.
 */
#ifndef VB_WIRE_HELLO_H
#define VB_WIRE_HELLO_H

#include <stddef.h>
#include <stdint.h>

#define VB__HELLO_BYTES 48u
#define VB__PROTOCOL_VERSION 1u
#define VB__TOKEN_BYTES 16u

enum vb__hello_kind {
	VB__HELLO_OPEN = 1,   /* the connecting side asks for these limits */
	VB__HELLO_ACCEPT = 2, /* the listening side grants these, never more than asked for */
	VB__HELLO_REFUSE = 3, /* it does not; the reason tells why */
};

enum vb__refusal {
	VB__REFUSAL_NONE = 0,
	VB__REFUSAL_VERSION = 1, /* the version is not spoken here; `version` is the one that is */
	VB__REFUSAL_GARBAGE = 2, /* that was no hello */
	VB__REFUSAL_BUSY = 3,	 /* too many connections */
	VB__REFUSAL_TOKEN = 4,	 /* nobody with that token is expected */
	VB__REFUSAL_UNABLE = 5,	 /* the listener is short of something, which its log tells */
};

struct vb__hello {
	enum vb__hello_kind kind;
	uint16_t version;
	uint16_t reason; /* enum vb__refusal */
	uint32_t max_message;
	uint16_t depth;
	uint8_t token[VB__TOKEN_BYTES]; /* OPEN: by whom we are expected; all zero: by anybody */
};

enum vb__hello_verdict {
	VB__HELLO_GOOD = 0,
	VB__HELLO_GARBAGE,	 /* not ours, or nonsense inside */
	VB__HELLO_OTHER_VERSION, /* ours; only kind, version and reason can be relied on */
};

void vb__hello_encode(uint8_t to[VB__HELLO_BYTES], const struct vb__hello *hello);

/* `len` may be larger than the hello: fabrics pad their private data. */
enum vb__hello_verdict vb__hello_decode(struct vb__hello *hello, const uint8_t *from, size_t len);

#endif
