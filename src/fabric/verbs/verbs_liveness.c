/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is the peer's host still there? A dead host is noticed by the device only
 * under traffic, and by iWARP not even then, so an idle connection is probed
 * by a read of zero bytes.
 */
#include <errno.h>

#include "core/clock.h"
#include "fabric/verbs/verbs.h"

/* How long a connection that is down waits for what was posted to come back. */
#define FLUSH_MS 1000u

/*
 * The exponent of the ACK time-out: 4.096 µs * 2^n, tried 1 + retries
 * times. The device must not give up before the peer time-out is over, or a
 * short outage would end the connection; that it is over, the probe tells.
 */
uint8_t verbs_ack_timeout(const struct verbs_ep *ep)
{
	uint64_t tries = 1u + ep->tuning.retries;
	uint8_t n = 8;

	if (ep->tuning.ack_timeout)
		return ep->tuning.ack_timeout;
	while (n < 31 && (UINT64_C(4096) << n) * tries < vb__ms(ep->peer_timeout_ms))
		n++;
	return n;
}

int verbs_probe_open(struct verbs_ep *ep, struct vb_error *err)
{
	/* iWARP wants remote write on the sink of a read, even for no bytes at all. */
	int access = IBV_ACCESS_LOCAL_WRITE | (ep->iwarp ? IBV_ACCESS_REMOTE_WRITE : 0);

	ep->probe.mr = ibv_reg_mr(ep->pd, ep->probe.sink, sizeof(ep->probe.sink), access);
	if (!ep->probe.mr)
		return verbs_fail_memory(err, errno, "ibv_reg_mr", ep->base.device,
					 sizeof(ep->probe.sink));
	return 0;
}

static void post_probe(struct verbs_ep *ep, uint64_t now)
{
	/* One piece of no length: siw sometimes never completes a read with no piece at all. */
	struct ibv_sge sge = { .addr = (uintptr_t)ep->probe.sink, .lkey = ep->probe.mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = VERBS_PROBE_ID,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_SIGNALED,
	};

	if (verbs_note(&ep->log, ibv_post_send(ep->qp, &wr, &bad), "ibv_post_send", ep->base.device,
		       "the peer is asked again at the next tick"))
		return;
	ep->probe.outstanding = true;
	ep->probe.posted_ns = now;
}

void verbs_probe_done(struct verbs_ep *ep)
{
	ep->probe.outstanding = false;
	ep->probe.heard_ns = vb__now_coarse_ns();
}

static void declare_lost(struct verbs_ep *ep)
{
	vb__ep_down_silent(&ep->base);
	verbs_cut(ep);
}

/*
 * All that was posted comes back flushed once the connection is down, but siw
 * now and then loses one. Without a queue pair nothing of it can happen any
 * more, so then it is done as well.
 */
static void give_up_lost(struct verbs_ep *ep, uint64_t now)
{
	if (!ep->base.outstanding || !ep->qp)
		return;
	if (!ep->flushing_ns)
		ep->flushing_ns = now;
	if (now - ep->flushing_ns < vb__ms(FLUSH_MS))
		return;
	vb__log(&ep->log, VB_LOG_WARNING, "%s: %u operations never completed", ep->base.device,
		ep->base.outstanding);
	verbs_destroy_qp(ep);
	ep->base.outstanding = 0;
}

/* Comes VB__TICKS times in a peer time-out, if anybody polls or waits. */
void verbs_probe_tick(struct verbs_ep *ep)
{
	uint64_t now = vb__now_coarse_ns(), tick = vb__ms(ep->peer_timeout_ms) / VB__TICKS;
	struct verbs_probe *p = &ep->probe;
	uint64_t since = p->heard_ns > p->posted_ns ? p->heard_ns : p->posted_ns;

	if (ep->base.state == VB__EP_DOWN)
		give_up_lost(ep, now);
	if (ep->base.state != VB__EP_UP || p->too_early || !p->mr)
		return;
	if (!p->outstanding && now - p->heard_ns >= tick / 2)
		post_probe(ep, now);
	else if (p->outstanding && now - since >= (VB__TICKS - 2) * tick - tick / 2)
		declare_lost(ep);
}
