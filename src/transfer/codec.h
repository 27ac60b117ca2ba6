/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Codecs: between a block and its message on a rail. The sender's makes the message, the receiver's
 * gets the block back out of it or refuses it: what it lets pass is what was sent. Each worker has
 * one, with whatever memory the work needs, so any number of blocks are worked on at once.
 *
 *	sending      a slot, the data in it -> [pack] -> [seal] -> the same slot, now the message
 *	receiving    a slot, the message in it -> [open] -> [unpack] -> the data, in the slot or in the codec's memory
 *
 * With neither step, or if only sealed, nothing is moved: data is read, sent, received and written in
 * the channel's slots. Packing goes to the codec's memory, and from there back, sealed on the way if it is to be.
 */
#ifndef VB_TRANSFER_CODEC_H
#define VB_TRANSFER_CODEC_H

#include "transfer/session_state.h"

struct vb__codec;

/* A block's message, to be made or as it came. */
struct vb__message {
	uint8_t *bytes; /* page-aligned, with room for a block of the agreed size and its trailer */
	size_t len;
	unsigned rail;
	uint64_t turn;	  /* how many went before it on this rail: on either side the same */
	int level;	  /* to make: how hard to pack it, as governor.h counts */
	uint64_t pack_ns; /* that packing, or unpacking, took */
};

/* Is there more to do than to check, by what the session has agreed on? */
bool vb__codec_computes(const struct vb_session *session);

/*
 * For what the session has agreed on; the session must outlive it. One thread at a time, and one of encode and
 * decode. `cancel_fd` (-1: none) becomes readable when what is being encoded is of no use any more.
 */
int vb__codec_open(const struct vb_session *session, int cancel_fd, struct vb__codec **codec,
		   struct vb_error *err);

/* NULL is fine. */
void vb__codec_close(struct vb__codec *codec);

/* Makes the message of a block whose data is at `message->bytes`, and sets its length. Completes the block: its hash. */
int vb__codec_encode(struct vb__codec *codec, struct vb__block *block, struct vb__message *message,
		     struct vb_error *err);

/*
 * Checks a message and takes it apart; `data`, page-aligned, is good until the next call or until the
 * message's memory is used again. VB_ERR_CORRUPT: it is not what was sent, or not in its turn. What a
 * block is about is not checked, nor whether it belongs to the transfer.
 */
int vb__codec_decode(struct vb__codec *codec, struct vb__block *block, struct vb__message *message,
		     const void **data, struct vb_error *err);

#endif
