/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs endpoint's life by rdma_cm: resolved, made, connected or accepted, ended. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "fabric/verbs/verbs.h"

#define READY_CQ VB__READY_OWN
#define READY_CM (VB__READY_OWN << 1)
#define READY_DEVICE (VB__READY_OWN << 2)

#define NOTHING_YET (-1)

/* 0.64 ms. rdma_cm leaves 0 there, which means 655 ms. Credits make it moot; still. */
#define MIN_RNR_TIMER 12

int verbs_cm_open(struct rdma_event_channel **cm, struct vb_error *err)
{
	int rc = verbs_preflight("", err);

	if (rc)
		return rc;
	*cm = rdma_create_event_channel();
	if (!*cm)
		return verbs_fail(err, errno, "rdma_create_event_channel",
				  "/dev/infiniband/rdma_cm");
	if (fcntl((*cm)->fd, F_SETFL, fcntl((*cm)->fd, F_GETFL) | O_NONBLOCK) != 0)
		return verbs_fail(err, errno, "fcntl", "rdma_cm event channel");
	return 0;
}

void verbs_break(struct verbs_ep *ep, int errnum, const char *operation)
{
	if (ep->base.state == VB__EP_DOWN)
		return;
	verbs_fail(&ep->base.down, errnum, operation,
		   ep->base.device[0] ? ep->base.device : ep->base.peer);
	ep->base.state = VB__EP_DOWN;
	rdma_disconnect(ep->id);
}

static bool is_nothing_more(int errnum)
{
	return errnum == EAGAIN || errnum == EINTR;
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

void verbs_on_established(struct verbs_ep *ep)
{
	struct ibv_qp_attr attr = { .min_rnr_timer = MIN_RNR_TIMER };

	if (ep->base.state == VB__EP_DOWN)
		return;
	if (!ep->iwarp && ibv_modify_qp(ep->id->qp, &attr, IBV_QP_MIN_RNR_TIMER) != 0)
		vb__log(&ep->log, VB_LOG_DEBUG, "%s keeps its own min_rnr_timer", ep->base.device);
	ep->probe.heard_ns = vb__now_coarse_ns();
	vb__ep_up(&ep->base);
}

static void on_failure(struct verbs_ep *ep, const struct rdma_cm_event *event)
{
	bool was_up = ep->base.state == VB__EP_UP;

	verbs_fail_cm(&ep->base.down, event, was_up ? "connection to" : "connect to",
		      ep->base.peer);
	if (ep->base.state == VB__EP_UP || ep->base.state == VB__EP_CONNECTING)
		rdma_disconnect(ep->id); /* flushes what is posted */
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
		keep_peer_data(&ep->base, &event->param.conn);
		on_failure(ep, event);
		break;
	case RDMA_CM_EVENT_ADDR_CHANGE:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		return;
	default:
		on_failure(ep, event);
	}
	ep->last_event = event->event;
}

static void take_cm_events(struct verbs_ep *ep)
{
	struct rdma_cm_event *event;

	while (rdma_get_cm_event(ep->cm, &event) == 0) {
		on_cm_event(ep, event);
		rdma_ack_cm_event(event);
	}
	if (!is_nothing_more(errno))
		verbs_break(ep, errno, "rdma_get_cm_event");
}

static void take_completion_events(struct verbs_ep *ep)
{
	struct ibv_cq *cq;
	void *context;

	while (ibv_get_cq_event(ep->completions, &cq, &context) == 0) {
		ep->armed = VERBS_ARMED_NOT;
		if (++ep->unacked == 64) {
			ibv_ack_cq_events(ep->cq, ep->unacked);
			ep->unacked = 0;
		}
	}
	if (!is_nothing_more(errno))
		verbs_break(ep, errno, "ibv_get_cq_event");
}

/* A fatal event of the device, queue or queue pair; others were only logged. */
static void on_async_event(struct verbs_ep *ep)
{
	int type = verbs_fatal_event(&ep->watcher);

	if (type == VERBS_NO_EVENT || ep->base.state == VB__EP_DOWN)
		return;
	vb__ep_down(&ep->base, &(struct vb__failure){
				       .code = VB_ERR_LOST,
				       .native_kind = VB_NATIVE_ASYNC,
				       .native = type,
				       .operation = "connection to",
				       .object = ep->base.peer,
				       .cause = ibv_event_type_str((enum ibv_event_type)type),
				       .hint = "see the kernel's log (`dmesg`) for the device",
			       });
	rdma_disconnect(ep->id);
}

static void take_device_events(struct verbs_ep *ep)
{
	int rc = verbs_take_device_events(ep->id->verbs);

	if (rc)
		verbs_break(ep, rc, "ibv_get_async_event");
}

