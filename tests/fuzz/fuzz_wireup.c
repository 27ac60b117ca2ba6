/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the record of the wire-up by TCP: what any stranger may send to that port. */
#include <string.h>

#include "fuzz_target.h"
#include "wire/wireup.h"

/* What a good one says of a queue pair can be given to a device, and says the same when it is sent on. */
static void check_good(const struct vb__wireup *r)
{
	uint8_t wire[VB__WIREUP_BYTES], twice[VB__WIREUP_BYTES];
	struct vb__wireup again;

	HOLDS(r->version == VB__WIREUP_VERSION && r->data_len <= VB__WIREUP_DATA);
	if (r->kind == VB__WIREUP_REQUEST || r->kind == VB__WIREUP_REPLY) {
		HOLDS(r->qpn >= 2 && r->qpn < 0xffffff && r->psn <= 0xffffff && r->qp_type < 2);
		HOLDS(r->mtu >= 256 && r->mtu <= 4096 && (r->mtu & (r->mtu - 1)) == 0);
	}
	vb__wireup_encode(wire, r);
	HOLDS(vb__wireup_decode(&again, wire) == VB__WIREUP_GOOD);
	vb__wireup_encode(twice, &again);
	HOLDS(memcmp(wire, twice, sizeof(wire)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vb__wireup record;
	enum vb__wireup_verdict verdict;

	if (size < VB__WIREUP_BYTES)
		return 0;
	verdict = vb__wireup_decode(&record, data);
	if (verdict == VB__WIREUP_GARBAGE)
		return 0;
	HOLDS(memcmp(data, "VBWU", 4) == 0);
	HOLDS(record.kind >= VB__WIREUP_REQUEST && record.kind <= VB__WIREUP_READY);
	if (verdict == VB__WIREUP_GOOD)
		check_good(&record);
	else
		HOLDS(record.version != VB__WIREUP_VERSION);
	return 0;
}

size_t fuzz_sample(uint8_t *to, size_t room, uint64_t seed)
{
	struct vb__wireup record = {
		.kind = 1 + seed % 4,
		.version = VB__WIREUP_VERSION,
		.qp_type = seed / 4 % 2,
		.link = 1 + seed / 8 % 2,
		.mtu = (uint16_t)(256u << seed / 16 % 5),
		.qpn = 2 + (uint32_t)(seed % 0xfffff0),
		.psn = (uint32_t)(seed * 7919 % 0x1000000),
		.data_len = (uint8_t)(seed % (VB__WIREUP_DATA + 1)),
	};

	HOLDS(room >= VB__WIREUP_BYTES);
	vb__wireup_encode(to, &record);
	return VB__WIREUP_BYTES;
}
