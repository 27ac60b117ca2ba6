/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes blocks: what comes over the rails of a transfer. */
#include <string.h>

#include "fuzz_target.h"
#include "wire/block.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t wire[VB__BLOCK_TRAILER];
	struct vb__block block;
	size_t came = size - VB__BLOCK_TRAILER;
	uint32_t kind;

	if (!vb__block_decode(&block, data, size))
		return 0;
	HOLDS(size >= VB__BLOCK_TRAILER);
	kind = block.flags & ~(uint32_t)VB__BLOCK_PACKED;
	HOLDS(block.length && block.offset + block.length > block.offset);
	HOLDS(!(kind & (kind - 1)) && kind <= VB__BLOCK_PARCELS);
	HOLDS(vb__block_data_bytes(&block) == (block.flags & VB__BLOCK_HOLE ? 0 : block.length));
	if (block.flags & VB__BLOCK_PACKED) {
		HOLDS(kind != VB__BLOCK_HOLE && came && came < block.length);
	} else {
		HOLDS(vb__block_data_bytes(&block) == came);
		(void)vb__block_hash(&block, data); /* reads all of the data, and nothing else */
	}
	vb__block_encode(wire, &block);
	/* Every byte of a trailer has its meaning. */
	HOLDS(memcmp(wire, data + size - VB__BLOCK_TRAILER, sizeof(wire)) == 0);
	return 0;
}

size_t fuzz_sample(uint8_t *to, size_t room, uint64_t seed)
{
	struct vb__block block = {
		.offset = seed / 2 % 3 ? seed / 6 : UINT64_MAX - seed / 6 % 400,
		.length = 1 + seed / 6 % 200,
		.flags = seed % 2 ? 1u << seed / 2 % 3 : 0,
	};
	size_t bytes = vb__block_data_bytes(&block);

	if (seed % 5 == 0 && bytes > 1) {
		block.flags |= VB__BLOCK_PACKED;
		bytes = bytes / 2;
	}
	HOLDS(bytes + VB__BLOCK_TRAILER <= room);
	memset(to, 'd', bytes);
	block.hash = seed;
	vb__block_encode(to + bytes, &block);
	return bytes + VB__BLOCK_TRAILER;
}
