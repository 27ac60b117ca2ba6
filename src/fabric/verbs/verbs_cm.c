/* SPDX-License-Identifier: Apache-2.0 */
/* Wire-up by rdma_cm: the kernel resolves, connects, accepts and disconnects. Listening is verbs_cm_listener.c's job. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "fabric/verbs/verbs_wireup.h"

#define NOTHING_YET (-1)

int verbs_cm_open(struct rdma_event_channel **cm, struct vb_error *err)
{
	int rc = verbs_preflight("", true, err);

	if (rc)
		return rc;
	*cm = rdma_create_event_channel();
	if (!*cm && (errno == EACCES || errno == EPERM || errno == ENOENT))
		return verbs_fail_node(err, "/dev/infiniband/rdma_cm", errno);
	if (!*cm)
		return verbs_fail(err, errno, "rdma_create_event_channel",
				  "/dev/infiniband/rdma_cm");
	if (fcntl((*cm)->fd, F_SETFL, fcntl((*cm)->fd, F_GETFL) | O_NONBLOCK) != 0)
		return verbs_fail(err, errno, "fcntl", "rdma_cm event channel");
	return 0;
}

static int open_channel(struct verbs_ep *ep, struct vb_error *err)
{
	int rc = verbs_cm_open(&ep->cm.channel, err);

	ep->cm.last_event = NOTHING_YET;
	return rc ? rc : vb__waiter_add(&ep->waiter, ep->cm.channel->fd, VERBS_READY_WIRE, err);
}

static void disconnect(struct verbs_ep *ep)
{
	verbs_note(&ep->log, rdma_disconnect(ep->cm.id), "rdma_disconnect", ep->base.peer,
		   "the peer may have been faster");
}

static void keep_peer_data(struct vb__ep *ep, const struct rdma_conn_param *conn)
{
	size_t len = conn->private_data ? conn->private_data_len : 0;

	if (len > sizeof(ep->peer_data))
		len = sizeof(ep->peer_data);
	if (len)
		memcpy(ep->peer_data, conn->private_data, len);
	ep->peer_data_len = len;
}

static void established(struct verbs_ep *ep)
{
	/* rdma_cm leaves 0 there, which means 655 ms. */
	struct ibv_qp_attr attr = { .min_rnr_timer = ep->tuning.min_rnr_timer };

	if (!ep->iwarp)
		verbs_note(&ep->log, ibv_modify_qp(ep->qp, &attr, IBV_QP_MIN_RNR_TIMER),
			   "ibv_modify_qp", ep->base.device, "it keeps its own min_rnr_timer");
}

static void on_failure(struct verbs_ep *ep, const struct rdma_cm_event *event)
{
	if (ep->base.state == VB__EP_UP)
		verbs_lost_cm(&ep->base.down, event, "connection to", ep->base.peer);
	else
		verbs_fail_cm(&ep->base.down, event, "connect to", ep->base.peer);
	if (ep->base.state == VB__EP_UP || ep->base.state == VB__EP_CONNECTING)
		disconnect(ep); /* flushes what is posted */
	ep->base.state = VB__EP_DOWN;
}

static void on_cm_event(struct verbs_ep *ep, const struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (event->param.conn.private_data_len)
			keep_peer_data(&ep->base, &event->param.conn);
		verbs_on_established(ep);
		break;
	case RDMA_CM_EVENT_REJECTED:
		if (ep->base.state != VB__EP_UP)
			keep_peer_data(&ep->base, &event->param.conn);
		on_failure(ep, event);
		break;
	case RDMA_CM_EVENT_ADDR_CHANGE:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		return;
	default:
		on_failure(ep, event);
	}
	ep->cm.last_event = event->event;
}

static void take_cm_events(struct verbs_ep *ep)
{
	struct rdma_cm_event *event;

	while (rdma_get_cm_event(ep->cm.channel, &event) == 0) {
		on_cm_event(ep, event);
		VERBS_UNDO(&ep->log, ep->base.peer, rdma_ack_cm_event, event);
	}
	if (!verbs_nothing_more(errno))
		verbs_break(ep, errno, "rdma_get_cm_event");
}

