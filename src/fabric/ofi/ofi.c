/* SPDX-License-Identifier: Apache-2.0 */
/* The libfabric backend: its table, its errors, and the choice of a provider. */
#include "fabric/ofi/ofi.h"
#include "fabric/ofi/ofi_guard.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_PROVIDER "tcp"

enum vb_err ofi_code(int fi_errnum)
{
	/* The low numbers of libfabric are those of errno; what differs is mapped by hand. */
	switch (fi_errnum) {
	case FI_ECANCELED:
		return VB_ERR_FLUSHED;
	case FI_ENODATA:
		return VB_ERR_NO_DEVICE;
	case FI_ENOPROTOOPT:
		return VB_ERR_PROTOCOL;
	case FI_ETRUNC:
	case FI_ETOOSMALL:
		return VB_ERR_TOO_BIG;
	default:
		return vb__err_from_errno(fi_errnum);
	}
}

static const char *hint_for(int fi_errnum)
{
	switch (ofi_code(fi_errnum)) {
	case VB_ERR_REFUSED:
		return "nobody listens there: start the receiving side first and check the port";
	case VB_ERR_IN_USE:
		return "another program listens on this port: choose another one, or find it "
		       "with `ss -tlnp`";
	case VB_ERR_UNREACHABLE:
		return "check the address and the route (`ip route get ADDRESS`)";
	case VB_ERR_LOST:
		return "look at the peer: it was killed or crashed";
	case VB_ERR_ACCESS:
		return "ports under 1024 need root: choose a higher one";
	default:
		return vb__errno_hint(fi_errnum); /* the low numbers, again */
	}
}

int ofi_fail(struct vb_error *err, long result, const char *operation, const char *object)
{
	int fi_errnum = (int)(result < 0 ? -result : result);
	enum vb_err code = ofi_code(fi_errnum);

	return vb__fail(err, &(struct vb__failure){
				     .code = code,
				     .native_kind = VB_NATIVE_FI,
				     .native = fi_errnum,
				     .operation = operation,
				     .object = object,
				     .cause = ofi_library.strerror(fi_errnum),
				     .hint = hint_for(fi_errnum),
			     });
}

static bool note(const struct vb__log *log, enum vb_log_level level, long result, const char *call,
		 const char *object, const char *then)
{
	int fi_errnum = (int)(result < 0 ? -result : result);

	if (fi_errnum)
		vb__log(log, level, "%s on %s: %s; %s", call, object,
			ofi_library.strerror(fi_errnum), then);
	return fi_errnum;
}

bool ofi_note(const struct vb__log *log, long result, const char *call, const char *object,
	      const char *then)
{
	return note(log, VB_LOG_DEBUG, result, call, object, then);
}

void ofi_close(const struct vb__log *log, struct fid *fid, const char *object)
{
	if (fid)
		note(log, VB_LOG_WARNING, fi_close(fid), "fi_close", object,
		     "it is left to the end of the process");
}

static int no_provider(struct vb_error *err, int result, const char *provider,
		       const struct vb__address *address)
{
	char object[160];

	snprintf(object, sizeof(object), "provider %s for %s", provider, address->text);
	result = ofi_fail(err, result, "fi_getinfo", object);
	vb__error_hint(err, "see `fi_info -p %s -t FI_EP_MSG` for what libfabric offers here",
		       provider);
	return result;
}

static int copy_address(const struct vb__address *address, void **to, size_t *len)
{
	*to = malloc(address->len);
	if (!*to)
		return -FI_ENOMEM;
	memcpy(*to, &address->sa, address->len);
	*len = address->len;
	return 0;
}

/*
 * Providers are asked for the way to a peer. For listening they are asked for
 * nothing, because they do not know the wildcard address; it is put in afterwards.
 */
static int ask(const struct vb__address *peer, const struct vb__address *source,
	       struct fi_info *hints, struct fi_info **info)
{
	const struct vb__address *address = peer ? peer : source;
	int rc = 0;

