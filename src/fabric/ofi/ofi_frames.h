/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libfabric's tcp provider sends and receives on a connection: one opening
 * message each way, then frames. Follows both ways byte by byte, so that it knows
 * what the peer may send next. Pure; whoever has the bytes is ofi_guard.h.
 */
#ifndef VB_FABRIC_OFI_FRAMES_H
#define VB_FABRIC_OFI_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A frame's header with as many pieces of remote memory as the provider has room for. */
#define OFI_FRAME_HEADER 16u
#define OFI_FRAME_PIECE 24u
#define OFI_FRAME_PIECES 4u
#define OFI_FRAME_HEADER_MAX (OFI_FRAME_HEADER + OFI_FRAME_PIECE * OFI_FRAME_PIECES)

/* Answers that a peer may have us owe: more than it can have operations outstanding, and bounded. */
#define OFI_FRAMES_OWED_MAX 8192u

struct ofi_flow {
	bool opened;
	uint8_t have, need; /* bytes of `header` */
	uint64_t left;	    /* bytes that still follow it */
	uint8_t header[OFI_FRAME_HEADER_MAX];
};

struct ofi_frames {
	struct ofi_flow in, out;
	/* Of what was sent completely, and awaits it; and what the peer awaits. */
	uint64_t acks_due, reads_due, owed;
};

void ofi_frames_start(struct ofi_frames *frames);

/*
 * How many of these bytes, from the first, the provider may see. If they are fewer than `len`,
 * the peer breaks the protocol, and nothing after them may be seen.
 */
size_t ofi_frames_received(struct ofi_frames *frames, const uint8_t *bytes, size_t len);

/* What the provider itself has sent, to be told before anything that is received later. */
void ofi_frames_sent(struct ofi_frames *frames, const uint8_t *bytes, size_t len);

#endif