static int fail_timeout(struct vb_error *err, const char *operation, const char *peer)
{
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_TIMEOUT,
				     .operation = operation,
				     .object = peer,
				     .cause = "no answer over RDMA",
				     .hint = "check the address, and that the peer has an RDMA "
					     "device on that network (`rdma link`)",
			     });
}

/* Waits for one CM event, or for the endpoint's end. */
static int await(struct verbs_ep *ep, enum rdma_cm_event_type wanted, const char *operation,
		 uint64_t deadline_ns, struct vb_error *err)
{
	for (;;) {
		take_cm_events(ep);
		if (ep->base.state == VB__EP_DOWN)
			return vb__fail_again(err, &ep->base.down);
		if (ep->cm.last_event == (int)wanted)
			return 0;
		if (vb__now_ns() >= deadline_ns)
			return fail_timeout(err, operation, ep->base.peer);
		vb__waiter_sleep(ep->waiter.epoll, deadline_ns);
		verbs_take_wakes(ep);
	}
}

static int no_device_on_route(struct vb_error *err, int errnum, const struct vb__address *peer)
{
	char interface[16], cause[200];
	bool known = vb__address_egress(peer, interface);

	snprintf(cause, sizeof(cause),
		 "the route to it leaves through %s, which has no RDMA device",
		 known ? interface : "an interface");
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_NO_DEVICE,
				     .native_kind = VB_NATIVE_ERRNO,
				     .native = errnum,
				     .operation = "rdma_resolve_addr",
				     .object = peer->text,
				     .cause = cause,
				     .hint = "see `rdinfo ADDRESS`, or `rdma link` and `ip route "
					     "get ADDRESS`; give the peer's address on the RDMA "
					     "network, or use the ofi fabric",
			     });
}

/* rdma_cm takes 0 for a mistake. */
static int ms_left(uint64_t deadline_ns)
{
	int ms = vb__ms_left(deadline_ns);

	return ms > 0 ? ms : 1;
}

static int resolve(struct verbs_ep *ep, const struct vb__address *peer,
		   const struct vb__address *source, uint64_t deadline_ns, struct vb_error *err)
{
	struct sockaddr *from = source ? (struct sockaddr *)&source->sa : NULL;
	int rc;

	ep->cm.last_event = NOTHING_YET;
	if (rdma_resolve_addr(ep->cm.id, from, (struct sockaddr *)&peer->sa,
			      ms_left(deadline_ns)) != 0) {
		if (errno == ENODEV)
			return no_device_on_route(err, errno, peer);
		return verbs_fail(err, errno, "rdma_resolve_addr", peer->text);
	}
	rc = await(ep, RDMA_CM_EVENT_ADDR_RESOLVED, "rdma_resolve_addr", deadline_ns, err);
	if (rc == VB_ERR_NO_DEVICE && err) {
		*err = (struct vb_error){ .code = VB_OK };
		return no_device_on_route(err, ENODEV, peer);
	}
	if (rc)
		return rc;
	if (rdma_resolve_route(ep->cm.id, ms_left(deadline_ns)) != 0)
		return verbs_fail(err, errno, "rdma_resolve_route", peer->text);
	return await(ep, RDMA_CM_EVENT_ROUTE_RESOLVED, "rdma_resolve_route", deadline_ns, err);
}

static int find(struct verbs_ep *ep, const struct vb__ep_attr *attr, const struct vb__address *peer,
		uint64_t deadline_ns, struct vb_error *err)
{
	int rc = open_channel(ep, err);

	if (rc)
		return rc;
	if (rdma_create_id(ep->cm.channel, &ep->cm.id, NULL, RDMA_PS_TCP) != 0)
		return verbs_fail(err, errno, "rdma_create_id", peer->text);
	rc = resolve(ep, peer, attr->source, deadline_ns, err);
	if (rc)
		return rc;
	ep->context = ep->cm.id->verbs;
	ep->port = ep->cm.id->port_num;
	return 0;
}

