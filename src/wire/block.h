/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks: the unit of a transfer. A message of a rail is the block's data and
 * behind it, so that the data lies on a page's start, what it is. See docs/protocol.md.
 */
#ifndef VB_WIRE_BLOCK_H
#define VB_WIRE_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VB__BLOCK_TRAILER 40u
#define VB__BLOCK_HEAD 24u /* of it: what the block is; behind that stands its check */

enum vb__block_flag {
	VB__BLOCK_HOLE = 1,    /* zeros that are not sent */
	VB__BLOCK_OFFERS = 2,  /* of a tree: see wire/offer.h */
	VB__BLOCK_PARCELS = 4, /* likewise */
	VB__BLOCK_PACKED =
		8, /* beside one of the last two, or alone: the data is packed, see packer.h */
};

struct vb__block {
	uint64_t offset; /* within the file or stream */
	uint64_t length; /* bytes; of a hole any number */
	uint32_t file;	 /* which one; 0 in a transfer of one, and for offers and parcels */
	uint32_t flags;
	uint64_t hash; /* XXH3 of the data, seeded with all of the above */
};

/* How many bytes of data a block brings along. */
static inline uint64_t vb__block_data_bytes(const struct vb__block *block)
{
	return block->flags & VB__BLOCK_HOLE ? 0 : block->length;
}

/* Computes the hash from `data`, unpacked, and everything else in the block, whether it is packed or not. */
uint64_t vb__block_hash(const struct vb__block *block, const void *data);

/* Writes the trailer to `to`, which is behind the data. */
void vb__block_encode(uint8_t to[VB__BLOCK_TRAILER], const struct vb__block *block);

/*
 * Reads the trailer of a message of `received` bytes; the data is at its start, fewer bytes than
 * the block's length if it is packed. False: it makes no sense. The hash is not checked.
 */
bool vb__block_decode(struct vb__block *block, const uint8_t *message, size_t received);

#endif
