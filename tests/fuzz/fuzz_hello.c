/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the hello: private data from any stranger. */
#include <string.h>

#include <verbatim/options.h>

#include "fuzz_target.h"
#include "wire/hello.h"

/* What a good hello says is within bounds, and says the same when it is sent on. */
static void check_good(const struct vb__hello *hello)
{
	uint8_t wire[VB__HELLO_BYTES];
	struct vb__hello again;

	HOLDS(hello->version == VB__PROTOCOL_VERSION);
	if (hello->kind != VB__HELLO_REFUSE) {
		HOLDS(hello->max_message >= 1 && hello->max_message <= VB_MESSAGE_MAX);
		HOLDS(hello->depth >= 1 && hello->depth <= VB_DEPTH_MAX);
	}
	vb__hello_encode(wire, hello);
	HOLDS(vb__hello_decode(&again, wire, sizeof(wire)) == VB__HELLO_GOOD);
	HOLDS(again.kind == hello->kind && again.reason == hello->reason &&
	      again.max_message == hello->max_message && again.depth == hello->depth);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vb__hello hello;
	enum vb__hello_verdict verdict = vb__hello_decode(&hello, data, size);

	if (verdict == VB__HELLO_GARBAGE)
		return 0;
	HOLDS(size >= VB__HELLO_BYTES && memcmp(data, "VBTM", 4) == 0);
	HOLDS(hello.kind >= VB__HELLO_OPEN && hello.kind <= VB__HELLO_REFUSE);
	if (verdict == VB__HELLO_GOOD)
		check_good(&hello);
	else
		HOLDS(hello.version != VB__PROTOCOL_VERSION);
	return 0;
}

size_t fuzz_sample(uint8_t *to, size_t room, uint64_t seed)
{
	struct vb__hello hello = {
		.kind = 1 + seed % 3,
		.version = VB__PROTOCOL_VERSION,
		.reason = seed / 3 % 4,
		.max_message = 1u << seed / 12 % 31,
		.depth = (uint16_t)(1u << seed / 372 % 11),
	};

	HOLDS(room >= VB__HELLO_BYTES);
	vb__hello_encode(to, &hello);
	return VB__HELLO_BYTES;
}
