/* SPDX-License-Identifier: Apache-2.0 */
/* The libfabric endpoint's life: made, connected or accepted, disconnected, closed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "fabric/ofi/ofi.h"
#include "fabric/ofi/ofi_guard.h"

#define READY_EQ VB__READY_OWN
#define READY_CQ (VB__READY_OWN << 1)

static int open_queues(struct ofi_ep *ep, struct vb_error *err)
{
	struct fi_cq_attr attr = {
		.size = ep->base.send_depth + ep->base.recv_depth,
		.format = FI_CQ_FORMAT_DATA,
		.wait_obj = FI_WAIT_FD,
	};
	int fd, rc;

	rc = ofi_eq_open(ep->fabric, &ep->eq, &fd, err);
	if (rc == 0)
		rc = vb__waiter_add(&ep->waiter, fd, READY_EQ, err);
	if (rc)
		return rc;
	rc = fi_cq_open(ep->domain, &attr, &ep->cq, NULL);
	if (rc)
		return ofi_fail(err, rc, "fi_cq_open", ep->base.device);
	rc = fi_control(&ep->cq->fid, FI_GETWAIT, &fd);
	if (rc)
		return ofi_fail(err, rc, "fi_control", "completion queue");
	return vb__waiter_add(&ep->waiter, fd, READY_CQ, err);
}

static int open_endpoint(struct ofi_ep *ep, struct vb_error *err)
{
	const char *step = "fi_endpoint";
	int rc = fi_endpoint(ep->domain, ep->info, &ep->ep, NULL);

	if (rc == 0) {
		step = "fi_ep_bind";
		rc = fi_ep_bind(ep->ep, &ep->eq->fid, 0);
	}
	if (rc == 0)
		rc = fi_ep_bind(ep->ep, &ep->cq->fid, FI_TRANSMIT | FI_RECV);
	if (rc == 0) {
		step = "fi_enable";
		rc = fi_enable(ep->ep);
	}
	return rc ? ofi_fail(err, rc, step, ep->base.device) : 0;
}

static unsigned smaller(size_t a, size_t b)
{
	return (unsigned)(a < b ? a : b);
}

/* Takes what was asked for, within what the provider says it can. */
static void settle_limits(struct ofi_ep *ep, const struct vb__ep_attr *attr)
{
	const struct fi_info *info = ep->info;

	ep->base.send_depth = smaller(attr->send_depth, info->tx_attr->size);
	ep->base.recv_depth = smaller(attr->recv_depth, info->rx_attr->size);
	ep->base.sge =
		smaller(attr->sge, smaller(info->tx_attr->iov_limit, info->rx_attr->iov_limit));
	ep->base.sge = smaller(ep->base.sge, VB__SGE_MAX);
	ep->base.inline_bytes = info->tx_attr->inject_size;
	ep->base.max_bytes = info->ep_attr->max_msg_size;
	/* The tcp provider says FI_PROGRESS_AUTO, and does nothing unless it is polled. */
	ep->base.caps = VB__CAP_READ | VB__CAP_SLOW_POST | VB__CAP_ATTENDED | VB__CAP_MUTE;
	if (!(info->domain_attr->mr_mode & FI_MR_LOCAL))
		ep->base.caps |= VB__CAP_ANY_BUFFER;
	/* Others may, too; of this one it is known. */
	if (strcmp(info->fabric_attr->prov_name, "tcp") == 0)
		ep->base.caps |= VB__CAP_PATIENT;
	snprintf(ep->base.device, sizeof(ep->base.device), "%s", info->fabric_attr->prov_name);
}

/* With domain and queues of its own. */
static int open_alone(struct ofi_ep *ep, struct vb_error *err)
{
	const struct fi_info *info = ep->info;
	int rc = ofi_library.fabric(ep->info->fabric_attr, &ep->fabric, NULL);

	if (rc)
		return ofi_fail(err, rc, "fi_fabric", info->fabric_attr->name);
	rc = fi_domain(ep->fabric, ep->info, &ep->domain, NULL);
	if (rc)
		return ofi_fail(err, rc, "fi_domain", info->domain_attr->name);
	rc = open_queues(ep, err);
	return rc ? rc : open_endpoint(ep, err);
}

