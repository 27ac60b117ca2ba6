/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ladder: a queue pair from RESET by INIT and RTR to RTS, step by step.
 * A device that refuses a step does not tell which attribute it dislikes, so
 * the error shows all of that step.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "fabric/verbs/verbs_ladder.h"
#include "fabric/verbs/verbs_wireup.h"

#define HOPS 64 /* as the kernel's own packets */

static int fail_step(const struct verbs_ep *ep, int errnum, const char *step,
		     const char *attributes, const char *hint, struct vb_error *err)
{
	char object[100], cause[300];

	snprintf(object, sizeof(object), "%s port %u", ep->base.device, ep->port);
	snprintf(cause, sizeof(cause), "%s: %s, with %s", step, strerror(errnum), attributes);
	return vb__fail(err, &(struct vb__failure){
				     .code = vb__err_from_errno(errnum),
				     .native_kind = VB_NATIVE_ERRNO,
				     .native = errnum,
				     .operation = "ibv_modify_qp",
				     .object = object,
				     .cause = cause,
				     .hint = hint,
			     });
}

int verbs_ladder_init(struct verbs_ep *ep, struct vb_error *err)
{
	bool rc_type = ep->type == VB__QP_RC;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = ep->port,
		.pkey_index = ep->tcp.port.pkey_index,
		/* What is granted is up to the registrations. */
		.qp_access_flags =
			IBV_ACCESS_REMOTE_WRITE |
			(rc_type ? IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC : 0),
	};
	int rc =
		ibv_modify_qp(ep->qp, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	char words[100];

	if (rc == 0)
		return 0;
	snprintf(words, sizeof(words), "port_num %u, pkey_index %u, qp_access_flags 0x%x", ep->port,
		 attr.pkey_index, attr.qp_access_flags);
	return fail_step(ep, rc, "RESET to INIT", words, "see `rdma link` for the device's ports",
			 err);
}

static enum ibv_mtu mtu_code(unsigned bytes)
{
	int code = IBV_MTU_256;

	while (code < IBV_MTU_4096 && 128u << code < bytes)
		code++;
	return (enum ibv_mtu)code;
}

static unsigned smaller(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

unsigned verbs_ladder_mtu(const struct verbs_ep *ep, const struct vb__wireup *peer)
{
	unsigned mtu = smaller(ep->tcp.port.mtu_bytes, peer->mtu);

	return ep->tuning.mtu_bytes ? smaller(mtu, ep->tuning.mtu_bytes) : mtu;
}

/* On InfiniBand the GID is needed only beyond the subnet, which its first half names. */
static bool needs_grh(const struct verbs_port *port, const struct vb__wireup *peer)
{
	return port->link == VB__WIREUP_ETHERNET || memcmp(port->gid, peer->gid, 8) != 0;
}

static int fail_rtr(const struct verbs_ep *ep, int errnum, const struct ibv_qp_attr *attr,
		    struct vb_error *err)
{
	char words[240], gid[INET6_ADDRSTRLEN] = "?";

	inet_ntop(AF_INET6, &attr->ah_attr.grh.dgid, gid, sizeof(gid));
	snprintf(
		words, sizeof(words),
		"path_mtu %u, dest_qp_num 0x%x, rq_psn 0x%x, dlid %u, sl %u, dgid %s, sgid_index %u, "
		"max_dest_rd_atomic %u, min_rnr_timer %u",
		128u << attr->path_mtu, attr->dest_qp_num, attr->rq_psn, attr->ah_attr.dlid,
		attr->ah_attr.sl, gid, attr->ah_attr.grh.sgid_index, attr->max_dest_rd_atomic,
		attr->min_rnr_timer);
	return fail_step(ep, errnum, "INIT to RTR", words,
			 "see that both ports are on one network and up (`rdma link`, `ip neigh`), "
			 "and that nothing changed their addresses meanwhile",
			 err);
}

int verbs_ladder_rtr(struct verbs_ep *ep, const struct vb__wireup *peer, struct vb_error *err)
{
	const struct verbs_port *port = &ep->tcp.port;
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu_code(verbs_ladder_mtu(ep, peer)),
		.dest_qp_num = peer->qpn,
		.rq_psn = peer->psn,
		.ah_attr = { .dlid = peer->lid,
			     .sl = ep->tuning.service_level,
			     .port_num = port->number,
			     .is_global = needs_grh(port, peer) },
	};
	int rc;

	if (attr.ah_attr.is_global) {
		memcpy(&attr.ah_attr.grh.dgid, peer->gid, sizeof(peer->gid));
		attr.ah_attr.grh.sgid_index = port->gid_index;
		attr.ah_attr.grh.hop_limit = HOPS;
	}
	if (ep->type == VB__QP_RC) {
		attr.max_dest_rd_atomic =
			(uint8_t)smaller(ep->responder_resources, peer->initiator_depth);
		attr.min_rnr_timer = ep->tuning.min_rnr_timer;
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	}
	rc = ibv_modify_qp(ep->qp, &attr, mask);
	return rc ? fail_rtr(ep, rc, &attr, err) : 0;
}

int verbs_ladder_rts(struct verbs_ep *ep, const struct vb__wireup *peer, struct vb_error *err)
{
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN, rc;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .sq_psn = ep->tcp.psn };
	char words[160];

	if (ep->type == VB__QP_RC) {
		attr.timeout = verbs_ack_timeout(ep);
		attr.retry_cnt = ep->tuning.retries;
		attr.rnr_retry = ep->tuning.rnr_retries;
		attr.max_rd_atomic =
			(uint8_t)smaller(ep->initiator_depth, peer->responder_resources);
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	}
	rc = ibv_modify_qp(ep->qp, &attr, mask);
	if (rc == 0)
		return 0;
	snprintf(words, sizeof(words),
		 "sq_psn 0x%x, timeout %u, retry_cnt %u, rnr_retry %u, max_rd_atomic %u",
		 attr.sq_psn, attr.timeout, attr.retry_cnt, attr.rnr_retry, attr.max_rd_atomic);
	return fail_step(ep, rc, "RTR to RTS", words,
			 "a limit of the device: see struct vb_qp_options", err);
}

void verbs_ladder_error(struct verbs_ep *ep)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	if (ep->qp)
		verbs_note(&ep->log, ibv_modify_qp(ep->qp, &attr, IBV_QP_STATE), "ibv_modify_qp",
			   ep->base.device, "what is posted may not be flushed");
}
