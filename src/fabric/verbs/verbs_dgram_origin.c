/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who sent a datagram, and the way back. A completion tells the number of the
 * sender's queue pair; its address stands in the 40 bytes before the datagram. What
 * libibverbs has for this does not know the way back from a datagram that came by a group.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fabric/verbs/verbs_dgram.h"
#include "wire/bytes.h"

#define V4_AT 20u
#define V4_BYTES 20u
#define HOPS 64

/* How an origin is laid out: GID, queue pair, LID, service level, whether there is a GID at all. */
enum {
	QP_AT = 16,
	LID_AT = 20,
	SL_AT = 22,
	GLOBAL_AT = 23,
};

/* Summed up with itself a good header gives all ones. */
static bool sum_is_right(const uint8_t *header)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < V4_BYTES; i += 2)
		sum += (uint32_t)header[i] << 8 | header[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum == 0xffff;
}

/*
 * RoCE v2 over IPv4: that header fills the last 20 bytes, and what is before it is not defined. So
 * if both look like a header the sum decides, which inside one host nobody fills in.
 */
static bool is_v4(const uint8_t *grh)
{
	return grh[V4_AT] == 0x45 && (grh[0] >> 4 != 6 || sum_is_right(grh + V4_AT));
}

static void map_v4(uint8_t gid[16], const uint8_t *address)
{
	memset(gid, 0, 10);
	memset(gid + 10, 0xff, 2);
	memcpy(gid + 12, address, 4);
}

/* The sender's GID; returns whether it was sent to a group. */
static bool read_grh(const uint8_t *grh, uint8_t gid[16])
{
	if (is_v4(grh)) {
		map_v4(gid, grh + V4_AT + 12);
		return grh[V4_AT + 16] >> 4 == 0xe;
	}
	memcpy(gid, grh + 8, 16);
	return grh[24] == 0xff;
}

static void own_gid(const struct verbs_dg *dg, uint8_t gid[16])
{
	if (dg->at.sa.ss_family == AF_INET6)
		memcpy(gid, &((const struct sockaddr_in6 *)&dg->at.sa)->sin6_addr, 16);
	else
		map_v4(gid, (const uint8_t *)&((const struct sockaddr_in *)&dg->at.sa)->sin_addr);
}

static bool is_own(const struct verbs_dg *dg, const struct ibv_wc *wc, const uint8_t gid[16])
{
	uint8_t own[16];

	if (wc->src_qp != dg->home->qp->qp_num)
		return false;
	own_gid(dg, own);
	return dg->ethernet ? !memcmp(gid, own, sizeof(own)) : wc->slid == dg->lid;
}

bool verbs_dg_origin(const struct verbs_dg *dg, const struct ibv_wc *wc, const uint8_t *grh,
		     struct vb__origin *origin)
{
	bool global = dg->ethernet || wc->wc_flags & IBV_WC_GRH;
	uint8_t *to = origin->bytes;

	memset(to, 0, sizeof(origin->bytes));
	vb__put32(to + QP_AT, wc->src_qp);
	vb__put16(to + LID_AT, dg->ethernet ? 0 : wc->slid);
	to[SL_AT] = dg->ethernet ? 0 : wc->sl;
	to[GLOBAL_AT] = global;
	return !global || !read_grh(grh, to) || !is_own(dg, wc, to);
}

static int fail_gid(struct verbs_dg *dg, struct vb_error *err)
{
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_UNREACHABLE,
				     .operation = "send from",
				     .object = dg->base.address,
				     .cause = "the device does not have this address any more",
				     .hint = "see `ip addr` and `rdma link`: was the address "
					     "removed, or the link taken down?",
			     });
}

int verbs_dg_find_gid(struct verbs_dg *dg, uint8_t *index, struct vb_error *err)
{
	struct ibv_gid_entry entry;
	struct ibv_port_attr port;
	uint8_t own[16];
	int found = -1, rc = ibv_query_port(dg->home->verbs, dg->home->port_num, &port);

	if (rc)
		return verbs_fail(err, rc, "ibv_query_port", dg->base.device);
	own_gid(dg, own);
	for (int i = 0; i < port.gid_tbl_len && i <= UINT8_MAX; i++) {
		rc = ibv_query_gid_ex(dg->home->verbs, dg->home->port_num, (uint32_t)i, &entry, 0);
		if (rc != ENODATA) /* that is an empty entry */
			verbs_note(&dg->log, rc, "ibv_query_gid_ex", dg->base.device,
				   "our GID is looked for in the other entries");
		if (rc || memcmp(&entry.gid, own, sizeof(own)) != 0)
			continue;
		found = i;
		if (entry.gid_type == IBV_GID_TYPE_ROCE_V2)
			break;
	}
	if (found < 0)
		return fail_gid(dg, err);
	*index = (uint8_t)found;
	return 0;
}

int verbs_dg_way_to(struct verbs_dg *dg, const struct vb__origin *origin, struct ibv_ah_attr *ah,
		    uint32_t *qp_num, char text[VB__ADDRESS_TEXT], struct vb_error *err)
{
	const uint8_t *from = origin->bytes;
	char host[INET6_ADDRSTRLEN] = "?";
	bool v4 = !memcmp(from, (uint8_t[12]){ [10] = 0xff, [11] = 0xff }, 12);
	int rc;

	*qp_num = vb__get32(from + QP_AT);
	*ah = (struct ibv_ah_attr){
		.dlid = vb__get16(from + LID_AT),
		.sl = from[SL_AT],
		.is_global = from[GLOBAL_AT],
		.port_num = dg->home->port_num,
		.grh.hop_limit = HOPS,
	};
	memcpy(&ah->grh.dgid, from, 16);
	rc = dg->ethernet ? verbs_dg_find_gid(dg, &ah->grh.sgid_index, err) : 0;
	if (rc)
		return rc;
	if (ah->is_global)
		inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? from + 12 : from, host, sizeof(host));
	else
		snprintf(host, sizeof(host), "LID %u", ah->dlid);
	snprintf(text, VB__ADDRESS_TEXT, "%s queue pair %u", host, *qp_num);
	return 0;
}
