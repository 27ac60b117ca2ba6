/* SPDX-License-Identifier: Apache-2.0 */
/* Moving data over verbs: registration, posting, completions. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "fabric/verbs/verbs.h"

#define KIND_SHIFT 56
#define BATCH 16

static int access_flags(unsigned access, bool iwarp)
{
	int flags = access & VB__ACCESS_SOURCE ? 0 : IBV_ACCESS_LOCAL_WRITE;

	if (access & VB__ACCESS_REMOTE_READ)
		flags |= IBV_ACCESS_REMOTE_READ;
	if (access & VB__ACCESS_REMOTE_WRITE)
		flags |= IBV_ACCESS_REMOTE_WRITE;
	if (access & VB__ACCESS_REMOTE_ATOMIC)
		flags |= IBV_ACCESS_REMOTE_ATOMIC;
	/* On iWARP the answer to a read is a write of the peer's. */
	if ((access & VB__ACCESS_READ_SINK) && iwarp)
		flags |= IBV_ACCESS_REMOTE_WRITE;
	if (access & VB__ACCESS_BINDABLE)
		flags |= IBV_ACCESS_MW_BIND;
	return flags;
}

/* All members of a pool are in one protection domain, and keys can be guessed; a window is for one peer only. */
static int fail_shared_domain(const struct vb__ep *ep, struct vb_error *err)
{
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_UNSUPPORTED,
				     .operation = "grant memory to",
				     .object = ep->peer,
				     .cause = "other clients of the server could use it as well: "
					      "the device has no memory windows",
			     });
}

int verbs_register(struct vb__ep *base, void *addr, size_t len, unsigned access,
		   struct vb__mr **out, struct vb_error *err)
{
	const unsigned remote = VB__ACCESS_REMOTE_READ | VB__ACCESS_REMOTE_WRITE |
				VB__ACCESS_REMOTE_ATOMIC;
	struct verbs_ep *ep = (struct verbs_ep *)base;
	struct verbs_mr *mr;

	if (base->pool && access & remote)
		return fail_shared_domain(base, err);
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return verbs_fail(err, ENOMEM, "calloc", NULL);
	mr->mr = ibv_reg_mr(ep->pd, addr, len, access_flags(access, ep->iwarp));
	if (!mr->mr) {
		int rc = verbs_fail_memory(err, errno, "ibv_reg_mr", base->device, len);

		free(mr);
		return rc;
	}
	mr->base.remote_addr = (uintptr_t)addr;
	mr->base.remote_key = mr->mr->rkey;
	*out = &mr->base;
	return 0;
}

void verbs_deregister(struct vb__mr *base)
{
	struct verbs_mr *mr = (struct verbs_mr *)base;
	const struct verbs_ep *ep = (const struct verbs_ep *)base->ep;

	VERBS_UNDO(&ep->log, ep->base.device, ibv_dereg_mr, mr->mr);
	free(mr);
}

int verbs_window_open(struct vb__ep *base, struct vb__window **out, struct vb_error *err)
{
	struct verbs_ep *ep = (struct verbs_ep *)base;
	struct verbs_window *window = calloc(1, sizeof(*window));

	if (!window)
		return verbs_fail(err, ENOMEM, "calloc", NULL);
	window->mw = ibv_alloc_mw(ep->pd, IBV_MW_TYPE_2);
	if (!window->mw) {
		int rc = verbs_fail(err, errno, "ibv_alloc_mw", base->device);

		free(window);
		return rc;
	}
	*out = &window->base;
	return 0;
}

void verbs_window_close(struct vb__window *base)
{
	struct verbs_window *window = (struct verbs_window *)base;
	const struct verbs_ep *ep = (const struct verbs_ep *)base->ep;

	VERBS_UNDO(&ep->log, ep->base.device, ibv_dealloc_mw, window->mw);
	free(window);
}

static size_t gather(struct ibv_sge *to, const struct vb__op *op)
{
	size_t len = 0;

	for (unsigned i = 0; i < op->sge_count; i++) {
		const struct vb__sge *sge = &op->sge[i];

		to[i] = (struct ibv_sge){
			.addr = (uintptr_t)sge->addr,
			.length = (uint32_t)sge->len,
			.lkey = sge->mr ? ((struct verbs_mr *)sge->mr)->mr->lkey : 0,
		};
		len += sge->len;
	}
	return len;
}

