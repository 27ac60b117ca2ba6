/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parleys: the conversation about a transfer, over a channel of its own.
 * It is TLS 1.3 with a pre-shared key made of the user's key, so each side
 * proves to the other that it knows the key, and all that is said is sealed.
 * No certificates, no tickets, no resumption, no early data, no other version.
 *
 * A parley does not block and is for one thread at a time.
 */
#ifndef VB_TRANSFER_PARLEY_H
#define VB_TRANSFER_PARLEY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <verbatim/channel.h>

#define VB__SECRET_BYTES 32u

/* The longest thing that can be said at once, and the limits of a channel that carries it. */
#define VB__PARLEY_MAX 2048u
#define VB__PARLEY_CHANNEL_BYTES 4096u
#define VB__PARLEY_CHANNEL_DEPTH 4u

/* The user's key, stretched by scrypt (some tens of ms), so that guessing is slow. */
struct vb__secret {
	uint8_t bytes[VB__SECRET_BYTES];
};
int vb__secret_from_key(struct vb__secret *secret, const void *key, size_t key_bytes,
			struct vb_error *err);
void vb__secret_wipe(struct vb__secret *secret);

struct vb__parley;

enum vb__parley_role {
	VB__PARLEY_CONNECTED, /* our side connected */
	VB__PARLEY_ACCEPTED,
};

/* Starts on a channel, which it does not own but alone uses. */
int vb__parley_open(struct vb_channel *channel, const struct vb__secret *secret,
		    enum vb__parley_role role, struct vb__parley **parley, struct vb_error *err);

/*
 * Goes on proving: 0 when both sides have proven, VB_ERR_AGAIN while the peer must speak first
 * (then wait on vb_channel_fd), VB_ERR_KEY if the keys differ, else what went
 * wrong with the channel or what the peer said that was no TLS (VB_ERR_PROTOCOL).
 * After a failure the peer has been told, as far as that was possible.
 */
int vb__parley_prove(struct vb__parley *parley, struct vb_error *err);

/* Says `len` bytes, 1 to VB__PARLEY_MAX. Blocks only while the peer has no room. */
int vb__parley_say(struct vb__parley *parley, const void *words, size_t len, struct vb_error *err);

/* What the peer said next, all of one say, and its length; VB_ERR_AGAIN if nothing yet. Valid until the next call. */
ssize_t vb__parley_hear(struct vb__parley *parley, const void **words, struct vb_error *err);

/* Bytes that only the two of us know, different for each label and number. */
int vb__parley_derive(struct vb__parley *parley, const char *label, uint32_t number, void *to,
		      size_t len, struct vb_error *err);

/* Frees it; the channel stays. NULL is fine. */
void vb__parley_close(struct vb__parley *parley);

#endif
