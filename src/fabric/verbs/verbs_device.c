/* SPDX-License-Identifier: Apache-2.0 */
/*
 * librdmacm opens each device once per process, so all endpoints on it share
 * one queue of asynchronous events. Whoever finds events there takes them all
 * and passes each to the endpoints that it concerns, waking them.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>

#include "fabric/verbs/verbs.h"

struct verbs_device {
	struct verbs_device *next;
	struct ibv_context *context;
	struct verbs_ep *endpoints;
};

static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;
static struct verbs_device *devices;

/* Reading its events must never block: it is done with the lock held. */
static struct verbs_device *find_or_add(struct ibv_context *context, struct vb_error *err)
{
	struct verbs_device *device;

	for (device = devices; device; device = device->next)
		if (device->context == context)
			return device;
	device = calloc(1, sizeof(*device));
	if (!device) {
		verbs_fail(err, ENOMEM, "calloc", NULL);
		return NULL;
	}
	if (fcntl(context->async_fd, F_SETFL, fcntl(context->async_fd, F_GETFL) | O_NONBLOCK) !=
	    0) {
		verbs_fail(err, errno, "fcntl", ibv_get_device_name(context->device));
		free(device);
		return NULL;
	}
	device->context = context;
	device->next = devices;
	devices = device;
	return device;
}

int verbs_device_attach(struct verbs_ep *ep, struct vb_error *err)
{
	struct vb_error why = { .code = VB_OK };

	pthread_mutex_lock(&devices_lock);
	ep->device = find_or_add(ep->id->verbs, &why);
	if (ep->device) {
		ep->next_on_device = ep->device->endpoints;
		ep->device->endpoints = ep;
	}
	pthread_mutex_unlock(&devices_lock);
	return ep->device ? 0 : vb__fail_again(err, &why);
}

void verbs_device_detach(struct verbs_ep *ep)
{
	struct verbs_device *device = ep->device, **at;
	struct verbs_ep **link;

	if (!device)
		return;
	pthread_mutex_lock(&devices_lock);
	for (link = &device->endpoints; *link != ep; link = &(*link)->next_on_device)
		;
	*link = ep->next_on_device;
	if (!device->endpoints) {
		for (at = &devices; *at != device; at = &(*at)->next)
			;
		*at = device->next;
		free(device);
	}
	pthread_mutex_unlock(&devices_lock);
	ep->device = NULL;
}

static bool concerns(const struct ibv_async_event *event, const struct verbs_ep *ep)
{
	switch (event->event_type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return event->element.qp == ep->id->qp;
	case IBV_EVENT_CQ_ERR:
		return event->element.cq == ep->cq;
	case IBV_EVENT_SRQ_ERR:
		return ep->share.pool && event->element.srq == ep->share.pool->srq;
	default:
		return true;
	}
}

static bool is_fatal(enum ibv_event_type type)
{
	return type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_REQ_ERR ||
	       type == IBV_EVENT_QP_ACCESS_ERR || type == IBV_EVENT_CQ_ERR ||
	       type == IBV_EVENT_SRQ_ERR || type == IBV_EVENT_DEVICE_FATAL;
}

static void pass_on(struct verbs_device *device, const struct ibv_async_event *event)
{
	struct verbs_ep *ep;

	for (ep = device->endpoints; ep; ep = ep->next_on_device) {
		if (!concerns(event, ep))
			continue;
		if (event->event_type == IBV_EVENT_COMM_EST) {
			rdma_notify(ep->id, IBV_EVENT_COMM_EST);
			continue;
		}
		vb__log(&ep->log, VB_LOG_WARNING, "%s: %s", ep->base.device,
			ibv_event_type_str(event->event_type));
		if (!is_fatal(event->event_type))
			continue;
		atomic_store(&ep->async_event, (int)event->event_type);
		vb__waiter_wake(&ep->waiter);
	}
}

/* Lock held. Returns the errno that ended it. */
static int take_all(struct verbs_device *device)
{
	struct ibv_async_event event;

	while (ibv_get_async_event(device->context, &event) == 0) {
		pass_on(device, &event);
		ibv_ack_async_event(&event);
	}
	return errno;
}

void verbs_device_events(struct verbs_ep *ep)
{
	int errnum;

	pthread_mutex_lock(&devices_lock);
	errnum = take_all(ep->device);
	pthread_mutex_unlock(&devices_lock);
	if (errnum != EAGAIN && errnum != EINTR)
		verbs_break(ep, errnum, "ibv_get_async_event");
}

int verbs_device_events_of(struct ibv_context *context)
{
	struct verbs_device *device;
	int errnum = EAGAIN;

	pthread_mutex_lock(&devices_lock);
	for (device = devices; device && device->context != context; device = device->next)
		;
	if (device)
		errnum = take_all(device);
	pthread_mutex_unlock(&devices_lock);
	return errnum == EINTR || errnum == EAGAIN ? 0 : errnum;
}