static uint64_t wr_id_of(const struct vb__op *op)
{
	return (uint64_t)op->kind << KIND_SHIFT | op->id;
}

/* As with flushes: posting fails where the connection has just gone, and the CM event that tells why may already be there. */
static int fail_post(struct verbs_ep *ep, int rc, const char *call, const char *object,
		     struct vb_error *err)
{
	int errnum = verbs_errnum(rc);

	verbs_look_after(ep);
	if (ep->base.state == VB__EP_DOWN)
		return vb__fail_again(err, &ep->base.down);
	return verbs_fail(err, errnum, call, object);
}

static int post_recv(struct verbs_ep *ep, const struct vb__op *op, struct ibv_sge *sge,
		     struct vb_error *err)
{
	struct ibv_recv_wr *bad, wr = {
		.wr_id = wr_id_of(op),
		.sg_list = sge,
		.num_sge = (int)op->sge_count,
	};
	int rc = ibv_post_recv(ep->qp, &wr, &bad);

	return rc ? fail_post(ep, rc, "ibv_post_recv", ep->base.device, err) : 0;
}

static const enum ibv_wr_opcode opcodes[] = {
	[VB__OP_SEND] = IBV_WR_SEND,
	[VB__OP_SEND_IMM] = IBV_WR_SEND_WITH_IMM,
	[VB__OP_WRITE] = IBV_WR_RDMA_WRITE,
	[VB__OP_WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
	[VB__OP_READ] = IBV_WR_RDMA_READ,
	[VB__OP_FETCH_ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
	[VB__OP_COMPARE_SWAP] = IBV_WR_ATOMIC_CMP_AND_SWP,
	[VB__OP_BIND] = IBV_WR_BIND_MW,
	[VB__OP_UNBIND] = IBV_WR_LOCAL_INV,
};

/* Every binding has a key of its own, so that an old one is of no use. The window keeps its old key until it is posted. */
static void fill_bind(struct ibv_send_wr *wr, const struct vb__op *op)
{
	struct verbs_window *window = (struct verbs_window *)op->window;

	window->base.remote_key = ibv_inc_rkey(window->mw->rkey);
	wr->num_sge = 0;
	wr->imm_data = 0; /* Soft-RoCE refuses any other */
	wr->bind_mw.mw = window->mw;
	wr->bind_mw.rkey = (uint32_t)window->base.remote_key;
	wr->bind_mw.bind_info = (struct ibv_mw_bind_info){
		.mr = ((struct verbs_mr *)op->sge->mr)->mr,
		.addr = (uintptr_t)op->sge->addr,
		.length = op->sge->len,
		.mw_access_flags = (unsigned)access_flags(op->access, false) &
				   ~(unsigned)IBV_ACCESS_LOCAL_WRITE,
	};
}

static void fill_remote(struct ibv_send_wr *wr, const struct vb__op *op)
{
	if (op->kind == VB__OP_BIND) {
		fill_bind(wr, op);
	} else if (op->kind == VB__OP_UNBIND) {
		wr->invalidate_rkey = (uint32_t)op->window->remote_key;
	} else if (op->kind == VB__OP_FETCH_ADD || op->kind == VB__OP_COMPARE_SWAP) {
		bool swap = op->kind == VB__OP_COMPARE_SWAP;

		wr->wr.atomic.remote_addr = op->remote_addr;
		wr->wr.atomic.rkey = (uint32_t)op->remote_key;
		wr->wr.atomic.compare_add = swap ? op->compare : op->operand;
		wr->wr.atomic.swap = swap ? op->operand : 0;
	} else if (op->kind != VB__OP_SEND && op->kind != VB__OP_SEND_IMM) {
		wr->wr.rdma.remote_addr = op->remote_addr;
		wr->wr.rdma.rkey = (uint32_t)op->remote_key;
	}
	if (op->kind == VB__OP_WRITE_IMM || op->kind == VB__OP_SEND_IMM)
		wr->imm_data = htonl(op->imm);
}

static bool goes_inline(const struct verbs_ep *ep, const struct vb__op *op, size_t len)
{
	return len <= ep->base.inline_bytes &&
	       (op->kind == VB__OP_SEND || op->kind == VB__OP_SEND_IMM ||
		op->kind == VB__OP_WRITE || op->kind == VB__OP_WRITE_IMM);
}

static const char *in_words(unsigned cap)
{
	return cap == VB__CAP_READ     ? "reads"
	       : cap == VB__CAP_ATOMIC ? "atomics"
	       : cap == VB__CAP_WINDOW ? "memory windows"
				       : "immediate data";
}

static int fail_unsupported(const struct verbs_ep *ep, unsigned cap, struct vb_error *err)
{
	bool uc = ep->type == VB__QP_UC && cap != VB__CAP_IMM;

	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_UNSUPPORTED,
				     .operation = in_words(cap),
				     .object = ep->base.device,
				     .cause = uc ? "a UC queue pair can send and write only"
						 : "not supported by this device",
				     .hint = uc ? "use RC" : NULL,
			     });
}

