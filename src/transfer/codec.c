/* SPDX-License-Identifier: Apache-2.0 */
/* Codecs: the steps between a block and its message, in their order. How a step works is not its business. */
#include "transfer/codec.h"

#include <errno.h>
#include <stdlib.h>

struct vb__codec {
	const struct vb_session *session;
};

int vb__codec_open(const struct vb_session *session, struct vb__codec **codec, struct vb_error *err)
{
	struct vb__codec *c = calloc(1, sizeof(*c));

	if (!c)
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	c->session = session;
	*codec = c;
	return 0;
}

void vb__codec_close(struct vb__codec *c)
{
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

int vb__codec_encode(struct vb__codec *c, struct vb__block *block, struct vb__message *message,
		     struct vb_error *err)
{
	uint64_t bytes = vb__block_data_bytes(block);

	(void)c;
	(void)err;
	block->hash = vb__block_hash(block, message->bytes);
	vb__block_encode(message->bytes + bytes, block);
	message->len = bytes + VB__BLOCK_TRAILER;
	return 0;
}

int vb__codec_decode(struct vb__codec *c, struct vb__block *block, struct vb__message *message,
		     const void **data, struct vb_error *err)
{
	if (!vb__block_decode(block, message->bytes, message->len))
		return fail_corrupt(c, "a block makes no sense", err);
	if (vb__block_hash(block, message->bytes) != block->hash)
		return fail_corrupt(c, "a block was changed on its way; it was not written", err);
	*data = message->bytes;
	return 0;
}