void verbs_look_after(struct verbs_ep *ep)
{
	uint32_t ready = vb__waiter_check(&ep->waiter, VB__READY_TICK);

	if (ready & READY_CM)
		take_cm_events(ep);
	if (ready & READY_DEVICE)
		take_device_events(ep);
	on_async_event(ep);
	if (ready & VB__READY_TICK)
		verbs_probe_tick(ep);
}

bool verbs_take_wakes(struct verbs_ep *ep)
{
	uint32_t ready = vb__waiter_check(&ep->waiter, VB__READY_WAKE);

	if (ready & READY_CQ)
		take_completion_events(ep);
	return ready & (READY_CQ | VB__READY_WAKE);
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
		if (ep->last_event == (int)wanted)
			return 0;
		if (vb__now_ns() >= deadline_ns)
			return fail_timeout(err, operation, ep->base.peer);
		vb__waiter_sleep(ep->waiter.epoll, deadline_ns);
		verbs_look_after(ep);
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
					     "get ADDRESS`; give the "
					     "peer's address on the RDMA network, or use the ofi "
					     "fabric",
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

	ep->last_event = NOTHING_YET;
	if (rdma_resolve_addr(ep->id, from, (struct sockaddr *)&peer->sa, ms_left(deadline_ns)) !=
	    0) {
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
	if (rdma_resolve_route(ep->id, ms_left(deadline_ns)) != 0)
		return verbs_fail(err, errno, "rdma_resolve_route", peer->text);
	return await(ep, RDMA_CM_EVENT_ROUTE_RESOLVED, "rdma_resolve_route", deadline_ns, err);
}

static int check_device(struct verbs_ep *ep, const struct vb__settings *settings,
			struct vb_error *err)
{
	const char *name = ibv_get_device_name(ep->id->verbs->device);
	char cause[200];

	snprintf(ep->base.device, sizeof(ep->base.device), "%s", name);
	if (!settings->device[0] || !strcmp(settings->device, name))
		return 0;
	snprintf(cause, sizeof(cause), "the route to it belongs to device %s, but %s is asked for",
		 name, settings->device);
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_NO_DEVICE,
				     .operation = "connect to",
				     .object = ep->base.peer,
				     .cause = cause,
				     .hint = "give the peer's address on that device's network, or "
					     "leave the choice of the device to the route",
			     });
}

static int watch_device(struct verbs_ep *ep, struct vb_error *err)
{
	ep->watcher = (struct verbs_watcher){
		.id = ep->id,
		.qp = ep->id->qp,
		.cqs = { ep->cq },
		.srq = ep->share.pool ? ep->share.pool->srq : NULL,
		.port = ep->id->port_num,
		.device = ep->base.device,
		.peer = ep->base.peer,
		.log = &ep->log,
		.waiter = &ep->waiter,
	};
	return verbs_watch(&ep->watcher, ep->id->verbs, err);
}

/* The end that all endpoints have in common: everything that needs the device. */
static int equip(struct verbs_ep *ep, const struct vb__ep_attr *attr, struct vb_error *err)
{
	uint8_t timeout = verbs_ack_timeout(attr->settings->peer_timeout_ms);
	int rc = check_device(ep, attr->settings, err);

	if (rc == 0)
		rc = verbs_queues_open(ep, attr, err);
	if (rc == 0)
		rc = watch_device(ep, err);
	if (rc == 0 && ep->completions)
		rc = vb__waiter_add(&ep->waiter, ep->completions->fd, READY_CQ, err);
	/* For members of a pool that does it. Linux lets no more than 500 nested epoll sets watch one descriptor. */
	if (rc == 0 && !ep->share.pool)
		rc = vb__waiter_add(&ep->waiter, ep->id->verbs->async_fd, READY_DEVICE, err);
	if (rc == 0 && rdma_set_option(ep->id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout,
				       sizeof(timeout)) != 0)
		vb__log(&ep->log, VB_LOG_DEBUG, "%s keeps its own ACK time-out", ep->base.device);
	return rc;
}

/* An endpoint with nothing but its event channel. */
static int make(const struct vb__ep_attr *attr, struct verbs_ep **out, struct vb_error *err)
{
	struct verbs_ep *ep = calloc(1, sizeof(*ep));
	int rc;

	if (!ep)
		return verbs_fail(err, ENOMEM, "calloc", NULL);
	ep->base.fabric = &vb__verbs_fabric;
	ep->log = attr->settings->log;
	ep->peer_timeout_ms = attr->settings->peer_timeout_ms;
	ep->waiter = VB__WAITER_NONE;
	ep->last_event = NOTHING_YET;
	rc = vb__waiter_open(&ep->waiter, ep->peer_timeout_ms / VB__TICKS, err);
	if (rc == 0)
		rc = verbs_cm_open(&ep->cm, err);
	if (rc == 0)
		rc = vb__waiter_add(&ep->waiter, ep->cm->fd, READY_CM, err);
	if (rc) {
		verbs_ep_close(&ep->base);
		return rc;
	}
	ep->base.wait_fd = ep->waiter.epoll;
	*out = ep;
	return 0;
}

