/* SPDX-License-Identifier: Apache-2.0 */
/* Codecs: the steps between a block and its message, in their order. How a step works is not its business. */
#include "transfer/codec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/clock.h"
#include "transfer/governor.h"
#include "transfer/packer.h"

struct vb__codec {
	const struct vb_session *session;
	enum vb__cipher cipher;
	struct vb__seal *seals[VB_RAILS_MAX]; /* as they are needed */
	struct vb__packer *packer;	      /* NULL: it is agreed not to pack */
	uint8_t *room;			      /* for a packed block, or an unpacked one */
};

bool vb__codec_computes(const struct vb_session *session)
{
	return vb__seal_cipher(session->agreed.seal) != VB__CIPHER_NONE || session->agreed.pack;
}

/* Untouched pages cost nothing: where nothing is packed the room takes no memory. */
static int open_packer(struct vb__codec *c, int cancel_fd, struct vb_error *err)
{
	void *room = mmap(NULL, c->session->agreed.block_bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (room == MAP_FAILED)
		return vb__fail_errno(err, errno, "mmap", NULL);
	c->room = room;
	return vb__packer_open(cancel_fd, &c->packer, err);
}

int vb__codec_open(const struct vb_session *session, int cancel_fd, struct vb__codec **codec,
		   struct vb_error *err)
{
	struct vb__codec *c = calloc(1, sizeof(*c));

	if (!c)
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	c->session = session;
	c->cipher = vb__seal_cipher(session->agreed.seal);
	if (session->agreed.pack && open_packer(c, cancel_fd, err) != 0) {
		vb__codec_close(c);
		return err ? (int)err->code : VB_ERR_SYSTEM;
	}
	*codec = c;
	return 0;
}

void vb__codec_close(struct vb__codec *c)
{
	if (!c)
		return;
	for (unsigned i = 0; i < VB_RAILS_MAX; i++)
		vb__seal_destroy(c->seals[i]);
	vb__packer_close(c->packer);
	if (c->room)
		munmap(c->room, c->session->agreed.block_bytes);
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

/* ---- Packing: to the codec's room, and out of it ---- */

/* Returns how many bytes the block has become, in the room; 0: it goes as it is. */
static size_t pack(struct vb__codec *c, const struct vb__block *block, struct vb__message *message)
{
	uint64_t since;
	size_t packed;

	message->pack_ns = 0;
	if (!c->packer || message->level == VB__LEVEL_OFF)
		return 0;
	since = vb__now_ns();
	packed = vb__packer_pack(c->packer, message->level, message->bytes,
				 vb__block_data_bytes(block), c->room);
	message->pack_ns = vb__now_ns() - since;
	return packed;
}

/* What was declared is believed only as far as there is room for. */
static int unpack(struct vb__codec *c, struct vb__block *block, struct vb__message *message,
		  struct vb_error *err)
{
	uint64_t since = vb__now_ns();

	block->flags &= ~(uint32_t)VB__BLOCK_PACKED;
	if (!c->packer || block->length > c->session->agreed.block_bytes)
		return fail_corrupt(c, "a block makes no sense", err);
	if (!vb__packer_unpack(c->packer, message->bytes, message->len - VB__BLOCK_TRAILER, c->room,
			       block->length))
		return fail_corrupt(c, "a block cannot be unpacked; it was not written", err);
	message->pack_ns = vb__now_ns() - since;
	return 0;
}

/* ---- All of it ---- */

int vb__codec_encode(struct vb__codec *c, struct vb__block *block, struct vb__message *message,
		     struct vb_error *err)
{
	size_t packed = pack(c, block, message);
	size_t bytes = packed ? packed : vb__block_data_bytes(block);
	struct vb__block head = *block;

	block->hash = head.hash = vb__block_hash(block, message->bytes);
	if (packed)
		head.flags |= VB__BLOCK_PACKED;
	vb__block_encode(message->bytes + bytes, &head);
	message->len = bytes + VB__BLOCK_TRAILER;
	if (c->cipher)
		return seal(c, packed ? c->room : message->bytes, message, err);
	if (packed)
		memcpy(message->bytes, c->room, packed);
	return 0;
}

int vb__codec_decode(struct vb__codec *c, struct vb__block *block, struct vb__message *message,
		     const void **data, struct vb_error *err)
{
	int rc = c->cipher ? unseal(c, message, err) : 0;
	uint64_t hash;

	message->pack_ns = 0;
	if (rc)
		return rc;
	if (!vb__block_decode(block, message->bytes, message->len))
		return fail_corrupt(c, "a block makes no sense", err);
	*data = message->bytes;
	if (block->flags & VB__BLOCK_PACKED) {
		rc = unpack(c, block, message, err);
		if (rc)
			return rc;
		*data = c->room;
	}
	hash = vb__block_hash(block, *data);
	if (!c->cipher && hash != block->hash)
		return fail_corrupt(c, "a block was changed on its way; it was not written", err);
	block->hash = hash;
	return 0;
}
