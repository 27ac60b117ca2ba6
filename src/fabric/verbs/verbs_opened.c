/* SPDX-License-Identifier: Apache-2.0 */
/* Devices that are opened without librdmacm: each once per process, as long as somebody needs it. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/verbs/verbs.h"

struct opened {
	struct opened *next;
	struct ibv_context *context;
	unsigned holds;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct opened *all;

static struct opened **find(const struct ibv_context *context)
{
	struct opened **at = &all;

	while (*at && (*at)->context != context)
		at = &(*at)->next;
	return at;
}

static struct opened *find_named(const char *name)
{
	struct opened *o = all;

	while (o && strcmp(ibv_get_device_name(o->context->device), name) != 0)
		o = o->next;
	return o;
}

static struct opened *add(struct ibv_device *device, struct vb_error *err)
{
	struct opened *o = calloc(1, sizeof(*o));

	if (!o) {
		verbs_fail(err, ENOMEM, "calloc", NULL);
		return NULL;
	}
	errno = 0;
	o->context = ibv_open_device(device);
	if (!o->context) {
		verbs_fail(err, errno ? errno : EIO, "ibv_open_device",
			   ibv_get_device_name(device));
		free(o);
		return NULL;
	}
	o->next = all;
	all = o;
	return o;
}

int verbs_device_open(struct ibv_device *device, struct ibv_context **context, struct vb_error *err)
{
	struct vb_error why = { .code = VB_OK };
	struct opened *o;

	pthread_mutex_lock(&lock);
	o = find_named(ibv_get_device_name(device));
	if (!o)
		o = add(device, &why);
	if (o) {
		o->holds++;
		*context = o->context;
	}
	pthread_mutex_unlock(&lock);
	return o ? 0 : vb__fail_again(err, &why);
}

/* Listing the devices means reading a directory of the kernel's: not for one that is open. */
static bool share(const char *name, struct ibv_context **context)
{
	struct opened *o;

	pthread_mutex_lock(&lock);
	o = find_named(name);
	if (o) {
		o->holds++;
		*context = o->context;
	}
	pthread_mutex_unlock(&lock);
	return o;
}

static int fail_unlisted(struct vb_error *err, const char *name)
{
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_NO_DEVICE,
				     .operation = "ibv_get_device_list",
				     .object = name,
				     .cause = "libibverbs does not list the device",
				     .hint = "install the library for its driver (Debian: "
					     "ibverbs-providers)",
			     });
}

int verbs_device_open_named(const char *name, struct ibv_context **context, struct vb_error *err)
{
	struct ibv_device **list;
	int n = 0, i = 0, rc;

	if (share(name, context))
		return 0;
	errno = 0;
	list = ibv_get_device_list(&n);
	if (!list)
		return verbs_fail(err, errno ? errno : ENODEV, "ibv_get_device_list", NULL);
	while (i < n && strcmp(ibv_get_device_name(list[i]), name) != 0)
		i++;
	rc = i < n ? verbs_device_open(list[i], context, err) : fail_unlisted(err, name);
	ibv_free_device_list(list);
	return rc;
}

void verbs_device_hold(struct ibv_context *context)
{
	struct opened *o;

	pthread_mutex_lock(&lock);
	o = *find(context);
	if (o)
		o->holds++;
	pthread_mutex_unlock(&lock);
}

void verbs_device_release(struct ibv_context *context, const struct vb__log *log)
{
	struct opened **at, *last = NULL;
	char name[64]; /* the device's own may go with it */

	pthread_mutex_lock(&lock);
	at = find(context);
	if (*at && --(*at)->holds == 0) {
		last = *at;
		*at = last->next;
	}
	pthread_mutex_unlock(&lock);
	if (!last)
		return;
	snprintf(name, sizeof(name), "%s", ibv_get_device_name(context->device));
	VERBS_UNDO(log, name, ibv_close_device, last->context);
	free(last);
}
