/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes codecs: a rail's message on its way to the sink, where it should be sealed and where not. */
#include <string.h>

#include "fuzz_target.h"
#include "transfer/codec.h"

#define TURNS 256u

static struct vb_session sealed = { .agreed = { .block_bytes = VB_BLOCK_MIN,
						.seal = VB__SEAL_CAN | VB__SEAL_WANTED } },
			 plain = { .agreed = { .block_bytes = VB_BLOCK_MIN } };

/* Made once and never freed: the driver goes on until the end of the process. */
static struct vb__codec *sender, *receiver, *plain_receiver;

static void prepare(void)
{
	if (!sender)
		HOLDS(vb__codec_open(&sealed, -1, &sender, NULL) == 0 &&
		      vb__codec_open(&sealed, -1, &receiver, NULL) == 0 &&
		      vb__codec_open(&plain, -1, &plain_receiver, NULL) == 0);
}

/* What is let through is as long as it says. */
static int decode(struct vb__codec *codec, const uint8_t *data, size_t size, uint64_t turn)
{
	struct vb_error err = { .code = VB_OK };
	uint8_t *copy = malloc(size ? size : 1);
	struct vb__message message = { .bytes = copy, .len = size, .turn = turn };
	struct vb__block block;
	const void *found;
	int rc;

	memcpy(copy, data, size);
	rc = vb__codec_decode(codec, &block, &message, &found, &err);
	HOLDS(rc == (int)err.code && (rc == 0 || rc == VB_ERR_CORRUPT));
	if (rc == 0)
		HOLDS(vb__block_hash(&block, found) == block.hash);
	free(copy);
	return rc;
}

static size_t make(uint8_t *to, uint64_t seed)
{
	struct vb__block block = {
		.offset = seed / 6,
		.length = 1 + seed / 6 % 200,
		.flags = seed % 2 ? 1u << seed / 2 % 3 : 0,
	};
	struct vb__message message = { .bytes = to, .turn = seed % TURNS };

	prepare();
	memset(to, 'd', vb__block_data_bytes(&block));
	HOLDS(vb__codec_encode(sender, &block, &message, NULL) == 0);
	return message.len;
}

/* The first byte is the seed of what it was made from: only that opens, and only at its turn. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t genuine[512];
	size_t len;

	if (!size)
		return 0;
	len = make(genuine, data[0]);
	decode(plain_receiver, data + 1, size - 1, 0);
	for (unsigned turn = data[0] % TURNS; turn < TURNS; turn += 51) {
		bool same = turn == data[0] % TURNS && size - 1 == len &&
			    memcmp(genuine, data + 1, len) == 0;

		HOLDS((decode(receiver, data + 1, size - 1, turn) == 0) == same);
	}
	return 0;
}

size_t fuzz_sample(uint8_t *to, size_t room, uint64_t seed)
{
	HOLDS(room >= 300);
	to[0] = (uint8_t)seed;
	return 1 + make(to + 1, to[0]);
}
