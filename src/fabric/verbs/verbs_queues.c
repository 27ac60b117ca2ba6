/* SPDX-License-Identifier: Apache-2.0 */
/* What an endpoint needs of its device: protection domain, completion queue, queue pair. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "fabric/verbs/verbs_wireup.h"

#define MAX_MESSAGE (UINT64_C(1) << 31)

/* Soft-RoCE: checks an access by a window against the whole region, not against the window. */
#define VENDOR_RXE 0xffffffu

bool verbs_any_windows;

static bool has_windows(const struct ibv_device_attr *device)
{
	return device->device_cap_flags &
		       (IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B) &&
	       (device->vendor_id != VENDOR_RXE || verbs_any_windows);
}

static unsigned within(unsigned wanted, int limit)
{
	return limit > 0 && wanted > (unsigned)limit ? (unsigned)limit : wanted;
}

/* What the device can do bounds what we ask it for: a zero or a too large number is refused. */
static int settle_limits(struct verbs_ep *ep, const struct vb__ep_attr *attr, struct vb_error *err)
{
	struct ibv_device_attr device;
	int rc = ibv_query_device(ep->context, &device);

	if (rc)
		return verbs_fail(err, rc, "ibv_query_device", ep->base.device);
	ep->base.send_depth = within(attr->send_depth, device.max_qp_wr - 1);
	ep->base.recv_depth = within(attr->recv_depth, device.max_qp_wr);
	/* All of them and the probe must fit into one completion queue. */
	ep->base.send_depth = within(ep->base.send_depth, device.max_cqe / 2 - 1);
	ep->base.recv_depth = within(ep->base.recv_depth, device.max_cqe / 2);
	ep->base.sge = within(within(attr->sge, device.max_sge), VB__SGE_MAX);
	ep->base.max_bytes = MAX_MESSAGE;
	ep->iwarp = ep->context->device->transport_type == IBV_TRANSPORT_IWARP;
	ep->initiator_depth = (uint8_t)within(ep->initiator_depth, device.max_qp_init_rd_atom);
	ep->responder_resources = (uint8_t)within(ep->responder_resources, device.max_qp_rd_atom);
	ep->base.caps |= ep->iwarp ? VB__CAP_CONNECTOR_FIRST | VB__CAP_SINK | VB__CAP_MUTE
				   : VB__CAP_IMM;
	if (ep->type != VB__QP_RC)
		return 0;
	ep->base.caps |= VB__CAP_READ;
	if (device.atomic_cap != IBV_ATOMIC_NONE)
		ep->base.caps |= VB__CAP_ATOMIC;
	if (has_windows(&device))
		ep->base.caps |= VB__CAP_WINDOW;
	return 0;
}

static void read_port_limits(struct verbs_ep *ep)
{
	struct ibv_port_attr port;

	if (verbs_note(&ep->log, ibv_query_port(ep->context, ep->port, &port), "ibv_query_port",
		       ep->base.device, "its largest message is taken to be 2 GiB"))
		return;
	if (port.max_msg_sz)
		ep->base.max_bytes = port.max_msg_sz;
}

static int open_completion_queue(struct verbs_ep *ep, struct vb_error *err)
{
	/* One more for the probe. */
	int entries = (int)(ep->base.send_depth + ep->base.recv_depth + 1);

	ep->completions = ibv_create_comp_channel(ep->context);
	if (!ep->completions)
		return verbs_fail(err, errno, "ibv_create_comp_channel", ep->base.device);
	if (fcntl(ep->completions->fd, F_SETFL, fcntl(ep->completions->fd, F_GETFL) | O_NONBLOCK) !=
	    0)
		return verbs_fail(err, errno, "fcntl", "completion channel");
	errno = 0; /* providers do not always say why */
	ep->cq = ibv_create_cq(ep->context, entries, NULL, ep->completions, 0);
	if (!ep->cq)
		return verbs_fail_queue(err, errno ? errno : EIO, "ibv_create_cq", ep->base.device,
					(unsigned)entries, 0);
	return 0;
}

