/* SPDX-License-Identifier: Apache-2.0 */
/* Codecs: the steps between a block and its message, in their order. How a step works is not its business. */
#include "transfer/codec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct vb__codec {
	const struct vb_session *session;
	enum vb__cipher cipher;
	struct vb__seal *seals[VB_RAILS_MAX]; /* as they are needed */
};

bool vb__codec_computes(const struct vb_session *session)
{
	return vb__seal_cipher(session->agreed.seal) != VB__CIPHER_NONE;
}

int vb__codec_open(const struct vb_session *session, struct vb__codec **codec, struct vb_error *err)
{
	struct vb__codec *c = calloc(1, sizeof(*c));

	if (!c)
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	c->session = session;
	c->cipher = vb__seal_cipher(session->agreed.seal);
	*codec = c;
	return 0;
}

void vb__codec_close(struct vb__codec *c)
{
	for (unsigned i = 0; c && i < VB_RAILS_MAX; i++)
		vb__seal_destroy(c->seals[i]);
	free(c);
}

static int fail_corrupt(const struct vb__codec *c, const char *cause, struct vb_error *err)
{
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_CORRUPT,
				     .operation = "receive from",
				     .object = c->session->peer,
				     .cause = cause,
			     });
}

/* ---- Sealing: data and head together, then the tag in place of the check ---- */

static int seal_for(struct vb__codec *c, unsigned rail, struct vb__seal **seal,
		    struct vb_error *err)
{
	int rc = 0;

	if (!c->seals[rail])
		rc = vb__seal_create(c->cipher, &c->session->secrets[rail], &c->seals[rail], err);
	*seal = c->seals[rail];
	return rc;
}

/* The trailer is there; the data is, or comes from elsewhere. */
static int seal(struct vb__codec *c, const uint8_t *data, struct vb__message *message,
		struct vb_error *err)
{
	struct vb__sealed sealed = {
		.turn = message->turn,
		.data = data,
		.data_bytes = message->len - VB__BLOCK_TRAILER,
		.more_bytes = VB__BLOCK_HEAD,
		.bytes = message->bytes,
	};
	struct vb__seal *seal;
	int rc = seal_for(c, message->rail, &seal, err);

	return rc ? rc : vb__seal_close(seal, &sealed, err);
}

/* What was the tag becomes a check of nothing. */
static int unseal(struct vb__codec *c, struct vb__message *message, struct vb_error *err)
{
	struct vb__seal *seal;
	int rc;

	if (message->len < VB__BLOCK_TRAILER)
		return fail_corrupt(c, "a block makes no sense", err);
	rc = seal_for(c, message->rail, &seal, err);
	if (rc == 0)
		rc = vb__seal_open(seal, message->turn, message->bytes, message->len, err);
	if (rc == VB_ERR_CORRUPT)
		return fail_corrupt(c,
				    "a sealed block was changed, left out, repeated or moved on "
				    "its way; it was not written",
				    err);
	memset(message->bytes + message->len - VB__SEAL_TAG, 0, VB__SEAL_TAG);
	return rc;
}

/* ---- All of it ---- */

int vb__codec_encode(struct vb__codec *c, struct vb__block *block, struct vb__message *message,
		     struct vb_error *err)
{
	uint64_t bytes = vb__block_data_bytes(block);

	block->hash = vb__block_hash(block, message->bytes);
	vb__block_encode(message->bytes + bytes, block);
	message->len = bytes + VB__BLOCK_TRAILER;
	return c->cipher ? seal(c, message->bytes, message, err) : 0;
}

int vb__codec_decode(struct vb__codec *c, struct vb__block *block, struct vb__message *message,
		     const void **data, struct vb_error *err)
{
	int rc = c->cipher ? unseal(c, message, err) : 0;
	uint64_t hash;

	if (rc)
		return rc;
	if (!vb__block_decode(block, message->bytes, message->len))
		return fail_corrupt(c, "a block makes no sense", err);
	hash = vb__block_hash(block, message->bytes);
	if (!c->cipher && hash != block->hash)
		return fail_corrupt(c, "a block was changed on its way; it was not written", err);
	block->hash = hash;
	*data = message->bytes;
	return 0;
}
