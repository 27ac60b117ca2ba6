/* SPDX-License-Identifier: Apache-2.0 */
/* Listening in every way that peers may be wired up, and the table of the verbs backend. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/verbs/verbs_tcp.h"

static const struct {
	const struct verbs_wireup *wireup;
	uint32_t ready; /* the listener's waiter tells */
} wireups[] = { { &verbs_cm, VERBS_PEP_CM }, { &verbs_tcp, VERBS_PEP_TCP } };

#define WIREUPS (sizeof(wireups) / sizeof(wireups[0]))

/* Or NULL, and no device in it. */
static struct ibv_device **list_devices(const struct verbs_pep *pep, int *n)
{
	struct ibv_device **list = ibv_get_device_list(n);

	if (!list) {
		verbs_note(&pep->log, errno ? errno : ENODEV, "ibv_get_device_list", "listener",
			   "it does not know which devices it has");
		*n = 0;
	}
	return list;
}

/* iWARP in software takes its ports from the kernel's TCP. */
static bool any_iwarp(const struct verbs_pep *pep)
{
	int n = 0;
	struct ibv_device **list = list_devices(pep, &n);
	bool found = false;

	for (int i = 0; i < n; i++)
		found |= list[i]->transport_type == IBV_TRANSPORT_IWARP;
	if (list)
		ibv_free_device_list(list);
	return found;
}

static void name_devices(struct verbs_pep *pep)
{
	char *to = pep->base.device;
	size_t at = 0, size = sizeof(pep->base.device);
	int n = 0;
	struct ibv_device **list = list_devices(pep, &n);

	for (int i = 0; i < n && at < size; i++)
		at += (size_t)snprintf(to + at, size - at, "%s%s", i ? ", " : "",
				       ibv_get_device_name(list[i]));
	if (list)
		ibv_free_device_list(list);
}

static void add_words(struct verbs_pep *pep, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void add_words(struct verbs_pep *pep, const char *format, ...)
{
	size_t at = strlen(pep->base.device), room = sizeof(pep->base.device) - at;
	va_list args;

	va_start(args, format);
	vsnprintf(pep->base.device + at, room, format, args);
	va_end(args);
}

/* Whoever is not asked for by name can be done without, if it alone is what this machine has not. */
static int listen_by_cm(struct verbs_pep *pep, const struct vb__settings *settings,
			const struct vb__address *at, struct vb_error *err)
{
	struct vb_error why = { .code = VB_OK };

	if (settings->wireup == VB_WIREUP_TCP)
		return 0;
	if (settings->wireup == VB_WIREUP_CM || verbs_preflight("", true, &why) == 0 ||
	    verbs_preflight("", false, NULL) != 0)
		return verbs_cm.listen(pep, settings, at, err);
	add_words(pep, " (%s: %s)", why.object, why.cause);
	return 0;
}

/* Beside rdma_cm it is an offer, as long as the port was not ours to choose. */
static int listen_by_tcp(struct verbs_pep *pep, const struct vb__settings *settings,
			 const struct vb__address *at, struct vb_error *err)
{
	struct vb_error why = { .code = VB_OK };
	int rc;

	if (settings->wireup == VB_WIREUP_CM)
		return 0;
	rc = verbs_tcp.listen(pep, settings, at, &why);
	if (rc == 0) {
		add_words(pep, " (wire-up by TCP: port %u)", verbs_tcp_port(pep->base.port));
		return 0;
	}
	if (!pep->cm.channel || (rc == VB_ERR_IN_USE && !vb__address_port(at)))
		return vb__fail_again(err, &why);
	vb__log(&pep->log, VB_LOG_INFO, "no wire-up by TCP: %s: %s", why.object, why.cause);
	return 0;
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
	pep->waiter = VB__WAITER_NONE;
	rc = vb__waiter_open(&pep->waiter, 0, err);
	name_devices(pep);
	if (rc == 0)
		rc = listen_by_cm(pep, settings, at, err);
	if (rc == 0)
		rc = listen_by_tcp(pep, settings, at, err);
	if (rc) {
		verbs_pep_close(&pep->base);
		return rc;
	}
	pep->base.wait_fd = pep->waiter.epoll;
	pep->base.shares_tcp_ports = any_iwarp(pep);
	*out = &pep->base;
	return 0;
}

int verbs_next_request(struct vb__pep *base, struct vb__request **request, struct vb_error *err)
{
	struct verbs_pep *pep = (struct verbs_pep *)base;
	uint32_t ready = vb__waiter_check(&pep->waiter, 0);
	int rc = 0;

	if (ready & VERBS_PEP_DEVICE)
		verbs_tcp_look_after_devices(pep);
	for (unsigned i = 0; i < WIREUPS && rc == 0; i++)
		if (ready & wireups[i].ready)
			rc = wireups[i].wireup->next_request(pep, request, err);
	return rc;
}

void verbs_reject(struct vb__request *base, const void *data, size_t len)
{
	struct verbs_request *request = (struct verbs_request *)base;

	request->wireup->reject(request, data, len);
}

void verbs_pep_close(struct vb__pep *base)
{
	struct verbs_pep *pep = (struct verbs_pep *)base;

	for (unsigned i = 0; i < WIREUPS; i++)
		wireups[i].wireup->unlisten(pep);
	vb__waiter_close(&pep->waiter);
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
	.qp_types = 1u << VB__QP_RC | 1u << VB__QP_UC,
	.second_wireup = verbs_second_wireup,
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
