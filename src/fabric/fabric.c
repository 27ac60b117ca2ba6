/* SPDX-License-Identifier: Apache-2.0 */
/* The common books of all fabrics: who is built in, what is outstanding, which memory belongs where. */
#include "fabric/fabric.h"

#include <errno.h>
#include <poll.h>

#include "core/clock.h"

const struct vb__fabric *const vb__fabrics[] = {
#ifdef VB_HAVE_VERBS
	&vb__verbs_fabric,
#endif
#ifdef VB_HAVE_OFI
	&vb__ofi_fabric,
#endif
	NULL,
};

int vb__fabric_fail_missing(enum vb_fabric fabric, const char *operation, struct vb_error *err)
{
	bool verbs = fabric == VB_FABRIC_VERBS;

	return vb__fail(
		err, &(struct vb__failure){
			     .code = VB_ERR_UNSUPPORTED,
			     .operation = operation,
			     .cause = verbs ? "the verbs fabric was not built into this library"
					    : "the ofi fabric was not built into this library",
			     .hint = verbs ? "use ofi, or build with libibverbs and librdmacm "
					     "(-Dverbs=enabled)"
					   : "use verbs, or build with libfabric (-Dofi=enabled)",
		     });
}

static int check_type(const struct vb__fabric *fabric, const struct vb__ep_attr *attr,
		      const char *operation, struct vb_error *err)
{
	if (fabric->qp_types & 1u << attr->qp_type)
		return 0;
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_UNSUPPORTED,
				     .operation = operation,
				     .object = fabric->name,
				     .cause = "it has no unreliable connections (UC)",
				     .hint = "use RC; UC is for the verbs fabric, wired up by TCP",
			     });
}

int vb__ep_open(const struct vb__fabric *fabric, const struct vb__ep_attr *attr,
		const struct vb__address *peer, uint64_t deadline_ns, struct vb__ep **ep,
		struct vb_error *err)
{
	int rc = check_type(fabric, attr, "connect over", err);

	if (rc)
		return rc;
	return fabric->open(attr, peer, deadline_ns, ep, err);
}

int vb__ep_connect(struct vb__ep *ep, const void *data, size_t len, uint64_t deadline_ns,
		   struct vb_error *err)
{
	return ep->fabric->connect(ep, data, len, deadline_ns, err);
}

int vb__pep_open(const struct vb__fabric *fabric, const struct vb__settings *settings,
		 const struct vb__address *at, struct vb__pep **pep, struct vb_error *err)
{
	return fabric->listen(settings, at, pep, err);
}

int vb__pep_next(struct vb__pep *pep, struct vb__request **request, struct vb_error *err)
{
	return pep->fabric->next_request(pep, request, err);
}

int vb__pep_arm(struct vb__pep *pep)
{
	return pep->fabric->pep_arm(pep);
}

void vb__pep_close(struct vb__pep *pep)
{
	if (pep)
		pep->fabric->pep_close(pep);
}

int vb__ep_accept_open(struct vb__request *request, const struct vb__ep_attr *attr,
		       struct vb__ep **ep, struct vb_error *err)
{
	int rc = check_type(request->fabric, attr, "accept over", err);

	if (rc) {
		vb__request_reject(request, attr->refusal.data, attr->refusal.len);
		return rc;
	}
	return request->fabric->accept_open(request, attr, ep, err);
}

int vb__ep_accept(struct vb__ep *ep, const void *data, size_t len, struct vb_error *err)
{
	int rc = ep->fabric->accept(ep, data, len, err);

	if (rc == 0)
		ep->refusal = (struct vb__private_data){ .len = 0 };
	return rc;
}

void vb__request_reject(struct vb__request *request, const void *data, size_t len)
{
	request->fabric->reject(request, data, len);
}

int vb__mr_open(struct vb__ep *ep, void *addr, size_t len, unsigned access, struct vb__mr **mr,
		struct vb_error *err)
{
	int rc = ep->fabric->register_memory(ep, addr, len, access, mr, err);

	if (rc)
		return rc;
	(*mr)->ep = ep;
	(*mr)->addr = addr;
	(*mr)->len = len;
	(*mr)->next = ep->mrs;
	ep->mrs = *mr;
	ep->registrations++;
	return 0;
}

void vb__mr_close(struct vb__mr *mr)
{
	struct vb__mr **at;

	if (!mr)
		return;
	for (at = &mr->ep->mrs; *at != mr; at = &(*at)->next)
		;
	*at = mr->next;
	mr->ep->fabric->deregister(mr);
}

int vb__window_open(struct vb__ep *ep, struct vb__window **window, struct vb_error *err)
{
	int rc = ep->fabric->window_open(ep, window, err);

	if (rc)
		return rc;
	(*window)->ep = ep;
	(*window)->next = ep->windows;
	ep->windows = *window;
	return 0;
}