static int open_in_pool(struct ofi_ep *ep, struct vb__pool *pool, struct vb_error *err)
{
	int rc = ofi_pool_join(ep, pool, err);

	if (rc)
		return rc;
	ofi_lock(ep);
	rc = open_endpoint(ep, err);
	if (rc == 0)
		rc = ofi_pool_post_receives(ep, err);
	ofi_unlock(ep);
	return rc;
}

/* Makes an endpoint of `info`, which it takes over. `pep` is where it was asked for, or NULL. */
static int make(struct fi_info *info, struct fid_pep *pep, const struct vb__ep_attr *attr,
		struct vb__ep **out, struct vb_error *err)
{
	struct ofi_ep *ep = calloc(1, sizeof(*ep));
	int rc;

	if (!ep) {
		if (pep)
			ofi_turn_away(&attr->settings->log, pep, info, &attr->refusal);
		ofi_library.freeinfo(info);
		return vb__fail_errno(err, FI_ENOMEM, "calloc", NULL);
	}
	ep->base.fabric = &vb__ofi_fabric;
	ep->base.refusal = attr->refusal;
	ep->info = info;
	ep->pep = pep;
	ep->socket = -1;
	ep->log = attr->settings->log;
	ep->peer_timeout_ms = attr->settings->peer_timeout_ms;
	settle_limits(ep, attr);
	rc = vb__waiter_open(&ep->waiter, ep->peer_timeout_ms / VB__TICKS, err);
	if (rc)
		goto undo;
	ep->base.wait_fd = ep->waiter.epoll;
	rc = attr->pool ? open_in_pool(ep, attr->pool, err) : open_alone(ep, err);
	if (rc)
		goto undo;
	*out = &ep->base;
	return 0;
undo:
	ofi_ep_close(&ep->base);
	return rc;
}

int ofi_ep_open(const struct vb__ep_attr *attr, const struct vb__address *peer,
		uint64_t deadline_ns, struct vb__ep **ep, struct vb_error *err)
{
	struct fi_info *list, *info;
	int rc;

	(void)deadline_ns; /* nothing here waits for the network */
	rc = ofi_info_get(attr->settings, peer, attr->source, &list, err);
	if (rc)
		return rc;
	info = ofi_library.dupinfo(list);
	ofi_library.freeinfo(list);
	if (!info)
		return vb__fail_errno(err, FI_ENOMEM, "fi_dupinfo", NULL);
	rc = make(info, NULL, attr, ep, err);
	if (rc == 0)
		snprintf((*ep)->peer, sizeof((*ep)->peer), "%s", peer->text);
	return rc;
}

static void keep_peer_data(struct vb__ep *ep, const void *data, size_t len)
{
	if (len > sizeof(ep->peer_data))
		len = sizeof(ep->peer_data);
	memcpy(ep->peer_data, data, len);
	ep->peer_data_len = len;
}

void ofi_over(struct ofi_ep *ep)
{
	if (ofi_guard_has_struck(ep->socket))
		vb__ep_down(&ep->base, &(struct vb__failure){
					       .code = VB_ERR_PROTOCOL,
					       .operation = "receive from",
					       .object = ep->base.peer,
					       .cause = "the peer sent what libfabric's tcp "
							"provider never does",
				       });
	else if (ofi_guard_saw_silence(ep->socket))
		vb__ep_down_silent(&ep->base);
	else
		vb__ep_down_gone(&ep->base);
}

void ofi_break(struct ofi_ep *ep, long result, const char *operation)
{
	if (vb__errno_is_silence((int)labs(result)))
		vb__ep_down_silent(&ep->base);
	ofi_fail(&ep->base.down, result, operation, ep->base.peer); /* unless it holds the first */
	ep->base.state = VB__EP_DOWN;
}

static void on_event(struct ofi_ep *ep, uint32_t event, const struct fi_eq_cm_entry *entry,
		     size_t len)
{
	if (event == FI_CONNECTED && ep->base.state != VB__EP_DOWN) {
		if (len > sizeof(*entry))
			keep_peer_data(&ep->base, entry->data, len - sizeof(*entry));
		vb__ep_up(&ep->base);
		if (!ep->lively)
			ofi_liveness_start(ep);
		if (!ep->base.peer[0])
			snprintf(ep->base.peer, sizeof(ep->base.peer), "a peer without an address");
	} else if (event == FI_SHUTDOWN) {
		ofi_over(ep);
	}
}