int verbs_ep_open(const struct vb__ep_attr *attr, const struct vb__address *peer,
		  uint64_t deadline_ns, struct vb__ep **out, struct vb_error *err)
{
	struct verbs_ep *ep = NULL;
	int rc = make(attr, &ep, err);

	if (!ep)
		return rc;
	snprintf(ep->base.peer, sizeof(ep->base.peer), "%s", peer->text);
	if (rdma_create_id(ep->cm, &ep->id, NULL, RDMA_PS_TCP) != 0)
		rc = verbs_fail(err, errno, "rdma_create_id", peer->text);
	else
		rc = resolve(ep, peer, attr->source, deadline_ns, err);
	if (rc == 0)
		rc = equip(ep, attr, err);
	if (rc) {
		verbs_ep_close(&ep->base);
		return rc;
	}
	*out = &ep->base;
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
		.retry_count = VERBS_RETRIES,
		.rnr_retry_count = VERBS_RNR_RETRIES,
	};
}

int verbs_ep_connect(struct vb__ep *base, const void *data, size_t len, uint64_t deadline_ns,
		     struct vb_error *err)
{
	struct verbs_ep *ep = (struct verbs_ep *)base;
	struct rdma_conn_param param = conn_param(ep, data, len);

	ep->last_event = NOTHING_YET;
	if (rdma_connect(ep->id, &param) != 0)
		return verbs_fail(err, errno, "rdma_connect", base->peer);
	base->state = VB__EP_CONNECTING;
	return await(ep, RDMA_CM_EVENT_ESTABLISHED, "connect to", deadline_ns, err);
}

static uint8_t smaller(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

int verbs_ep_accept_open(struct vb__request *base, const struct vb__ep_attr *attr,
			 struct vb__ep **out, struct vb_error *err)
{
	struct verbs_request *request = (struct verbs_request *)base;
	struct vb__address peer;
	struct verbs_ep *ep = NULL;
	int rc = make(attr, &ep, err);

	if (!ep) {
		verbs_reject(base, NULL, 0);
		return rc;
	}
	if (rdma_migrate_id(request->id, ep->cm) != 0) {
		rc = verbs_fail(err, errno, "rdma_migrate_id", NULL);
		verbs_reject(base, NULL, 0);
		verbs_ep_close(&ep->base);
		return rc;
	}
	ep->id = request->id;
	vb__address_from(&peer, rdma_get_peer_addr(ep->id));
	snprintf(ep->base.peer, sizeof(ep->base.peer), "%s", peer.text);
	rc = equip(ep, attr, err);
	ep->responder_resources = smaller(ep->responder_resources, request->responder_resources);
	ep->initiator_depth = smaller(ep->initiator_depth, request->initiator_depth);
	free(request);
	if (rc) {
		rdma_reject(ep->id, NULL, 0);
		verbs_ep_close(&ep->base);
		return rc;
	}
	*out = &ep->base;
	return 0;
}

int verbs_ep_accept(struct vb__ep *base, const void *data, size_t len, struct vb_error *err)
{
	struct verbs_ep *ep = (struct verbs_ep *)base;
	struct rdma_conn_param param = conn_param(ep, data, len);

	ep->probe.too_early = ep->iwarp;
	if (rdma_accept(ep->id, &param) != 0)
		return verbs_fail(err, errno, "rdma_accept", base->peer);
	base->state = VB__EP_CONNECTING;
	return 0;
}

void verbs_ep_disconnect(struct vb__ep *base)
{
	struct verbs_ep *ep = (struct verbs_ep *)base;

	if (base->state != VB__EP_UP && base->state != VB__EP_CONNECTING)
		return;
	rdma_disconnect(ep->id);
	vb__ep_down_closed(base);
}

void verbs_ep_close(struct vb__ep *base)
{
	struct verbs_ep *ep = (struct verbs_ep *)base;

	verbs_unwatch(&ep->watcher);
	verbs_ep_disconnect(base);
	verbs_queues_close(ep);
	if (ep->id)
		rdma_destroy_id(ep->id);
	if (ep->cm)
		rdma_destroy_event_channel(ep->cm);
	vb__waiter_close(&ep->waiter);
	free(ep);
}