void vb__window_close(struct vb__window *window)
{
	struct vb__window **at;

	if (!window)
		return;
	for (at = &window->ep->windows; *at != window; at = &(*at)->next)
		;
	*at = window->next;
	window->ep->fabric->window_close(window);
}

int vb__ep_post(struct vb__ep *ep, const struct vb__op *op, struct vb_error *err)
{
	int rc = ep->fabric->post(ep, op, err);

	if (rc == 0)
		ep->outstanding++;
	return rc;
}

int vb__ep_poll(struct vb__ep *ep, struct vb__completion *done, int max)
{
	int n = ep->fabric->poll(ep, done, max);

	/* What was given up on may still come. */
	for (int i = 0; i < n; i++)
		ep->outstanding -= ep->outstanding && !(ep->pool && done[i].kind == VB__OP_RECV);
	return n;
}

int vb__ep_arm(struct vb__ep *ep)
{
	return ep->fabric->arm(ep, false);
}

int vb__ep_arm_for_arrivals(struct vb__ep *ep)
{
	return ep->fabric->arm(ep, true);
}

void vb__ep_sleep(const struct vb__ep *ep, uint64_t deadline_ns)
{
	struct pollfd fds[] = {
		{ .fd = ep->wait_fd, .events = POLLIN },
		{ .fd = ep->pool ? ep->pool->wait_fd : -1, .events = POLLIN },
	};

	poll(fds, 2, deadline_ns == UINT64_MAX ? -1 : vb__ms_left(deadline_ns));
}

int vb__pool_for(struct vb__request *request, const struct vb__pool_attr *attr,
		 struct vb__pool **list, struct vb__pool **pool, struct vb_error *err)
{
	const struct vb__fabric *fabric = request->fabric;
	int rc;

	if (!fabric->pool_open)
		return vb__fail(err, &(struct vb__failure){ .code = VB_ERR_UNSUPPORTED,
							    .operation = "share receives" });
	for (*pool = *list; *pool; *pool = (*pool)->next)
		if ((*pool)->fabric == fabric && fabric->pool_serves(*pool, request, attr->sends))
			return 0;
	rc = fabric->pool_open(request, attr, pool, err);
	if (rc)
		return rc;
	(*pool)->fabric = fabric;
	(*pool)->next = *list;
	*list = *pool;
	return 0;
}

void vb__pool_look_after(struct vb__pool *pool)
{
	pool->fabric->pool_look_after(pool);
}

void vb__pool_give_back(struct vb__pool *pool, struct vb__arrival *arrival)
{
	pool->fabric->pool_give_back(pool, arrival);
}

void vb__pools_close(struct vb__pool **list)
{
	struct vb__pool *pool;

	while ((pool = *list)) {
		*list = pool->next;
		pool->fabric->pool_close(pool);
	}
}

void vb__ep_disconnect(struct vb__ep *ep)
{
	ep->fabric->disconnect(ep);
}

bool vb__ep_is_behind(const struct vb__ep *ep)
{
	return ep->fabric->is_behind && ep->fabric->is_behind(ep);
}

void vb__ep_wake(struct vb__ep *ep)
{
	ep->fabric->wake(ep);
}

void vb__ep_close(struct vb__ep *ep)
{
	if (ep)
		ep->fabric->close(ep);
}

void vb__ep_up(struct vb__ep *ep)
{
	if (ep->state == VB__EP_DOWN)
		return;
	ep->state = VB__EP_UP;
	ep->was_up = true;
}

void vb__ep_down(struct vb__ep *ep, const struct vb__failure *cause)
{
	vb__fail(&ep->down, cause);
	ep->state = VB__EP_DOWN;
}

bool vb__errno_is_silence(int errnum)
{
	return errnum == ETIMEDOUT || errnum == EHOSTUNREACH || errnum == ENETUNREACH;
}

void vb__ep_down_silent(struct vb__ep *ep)
{
	vb__ep_down(ep,
		    &(struct vb__failure){
			    .code = VB_ERR_LOST,
			    .native_kind = VB_NATIVE_ERRNO,
			    .native = ETIMEDOUT,
			    .operation = "connection to",
			    .object = ep->peer,
			    .cause = "the peer's host does not answer any more",
			    .hint = "check the peer, the link to it, and that the path takes large "
				    "packets (compare the MTU at both ends)",
		    });
}

void vb__ep_down_gone(struct vb__ep *ep)
{
	vb__ep_down(ep, &(struct vb__failure){
				.code = VB_ERR_LOST,
				.operation = "connection to",
				.object = ep->peer,
				.cause = "the peer ended it without a farewell",
				.hint = "look at the peer: it was killed or crashed",
			});
}

void vb__ep_down_closed(struct vb__ep *ep)
{
	vb__ep_down(ep, &(struct vb__failure){
				.code = VB_ERR_CLOSED,
				.operation = "connection to",
				.object = ep->peer,
				.cause = "closed on this side",
			});
}
