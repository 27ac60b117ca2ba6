/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parleys: the conversation about a transfer, over a channel of its own.
 * It is TLS 1.3 with a pre-shared key made of the user's key, so each side
 * proves to the other that it knows the key, and all that is said is sealed.
 * No certificates, no tickets, no resumption, no early data, no other version.
 *
 * A parley is for one thread at a time.
 */
#ifndef VB_TRANSFER_PARLEY_H
#define VB_TRANSFER_PARLEY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <verbatim/channel.h>

#define VB__SECRET_BYTES 32u

/*
 * The longest thing that can be said at once, and the limits of a channel that carries it. A message and
 * its trailer are a page: strangers have such channels, too.
 */
#define VB__PARLEY_MAX 2048u
#define VB__PARLEY_CHANNEL_BYTES 4080u
#define VB__PARLEY_CHANNEL_DEPTH 4u

/* What both sides know, and prove to each other. */
struct vb__secret {
	uint8_t bytes[VB__SECRET_BYTES];
};

/*
 * A user's key, stretched so that guessing is slow (some tens of ms and 16 MiB a try):
 * scrypt of the key's SHA-512, salt "verbatim key v1", N 2^14, r 8, p 1. Keys
 * are any bytes: two that differ in anything make different secrets.
 */
int vb__secret_from_key(struct vb__secret *secret, const void *key, size_t key_bytes,
			struct vb_error *err);

/* A key that nobody could guess, VB__SECRET_BYTES long at least: HMAC-SHA-256 of it, under "verbatim random key v1". */
int vb__secret_from_random_key(struct vb__secret *secret, const void *key, size_t key_bytes,
			       struct vb_error *err);
void vb__secret_wipe(struct vb__secret *secret);

struct vb__parley;

enum vb__parley_role {
	VB__PARLEY_CONNECTED, /* our side connected */
	VB__PARLEY_ACCEPTED,
};

/*
 * Starts on a channel, which it does not own but alone uses. Any limits of the channel will do; with
 * those above nothing that is said takes more than one message. The secret is copied, and wiped when
 * it is proven or the parley closed.
 *
 * In all that follows the first failure ends the parley: later calls return the same. No
 * failures in this sense are VB_ERR_AGAIN, VB_ERR_INVALID and VB_ERR_EOF.
 */
int vb__parley_open(struct vb_channel *channel, const struct vb__secret *secret,
		    enum vb__parley_role role, struct vb__parley **parley, struct vb_error *err);

/*
 * Goes on proving: 0 when the peer has proven itself and has been sent all that proves us,
 * VB_ERR_AGAIN while the peer must speak or make room (then wait on vb_channel_fd). Never blocks.
 *
 * VB_ERR_KEY: the keys differ, or somebody without the key stands in between.
 * VB_ERR_VERSION: the key is right, the version is not. VB_ERR_PROTOCOL: what the peer said is no TLS
 * 1.3, or without a key, or over 16 KiB. VB_ERR_LOST: it left. Else what went wrong with the channel.
 *
 * After a failure the peer has been told, as far as there was room: it hears of it unless the
 * channel is aborted at once.
 *
 * The side that connected is done first. If the last of its proof is spoilt on the way, the
 * side that accepted fails here, and the other hears of it by VB_ERR_CORRUPT or VB_ERR_LOST.
 */
int vb__parley_prove(struct vb__parley *parley, struct vb_error *err);

/* How much the peer has said so far that proves nothing yet. */
size_t vb__parley_heard_bytes(const struct vb__parley *parley);

/*
 * Says `len` bytes, 1 to VB__PARLEY_MAX. Never blocks: while the peer has no room they are kept,
 * and go with the next say, hear or flush.
 */
int vb__parley_say(struct vb__parley *parley, const void *words, size_t len, struct vb_error *err);

/* VB_ERR_AGAIN while something that was said is still kept. */
int vb__parley_flush(struct vb__parley *parley, struct vb_error *err);

/*
 * What the peer said next, all of one say, and its length; VB_ERR_AGAIN if nothing yet. Never blocks.
 * Valid until the next hear. VB_ERR_EOF: the peer has closed its parley, and this is
 * proven. VB_ERR_LOST: the channel ended without that, so something may be missing.
 * VB_ERR_CORRUPT: something was changed, left out, repeated or put in on the way, here or there.
 */
ssize_t vb__parley_hear(struct vb__parley *parley, const void **words, struct vb_error *err);

/*
 * Bytes that only the two of us know, the same at both ends, different for each label (up
 * to 64 characters), number and parley. At most 8 KiB. A failure here does not end the parley.
 */
int vb__parley_derive(struct vb__parley *parley, const char *label, uint32_t number, void *to,
		      size_t len, struct vb_error *err);

/*
 * Frees it; the channel stays. If nothing has failed the peer is told that this was all, unless it
 * has no room. Does not block. NULL is fine.
 */
void vb__parley_close(struct vb__parley *parley);

#endif