static int check(const struct verbs_ep *ep, const struct vb__op *op, struct vb_error *err)
{
	static const unsigned caps[] = {
		[VB__OP_SEND_IMM] = VB__CAP_IMM,     [VB__OP_WRITE_IMM] = VB__CAP_IMM,
		[VB__OP_FETCH_ADD] = VB__CAP_ATOMIC, [VB__OP_COMPARE_SWAP] = VB__CAP_ATOMIC,
		[VB__OP_BIND] = VB__CAP_WINDOW,	     [VB__OP_UNBIND] = VB__CAP_WINDOW,
		[VB__OP_READ] = VB__CAP_READ,
	};
	unsigned needs = caps[op->kind];

	if (ep->base.state == VB__EP_DOWN)
		return vb__fail_again(err, &ep->base.down);
	if (op->sge_count > ep->base.sge)
		return vb__fail_invalid(err, "post", "%u pieces, the limit is %u", op->sge_count,
					ep->base.sge);
	return needs & ~ep->base.caps ? fail_unsupported(ep, needs, err) : 0;
}

int verbs_post(struct vb__ep *base, const struct vb__op *op, struct vb_error *err)
{
	struct verbs_ep *ep = (struct verbs_ep *)base;
	struct ibv_sge sge[VB__SGE_MAX];
	struct ibv_send_wr *bad, wr;
	int rc = check(ep, op, err);
	size_t len;

	if (rc)
		return rc;
	len = gather(sge, op);
	if (op->kind == VB__OP_RECV)
		return post_recv(ep, op, sge, err);
	/* Field by field: most of its 128 bytes are for other opcodes, and clearing them costs more than all this. */
	wr.wr_id = wr_id_of(op);
	wr.next = NULL;
	wr.sg_list = sge;
	wr.num_sge = (int)op->sge_count;
	wr.opcode = opcodes[op->kind];
	/* Solicited: the peer may have armed its queue for arrivals only. */
	wr.send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED |
			(goes_inline(ep, op, len) ? IBV_SEND_INLINE : 0);
	fill_remote(&wr, op);
	rc = ibv_post_send(ep->qp, &wr, &bad);
	if (rc == 0 && op->kind == VB__OP_BIND)
		wr.bind_mw.mw->rkey = wr.bind_mw.rkey;
	return rc ? fail_post(ep, rc, "ibv_post_send", base->peer, err) : 0;
}

/* A flushed operation does not tell why: the CM event that does may already be there. */
static void learn_why_flushed(struct verbs_ep *ep)
{
	if (ep->base.state != VB__EP_DOWN)
		verbs_look_after(ep);
	if (ep->base.state != VB__EP_DOWN)
		vb__ep_down_gone(&ep->base);
}

static void on_bad_status(struct verbs_ep *ep, const struct ibv_wc *wc, enum vb__op_kind kind)
{
	if (wc->status == IBV_WC_WR_FLUSH_ERR) {
		learn_why_flushed(ep);
		return;
	}
	if (ep->base.state == VB__EP_DOWN)
		return;
	verbs_fail_wc(&ep->base.down, wc->status, kind, ep->base.peer);
	ep->base.state = VB__EP_DOWN;
	verbs_cut(ep);
}

