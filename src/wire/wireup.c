/* SPDX-License-Identifier: Apache-2.0 */
/* The record of the wire-up by TCP as bytes: magic, version, kind and reason stay where they are in all versions. */
#include "wire/wireup.h"

#include <stdbool.h>
#include <string.h>

#include "wire/bytes.h"

#define BITS_24 0xffffffu
#define QP_TYPES 2u
#define QPN_FIRST 2u /* 0 and 1 are for the management of the subnet */
#define QPN_MULTICAST BITS_24

static const uint8_t magic[4] = { 'V', 'B', 'W', 'U' };

void vb__wireup_encode(uint8_t to[VB__WIREUP_BYTES], const struct vb__wireup *record)
{
	memset(to, 0, VB__WIREUP_BYTES);
	memcpy(to, magic, sizeof(magic));
	to[4] = record->version;
	to[5] = (uint8_t)record->kind;
	to[6] = record->reason;
	to[7] = record->qp_type;
	to[8] = record->link;
	to[9] = record->data_len;
	vb__put16(to + 10, record->mtu);
	vb__put32(to + 12, record->qpn);
	vb__put32(to + 16, record->psn);
	vb__put16(to + 20, record->lid);
	to[22] = record->responder_resources;
	to[23] = record->initiator_depth;
	memcpy(to + 24, record->gid, sizeof(record->gid));
	memcpy(to + 40, record->data, record->data_len);
}

static bool is_mtu(uint16_t mtu)
{
	return mtu >= 256 && mtu <= 4096 && (mtu & (mtu - 1)) == 0;
}

/* Whether a queue pair could be like this. */
static bool makes_sense(const struct vb__wireup *r)
{
	return r->qp_type < QP_TYPES &&
	       (r->link == VB__WIREUP_INFINIBAND || r->link == VB__WIREUP_ETHERNET) &&
	       is_mtu(r->mtu) && r->qpn >= QPN_FIRST && r->qpn < QPN_MULTICAST && r->psn <= BITS_24;
}

enum vb__wireup_verdict vb__wireup_decode(struct vb__wireup *r,
					  const uint8_t from[VB__WIREUP_BYTES])
{
	if (memcmp(from, magic, sizeof(magic)) != 0 || from[5] < VB__WIREUP_REQUEST ||
	    from[5] > VB__WIREUP_READY)
		return VB__WIREUP_GARBAGE;
	*r = (struct vb__wireup){
		.version = from[4],
		.kind = from[5],
		.reason = from[6],
		.qp_type = from[7],
		.link = from[8],
		.data_len = from[9],
		.mtu = vb__get16(from + 10),
		.qpn = vb__get32(from + 12),
		.psn = vb__get32(from + 16),
		.lid = vb__get16(from + 20),
		.responder_resources = from[22],
		.initiator_depth = from[23],
	};
	memcpy(r->gid, from + 24, sizeof(r->gid));
	if (r->version != VB__WIREUP_VERSION)
		return VB__WIREUP_OTHER_VERSION;
	if (r->data_len > VB__WIREUP_DATA)
		return VB__WIREUP_GARBAGE;
	memcpy(r->data, from + 40, r->data_len);
	if ((r->kind == VB__WIREUP_REQUEST || r->kind == VB__WIREUP_REPLY) && !makes_sense(r))
		return VB__WIREUP_GARBAGE;
	return VB__WIREUP_GOOD;
}
