/* SPDX-License-Identifier: Apache-2.0 */
/* Moving data over libfabric: registration, posting, completions. */
#include <rdma/fi_rma.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "fabric/ofi/ofi.h"

#define KIND_SHIFT 56
#define BATCH 16

static void *context_of(const struct ofi_ep *ep, const struct vb__op *op)
{
	return (void *)(uintptr_t)((uint64_t)op->kind << KIND_SHIFT | ofi_pool_mark(ep) | op->id);
}

static uint64_t access_flags(unsigned access)
{
	uint64_t flags = FI_SEND | FI_RECV | FI_READ | FI_WRITE;

	if (access & VB__ACCESS_REMOTE_READ)
		flags |= FI_REMOTE_READ;
	if (access & VB__ACCESS_REMOTE_WRITE)
		flags |= FI_REMOTE_WRITE;
	return flags;
}

/* In a domain that others are in as well, a key that could be guessed would be theirs, too. */
static uint64_t next_key(struct ofi_ep *ep)
{
	uint64_t key;

	if (ep->share.pool && getrandom(&key, sizeof(key), 0) == sizeof(key))
		return key;
	return ep->next_key++;
}

int ofi_register(struct vb__ep *base, void *addr, size_t len, unsigned access, struct vb__mr **out,
		 struct vb_error *err)
{
	struct ofi_ep *ep = (struct ofi_ep *)base;
	int mode = ep->info->domain_attr->mr_mode;
	struct ofi_mr *mr;
	int rc;

	if (access & VB__ACCESS_REMOTE_ATOMIC)
		return vb__fail(err, &(struct vb__failure){ .code = VB_ERR_UNSUPPORTED,
							    .operation = "atomics",
							    .object = base->device,
							    .cause = "not supported by ofi" });
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return vb__fail_errno(err, FI_ENOMEM, "calloc", NULL);
	ofi_lock(ep);
	rc = fi_mr_reg(ep->domain, addr, len, access_flags(access), 0, next_key(ep), 0, &mr->mr,
		       NULL);
	ofi_unlock(ep);
	if (rc) {
		free(mr);
		return ofi_fail(err, rc, "fi_mr_reg", base->device);
	}
	mr->base.remote_addr = mode & FI_MR_VIRT_ADDR ? (uintptr_t)addr : 0;
	mr->base.remote_key = fi_mr_key(mr->mr);
	*out = &mr->base;
	return 0;
}

void ofi_deregister(struct vb__mr *base)
{
	struct ofi_mr *mr = (struct ofi_mr *)base;
	struct ofi_ep *ep = (struct ofi_ep *)base->ep;

	ofi_lock(ep);
	ofi_close(&ep->log, &mr->mr->fid, "registered memory");
	ofi_unlock(ep);
	free(mr);
}

struct gathered {
	struct iovec iov[VB__SGE_MAX];
	void *desc[VB__SGE_MAX];
	size_t len;
};

static void gather(struct gathered *g, const struct vb__op *op)
{
	g->len = 0;
	for (unsigned i = 0; i < op->sge_count; i++) {
		const struct vb__sge *sge = &op->sge[i];

		g->iov[i].iov_base = sge->addr;
		g->iov[i].iov_len = sge->len;
		g->desc[i] = sge->mr ? fi_mr_desc(((struct ofi_mr *)sge->mr)->mr) : NULL;
		g->len += sge->len;
	}
}

static ssize_t post_message(struct ofi_ep *ep, const struct vb__op *op, struct gathered *g)
{
	struct fi_msg msg = {
		.msg_iov = g->iov,
		.desc = g->desc,
		.iov_count = op->sge_count,
		.context = context_of(ep, op),
	};
	uint64_t flags = FI_COMPLETION;

	if (op->kind == VB__OP_RECV)
		return fi_recvmsg(ep->ep, &msg, flags);
	if (g->len <= ep->base.inline_bytes)
		flags |= FI_INJECT;
	return fi_sendmsg(ep->ep, &msg, flags);
}