/* True if it is one for the user. */
static bool convert(struct verbs_ep *ep, const struct ibv_wc *wc, struct vb__completion *done)
{
	bool probe = wc->wr_id == VERBS_PROBE_ID;

	*done = (struct vb__completion){
		.id = wc->wr_id & VB__OP_ID_MAX,
		.kind = probe ? VB__OP_READ : (enum vb__op_kind)(wc->wr_id >> KIND_SHIFT),
	};
	done->status = verbs_wc_code(wc->status, done->kind);
	if (probe)
		verbs_probe_done(ep);
	if (wc->status != IBV_WC_SUCCESS) {
		on_bad_status(ep, wc, done->kind);
		return !probe;
	}
	if (done->kind == VB__OP_RECV) {
		/* Data may be seen before the event that says that the peer is connected. */
		if (ep->base.state == VB__EP_CONNECTING)
			verbs_on_established(ep);
		ep->probe.too_early = false;
		done->len = wc->byte_len;
		done->has_imm = wc->wc_flags & IBV_WC_WITH_IMM;
		done->imm = done->has_imm ? ntohl(wc->imm_data) : 0;
		done->by_write = wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM;
	}
	return !probe;
}

static int poll_pool(struct verbs_ep *ep, struct vb__completion *done, int max)
{
	struct verbs_taken taken[BATCH];
	int n = verbs_pool_poll(ep, taken, max < BATCH ? max : BATCH), given = 0;

	if (n == 0 && vb__idle_enough(&ep->idle))
		verbs_look_after(ep);
	for (int i = 0; i < n; i++)
		if (convert(ep, &taken[i].wc, &done[given]))
			done[given++].arrival = taken[i].arrival ? &taken[i].arrival->base : NULL;
	if (n)
		ep->probe.heard_ns = vb__now_coarse_ns();
	return given;
}

static int poll_own(struct verbs_ep *ep, struct vb__completion *done, int max)
{
	struct ibv_wc wcs[BATCH];
	int n = ibv_poll_cq(ep->cq, max < BATCH ? max : BATCH, wcs), given = 0;

	if (n < 0) {
		verbs_break(ep, EIO, "ibv_poll_cq"); /* errno is not defined here */
		return 0;
	}
	if (n == 0 && vb__idle_enough(&ep->idle))
		verbs_look_after(ep);
	for (int i = 0; i < n; i++)
		given += convert(ep, &wcs[i], &done[given]);
	if (n) {
		ep->settled = false;
		ep->probe.heard_ns = vb__now_coarse_ns();
	}
	return given;
}

int verbs_poll(struct vb__ep *base, struct vb__completion *done, int max)
{
	struct verbs_ep *ep = (struct verbs_ep *)base;

	return ep->share.pool ? poll_pool(ep, done, max) : poll_own(ep, done, max);
}

/* Arming comes before the last look at the queue, or what completes in between would wake nobody. */
static void arm_queue(struct verbs_ep *ep, enum verbs_armed wanted)
{
	int rc = ibv_req_notify_cq(ep->cq, wanted == VERBS_ARMED_ARRIVALS);

	if (rc)
		verbs_break(ep, rc, "ibv_req_notify_cq");
	else
		ep->armed = wanted;
}

/* Has the event come that the queue was armed for? Whoever has slept was woken by just that, as a rule. */
static bool is_woken_by_queue(struct verbs_ep *ep)
{
	return ep->armed != VERBS_ARMED_NOT && verbs_take_completion_event(ep);
}

/*
 * System calls are what sleeping costs. So one that was woken by its queue looks
 * after the rest only every now and then, and what was found quiet is not looked
 * at twice: whatever is ready by then, or was not looked at, ends the sleep at once.
 */
int verbs_arm(struct vb__ep *base, bool arrivals_only)
{
	struct verbs_ep *ep = (struct verbs_ep *)base;
	/* siw never raises an event for a receive, however solicited, if it is armed for those only. */
	enum verbs_armed wanted = arrivals_only && !ep->iwarp ? VERBS_ARMED_ARRIVALS
							      : VERBS_ARMED_ALL;
	enum vb__ep_state before = base->state;
	bool settled = ep->settled, news;

	ep->settled = false;
	if (settled && ep->armed >= wanted)
		return 0;
	news = !ep->share.pool && is_woken_by_queue(ep);
	if (!news || vb__idle_long(&ep->idle))
		news |= verbs_take_wakes(ep);
	if (base->state != before)
		return 1;
	if (ep->share.pool)
		return news || !verbs_pool_quiet(ep);
	if (ep->armed < wanted) {
		arm_queue(ep, wanted);
		news = true;
	}
	ep->settled = news;
	return news;
}
