/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Datagrams over libfabric's udp provider: the endpoint's life, and the table. The
 * provider tells the sender only if it has been told of it before, and carries no questions;
 * so everything travels in an envelope of ours (wire/datagram.h).
 */
#include "fabric/ofi/ofi_dgram.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define PROVIDER "udp"
#define CACHE_LINE 64u

/* ---- Opening ---- */

static int fail_provider(struct vb_error *err, int result, const char *provider,
			 const struct vb__address *at)
{
	char object[160];

	snprintf(object, sizeof(object), "provider %s for %s", provider, at->text);
	result = ofi_fail(err, result, "fi_getinfo", object);
	vb__error_hint(err,
		       "is it an address of this machine? See `ip addr`, and `fi_info -p %s -t "
		       "FI_EP_DGRAM` for what libfabric offers here",
		       provider);
	return result;
}

static int set_hints(struct fi_info *hints, const char *provider, const struct vb__address *at)
{
	hints->ep_attr->type = FI_EP_DGRAM;
	hints->caps = FI_MSG;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->addr_format = at->sa.ss_family == AF_INET6 ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
	hints->fabric_attr->prov_name = strdup(provider);
	hints->src_addr = malloc(at->len);
	if (!hints->fabric_attr->prov_name || !hints->src_addr)
		return -FI_ENOMEM;
	memcpy(hints->src_addr, &at->sa, at->len);
	hints->src_addrlen = at->len;
	return 0;
}

static int find_provider(struct ofi_dg *dg, const struct vb__settings *settings,
			 struct vb_error *err)
{
	const char *provider = settings->device[0] ? settings->device : PROVIDER;
	struct fi_info *hints;
	int result = ofi_library_load(err);

	if (result)
		return result;
	hints = ofi_library.dupinfo(NULL);
	result = hints ? set_hints(hints, provider, &dg->at) : -FI_ENOMEM;
	if (result == 0)
		result = ofi_library.getinfo(VB__OFI_API, NULL, NULL, 0, hints, &dg->info);
	if (hints)
		ofi_library.freeinfo(hints);
	if (result)
		return fail_provider(err, result, provider, &dg->at);
	snprintf(dg->base.device, sizeof(dg->base.device), "%s", provider);
	return 0;
}

static int open_completions(struct ofi_dg *dg, struct vb_error *err)
{
	struct fi_cq_attr sends = { .size = 16, .format = FI_CQ_FORMAT_CONTEXT };
	struct fi_cq_attr receives = {
		.size = dg->base.receives + 1,
		.format = FI_CQ_FORMAT_MSG,
		.wait_obj = FI_WAIT_FD,
	};
	int fd, rc = fi_cq_open(dg->domain, &sends, &dg->sends, NULL);

	if (rc == 0)
		rc = fi_cq_open(dg->domain, &receives, &dg->receives, NULL);
	if (rc)
		return ofi_fail(err, rc, "fi_cq_open", dg->base.device);
	rc = fi_control(&dg->receives->fid, FI_GETWAIT, &fd);
	if (rc)
		return ofi_fail(err, rc, "fi_control", "completion queue");
	return vb__waiter_add(&dg->waiter, fd, OFI_DGRAM_CQ, err);
}

static int open_objects(struct ofi_dg *dg, struct vb_error *err)
{
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	const char *step = "fi_fabric";
	int rc = ofi_library.fabric(dg->info->fabric_attr, &dg->fabric, NULL);

	if (rc == 0) {
		step = "fi_domain";
		rc = fi_domain(dg->fabric, dg->info, &dg->domain, NULL);
	}
	if (rc == 0) {
		step = "fi_av_open";
		rc = fi_av_open(dg->domain, &av, &dg->av, NULL);
	}
	return rc ? ofi_fail(err, rc, step, dg->base.device) : open_completions(dg, err);
}

static int open_endpoint(struct ofi_dg *dg, struct vb_error *err)
{
	const char *step = "fi_endpoint";
	int rc = fi_endpoint(dg->domain, dg->info, &dg->ep, NULL);

	if (rc == 0) {
		step = "fi_ep_bind";
		rc = fi_ep_bind(dg->ep, &dg->av->fid, 0);
	}
	if (rc == 0)
		rc = fi_ep_bind(dg->ep, &dg->sends->fid, FI_TRANSMIT);
	if (rc == 0)
		rc = fi_ep_bind(dg->ep, &dg->receives->fid, FI_RECV);
	if (rc == 0) {
		step = "fi_enable";
		rc = fi_enable(dg->ep);
	}
	return rc ? ofi_fail(err, rc, step, dg->at.text) : 0;
}

/* What stands on our envelopes. The port may have been chosen only now. */
static int read_name(struct ofi_dg *dg, struct vb_error *err)
{
	struct sockaddr_storage name = { .ss_family = AF_UNSPEC };
	size_t len = sizeof(name);
	int rc = fi_getname(&dg->ep->fid, &name, &len);

	if (rc)
		return ofi_fail(err, rc, "fi_getname", dg->at.text);
	vb__address_from(&dg->at, (struct sockaddr *)&name);
	dg->base.port = vb__address_port(&dg->at);
	snprintf(dg->base.address, sizeof(dg->base.address), "%s", dg->at.text);
	dg->envelope = ofi_dg_envelope(&dg->at);
	return 0;
}

