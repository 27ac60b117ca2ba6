/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks on the wire: the trailer, and the hash that covers it and the data. */
#include "wire/block.h"

#include <xxhash.h>

#include "wire/bytes.h"
#include "wire/hash.h"

#define HASHED 32u /* bytes of the trailer that the hash covers: all before it */

static void encode_hashed(uint8_t to[HASHED], const struct vb__block *block)
{
	vb__put64(to, block->offset);
	vb__put64(to + 8, block->length);
	vb__put32(to + 16, block->file);
	vb__put32(to + 20, block->flags);
	vb__put64(to + 24, 0);
}

uint64_t vb__block_hash(const struct vb__block *block, const void *data)
{
	struct vb__block unpacked = *block;
	uint8_t trailer[HASHED];

	unpacked.flags &= ~(uint32_t)VB__BLOCK_PACKED;
	encode_hashed(trailer, &unpacked);
	return vb__hash(data, vb__block_data_bytes(block), XXH3_64bits(trailer, sizeof(trailer)));
}

void vb__block_encode(uint8_t to[VB__BLOCK_TRAILER], const struct vb__block *block)
{
	encode_hashed(to, block);
	vb__put64(to + HASHED, block->hash);
}

/* So many bytes of data came. */
static bool is_length_right(const struct vb__block *block, size_t came)
{
	if (block->flags & VB__BLOCK_PACKED)
		return came && came < block->length;
	return came == vb__block_data_bytes(block);
}

bool vb__block_decode(struct vb__block *block, const uint8_t *message, size_t received)
{
	const uint8_t *trailer;
	uint32_t kind;

	if (received < VB__BLOCK_TRAILER)
		return false;
	trailer = message + received - VB__BLOCK_TRAILER;
	*block = (struct vb__block){
		.offset = vb__get64(trailer),
		.length = vb__get64(trailer + 8),
		.file = vb__get32(trailer + 16),
		.flags = vb__get32(trailer + 20),
		.hash = vb__get64(trailer + HASHED),
	};
	/* It is at most one of these, of which a hole has nothing to pack. */
	kind = block->flags & ~(uint32_t)VB__BLOCK_PACKED;
	if (kind != 0 && block->flags != VB__BLOCK_HOLE && kind != VB__BLOCK_OFFERS &&
	    kind != VB__BLOCK_PARCELS)
		return false;
	if (vb__get64(trailer + 24) != 0)
		return false;
	return block->length && block->offset + block->length > block->offset &&
	       is_length_right(block, received - VB__BLOCK_TRAILER);
}