	hints->addr_format = address->sa.ss_family == AF_INET6 ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
	if (peer)
		rc = copy_address(peer, &hints->dest_addr, &hints->dest_addrlen);
	if (rc == 0 && peer && source)
		rc = copy_address(source, &hints->src_addr, &hints->src_addrlen);
	if (rc == 0)
		rc = ofi_library.getinfo(VB__OFI_API, NULL, NULL, 0, hints, info);
	if (rc || peer)
		return rc;
	free((*info)->src_addr);
	(*info)->src_addr = NULL;
	rc = copy_address(source, &(*info)->src_addr, &(*info)->src_addrlen);
	if (rc) {
		ofi_library.freeinfo(*info);
		*info = NULL; /* who asked frees what there is, also on failure */
	}
	return rc;
}

int ofi_info_get(const struct vb__settings *settings, const struct vb__address *peer,
		 const struct vb__address *source, struct fi_info **info, struct vb_error *err)
{
	const char *provider = settings->device[0] ? settings->device : DEFAULT_PROVIDER;
	struct fi_info *hints;
	int result = ofi_library_load(err);

	if (result)
		return result;
	result = -FI_ENOMEM;
	hints = ofi_library.dupinfo(NULL);
	if (hints) {
		hints->ep_attr->type = FI_EP_MSG;
		hints->caps = FI_MSG | FI_RMA;
		hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
					      FI_MR_PROV_KEY;
		hints->domain_attr->threading = FI_THREAD_DOMAIN;
		hints->fabric_attr->prov_name = strdup(provider);
		if (hints->fabric_attr->prov_name) /* else any provider would do */
			result = ask(peer, source, hints, info);
		ofi_library.freeinfo(hints);
	}
	return result ? no_provider(err, result, provider, peer ? peer : source) : 0;
}

static pthread_once_t prepared = PTHREAD_ONCE_INIT;

/* The first question has libfabric start its providers. */
static void ask_for_the_first_time(void)
{
	struct fi_info *hints = ofi_library_load(NULL) ? NULL : ofi_library.dupinfo(NULL);
	struct fi_info *info;

	if (!hints)
		return;
	hints->fabric_attr->prov_name = strdup(DEFAULT_PROVIDER);
	if (ofi_library.getinfo(VB__OFI_API, NULL, NULL, 0, hints, &info) == 0)
		ofi_library.freeinfo(info);
	ofi_library.freeinfo(hints);
}

void ofi_prepare(void)
{
	pthread_once(&prepared, ask_for_the_first_time);
}

int ofi_eq_open(struct fid_fabric *fabric, struct fid_eq **eq, int *fd, struct vb_error *err)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_FD };
	int result = fi_eq_open(fabric, &attr, eq, NULL);

	if (result)
		return ofi_fail(err, result, "fi_eq_open", NULL);
	result = fi_control(&(*eq)->fid, FI_GETWAIT, fd);
	return result ? ofi_fail(err, result, "fi_control", "event queue") : 0;
}

static void ofi_wake(struct vb__ep *base)
{
	vb__waiter_wake(&((struct ofi_ep *)base)->waiter);
}

static bool ofi_is_behind(const struct vb__ep *ep)
{
	return ofi_guard_is_behind(((const struct ofi_ep *)ep)->socket);
}

const struct vb__fabric vb__ofi_fabric = {
	.name = "ofi",
	.id = VB_FABRIC_OFI,
	.qp_types = 1u << VB__QP_RC,
	.prepare = ofi_prepare,
	.open = ofi_ep_open,
	.connect = ofi_ep_connect,
	.close = ofi_ep_close,
	.listen = ofi_listen,
	.next_request = ofi_next_request,
	.pep_arm = ofi_pep_arm,
	.accept_open = ofi_ep_accept_open,
	.accept = ofi_ep_accept,
	.reject = ofi_reject,
	.pep_close = ofi_pep_close,
	.register_memory = ofi_register,
	.deregister = ofi_deregister,
	.post = ofi_post,
	.poll = ofi_poll,
	.arm = ofi_arm,
	.disconnect = ofi_ep_disconnect,
	.wake = ofi_wake,
	.is_behind = ofi_is_behind,
	.pool_open = ofi_pool_open,
	.pool_serves = ofi_pool_serves,
	.pool_look_after = ofi_pool_look_after,
	.pool_give_back = ofi_pool_give_back,
	.pool_close = ofi_pool_close,
};