/* What the provider says when something else than a Verbatim listener is there. */
static bool explain_refusal(struct ofi_ep *ep, int fi_errnum)
{
	bool closed = fi_errnum == FI_EINPROGRESS || fi_errnum == FI_EIO;

	if (!closed && fi_errnum != FI_ENOPROTOOPT)
		return false;
	vb__ep_down(
		&ep->base,
		&(struct vb__failure){
			.code = closed ? VB_ERR_REFUSED : VB_ERR_PROTOCOL,
			.native_kind = VB_NATIVE_FI,
			.native = fi_errnum,
			.operation = "connect to",
			.object = ep->base.peer,
			.cause = closed ? "the other side closed before it answered"
					: "what listens there does not speak Verbatim's protocol",
			.hint = closed ? "it is busy, out of resources, or another program: check "
					 "the port and its log"
				       : "check the port",
		});
	return true;
}

static void on_event_error(struct ofi_ep *ep, int fi_errnum)
{
	if (ep->base.was_up) {
		ofi_break(ep, fi_errnum, "connection to");
		return;
	}
	if (explain_refusal(ep, fi_errnum))
		return;
	ofi_fail(&ep->base.down, fi_errnum, "connect to", ep->base.peer);
	ep->base.state = VB__EP_DOWN;
}

/* False if it could not be read: then there is no use in reading on. */
static bool take_event_error(struct ofi_ep *ep)
{
	uint8_t data[256];
	struct fi_eq_err_entry entry = { .err_data = data, .err_data_size = sizeof(data) };
	ssize_t n = fi_eq_readerr(ep->eq, &entry, 0);

	if (n < 0)
		entry = (struct fi_eq_err_entry){ .err = (int)-n };
	if (entry.err_data && entry.err_data_size)
		keep_peer_data(&ep->base, entry.err_data, entry.err_data_size);
	on_event_error(ep, entry.err);
	return n >= 0;
}

static void own_events(struct ofi_ep *ep)
{
	union {
		struct fi_eq_cm_entry entry;
		uint8_t room[sizeof(struct fi_eq_cm_entry) + 256];
	} u;
	uint32_t event;
	ssize_t n;

	for (;;) {
		n = fi_eq_read(ep->eq, &event, &u, sizeof(u), 0);
		if (n >= (ssize_t)sizeof(u.entry))
			on_event(ep, event, &u.entry, (size_t)n);
		else if (n != -FI_EAVAIL || !take_event_error(ep))
			break;
	}
	if (n < 0 && n != -FI_EAGAIN && n != -FI_EAVAIL)
		on_event_error(ep, (int)-n);
}

void ofi_events(struct ofi_ep *ep)
{
	struct ofi_happened happened;

	if (!ep->share.pool) {
		own_events(ep);
		return;
	}
	happened = ofi_pool_events(ep);
	if (happened.connected)
		on_event(ep, FI_CONNECTED, NULL, 0);
	if (happened.error)
		on_event_error(ep, happened.error);
	if (happened.shut_down)
		on_event(ep, FI_SHUTDOWN, NULL, 0);
}

/* TCP's own connection stands as soon as somebody listens, whether a program there looks at it or not. */
static int fail_silence(struct ofi_ep *ep, struct vb_error *err)
{
	struct sockaddr_storage sa;
	size_t len = sizeof(sa);
	bool stands = fi_getpeer(ep->ep, &sa, &len) == 0;

	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_TIMEOUT,
				     .operation = "connect to",
				     .object = ep->base.peer,
				     .cause = stands ? "somebody listens there, and does not answer"
						     : "no answer",
				     .hint = stands ? "its program is stopped or busy, or another "
						      "one: check the port"
						    : "check the address, and that no firewall "
						      "drops this port",
			     });
}

int ofi_ep_connect(struct vb__ep *base, const void *data, size_t len, uint64_t deadline_ns,
		   struct vb_error *err)
{
	struct ofi_ep *ep = (struct ofi_ep *)base;
	int rc;

