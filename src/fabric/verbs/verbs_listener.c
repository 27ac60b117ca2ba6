/* SPDX-License-Identifier: Apache-2.0 */
/* Listening by rdma_cm, and the table of the verbs backend. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/verbs/verbs.h"

#define BACKLOG 128

static int fail_listen(struct vb_error *err, int errnum, const char *operation, const char *object)
{
	int rc = verbs_fail(err, errnum, operation, object);

	if (errnum == EADDRINUSE)
		vb__error_hint(err, "another program listens on this port: choose another one, or "
				    "find it with `rdma resource show cm_id`");
	else if (errnum == EADDRNOTAVAIL || errnum == ENODEV)
		vb__error_hint(err,
			       "no RDMA device has this address: see `rdma link` and `ip addr`");
	return rc;
}

/* iWARP in software takes its ports from the kernel's TCP. */
static bool any_iwarp(void)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);
	bool found = false;

	for (int i = 0; i < n; i++)
		found |= list[i]->transport_type == IBV_TRANSPORT_IWARP;
	if (list)
		ibv_free_device_list(list);
	return found;
}

static void name_devices(char *to, size_t size)
{
	int n = 0;
	size_t at = 0;
	struct ibv_device **list = ibv_get_device_list(&n);

	for (int i = 0; i < n && at < size; i++)
		at += (size_t)snprintf(to + at, size - at, "%s%s", i ? ", " : "",
				       ibv_get_device_name(list[i]));
	if (list)
		ibv_free_device_list(list);
}

static int listen_at(struct verbs_pep *pep, const struct vb__address *at, bool only_six,
		     struct rdma_cm_id **id, struct vb_error *err)
{
	int yes = 1;

	if (rdma_create_id(pep->cm, id, NULL, RDMA_PS_TCP) != 0)
		return verbs_fail(err, errno, "rdma_create_id", at->text);
	if (only_six &&
	    rdma_set_option(*id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &yes, sizeof(yes)) != 0)
		return verbs_fail(err, errno, "rdma_set_option", at->text);
	if (rdma_bind_addr(*id, (struct sockaddr *)&at->sa) != 0)
		return fail_listen(err, errno, "rdma_bind_addr", at->text);
	if (rdma_listen(*id, BACKLOG) != 0)
		return fail_listen(err, errno, "rdma_listen", at->text);
	pep->base.port = ntohs(rdma_get_src_port(*id));
	return 0;
}

/* iWARP does not serve IPv4 by the wildcard of IPv6: that takes a second one. */
static int start(struct verbs_pep *pep, const struct vb__address *at, struct vb_error *err)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&at->sa;
	bool wildcard = six->sin6_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&six->sin6_addr);
	struct sockaddr_in any = { .sin_family = AF_INET };
	struct vb__address four;
	int rc = listen_at(pep, at, wildcard, &pep->id, err);

	if (rc || !wildcard)
		return rc;
	vb__address_from(&four, (struct sockaddr *)&any);
	vb__address_set_port(&four, pep->base.port);
	return listen_at(pep, &four, false, &pep->id_four, err);
}

int verbs_listen(const struct vb__settings *settings, const struct vb__address *at,
		 struct vb__pep **out, struct vb_error *err)
{
	struct verbs_pep *pep = calloc(1, sizeof(*pep));
	int rc;

	if (!pep)
		return verbs_fail(err, ENOMEM, "calloc", NULL);
	pep->base.fabric = &vb__verbs_fabric;
	pep->log = settings->log;
	snprintf(pep->only_device, sizeof(pep->only_device), "%s", settings->device);
	rc = verbs_cm_open(&pep->cm, err);
	if (rc == 0)
		rc = start(pep, at, err);
	if (rc) {
		verbs_pep_close(&pep->base);
		return rc;
	}
	pep->base.wait_fd = pep->cm->fd;
	pep->base.shares_tcp_ports = any_iwarp();
	name_devices(pep->base.device, sizeof(pep->base.device));
	*out = &pep->base;
	return 0;
}

static bool wanted(const struct verbs_pep *pep, const struct rdma_cm_id *id)
{
	return !pep->only_device[0] ||
	       !strcmp(pep->only_device, ibv_get_device_name(id->verbs->device));
}

