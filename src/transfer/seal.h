/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seals: authenticated encryption of a rail's messages, AES-256-GCM or ChaCha20-Poly1305. Both sides
 * have the same secret for each rail and direction, and count the rail's messages: the n-th opens
 * only as the n-th of its rail. So what was changed, left out, repeated or moved does not open.
 *
 * A key seals VB__SEAL_TURNS messages, which are at most 64 GiB, and is then replaced. The key and the
 * nonce of a message follow from the secret and its turn alone, so threads need not agree on anything:
 *
 *	key, base = HKDF-Expand(SHA-512, secret, "verbatim seal" cipher 1 epoch 8), 32 and 12 bytes
 *	nonce = base, its last 8 bytes xored with the turn, big-endian
 *
 * The numbers are big-endian, epoch is turn / VB__SEAL_TURNS.
 */
#ifndef VB_TRANSFER_SEAL_H
#define VB_TRANSFER_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <verbatim/transfer.h>

enum vb__cipher {
	VB__CIPHER_NONE = 0,
	VB__CIPHER_AES,
	VB__CIPHER_CHACHA,
};

/* NULL for none. */
const char *vb__cipher_name(enum vb__cipher cipher);

#define VB__SEAL_SECRET 64u
#define VB__SEAL_TAG 16u
#define VB__SEAL_TURNS 1024u

struct vb__seal_secret {
	uint8_t bytes[VB__SEAL_SECRET];
};

/* One thread's use of one secret, which it copies: to close, or to open, not both. */
struct vb__seal;
int vb__seal_create(enum vb__cipher cipher, const struct vb__seal_secret *secret,
		    struct vb__seal **seal, struct vb_error *err);

/* NULL is fine. */
void vb__seal_destroy(struct vb__seal *seal);

/* What is sealed together: two pieces, of which the second follows the first where they go to, and behind both the tag. */
struct vb__sealed {
	uint64_t turn;
	const uint8_t *data; /* to seal: anywhere, or where it goes to */
	size_t data_bytes;
	size_t more_bytes; /* behind `data_bytes` at `bytes`: there already */
	uint8_t *bytes;	   /* where it goes to, with room for the tag */
};

/* A turn may be used once only: it is the caller who counts. */
int vb__seal_close(struct vb__seal *seal, const struct vb__sealed *sealed, struct vb_error *err);

/*
 * Opens `len` bytes, the tag among them, where they are. VB_ERR_CORRUPT, without details: they are not
 * what was sealed at this turn; then what they have become must not be looked at.
 */
int vb__seal_open(struct vb__seal *seal, uint64_t turn, uint8_t *bytes, size_t len,
		  struct vb_error *err);

/* ---- Agreeing ---- */

/* What a side says in its terms, see docs/protocol.md; all zero is a side that does not seal. */
enum vb__seal_wish {
	VB__SEAL_CAN = 1,
	VB__SEAL_WANTED = 2,
	VB__SEAL_SLOW_AES = 4, /* this CPU has no AES: ChaCha20 is faster */
};

unsigned vb__seal_wish(enum vb_encrypt encrypt);

/* What holds, of both sides' wishes: the receiver's answer. */
unsigned vb__seal_agree(unsigned ours, unsigned theirs);

/* What such an answer means. */
enum vb__cipher vb__seal_cipher(unsigned agreed);

#endif