static uint8_t smaller(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

static int adopt(struct verbs_ep *ep, struct verbs_request *base, struct vb_error *err)
{
	struct verbs_cm_request *request = (struct verbs_cm_request *)base;
	struct vb__address peer;
	int rc = open_channel(ep, err);

	if (rc)
		return rc;
	if (rdma_migrate_id(request->id, ep->cm.channel) != 0)
		return verbs_fail(err, errno, "rdma_migrate_id", NULL);
	ep->cm.id = request->id;
	ep->context = ep->cm.id->verbs;
	ep->port = ep->cm.id->port_num;
	vb__address_from(&peer, rdma_get_peer_addr(ep->cm.id));
	snprintf(ep->base.peer, sizeof(ep->base.peer), "%s", peer.text);
	ep->responder_resources = smaller(ep->responder_resources, request->responder_resources);
	ep->initiator_depth = smaller(ep->initiator_depth, request->initiator_depth);
	return 0;
}

static int create_qp(struct verbs_ep *ep, struct ibv_qp_init_attr *attr)
{
	if (rdma_create_qp(ep->cm.id, ep->pd, attr) != 0)
		return errno;
	ep->qp = ep->cm.id->qp;
	return 0;
}

static void destroy_qp(struct verbs_ep *ep)
{
	rdma_destroy_qp(ep->cm.id);
}

/* rdma_create_qp has taken it to INIT. The ACK time-out can be set only before connecting. */
static int get_ready(struct verbs_ep *ep, struct vb_error *err)
{
	uint8_t timeout = verbs_ack_timeout(ep);
	int rc = rdma_set_option(ep->cm.id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout,
				 sizeof(timeout));

	(void)err;
	verbs_note(&ep->log, rc, "rdma_set_option", ep->base.device,
		   "it keeps its own ACK time-out");
	return 0;
}

static struct rdma_conn_param conn_param(const struct verbs_ep *ep, const void *data, size_t len)
{
	return (struct rdma_conn_param){
		.private_data = data,
		.private_data_len = (uint8_t)len,
		.responder_resources = ep->responder_resources,
		.initiator_depth = ep->initiator_depth,
		.flow_control = 1,
		.retry_count = ep->tuning.retries,
		.rnr_retry_count = ep->tuning.rnr_retries,
	};
}

static int connect_to(struct verbs_ep *ep, const void *data, size_t len, uint64_t deadline_ns,
		      struct vb_error *err)
{
	struct rdma_conn_param param = conn_param(ep, data, len);

	ep->cm.last_event = NOTHING_YET;
	if (rdma_connect(ep->cm.id, &param) != 0)
		return verbs_fail(err, errno, "rdma_connect", ep->base.peer);
	ep->base.state = VB__EP_CONNECTING;
	return await(ep, RDMA_CM_EVENT_ESTABLISHED, "connect to", deadline_ns, err);
}

static int accept_from(struct verbs_ep *ep, const void *data, size_t len, struct vb_error *err)
{
	struct rdma_conn_param param = conn_param(ep, data, len);

	ep->probe.too_early = ep->iwarp;
	if (rdma_accept(ep->cm.id, &param) != 0)
		return verbs_fail(err, errno, "rdma_accept", ep->base.peer);
	ep->base.state = VB__EP_CONNECTING;
	return 0;
}

static void refuse(struct verbs_ep *ep)
{
	const struct vb__private_data *words = &ep->base.refusal;

	verbs_note(&ep->log, rdma_reject(ep->cm.id, words->data, (uint8_t)words->len),
		   "rdma_reject", ep->base.peer, "the peer is not told");
}

static void close_end(struct verbs_ep *ep)
{
	if (ep->cm.id)
		VERBS_UNDO(&ep->log, ep->base.peer, rdma_destroy_id, ep->cm.id);
	if (ep->cm.channel)
		rdma_destroy_event_channel(ep->cm.channel);
}

const struct verbs_wireup verbs_cm = {
	.id = VB_WIREUP_CM,
	.qp_types = 1u << VB__QP_RC,
	.find = find,
	.adopt = adopt,
	.create_qp = create_qp,
	.create_qp_call = "rdma_create_qp",
	.destroy_qp = destroy_qp,
	.get_ready = get_ready,
	.connect = connect_to,
	.accept = accept_from,
	.refuse = refuse,
	.look_after = take_cm_events,
	.established = established,
	.disconnect = disconnect,
	.close = close_end,
	.listen = verbs_cm_listen,
	.next_request = verbs_cm_next_request,
	.unlisten = verbs_cm_unlisten,
	.reject = verbs_cm_reject,
};