static ssize_t post_rma(struct ofi_ep *ep, const struct vb__op *op, struct gathered *g)
{
	struct fi_rma_iov target = { .addr = op->remote_addr,
				     .len = g->len,
				     .key = op->remote_key };
	struct fi_msg_rma msg = {
		.msg_iov = g->iov,
		.desc = g->desc,
		.iov_count = op->sge_count,
		.rma_iov = &target,
		.rma_iov_count = g->len ? 1 : 0, /* an empty one is a fence, and needs no key */
		.context = context_of(ep, op),
	};

	/* A write has completed when the peer has taken it, or it would not be known if that was refused. */
	return op->kind == VB__OP_READ
		       ? fi_readmsg(ep->ep, &msg, FI_COMPLETION)
		       : fi_writemsg(ep->ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE);
}

static ssize_t post_once(struct ofi_ep *ep, const struct vb__op *op, struct gathered *g)
{
	if (op->kind == VB__OP_SEND || op->kind == VB__OP_RECV)
		return post_message(ep, op, g);
	if (op->kind == VB__OP_READ || op->kind == VB__OP_WRITE)
		return post_rma(ep, op, g);
	return -FI_EOPNOTSUPP;
}

/*
 * Its queues may be full for a moment though ours are not: let it work. For a receive libfabric 2 says the same, for good,
 * when the connection is down; its event queue knows.
 */
static ssize_t post_again(struct ofi_ep *ep, const struct vb__op *op, struct gathered *g)
{
	ssize_t rc = -FI_EAGAIN;

	ofi_events(ep);
	ofi_lock(ep);
	for (int tries = 0; rc == -FI_EAGAIN && ep->base.state != VB__EP_DOWN && tries < 10000;
	     tries++) {
		fi_cq_read(ep->cq, NULL, 0);
		rc = post_once(ep, op, g);
	}
	ofi_unlock(ep);
	return rc;
}

int ofi_post(struct vb__ep *base, const struct vb__op *op, struct vb_error *err)
{
	struct ofi_ep *ep = (struct ofi_ep *)base;
	struct gathered g;
	ssize_t rc;

	if (base->state == VB__EP_DOWN)
		return vb__fail_again(err, &base->down);
	if (op->sge_count > base->sge)
		return vb__fail_invalid(err, "post", "%u pieces, the limit is %u", op->sge_count,
					base->sge);
	gather(&g, op);
	ofi_lock(ep);
	rc = post_once(ep, op, &g);
	ofi_unlock(ep);
	if (rc == -FI_EAGAIN)
		rc = post_again(ep, op, &g);
	if (rc && base->state == VB__EP_DOWN)
		return vb__fail_again(err, &base->down);
	if (rc)
		return ofi_fail(err, rc, op->kind == VB__OP_RECV ? "fi_recvmsg" : "fi_sendmsg",
				base->peer);
	return 0;
}

static void split_context(struct vb__completion *c, void *context)
{
	uint64_t value = (uintptr_t)context;

	c->kind = (enum vb__op_kind)(value >> KIND_SHIFT);
	c->id = value & VB__OP_ID_MAX;
}

/* The connection's own words on the event queue are better than the flushing of an operation. */
static void learn_why_flushed(struct ofi_ep *ep)
{
	if (ep->base.state == VB__EP_DOWN)
		return;
	ofi_events(ep);
	ofi_over(ep);
}

/* After "too big" a channel goes on: that is for what we send, and not for what came. */
static void end_oversized(struct ofi_ep *ep, struct vb__completion *done, int fi_errnum)
{
	done->status = VB_ERR_PROTOCOL;
	vb__ep_down(&ep->base, &(struct vb__failure){
				       .code = VB_ERR_PROTOCOL,
				       .native_kind = VB_NATIVE_FI,
				       .native = fi_errnum,
				       .operation = "receive from",
				       .object = ep->base.peer,
				       .cause = "the peer sent a larger message than was agreed on",
				       .hint = "the peer runs a broken or foreign program",
			       });
}