	ofi_guard_begin(ep->info, false);
	rc = fi_connect(ep->ep, ep->info->dest_addr, data, len);
	ep->socket = ofi_guard_end();
	if (rc)
		return ofi_fail(err, rc, "fi_connect", base->peer);
	base->state = VB__EP_CONNECTING;
	for (;;) {
		ofi_events(ep);
		if (base->state == VB__EP_UP)
			return 0;
		if (base->state == VB__EP_DOWN)
			return vb__fail_again(err, &base->down);
		if (vb__now_ns() >= deadline_ns)
			return fail_silence(ep, err);
		vb__waiter_sleep(base->wait_fd, deadline_ns);
		vb__waiter_check(&ep->waiter, VB__READY_TICK | VB__READY_WAKE);
	}
}

/* The request tells who it was, also of one that has gone meanwhile. */
static void name_peer(struct vb__ep *ep, const struct fi_info *info)
{
	const struct sockaddr *sa = info->dest_addr;
	struct vb__address address;

	if (!sa || (sa->sa_family != AF_INET && sa->sa_family != AF_INET6))
		return;
	vb__address_from(&address, sa);
	snprintf(ep->peer, sizeof(ep->peer), "%s", address.text);
}

int ofi_ep_accept_open(struct vb__request *base, const struct vb__ep_attr *attr, struct vb__ep **ep,
		       struct vb_error *err)
{
	struct ofi_request *request = (struct ofi_request *)base;
	struct fi_info *info = request->info;
	struct fid_pep *pep = request->pep;
	int rc;

	free(request);
	rc = make(info, pep, attr, ep, err);
	if (rc == 0)
		name_peer(*ep, ((struct ofi_ep *)*ep)->info);
	return rc;
}

int ofi_ep_accept(struct vb__ep *base, const void *data, size_t len, struct vb_error *err)
{
	struct ofi_ep *ep = (struct ofi_ep *)base;
	int rc;

	ofi_liveness_start(ep); /* while the peer is still there to be asked for its address */
	ofi_lock(ep);
	rc = fi_accept(ep->ep, data, len);
	ofi_unlock(ep);
	if (rc)
		return ofi_fail(err, rc, "fi_accept", base->peer);
	ep->pep = NULL;
	base->state = VB__EP_CONNECTING;
	return 0;
}

void ofi_ep_disconnect(struct vb__ep *base)
{
	struct ofi_ep *ep = (struct ofi_ep *)base;

	ofi_lock(ep);
	if (ep->ep && (base->state == VB__EP_UP || base->state == VB__EP_DOWN))
		ofi_note(&ep->log, fi_shutdown(ep->ep, 0), "fi_shutdown", base->peer,
			 "the peer may have been faster");
	ofi_unlock(ep);
	if (base->state == VB__EP_UP)
		vb__ep_down_closed(base);
}

static void close_own(struct ofi_ep *ep)
{
	if (ep->share.pool)
		return;
	ofi_close(&ep->log, ep->cq ? &ep->cq->fid : NULL, "completion queue");
	ofi_close(&ep->log, ep->domain ? &ep->domain->fid : NULL, "domain");
	ofi_close(&ep->log, ep->eq ? &ep->eq->fid : NULL, "event queue");
	ofi_close(&ep->log, ep->fabric ? &ep->fabric->fid : NULL, "fabric");
}

/*
 * An endpoint owns the socket of its request, so that the peer hears no words. But the tcp provider still remembers the
 * request, until it is accepted or rejected. So it is known of since 1.17; others may have forgotten it by then.
 */
static bool must_be_forgotten(const struct ofi_ep *ep)
{
	return strcmp(ep->info->fabric_attr->prov_name, "tcp") == 0 &&
	       ofi_library.version() >= FI_VERSION(1, 17);
}

void ofi_ep_close(struct vb__ep *base)
{
	struct ofi_ep *ep = (struct ofi_ep *)base;

	ofi_lock(ep);
	if (ep->pep && (!ep->ep || must_be_forgotten(ep)))
		ofi_turn_away(&ep->log, ep->pep, ep->info, &base->refusal);
	ofi_close(&ep->log, ep->ep ? &ep->ep->fid : NULL, "endpoint");
	if (ep->share.pool)
		ofi_pool_leave(ep);
	ofi_unlock(ep);
	while (base->mrs)
		vb__mr_close(base->mrs);
	close_own(ep);
	ofi_pool_free_share(&ep->share);
	ofi_library.freeinfo(ep->info);
	vb__waiter_close(&ep->waiter);
	free(ep);
}