static int open_memory(struct ofi_dg *dg, struct vb_error *err)
{
	size_t bytes = dg->info->ep_attr->max_msg_size;

	dg->slots = dg->base.receives + 2; /* one is shown, and one is for questions and answers */
	dg->stride = (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
	dg->base.max_bytes = bytes - VB__ENVELOPE_BYTES;
	dg->memory = calloc(dg->slots, dg->stride);
	dg->waiting = calloc(dg->slots, sizeof(*dg->waiting));
	if (!dg->memory || !dg->waiting)
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	for (unsigned i = 0; i <= dg->base.receives; i++) {
		int rc = ofi_dg_post_receive(dg, i);

		if (rc)
			return ofi_fail(err, rc, "fi_recv", dg->base.device);
	}
	return 0;
}

static int open_waiter(struct ofi_dg *dg, struct vb_error *err)
{
	int rc = vb__waiter_open(&dg->waiter, 0, err);

	dg->base.wait_fd = dg->waiter.epoll;
	if (rc)
		return rc;
	dg->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (dg->timer < 0)
		return vb__fail_errno(err, errno, "timerfd_create", NULL);
	return vb__waiter_add(&dg->waiter, dg->timer, OFI_DGRAM_TIMER, err);
}

static void ofi_dg_close(struct vb__dg *base)
{
	struct ofi_dg *dg = (struct ofi_dg *)base;

	while (base->peers)
		vb__dg_peer_close(base->peers);
	ofi_close(&dg->log, dg->ep ? &dg->ep->fid : NULL, "endpoint");
	ofi_close(&dg->log, dg->receives ? &dg->receives->fid : NULL, "completion queue");
	ofi_close(&dg->log, dg->sends ? &dg->sends->fid : NULL, "completion queue");
	ofi_close(&dg->log, dg->av ? &dg->av->fid : NULL, "address vector");
	ofi_close(&dg->log, dg->domain ? &dg->domain->fid : NULL, "domain");
	ofi_close(&dg->log, dg->fabric ? &dg->fabric->fid : NULL, "fabric");
	if (dg->info)
		ofi_library.freeinfo(dg->info);
	if (dg->timer >= 0)
		close(dg->timer);
	vb__waiter_close(&dg->waiter);
	free(dg->memory);
	free(dg->waiting);
	free(dg);
}

static int ofi_dg_open(const struct vb__dg_attr *attr, const struct vb__address *at,
		       struct vb__dg **out, struct vb_error *err)
{
	struct ofi_dg *dg = calloc(1, sizeof(*dg));
	int rc;

	if (!dg)
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	dg->base.fabric = &vb__ofi_dgrams;
	dg->at = *at;
	dg->log = attr->settings->log;
	dg->timer = -1;
	dg->waiter = VB__WAITER_NONE;
	rc = open_waiter(dg, err);
	if (rc == 0)
		rc = find_provider(dg, attr->settings, err);
	if (rc == 0) {
		size_t limit = dg->info->rx_attr->size - 1;

		dg->base.receives = attr->receives < limit ? attr->receives : (unsigned)limit;
		rc = open_objects(dg, err);
	}
	if (rc == 0)
		rc = open_endpoint(dg, err);
	if (rc == 0)
		rc = read_name(dg, err);
	if (rc == 0)
		rc = open_memory(dg, err);
	if (rc) {
		ofi_dg_close(&dg->base);
		return rc;
	}
	*out = &dg->base;
	return 0;
}

/* A socket of the provider's hears of groups only at the wildcard address, and has the port for itself then. */
static int ofi_dg_join(struct vb__dg *dg, const struct vb__address *group, uint64_t deadline_ns,
		       struct vb__dg_peer **peer, struct vb_error *err)
{
	char object[VB__ADDRESS_TEXT];

	(void)dg, (void)deadline_ns;
	*peer = NULL;
	snprintf(object, sizeof(object), "%.*s", (int)strcspn(group->text, " "), group->text);
	return vb__fail(err,
			&(struct vb__failure){
				.code = VB_ERR_UNSUPPORTED,
				.operation = "join group",
				.object = object,
				.cause = "there are no groups over libfabric's udp provider that "
					 "two members on one host could join",
				.hint = "use the verbs fabric for groups; without hardware: `rdma "
					"link add rxe0 type rxe netdev INTERFACE`",
			});
}

const struct vb__dgrams vb__ofi_dgrams = {
	.name = "ofi",
	.id = VB_FABRIC_OFI,
	.open = ofi_dg_open,
	.close = ofi_dg_close,
	.resolve = ofi_dg_resolve,
	.join = ofi_dg_join,
	.peer_of = ofi_dg_peer_of,
	.peer_close = ofi_dg_peer_close,
	.send = ofi_dg_send,
	.receive = ofi_dg_receive,
	.give_back = ofi_dg_give_back,
	.arm = ofi_dg_arm,
};
