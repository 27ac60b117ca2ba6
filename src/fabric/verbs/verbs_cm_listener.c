/* SPDX-License-Identifier: Apache-2.0 */
/* Listening by rdma_cm. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/verbs/verbs_wireup.h"

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

static int listen_at(struct verbs_pep *pep, const struct vb__address *at, bool only_six,
		     struct rdma_cm_id **id, struct vb_error *err)
{
	int yes = 1;

	if (rdma_create_id(pep->cm.channel, id, NULL, RDMA_PS_TCP) != 0)
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
static int start(struct verbs_pep *pep, const struct vb__settings *settings,
		 const struct vb__address *at, struct vb_error *err)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&at->sa;
	bool wildcard = six->sin6_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&six->sin6_addr);
	struct sockaddr_in any = { .sin_family = AF_INET };
	struct vb__address four;
	int rc = listen_at(pep, at, wildcard, &pep->cm.id, err);

	if (rc || !wildcard || settings->family == AF_INET6)
		return rc;
	vb__address_from(&four, (struct sockaddr *)&any);
	vb__address_set_port(&four, pep->base.port);
	return listen_at(pep, &four, false, &pep->cm.id_four, err);
}

int verbs_cm_listen(struct verbs_pep *pep, const struct vb__settings *settings,
		    const struct vb__address *at, struct vb_error *err)
{
	int rc = verbs_cm_open(&pep->cm.channel, err);

	if (rc == 0)
		rc = start(pep, settings, at, err);
	if (rc == 0)
		rc = vb__waiter_add(&pep->waiter, pep->cm.channel->fd, VERBS_PEP_CM, err);
	if (rc)
		verbs_cm_unlisten(pep);
	return rc;
}

static bool wanted(const struct verbs_pep *pep, const struct rdma_cm_id *id)
{
	return !pep->only_device[0] ||
	       !strcmp(pep->only_device, ibv_get_device_name(id->verbs->device));
}

static struct vb__request *make_request(const struct verbs_pep *pep,
					const struct rdma_cm_event *event)
{
	const struct rdma_conn_param *conn = &event->param.conn;
	struct verbs_cm_request *request = calloc(1, sizeof(*request));
	struct vb__request *base = request ? &request->base.base : NULL;
	size_t len = conn->private_data ? conn->private_data_len : 0;

	if (!request) {
		verbs_note(&pep->log, ENOMEM, "calloc", "a request", "the peer is turned away");
		return NULL;
	}
	base->fabric = &vb__verbs_fabric;
	request->base.wireup = &verbs_cm;
	request->base.context = event->id->verbs;
	request->base.log = pep->log;
	request->id = event->id;
	/* The event tells them from our side: what the peer initiates, we respond to. */
	request->responder_resources = conn->responder_resources;
	request->initiator_depth = conn->initiator_depth;
	if (len > sizeof(base->data))
		len = sizeof(base->data);
	if (len)
		memcpy(base->data, conn->private_data, len);
	base->data_len = len;
	return base;
}

static void acknowledge(const struct verbs_pep *pep, struct rdma_cm_event *event)
{
	VERBS_UNDO(&pep->log, "listener", rdma_ack_cm_event, event);
}

static void turn_away(const struct vb__log *log, struct rdma_cm_id *id, const void *data,
		      size_t len)
{
	verbs_note(log, rdma_reject(id, data, (uint8_t)len), "rdma_reject", "a request",
		   "the peer is not told");
	VERBS_UNDO(log, "a request", rdma_destroy_id, id);
}

int verbs_cm_next_request(struct verbs_pep *pep, struct vb__request **request, struct vb_error *err)
{
	struct rdma_cm_event *event;

	while (pep->cm.channel) {
		struct vb__request *made = NULL;
		struct rdma_cm_id *unwanted = NULL;

		if (rdma_get_cm_event(pep->cm.channel, &event) != 0)
			return errno == EAGAIN
				       ? 0
				       : verbs_fail(err, errno, "rdma_get_cm_event", "listener");
		if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
			if (wanted(pep, event->id))
				made = make_request(pep, event);
			if (!made)
				unwanted = event->id;
		}
		if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL &&
		    (event->id == pep->cm.id || event->id == pep->cm.id_four)) {
			int rc = verbs_fail_cm(err, event, "listen on", pep->base.device);

			acknowledge(pep, event);
			return rc;
		}
		/* Anything else concerns an attempt that its maker gave up. */
		acknowledge(pep, event);
		if (unwanted)
			turn_away(&pep->log, unwanted, NULL, 0);
		if (made) {
			*request = made;
			return 1;
		}
	}
	return 0;
}

void verbs_cm_reject(struct verbs_request *base, const void *data, size_t len)
{
	struct verbs_cm_request *request = (struct verbs_cm_request *)base;

	turn_away(&base->log, request->id, data, len);
	free(request);
}

void verbs_cm_unlisten(struct verbs_pep *pep)
{
	if (pep->cm.id_four)
		VERBS_UNDO(&pep->log, "listener", rdma_destroy_id, pep->cm.id_four);
	if (pep->cm.id)
		VERBS_UNDO(&pep->log, "listener", rdma_destroy_id, pep->cm.id);
	if (pep->cm.channel)
		rdma_destroy_event_channel(pep->cm.channel);
	pep->cm.id = pep->cm.id_four = NULL;
	pep->cm.channel = NULL;
}