static void on_error(struct ofi_ep *ep, struct vb__completion *done, int fi_errnum)
{
	if (fi_errnum == FI_ECANCELED)
		learn_why_flushed(ep);
	else if (done->kind == VB__OP_RECV && done->status == VB_ERR_TOO_BIG)
		end_oversized(ep, done, fi_errnum);
	else
		ofi_break(ep, fi_errnum, done->kind == VB__OP_RECV ? "receive from" : "send to");
}

static int take_error(struct ofi_ep *ep, struct vb__completion *done)
{
	struct fi_cq_err_entry entry = { .err_data_size = 0 };
	ssize_t n = fi_cq_readerr(ep->cq, &entry, 0);

	if (n < 0 && n != -FI_EAGAIN)
		ofi_break(ep, n, "fi_cq_readerr");
	if (n < 1)
		return 0;
	*done = (struct vb__completion){ .status = ofi_code(entry.err) };
	split_context(done, entry.op_context);
	on_error(ep, done, entry.err);
	return 1;
}

/* What must be looked after even if nobody ever sleeps. Leaves a sleeper's wake-up alone. */
static void look_after(struct ofi_ep *ep)
{
	if (vb__waiter_check(&ep->waiter, VB__READY_TICK) & VB__READY_TICK)
		ofi_liveness_check(ep);
	ofi_events(ep);
}

static int poll_pool(struct ofi_ep *ep, struct vb__completion *done, int max)
{
	struct ofi_handed taken[BATCH];
	int n = ofi_pool_poll(ep, taken, max < BATCH ? max : BATCH);

	if (n == 0 && vb__idle_enough(&ep->idle))
		look_after(ep);
	for (int i = 0; i < n; i++) {
		done[i] = taken[i].done;
		if (taken[i].error)
			on_error(ep, &done[i], taken[i].error);
	}
	return n;
}

static int poll_own(struct ofi_ep *ep, struct vb__completion *done, int max)
{
	struct fi_cq_data_entry entries[BATCH];
	ssize_t n = fi_cq_read(ep->cq, entries, (size_t)(max < BATCH ? max : BATCH));

	if (n == -FI_EAVAIL)
		return take_error(ep, done);
	if (n < 0 && n != -FI_EAGAIN)
		ofi_break(ep, n, "fi_cq_read");
	if (n <= 0) {
		if (vb__idle_enough(&ep->idle))
			look_after(ep);
		return 0;
	}
	for (int i = 0; i < n; i++) {
		done[i] = (struct vb__completion){ .status = VB_OK, .len = entries[i].len };
		split_context(&done[i], entries[i].op_context);
	}
	return (int)n;
}

int ofi_poll(struct vb__ep *base, struct vb__completion *done, int max)
{
	struct ofi_ep *ep = (struct ofi_ep *)base;
	int n = ep->share.pool ? poll_pool(ep, done, max) : poll_own(ep, done, max);

	/* The first message may overtake the event that says with whom this is connected. */
	if (n && base->state == VB__EP_CONNECTING)
		ofi_events(ep);
	return n;
}

/* fi_trywait also takes back the signals of the queues, so it must be asked every time. */
int ofi_arm(struct vb__ep *base, bool arrivals_only)
{
	struct ofi_ep *ep = (struct ofi_ep *)base;
	struct fid *fids[] = { &ep->cq->fid, &ep->eq->fid };
	enum vb__ep_state before = base->state;
	bool woken, safe;

	(void)arrivals_only; /* it cannot tell */
	look_after(ep);
	woken = vb__waiter_check(&ep->waiter, VB__READY_WAKE) & VB__READY_WAKE;
	safe = ep->share.pool ? ofi_pool_quiet(ep) : fi_trywait(ep->fabric, fids, 2) == FI_SUCCESS;
	return !safe || woken || base->state != before;
}
