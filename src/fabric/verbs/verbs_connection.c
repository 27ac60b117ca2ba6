/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs endpoint's life: made, connected or accepted, ended. How it is wired up is the business of its struct verbs_wireup. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "fabric/verbs/verbs_wireup.h"

void verbs_cut(struct verbs_ep *ep)
{
	ep->wireup->disconnect(ep);
}

void verbs_destroy_qp(struct verbs_ep *ep)
{
	if (ep->qp)
		ep->wireup->destroy_qp(ep);
	ep->qp = NULL;
}

void verbs_break(struct verbs_ep *ep, int errnum, const char *operation)
{
	const char *object = ep->base.device[0] ? ep->base.device : ep->base.peer;

	if (ep->base.state == VB__EP_DOWN) {
		if (!ep->worse) /* whoever polls on would find it again and again */
			verbs_note(&ep->log, errnum, operation, object, "it was down already");
		ep->worse = true;
		return;
	}
	verbs_fail(&ep->base.down, errnum, operation, object);
	ep->base.state = VB__EP_DOWN;
	verbs_cut(ep);
}

bool verbs_nothing_more(int errnum)
{
	return errnum == EAGAIN || errnum == EINTR;
}

void verbs_on_established(struct verbs_ep *ep)
{
	if (ep->base.state == VB__EP_DOWN)
		return;
	if (ep->wireup->established)
		ep->wireup->established(ep);
	ep->probe.heard_ns = vb__now_coarse_ns();
	vb__ep_up(&ep->base);
}

bool verbs_take_completion_event(struct verbs_ep *ep)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(ep->completions, &cq, &context) != 0) {
		if (!verbs_nothing_more(errno))
			verbs_break(ep, errno, "ibv_get_cq_event");
		return false;
	}
	ep->armed = VERBS_ARMED_NOT;
	if (++ep->unacked == 64) {
		ibv_ack_cq_events(ep->cq, ep->unacked);
		ep->unacked = 0;
	}
	return true;
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
	verbs_cut(ep);
}

static void take_device_events(struct verbs_ep *ep)
{
	int rc = verbs_take_device_events(ep->context);

	if (rc)
		verbs_break(ep, rc, "ibv_get_async_event");
}

static void look_at(struct verbs_ep *ep, uint32_t ready)
{
	if (ready & VERBS_READY_WIRE)
		ep->wireup->look_after(ep);
	if (ready & VERBS_READY_DEVICE)
		take_device_events(ep);
	on_async_event(ep);
	if (ready & VB__READY_TICK)
		verbs_probe_tick(ep);
}

void verbs_look_after(struct verbs_ep *ep)
{
	look_at(ep, vb__waiter_check(&ep->waiter, VB__READY_TICK));
}

bool verbs_take_wakes(struct verbs_ep *ep)
{
	uint32_t ready = vb__waiter_check(&ep->waiter, VB__READY_TICK | VB__READY_WAKE);

	look_at(ep, ready);
	if (ready & VERBS_READY_CQ)
		verbs_take_completion_event(ep);
	return ready & (VERBS_READY_CQ | VB__READY_WAKE);
}

static int check_device(struct verbs_ep *ep, const struct vb__settings *settings,
			struct vb_error *err)
{
	const char *name = ibv_get_device_name(ep->context->device);
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
		.id = ep->cm.id,
		.qp = ep->qp,
		.cqs = { ep->cq },
		.srq = ep->share.pool ? ep->share.pool->srq : NULL,
		.port = ep->port,
		.device = ep->base.device,
		.peer = ep->base.peer,
		.log = &ep->log,
		.waiter = &ep->waiter,
	};
	return verbs_watch(&ep->watcher, ep->context, err);
}

/* The end that all endpoints have in common: everything that needs the device. */
static int equip(struct verbs_ep *ep, const struct vb__ep_attr *attr, struct vb_error *err)
{
	int rc = check_device(ep, attr->settings, err);

	if (rc == 0)
		rc = verbs_queues_open(ep, attr, err);
	if (rc == 0)
		rc = watch_device(ep, err);
	if (rc == 0 && ep->completions)
		rc = vb__waiter_add(&ep->waiter, ep->completions->fd, VERBS_READY_CQ, err);
	/* For members of a pool that does it. Linux lets no more than 500 nested epoll sets watch one descriptor. */
	if (rc == 0 && !ep->share.pool)
		rc = vb__waiter_add(&ep->waiter, ep->context->async_fd, VERBS_READY_DEVICE, err);
	if (rc == 0)
		rc = ep->wireup->get_ready(ep, err);
	return rc;
}

/* An endpoint with nothing but its waiter. */
static int make(const struct vb__ep_attr *attr, const struct verbs_wireup *wireup,
		struct verbs_ep **out, struct vb_error *err)
{
	struct verbs_ep *ep = calloc(1, sizeof(*ep));
	int rc;

