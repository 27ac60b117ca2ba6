/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes unpacking: a packed block says what it likes, and never gets more room than was declared. */
#include <string.h>

#include "fuzz_target.h"
#include "transfer/packer.h"

#define LENGTH 3000u

static struct vb__packer *packer; /* as a worker has it: one for all */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *to = malloc(LENGTH); /* of its own, so that ASan sees its end */

	HOLDS(to && (packer || vb__packer_open(-1, &packer, NULL) == 0));
	memset(to, 0, LENGTH);
	(void)vb__packer_unpack(packer, data, size, to, LENGTH);
	free(to);
	return 0;
}

size_t fuzz_sample(uint8_t *to, size_t room, uint64_t seed)
{
	uint8_t plain[LENGTH], packed[LENGTH];
	size_t len;

	for (size_t i = 0; i < sizeof(plain); i++)
		plain[i] = (uint8_t)(i / 40 % (3 + seed % 60));
	HOLDS(packer || vb__packer_open(-1, &packer, NULL) == 0);
	len = vb__packer_pack(packer, (int)(seed / 90 % 6) - 2, plain, sizeof(plain), packed);
	HOLDS(len && len <= room);
	memcpy(to, packed, len);
	return len;
}
