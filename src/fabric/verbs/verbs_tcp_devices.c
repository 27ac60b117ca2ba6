/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The devices that a listener for wire-ups by TCP keeps open: so that a crowd
 * does not make us open them again and again, and so that what they have to
 * tell is heard while there is no connection that would hear it.
 */
#include <errno.h>
#include <string.h>

#include "fabric/verbs/verbs_tcp.h"

static int fail_no_device(struct vb_error *err, const struct vb_error *why)
{
	if (why->code)
		return vb__fail_again(err, why);
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_NO_DEVICE,
				     .operation = "listen for",
				     .object = "wire-ups by TCP",
				     .cause = "no RDMA device here can be wired up so: iWARP "
					      "knows rdma_cm only",
				     .hint = "see `rdma link`",
			     });
}

static void leave(struct verbs_pep *pep, struct verbs_watcher *watcher)
{
	if (!watcher->context)
		return;
	vb__waiter_remove(&pep->waiter, watcher->context->async_fd);
	verbs_unwatch(watcher);
}

static int watch(struct verbs_pep *pep, struct verbs_watcher *watcher, struct ibv_context *context,
		 struct vb_error *err)
{
	int rc;

	*watcher = (struct verbs_watcher){
		.device = ibv_get_device_name(context->device),
		.log = &pep->log,
	};
	rc = verbs_watch(watcher, context, err);
	if (rc == 0)
		rc = vb__waiter_add(&pep->waiter, context->async_fd, VERBS_PEP_DEVICE, err);
	if (rc)
		verbs_unwatch(watcher);
	return rc;
}

static int add(struct verbs_tcp_devices *devices, struct verbs_pep *pep, struct ibv_device *device,
	       struct vb_error *err)
{
	struct ibv_context **context = &devices->contexts[devices->count];
	int rc = verbs_device_open(device, context, err);

	if (rc)
		return rc;
	rc = watch(pep, &devices->watchers[devices->count], *context, err);
	if (rc)
		verbs_device_release(*context, &pep->log);
	else
		devices->count++;
	return rc;
}

static bool is_wanted(const struct verbs_pep *pep, struct ibv_device *device)
{
	return device->transport_type != IBV_TRANSPORT_IWARP &&
	       (!pep->only_device[0] || !strcmp(pep->only_device, ibv_get_device_name(device)));
}

int verbs_tcp_devices_open(struct verbs_tcp_devices *devices, struct verbs_pep *pep,
			   struct vb_error *err)
{
	struct vb_error why = { .code = VB_OK };
	struct ibv_device **list;
	int n = 0;

	errno = 0;
	list = ibv_get_device_list(&n);
	if (!list)
		return verbs_fail(err, errno ? errno : ENODEV, "ibv_get_device_list", NULL);
	for (int i = 0; i < n && devices->count < VERBS_TCP_DEVICES_MAX; i++)
		if (is_wanted(pep, list[i]))
			add(devices, pep, list[i], &why);
	ibv_free_device_list(list);
	return devices->count ? 0 : fail_no_device(err, &why);
}

/* A device that fails so is gone: its descriptor would be readable for ever. */
void verbs_tcp_devices_look_after(struct verbs_tcp_devices *devices, struct verbs_pep *pep)
{
	for (unsigned i = 0; i < devices->count; i++) {
		struct verbs_watcher *watcher = &devices->watchers[i];
		int rc = watcher->context ? verbs_take_device_events(watcher->context) : 0;

		if (!rc)
			continue;
		leave(pep, watcher);
		vb__log(&pep->log, VB_LOG_WARNING, "%s: it has nothing to tell any more: %s",
			watcher->device, strerror(rc));
	}
}

void verbs_tcp_devices_close(struct verbs_tcp_devices *devices, struct verbs_pep *pep)
{
	while (devices->count) {
		leave(pep, &devices->watchers[--devices->count]);
		verbs_device_release(devices->contexts[devices->count], &pep->log);
	}
}
