/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens: what a peer is told of memory that it may use. See docs/protocol.md. */
#ifndef VB_WIRE_TOKEN_H
#define VB_WIRE_TOKEN_H

#include <stdbool.h>
#include <stdint.h>

#define VB__TOKEN_LENGTH 32u

struct vb__token_fields {
	uint32_t rights;
	uint64_t addr, key, len; /* as the fabric wants them */
};

void vb__token_encode(uint8_t to[VB__TOKEN_LENGTH], const struct vb__token_fields *fields);

/* False: that is no token. Nothing else is believed to be true, either: the fabric will tell. */
bool vb__token_decode(struct vb__token_fields *fields, const uint8_t from[VB__TOKEN_LENGTH]);

#endif