static struct vb__request *make_request(const struct rdma_cm_event *event)
{
	const struct rdma_conn_param *conn = &event->param.conn;
	struct verbs_request *request = calloc(1, sizeof(*request));
	size_t len = conn->private_data ? conn->private_data_len : 0;

	if (!request)
		return NULL;
	request->base.fabric = &vb__verbs_fabric;
	request->id = event->id;
	/* The event tells them from our side: what the peer initiates, we respond to. */
	request->responder_resources = conn->responder_resources;
	request->initiator_depth = conn->initiator_depth;
	if (len > sizeof(request->base.data))
		len = sizeof(request->base.data);
	if (len)
		memcpy(request->base.data, conn->private_data, len);
	request->base.data_len = len;
	return &request->base;
}

int verbs_next_request(struct vb__pep *base, struct vb__request **request, struct vb_error *err)
{
	struct verbs_pep *pep = (struct verbs_pep *)base;
	struct rdma_cm_event *event;

	for (;;) {
		struct vb__request *made = NULL;
		struct rdma_cm_id *unwanted = NULL;

		if (rdma_get_cm_event(pep->cm, &event) != 0)
			return errno == EAGAIN
				       ? 0
				       : verbs_fail(err, errno, "rdma_get_cm_event", "listener");
		if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
			if (wanted(pep, event->id))
				made = make_request(event);
			if (!made)
				unwanted = event->id;
		}
		if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL &&
		    (event->id == pep->id || event->id == pep->id_four)) {
			int rc = verbs_fail_cm(err, event, "listen on", pep->base.device);

			rdma_ack_cm_event(event);
			return rc;
		}
		/* Anything else concerns an attempt that its maker gave up. */
		rdma_ack_cm_event(event);
		if (unwanted) {
			rdma_reject(unwanted, NULL, 0);
			rdma_destroy_id(unwanted);
		}
		if (made) {
			*request = made;
			return 1;
		}
	}
}

void verbs_reject(struct vb__request *base, const void *data, size_t len)
{
	struct verbs_request *request = (struct verbs_request *)base;

	rdma_reject(request->id, data, (uint8_t)len);
	rdma_destroy_id(request->id);
	free(request);
}

void verbs_pep_close(struct vb__pep *base)
{
	struct verbs_pep *pep = (struct verbs_pep *)base;

	if (pep->id_four)
		rdma_destroy_id(pep->id_four);
	if (pep->id)
		rdma_destroy_id(pep->id);
	if (pep->cm)
		rdma_destroy_event_channel(pep->cm);
	free(pep);
}

/* Its descriptor is readable as long as there is an event: nothing to do. */
static int verbs_pep_arm(struct vb__pep *base)
{
	(void)base;
	return 0;
}

static void verbs_wake(struct vb__ep *base)
{
	vb__waiter_wake(&((struct verbs_ep *)base)->waiter);
}

const struct vb__fabric vb__verbs_fabric = {
	.name = "verbs",
	.id = VB_FABRIC_VERBS,
	.qp_types = 1u << VB__QP_RC,
	.open = verbs_ep_open,
	.connect = verbs_ep_connect,
	.close = verbs_ep_close,
	.listen = verbs_listen,
	.next_request = verbs_next_request,
	.pep_arm = verbs_pep_arm,
	.accept_open = verbs_ep_accept_open,
	.accept = verbs_ep_accept,
	.reject = verbs_reject,
	.pep_close = verbs_pep_close,
	.register_memory = verbs_register,
	.deregister = verbs_deregister,
	.window_open = verbs_window_open,
	.window_close = verbs_window_close,
	.post = verbs_post,
	.poll = verbs_poll,
	.arm = verbs_arm,
	.disconnect = verbs_ep_disconnect,
	.wake = verbs_wake,
	.pool_open = verbs_pool_open,
	.pool_serves = verbs_pool_serves,
	.pool_look_after = verbs_pool_look_after,
	.pool_give_back = verbs_pool_give_back,
	.pool_close = verbs_pool_close,
};