static int try_queue_pair(struct verbs_ep *ep, unsigned inline_bytes)
{
	bool own = !ep->share.pool;
	struct ibv_qp_init_attr attr = {
		.send_cq = ep->cq,
		.recv_cq = ep->cq,
		.srq = own ? NULL : ep->share.pool->srq,
		.cap = {
			.max_send_wr = ep->base.send_depth + 1,
			.max_recv_wr = own ? ep->base.recv_depth : 0,
			.max_send_sge = ep->base.sge,
			.max_recv_sge = own ? ep->base.sge : 0,
			.max_inline_data = inline_bytes,
		},
		.qp_type = ep->type == VB__QP_UC ? IBV_QPT_UC : IBV_QPT_RC,
		.sq_sig_all = 0,
	};
	int rc = ep->wireup->create_qp(ep, &attr);

	if (rc)
		return rc;
	ep->base.inline_bytes = attr.cap.max_inline_data;
	return 0;
}

/* Devices differ in how much inline data they take, and refuse rather than give less. */
static int open_queue_pair(struct verbs_ep *ep, struct vb_error *err)
{
	static const unsigned wishes[] = { 220, 128, 64, 32, 0 };
	unsigned entries = ep->base.send_depth + 1 + (ep->share.pool ? 0 : ep->base.recv_depth);
	int rc = EINVAL;

	for (unsigned i = 0; i < sizeof(wishes) / sizeof(wishes[0]); i++) {
		rc = try_queue_pair(ep, wishes[i]);
		if (rc != EINVAL && rc != ENOMEM)
			break;
		verbs_note(&ep->log, rc, ep->wireup->create_qp_call, ep->base.device,
			   "less inline data is tried");
	}
	if (rc)
		return verbs_fail_queue(err, rc, ep->wireup->create_qp_call, ep->base.device,
					entries, ep->base.sge);
	return 0;
}

/* What an endpoint has for itself, or else of its pool. */
static int open_domain(struct verbs_ep *ep, struct vb_error *err)
{
	ep->pd = ibv_alloc_pd(ep->context);
	if (!ep->pd)
		return verbs_fail(err, errno, "ibv_alloc_pd", ep->base.device);
	return open_completion_queue(ep, err);
}

static void borrow_from_pool(struct verbs_ep *ep, struct vb__pool *pool)
{
	ep->base.pool = pool;
	ep->share.pool = (struct verbs_pool *)pool;
	ep->pd = ep->share.pool->pd;
	ep->cq = ep->share.pool->cq;
}

int verbs_queues_open(struct verbs_ep *ep, const struct vb__ep_attr *attr, struct vb_error *err)
{
	int rc = settle_limits(ep, attr, err);

	if (rc)
		return rc;
	read_port_limits(ep);
	rc = attr->pool ? 0 : open_domain(ep, err);
	if (attr->pool)
		borrow_from_pool(ep, attr->pool);
	if (rc == 0)
		rc = open_queue_pair(ep, err);
	if (rc == 0 && attr->pool)
		rc = verbs_pool_join(ep, err);
	/* It is a read: without, the wire-up has to tell whether the peer is alive. */
	if (rc == 0 && ep->base.caps & VB__CAP_READ)
		rc = verbs_probe_open(ep, err);
	return rc;
}

/* Events are acknowledged first, or destroying waits for ever; then from the QP outwards. */
void verbs_queues_close(struct verbs_ep *ep)
{
	if (ep->cq && ep->unacked)
		ibv_ack_cq_events(ep->cq, ep->unacked);
	ep->unacked = 0;
	if (ep->share.pool)
		verbs_pool_leave(ep);
	verbs_destroy_qp(ep);
	while (ep->base.windows)
		vb__window_close(ep->base.windows);
	while (ep->base.mrs)
		vb__mr_close(ep->base.mrs);
	if (ep->probe.mr)
		VERBS_UNDO(&ep->log, ep->base.device, ibv_dereg_mr, ep->probe.mr);
	if (ep->cq)
		VERBS_UNDO(&ep->log, ep->base.device, ibv_destroy_cq, ep->cq);
	if (ep->completions)
		VERBS_UNDO(&ep->log, ep->base.device, ibv_destroy_comp_channel, ep->completions);
	if (ep->pd && !ep->base.pool)
		VERBS_UNDO(&ep->log, ep->base.device, ibv_dealloc_pd, ep->pd);
	ep->probe.mr = NULL;
	ep->cq = NULL;
	ep->completions = NULL;
	ep->pd = NULL;
}