	if (!ep)
		return verbs_fail(err, ENOMEM, "calloc", NULL);
	ep->base.fabric = &vb__verbs_fabric;
	ep->wireup = wireup;
	ep->base.wireup = wireup->id;
	ep->base.refusal = attr->refusal;
	ep->log = attr->settings->log;
	ep->peer_timeout_ms = attr->settings->peer_timeout_ms;
	ep->tuning = attr->settings->qp;
	ep->responder_resources = ep->initiator_depth = ep->tuning.reads;
	ep->type = attr->qp_type;
	ep->tcp.fd = -1;
	ep->waiter = VB__WAITER_NONE;
	rc = vb__waiter_open(&ep->waiter, ep->peer_timeout_ms / VB__TICKS, err);
	if (rc) {
		verbs_ep_close(&ep->base);
		return rc;
	}
	ep->base.wait_fd = ep->waiter.epoll;
	*out = ep;
	return 0;
}

/*
 * The way that was asked for. Else rdma_cm, unless it alone is what is missing here; then `how` tells why.
 */
static const struct verbs_wireup *choose(const struct vb__ep_attr *attr, char *how, size_t size)
{
	struct vb_error why = { .code = VB_OK };

	if (attr->settings->wireup == VB_WIREUP_CM)
		return &verbs_cm;
	if (attr->settings->wireup == VB_WIREUP_TCP || attr->qp_type != VB__QP_RC)
		return &verbs_tcp;
	if (verbs_preflight("", true, &why) == 0 || verbs_preflight("", false, NULL) != 0)
		return &verbs_cm;
	snprintf(how, size, ", as %.60s: %.100s", why.object, why.cause);
	return &verbs_tcp;
}

/* A listener in a container may have no rdma_cm where we have it. */
enum vb_wireup verbs_second_wireup(const struct vb__settings *settings)
{
	bool by_cm = settings->wireup == VB_WIREUP_AUTO && verbs_preflight("", true, NULL) == 0;

	return by_cm ? VB_WIREUP_TCP : VB_WIREUP_AUTO;
}

static int check_type(const struct verbs_wireup *wireup, const struct vb__ep_attr *attr,
		      const struct vb__address *peer, struct vb_error *err)
{
	if (wireup->qp_types & 1u << attr->qp_type)
		return 0;
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_UNSUPPORTED,
				     .operation = "connect to",
				     .object = peer->text,
				     .cause = "rdma_cm wires up RC queue pairs only, not UC",
				     .hint = "wire up by TCP (--wireup tcp, VB_WIREUP=tcp)",
			     });
}

int verbs_ep_open(const struct vb__ep_attr *attr, const struct vb__address *peer,
		  uint64_t deadline_ns, struct vb__ep **out, struct vb_error *err)
{
	char how[sizeof((*out)->how)] = "";
	const struct verbs_wireup *wireup = choose(attr, how, sizeof(how));
	struct verbs_ep *ep = NULL;
	int rc = check_type(wireup, attr, peer, err);

	if (rc == 0)
		rc = make(attr, wireup, &ep, err);
	if (!ep)
		return rc;
	memcpy(ep->base.how, how, sizeof(how));
	snprintf(ep->base.peer, sizeof(ep->base.peer), "%s", peer->text);
	rc = ep->wireup->find(ep, attr, peer, deadline_ns, err);
	if (rc == 0)
		rc = equip(ep, attr, err);
	if (rc) {
		verbs_ep_close(&ep->base);
		return rc;
	}
	*out = &ep->base;
	return 0;
}

int verbs_ep_connect(struct vb__ep *base, const void *data, size_t len, uint64_t deadline_ns,
		     struct vb_error *err)
{
	struct verbs_ep *ep = (struct verbs_ep *)base;

	return ep->wireup->connect(ep, data, len, deadline_ns, err);
}

int verbs_ep_accept_open(struct vb__request *base, const struct vb__ep_attr *attr,
			 struct vb__ep **out, struct vb_error *err)
{
	struct verbs_request *request = (struct verbs_request *)base;
	struct verbs_ep *ep = NULL;
	int rc = make(attr, request->wireup, &ep, err);

	if (ep)
		rc = ep->wireup->adopt(ep, request, err);
	if (!ep || rc) {
		verbs_reject(base, attr->refusal.data, attr->refusal.len);
		if (ep)
			verbs_ep_close(&ep->base);
		return rc;
	}
	free(request);
	ep->asked = true;
	rc = equip(ep, attr, err);
	if (rc) {
		verbs_ep_close(&ep->base);
		return rc;
	}
	*out = &ep->base;
	return 0;
}

int verbs_ep_accept(struct vb__ep *base, const void *data, size_t len, struct vb_error *err)
{
	struct verbs_ep *ep = (struct verbs_ep *)base;
	int rc = ep->wireup->accept(ep, data, len, err);

	ep->asked = rc != 0;
	return rc;
}

void verbs_ep_disconnect(struct vb__ep *base)
{
	struct verbs_ep *ep = (struct verbs_ep *)base;

	if (base->state != VB__EP_UP && base->state != VB__EP_CONNECTING)
		return;
	verbs_cut(ep);
	vb__ep_down_closed(base);
}

void verbs_ep_close(struct vb__ep *base)
{
	struct verbs_ep *ep = (struct verbs_ep *)base;

	verbs_unwatch(&ep->watcher);
	if (ep->asked)
		ep->wireup->refuse(ep);
	verbs_ep_disconnect(base);
	verbs_queues_close(ep);
	ep->wireup->close(ep);
	vb__waiter_close(&ep->waiter);
	free(ep);
}
