/* SPDX-License-Identifier: Apache-2.0 */
/* libibverbs on paper: device, domains, memory, queues and their events. */
#include "mock_verbs.h"

#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mock_books.h"
#include "mock_system.h"

#define PENDING_MAX 512

struct mock_window {
	struct ibv_mw mw;
	struct ibv_mr *bound; /* NULL: not */
	struct ibv_mw_bind_info bind;
};

struct mock_mr {
	struct ibv_mr mr;
};

struct mock_comp {
	struct ibv_comp_channel channel;
	struct ibv_cq *events[PENDING_MAX];
	unsigned count;
};

struct mock_cq {
	struct ibv_cq cq;
	struct ibv_wc done[PENDING_MAX];
	unsigned count;
	bool armed, solicited_only;
	unsigned unacked;
};

struct mock_qp {
	struct ibv_qp qp;
	struct ibv_qp_cap asked, granted;
	struct mock_wr pending[PENDING_MAX];
	unsigned count;
	struct mock_wr last_sent;
	uint8_t rnr_timer;
	unsigned unacked; /* asynchronous events */
	struct ibv_qp_attr steps[IBV_QPS_ERR + 1];
	int masks[IBV_QPS_ERR + 1];
};

struct mock_srq {
	struct ibv_srq srq;
	struct mock_wr pending[PENDING_MAX];
	unsigned count, limit, low;
};

struct ibv_context mock_context;
struct ibv_ah_attr mock_way;
uint16_t mock_pkeys[3];
uint16_t mock_ipoib_pkey;
struct mock_device mock_device;
uint32_t mock_src_qp;
struct ibv_gid_entry mock_gids[MOCK_GIDS];

static struct ibv_device device;
static struct ibv_async_event async_events[PENDING_MAX];
static unsigned async_count;
static uint32_t next_key, next_qp_num;
static void *opened; /* by ibv_open_device */

/* ---- The device ---- */

const char *ibv_get_device_name(struct ibv_device *of)
{
	return of->name;
}

struct ibv_device **(ibv_get_device_list)(int *n)
{
	struct ibv_device **list;
	int errnum = mock_call("ibv_get_device_list", NULL);

	if (errnum) {
		errno = errnum;
		return NULL;
	}
	list = mock_make("device list", 2 * sizeof(struct ibv_device *));
	list[0] = &device;
	*n = 1;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	mock_note("ibv_free_device_list", list);
	mock_end(list, "device list", "ibv_free_device_list");
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	int errnum = mock_call("ibv_query_device", context);

	if (!errnum)
		*attr = mock_device.attr;
	return errnum;
}

struct ibv_context *ibv_open_device(struct ibv_device *of)
{
	int errnum = mock_call("ibv_open_device", of);

	if (errnum) {
		errno = errnum;
		return NULL;
	}
	if (opened)
		mock_complain("ibv_open_device of what is open");
	opened = mock_make("open device", 1);
	return &mock_context;
}

int ibv_close_device(struct ibv_context *context)
{
	int errnum = mock_call("ibv_close_device", context);

	for (struct ibv_pd *pd = NULL; (pd = mock_next_alive("PD", pd));)
		mock_complain("ibv_close_device before its PD");
	mock_end(opened, "open device", "ibv_close_device");
	opened = NULL;
	return errnum;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max,
			     uint32_t flags, size_t entry_size)
{
	int errnum = mock_call("ibv_query_gid_table", context);
	size_t n = mock_device.gid_count < max ? mock_device.gid_count : max;

	(void)flags;
	if (errnum)
		return -errnum;
	memcpy(entries, mock_device.gids, n * entry_size);
	return (ssize_t)n;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey)
{
	int errnum = mock_call("ibv_query_pkey", context);

	(void)port_num;
	if (errnum || index >= (int)(sizeof(mock_pkeys) / sizeof(mock_pkeys[0])))
		return -1;
	*pkey = htons(mock_pkeys[index]);
	return 0;
}

int(ibv_query_port)(struct ibv_context *context, uint8_t port_num,
		    struct _compat_ibv_port_attr *attr)
{
	int errnum = mock_call("ibv_query_port", context);

	(void)port_num;
	if (!errnum)
		memcpy((void *)attr, &mock_device.port, sizeof(mock_device.port));
	return errnum;
}

/* ---- Domains and memory ---- */

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	int errnum = mock_call("ibv_alloc_pd", context);
	struct ibv_pd *pd;

	if (errnum) {
		errno = errnum;
		return NULL;
	}
	pd = mock_make("PD", sizeof(*pd));
	pd->context = context;
	return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	int errnum = mock_call("ibv_dealloc_pd", pd);

	for (struct mock_mr *m = NULL; (m = mock_next_alive("MR", m));)
		if (m->mr.pd == pd)
			mock_complain("ibv_dealloc_pd before its MRs");
	for (struct mock_window *w = NULL; (w = mock_next_alive("MW", w));)
		if (w->mw.pd == pd)
			mock_complain("ibv_dealloc_pd before its windows");
	for (struct ibv_ah *a = NULL; (a = mock_next_alive("AH", a));)
		if (a->pd == pd)
			mock_complain("ibv_dealloc_pd before its AHs");
	for (struct mock_qp *q = NULL; (q = mock_next_alive("QP", q));)
		if (q->qp.pd == pd)
			mock_complain("ibv_dealloc_pd before its QP");
	for (struct mock_srq *s = NULL; (s = mock_next_alive("SRQ", s));)
		if (s->srq.pd == pd)
			mock_complain("ibv_dealloc_pd before its SRQ");
	mock_end(pd, "PD", "ibv_dealloc_pd");
	return errnum;
}

/* ---- Datagrams ---- */

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	int errnum = mock_call("ibv_create_ah", pd);
	struct ibv_ah *ah;

	mock_way = *attr;
	mock_check(pd, "PD", "ibv_create_ah");
	if (errnum) {
		errno = errnum;
		return NULL;
	}
	ah = mock_make("AH", sizeof(*ah));
	ah->context = pd->context;
	ah->pd = pd;
	return ah;
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	int errnum = mock_call("ibv_destroy_ah", ah);

	mock_end(ah, "AH", "ibv_destroy_ah");
	return errnum;
}

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init)
{
	int errnum = mock_call("ibv_query_qp", qp);

	(void)mask;
	mock_check(qp, "QP", "ibv_query_qp");
	if (errnum)
		return errnum;
	*attr = (struct ibv_qp_attr){ .qkey = MOCK_QKEY };
	*init = (struct ibv_qp_init_attr){ .qp_type = IBV_QPT_UD };
	return 0;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	static const union ibv_gid none;
	int errnum = mock_call("ibv_query_gid_ex", context);

	(void)port_num, (void)flags, (void)entry_size;
	if (errnum)
		return errnum;
	if (gid_index < MOCK_GIDS && memcmp(&mock_gids[gid_index].gid, &none, sizeof(none)) != 0) {
		*entry = mock_gids[gid_index];
		return 0;
	}
	for (unsigned i = 0; i < mock_device.gid_count; i++)
		if (mock_device.gids[i].gid_index == gid_index) {
			*entry = mock_device.gids[i];
			return 0;
		}
	return ENODATA;
}

struct ibv_mr *(ibv_reg_mr)(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	int errnum = mock_call("ibv_reg_mr", pd);
	struct mock_mr *m;

	(void)access;
	mock_check(pd, "PD", "ibv_reg_mr");
	if (errnum) {
		errno = errnum;
		return NULL;
	}
	m = mock_make("MR", sizeof(*m));
	next_key++;
	m->mr = (struct ibv_mr){
		.context = pd->context,
		.pd = pd,
		.addr = addr,
		.length = length,
		.lkey = next_key,
		.rkey = next_key + 0x10000,
	};
	return &m->mr;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned access)
{
	(void)iova;
	return (ibv_reg_mr)(pd, addr, length, (int)access);
}

static struct ibv_mw *alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	int errnum = mock_call("ibv_alloc_mw", pd);
	struct mock_window *w;

	mock_check(pd, "PD", "ibv_alloc_mw");
	if (errnum) {
		errno = errnum;
		return NULL;
	}
	w = mock_make("MW", sizeof(*w));
	w->mw = (struct ibv_mw){ .context = pd->context, .pd = pd, .rkey = 0x500, .type = type };
	return &w->mw;
}

static int dealloc_mw(struct ibv_mw *mw)
{
	int errnum = mock_call("ibv_dealloc_mw", mw);

	mock_end(mw, "MW", "ibv_dealloc_mw");
	return errnum;
}

/* As a device does it: the old key must be the window's, and the memory must allow it. */
static int bind_window(const struct ibv_send_wr *wr)
{
	struct mock_window *w = (struct mock_window *)wr->bind_mw.mw;

	if (!mock_check(w, "MW", "ibv_post_send") ||
	    !mock_check(wr->bind_mw.bind_info.mr, "MR", "ibv_post_send"))
		return EINVAL;
	if (w->bound || w->mw.rkey >> 8 != wr->bind_mw.rkey >> 8 || w->mw.rkey == wr->bind_mw.rkey)
		mock_complain("a window is bound with a key that is not its next one");
	w->bound = wr->bind_mw.bind_info.mr;
	w->bind = wr->bind_mw.bind_info;
	return 0;
}

static int unbind_window(uint32_t rkey)
{
	for (struct mock_window *w = NULL; (w = mock_next_alive("MW", w));)
		if (w->mw.rkey == rkey && w->bound) {
			w->bound = NULL;
			return 0;
		}
	mock_complain("a key is invalidated that no window has");
	return EINVAL;
}

const struct ibv_mw_bind_info *mock_window(uint32_t rkey)
{
	for (struct mock_window *w = NULL; (w = mock_next_alive("MW", w));)
		if (w->mw.rkey == rkey && w->bound)
			return &w->bind;
	return NULL;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	int errnum = mock_call("ibv_dereg_mr", mr);

	for (struct mock_window *w = NULL; (w = mock_next_alive("MW", w));)
		if (w->bound == mr)
			mock_complain("ibv_dereg_mr before its window");
	mock_end(mr, "MR", "ibv_dereg_mr");
	return errnum;
}

static void check_memory(const struct ibv_sge *sge, int n, const char *by)
{
	for (int i = 0; i < n; i++) {
		bool covered = false;

		for (struct mock_mr *m = NULL; (m = mock_next_alive("MR", m));) {
			uintptr_t from = (uintptr_t)m->mr.addr;

			covered |= m->mr.lkey == sge[i].lkey && sge[i].addr >= from &&
				   sge[i].addr + sge[i].length <= from + m->mr.length;
		}
		if (!covered)
			mock_complain("%s from memory that is not registered", by);
	}
}

/* ---- Completion queues ---- */

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	int errnum = mock_call("ibv_create_comp_channel", context);
	struct mock_comp *c;

	if (errnum) {
		errno = errnum;
		return NULL;
	}
	c = mock_make("completion channel", sizeof(*c));
	c->channel.context = context;
	c->channel.fd = mock_system_eventfd();
	return &c->channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	int errnum = mock_call("ibv_destroy_comp_channel", channel);

	for (struct mock_cq *c = NULL; (c = mock_next_alive("CQ", c));)
		if (c->cq.channel == channel)
			mock_complain("ibv_destroy_comp_channel before its CQ");
	mock_end(channel, "completion channel", "ibv_destroy_comp_channel");
	close(channel->fd);
	return errnum;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector)
{
	int errnum = mock_call("ibv_create_cq", channel);
	struct mock_cq *c;

	(void)comp_vector;
	mock_check(channel, "completion channel", "ibv_create_cq");
	if (!errnum && (cqe <= 0 || cqe > mock_device.attr.max_cqe))
		errnum = EINVAL;
	if (errnum) {
		errno = errnum;
		return NULL;
	}
	c = mock_make("CQ", sizeof(*c));
	c->cq.context = context;
	c->cq.channel = channel;
	c->cq.cq_context = cq_context;
	c->cq.cqe = cqe;
	return &c->cq;
}

int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	int errnum = mock_call("ibv_resize_cq", cq);

	mock_check(cq, "CQ", "ibv_resize_cq");
	if (!errnum && cqe > mock_device.attr.max_cqe)
		errnum = EINVAL;
	if (!errnum)
		cq->cqe = cqe;
	return errnum;
}

static void raise_completion_event(struct mock_cq *c)
{
	struct mock_comp *comp = (struct mock_comp *)c->cq.channel;

	c->armed = false;
	comp->events[comp->count++] = &c->cq;
	mock_system_raise(comp->channel.fd);
}

void mock_empty_completion_event(struct ibv_cq *cq)
{
	raise_completion_event((struct mock_cq *)cq);
}

/* As in the kernel, events that nobody took go with their CQ. */
static void drop_completion_events(struct mock_comp *comp, const struct ibv_cq *cq)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < comp->count; i++)
		if (comp->events[i] != cq)
			comp->events[kept++] = comp->events[i];
		else
			mock_system_take(comp->channel.fd);
	comp->count = kept;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	int errnum = mock_call("ibv_destroy_cq", cq);
	struct mock_cq *c = (struct mock_cq *)cq;

	if (!mock_check(cq, "CQ", "ibv_destroy_cq"))
		return EINVAL;
	if (c->unacked)
		mock_complain("ibv_destroy_cq with %u events not acknowledged", c->unacked);
	for (struct mock_qp *q = NULL; (q = mock_next_alive("QP", q));)
		if (q->qp.send_cq == cq || q->qp.recv_cq == cq)
			mock_complain("ibv_destroy_cq before its QP");
	mock_end(cq, "CQ", "ibv_destroy_cq");
	if (mock_check(cq->channel, "completion channel", "ibv_destroy_cq"))
		drop_completion_events((struct mock_comp *)cq->channel, cq);
	return errnum;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	int errnum = mock_call("ibv_get_cq_event", channel);
	struct mock_comp *c = (struct mock_comp *)channel;

	mock_check(channel, "completion channel", "ibv_get_cq_event");
	if (!errnum && !c->count) {
		errnum = EAGAIN;
		if (!mock_system_nonblocking(channel->fd))
			mock_complain("ibv_get_cq_event would block");
	}
	if (errnum) {
		errno = errnum;
		return -1;
	}
	*cq = c->events[0];
	*cq_context = (*cq)->cq_context;
	memmove(c->events, c->events + 1, --c->count * sizeof(struct ibv_cq *));
	mock_system_take(channel->fd);
	((struct mock_cq *)*cq)->unacked++;
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned n)
{
	struct mock_cq *c = (struct mock_cq *)cq;

	mock_note("ibv_ack_cq_events", cq);
	if (!mock_check(cq, "CQ", "ibv_ack_cq_events"))
		return;
	if (n > c->unacked)
		mock_complain("ibv_ack_cq_events of %u events, only %u were taken", n, c->unacked);
	c->unacked -= n;
}

static int poll_cq(struct ibv_cq *cq, int max, struct ibv_wc *wc)
{
	int errnum = mock_call("ibv_poll_cq", cq);
	struct mock_cq *c = (struct mock_cq *)cq;
	unsigned n = max < 0 ? 0 : (unsigned)max;

	mock_check(cq, "CQ", "ibv_poll_cq");
	if (errnum) {
		errno = errnum;
		return -1;
	}
	if (n > c->count)
		n = c->count;
	memcpy(wc, c->done, n * sizeof(*wc));
	c->count -= n;
	memmove(c->done, c->done + n, c->count * sizeof(*wc));
	return (int)n;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	int errnum = mock_call("ibv_req_notify_cq", cq);
	struct mock_cq *c = (struct mock_cq *)cq;

	mock_check(cq, "CQ", "ibv_req_notify_cq");
	if (errnum)
		return errnum;
	/* What is asked for twice is the more of both. */
	c->solicited_only = solicited_only && (!c->armed || c->solicited_only);
	c->armed = true;
	return 0;
}

static void put_completion(struct ibv_cq *cq, const struct ibv_wc *wc)
{
	struct mock_cq *c = (struct mock_cq *)cq;

	if (c->count == (unsigned)cq->cqe)
		mock_complain("the CQ overflows");
	c->done[c->count++] = *wc;
	if (c->armed &&
	    (!c->solicited_only || wc->opcode & IBV_WC_RECV || wc->status != IBV_WC_SUCCESS))
		raise_completion_event(c);
}

/* ---- Queue pairs ---- */

static bool fits(const struct ibv_qp_cap *cap, bool srq)
{
	const struct ibv_device_attr *a = &mock_device.attr;
	unsigned wr = (unsigned)a->max_qp_wr, sge = (unsigned)a->max_sge;

	/* A device may refuse zeros only later, at the first post: no better. */
	return cap->max_send_wr && cap->max_send_sge &&
	       (srq || (cap->max_recv_wr && cap->max_recv_sge)) && cap->max_send_wr <= wr &&
	       cap->max_recv_wr <= wr && cap->max_send_sge <= sge && cap->max_recv_sge <= sge &&
	       cap->max_inline_data <= mock_device.inline_max;
}

struct ibv_qp *mock_qp_create(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct mock_qp *q;

	mock_check(pd, "PD", "rdma_create_qp");
	mock_check(attr->send_cq, "CQ", "rdma_create_qp");
	mock_check(attr->recv_cq, "CQ", "rdma_create_qp");
	if (attr->srq)
		mock_check(attr->srq, "SRQ", "rdma_create_qp");
	if (!fits(&attr->cap, attr->srq)) {
		errno = EINVAL;
		return NULL;
	}
	q = mock_make("QP", sizeof(*q));
	q->qp.context = pd->context;
	q->qp.pd = pd;
	q->qp.send_cq = attr->send_cq;
	q->qp.recv_cq = attr->recv_cq;
	q->qp.srq = attr->srq;
	q->qp.qp_num = 0x10 + ++next_qp_num;
	q->qp.state = IBV_QPS_INIT;
	q->qp.qp_type = attr->qp_type;
	q->asked = attr->cap;
	q->rnr_timer = MOCK_RNR_TIMER_UNSET;
	if (attr->cap.max_inline_data && attr->cap.max_inline_data < mock_device.inline_grants)
		attr->cap.max_inline_data = mock_device.inline_grants;
	q->granted = attr->cap;
	return &q->qp;
}

void mock_qp_destroy(struct ibv_qp *qp)
{
	struct mock_qp *q = (struct mock_qp *)qp;

	if (!mock_check(qp, "QP", "rdma_destroy_qp"))
		return;
	if (q->unacked)
		mock_complain("rdma_destroy_qp with %u events not acknowledged", q->unacked);
	mock_end(qp, "QP", "rdma_destroy_qp");
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	int errnum = mock_call("ibv_create_qp", pd);
	struct ibv_qp *qp;

	if (errnum) {
		errno = errnum;
		return NULL;
	}
	qp = mock_qp_create(pd, attr);
	if (qp)
		qp->state = IBV_QPS_RESET;
	return qp;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	int errnum = mock_call("ibv_destroy_qp", qp);

	mock_qp_destroy(qp);
	return errnum;
}

/* One rung after the other, each with what the specification demands of it. */
static void check_step(const struct mock_qp *q, enum ibv_qp_state to, int mask)
{
	static const int rc[] = {
		[IBV_QPS_INIT] = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
		[IBV_QPS_RTR] = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		[IBV_QPS_RTS] = IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC,
	};
	static const int not_of_uc = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER |
				     IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				     IBV_QP_MAX_QP_RD_ATOMIC;
	int needed = rc[to] & (q->qp.qp_type == IBV_QPT_UC ? ~not_of_uc : ~0);

	if (q->qp.state + 1 != to)
		mock_complain("ibv_modify_qp from state %d to %d", q->qp.state, to);
	if ((mask & ~IBV_QP_STATE) != needed)
		mock_complain("ibv_modify_qp to %d with 0x%x in place of 0x%x", to, mask, needed);
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int errnum = mock_call("ibv_modify_qp", qp);
	struct mock_qp *q = (struct mock_qp *)qp;

	if (!mock_check(qp, "QP", "ibv_modify_qp"))
		return EINVAL;
	if (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_ERR)
		mock_qp_error(qp); /* in any case: a device has no reason to refuse */
	else if (!errnum && mask & IBV_QP_STATE)
		check_step(q, attr->qp_state, mask);
	if (errnum)
		return errnum;
	if (mask & IBV_QP_MIN_RNR_TIMER)
		q->rnr_timer = attr->min_rnr_timer;
	if (mask & IBV_QP_STATE) {
		qp->state = attr->qp_state;
		q->steps[attr->qp_state] = *attr;
		q->masks[attr->qp_state] = mask;
	}
	return 0;
}

struct ibv_qp_attr mock_qp_step(const struct ibv_qp *qp, enum ibv_qp_state state, int *mask)
{
	const struct mock_qp *q = (const struct mock_qp *)qp;

	if (mask)
		*mask = q->masks[state];
	return q->steps[state];
}

struct ibv_qp_cap mock_qp_asked(const struct ibv_qp *qp)
{
	return ((const struct mock_qp *)qp)->asked;
}

uint8_t mock_qp_rnr_timer(const struct ibv_qp *qp)
{
	return ((const struct mock_qp *)qp)->rnr_timer;
}

unsigned mock_qp_pending(const struct ibv_qp *qp)
{
	return ((const struct mock_qp *)qp)->count;
}

struct mock_wr mock_qp_last_sent(const struct ibv_qp *qp)
{
	return ((const struct mock_qp *)qp)->last_sent;
}

static void finish(struct mock_qp *q, unsigned index, enum ibv_wc_status status, uint32_t len)
{
	struct mock_wr wr = q->pending[index];
	struct ibv_wc wc = {
		.wr_id = wr.wr_id,
		.status = status,
		.opcode = wr.send ? IBV_WC_SEND : IBV_WC_RECV,
		.byte_len = len,
		.qp_num = q->qp.qp_num,
		.src_qp = mock_src_qp,
	};

	q->count--;
	memmove(q->pending + index, q->pending + index + 1,
		(q->count - index) * sizeof(*q->pending));
	put_completion(wr.send ? q->qp.send_cq : q->qp.recv_cq, &wc);
}

bool mock_lose_flushes;
bool mock_post_by_errno;

void mock_qp_error(struct ibv_qp *qp)
{
	struct mock_qp *q = (struct mock_qp *)qp;

	qp->state = IBV_QPS_ERR;
	while (q->count && !mock_lose_flushes)
		finish(q, 0, IBV_WC_WR_FLUSH_ERR, 0);
}

static void complete(struct ibv_qp *qp, bool send, enum ibv_wc_status status, uint32_t len)
{
	struct mock_qp *q = (struct mock_qp *)qp;
	unsigned i = 0;

	while (i < q->count && q->pending[i].send != send)
		i++;
	if (i == q->count) {
		mock_complain("the test completes what was not posted");
		return;
	}
	finish(q, i, status, len);
	if (status != IBV_WC_SUCCESS)
		mock_qp_error(qp);
}

void mock_complete_send(struct ibv_qp *qp, enum ibv_wc_status status)
{
	complete(qp, true, status, 0);
}

/* The oldest receive of its SRQ becomes the queue pair's own, as soon as something comes for it. */
static void take_from_srq(struct mock_qp *q)
{
	struct mock_srq *s = (struct mock_srq *)q->qp.srq;

	if (!s || !s->count)
		return;
	q->pending[q->count++] = s->pending[0];
	memmove(s->pending, s->pending + 1, --s->count * sizeof(*s->pending));
}

void mock_complete_recv(struct ibv_qp *qp, enum ibv_wc_status status, uint32_t len)
{
	take_from_srq((struct mock_qp *)qp);
	complete(qp, false, status, len);
}

static int enqueue(struct ibv_qp *qp, const struct mock_wr *wr, unsigned limit)
{
	struct mock_qp *q = (struct mock_qp *)qp;
	unsigned same = 0;

	for (unsigned i = 0; i < q->count; i++)
		same += q->pending[i].send == wr->send;
	if (same == limit)
		return ENOMEM;
	q->pending[q->count++] = *wr;
	if (qp->state == IBV_QPS_ERR)
		mock_qp_error(qp);
	return 0;
}

static int refuse_post(int errnum)
{
	errno = errnum ? errnum : EINVAL;
	return mock_post_by_errno ? -1 : errno;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	int errnum = mock_call("ibv_post_send", qp);
	struct mock_qp *q = (struct mock_qp *)qp;

	*bad = wr;
	if (!mock_check(qp, "QP", "ibv_post_send") || errnum)
		return refuse_post(errnum);
	if (wr->opcode == IBV_WR_BIND_MW)
		errnum = bind_window(wr);
	else if (wr->opcode == IBV_WR_LOCAL_INV)
		errnum = unbind_window(wr->invalidate_rkey);
	if (errnum)
		return errnum;
	if (!(wr->send_flags & IBV_SEND_INLINE))
		check_memory(wr->sg_list, wr->num_sge, "ibv_post_send");
	if (qp->qp_type == IBV_QPT_UD)
		mock_check(wr->wr.ud.ah, "AH", "ibv_post_send");
	q->last_sent = (struct mock_wr){
		.wr_id = wr->wr_id,
		.send = true,
		.opcode = wr->opcode,
		.flags = wr->send_flags,
		.num_sge = wr->num_sge,
		.sge = wr->num_sge ? wr->sg_list[0] : (struct ibv_sge){ .lkey = 0 },
		.remote_qp = qp->qp_type == IBV_QPT_UD ? wr->wr.ud.remote_qpn : 0,
	};
	return enqueue(qp, &q->last_sent, q->granted.max_send_wr);
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int errnum = mock_call("ibv_post_recv", qp);
	struct mock_wr entry = { .wr_id = wr->wr_id, .num_sge = wr->num_sge };

	*bad = wr;
	if (!mock_check(qp, "QP", "ibv_post_recv") || errnum)
		return refuse_post(errnum);
	check_memory(wr->sg_list, wr->num_sge, "ibv_post_recv");
	return enqueue(qp, &entry, ((struct mock_qp *)qp)->granted.max_recv_wr);
}

/* ---- Shared receive queues ---- */

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	int errnum = mock_call("ibv_create_srq", pd);
	struct mock_srq *s;

	mock_check(pd, "PD", "ibv_create_srq");
	if (!errnum && (!attr->attr.max_wr || attr->attr.max_wr > PENDING_MAX ||
			attr->attr.max_wr > (unsigned)mock_device.attr.max_srq_wr))
		errnum = EINVAL;
	if (errnum) {
		errno = errnum;
		return NULL;
	}
	s = mock_make("SRQ", sizeof(*s));
	s->srq.context = pd->context;
	s->srq.pd = pd;
	if (mock_device.srq_grants)
		attr->attr.max_wr = mock_device.srq_grants;
	s->limit = attr->attr.max_wr;
	return &s->srq;
}

int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	int errnum = mock_call("ibv_modify_srq", srq);

	if (!mock_check(srq, "SRQ", "ibv_modify_srq") || errnum)
		return errnum ? errnum : EINVAL;
	if (mask == IBV_SRQ_LIMIT)
		((struct mock_srq *)srq)->low = attr->srq_limit;
	return 0;
}

unsigned mock_srq_low(const struct ibv_srq *srq)
{
	return ((const struct mock_srq *)srq)->low;
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
	int errnum = mock_call("ibv_destroy_srq", srq);

	for (struct mock_qp *q = NULL; (q = mock_next_alive("QP", q));)
		if (q->qp.srq == srq)
			mock_complain("ibv_destroy_srq before its QP");
	mock_end(srq, "SRQ", "ibv_destroy_srq");
	return errnum;
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int errnum = mock_call("ibv_post_srq_recv", srq);
	struct mock_srq *s = (struct mock_srq *)srq;

	*bad = wr;
	if (!mock_check(srq, "SRQ", "ibv_post_srq_recv") || errnum)
		return errnum ? errnum : EINVAL;
	check_memory(wr->sg_list, wr->num_sge, "ibv_post_srq_recv");
	for (unsigned i = 0; i < s->count; i++)
		if (s->pending[i].wr_id == wr->wr_id)
			mock_complain("ibv_post_srq_recv of what is posted");
	if (s->count == s->limit)
		return ENOMEM;
	s->pending[s->count++] = (struct mock_wr){ .wr_id = wr->wr_id,
						   .num_sge = wr->num_sge,
						   .sge = wr->sg_list[0] };
	return 0;
}

unsigned mock_srq_pending(const struct ibv_srq *srq)
{
	return ((const struct mock_srq *)srq)->count;
}

/* ---- Asynchronous events ---- */

void mock_async_event(enum ibv_event_type type, void *element)
{
	async_events[async_count++] =
		(struct ibv_async_event){ .event_type = type, .element.qp = element };
	mock_system_raise(mock_context.async_fd);
}

unsigned mock_async_pending(void)
{
	return async_count;
}

static struct mock_qp *qp_of(const struct ibv_async_event *event)
{
	for (struct mock_qp *q = NULL; (q = mock_next_alive("QP", q));)
		if (&q->qp == event->element.qp)
			return q;
	return NULL;
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	int errnum = mock_call("ibv_get_async_event", context);

	if (!errnum && !async_count) {
		errnum = EAGAIN;
		if (!mock_system_nonblocking(context->async_fd))
			mock_complain("ibv_get_async_event would block");
	}
	if (errnum) {
		errno = errnum;
		return -1;
	}
	*event = async_events[0];
	memmove(async_events, async_events + 1, --async_count * sizeof(*event));
	mock_system_take(context->async_fd);
	if (qp_of(event))
		qp_of(event)->unacked++;
	return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	mock_note("ibv_ack_async_event", event->element.qp);
	if (qp_of(event))
		qp_of(event)->unacked--;
}

/* ---- Words ---- */

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
	return status == IBV_WC_RETRY_EXC_ERR ? "transport retry counter exceeded" : "wc error";
}

const char *ibv_event_type_str(enum ibv_event_type event)
{
	return event == IBV_EVENT_QP_FATAL ? "local work queue catastrophic error" : "event";
}

void mock_verbs_reset(void)
{
	for (struct mock_comp *c = NULL; (c = mock_next_alive("completion channel", c));)
		close(c->channel.fd);
	mock_rdmacm_reset();
	mock_books_reset();
	mock_system_reset();
	if (mock_context.device)
		close(mock_context.async_fd);
	async_count = 0;
	opened = NULL;
	next_key = next_qp_num = 0;
	device = (struct ibv_device){ .name = MOCK_DEVICE, .transport_type = IBV_TRANSPORT_IB };
	mock_context = (struct ibv_context){
		.device = &device,
		.ops = { .alloc_mw = alloc_mw,
			 .dealloc_mw = dealloc_mw,
			 .poll_cq = poll_cq,
			 .req_notify_cq = req_notify_cq,
			 .post_send = post_send,
			 .post_recv = post_recv,
			 .post_srq_recv = post_srq_recv },
		.async_fd = mock_system_eventfd(),
	};
	mock_lose_flushes = false;
	mock_post_by_errno = false;
	mock_src_qp = 0;
	memset(mock_gids, 0, sizeof(mock_gids));
	memcpy(mock_pkeys, (uint16_t[3]){ 0x7fff, 0xffff, 0x8001 }, sizeof(mock_pkeys));
	mock_ipoib_pkey = 0;
	mock_device = (struct mock_device){
		.attr = { .phys_port_cnt = 1,
			  .max_qp_wr = 256,
			  .max_sge = 16,
			  .max_cqe = 1024,
			  .max_srq = 16,
			  .max_srq_wr = 256,
			  .max_srq_sge = 4,
			  .max_qp_rd_atom = 16,
			  .max_qp_init_rd_atom = 16,
			  .atomic_cap = IBV_ATOMIC_HCA },
		.port = { .max_msg_sz = 1u << 30,
			  .state = IBV_PORT_ACTIVE,
			  .active_mtu = IBV_MTU_1024,
			  .gid_tbl_len = MOCK_GIDS,
			  .link_layer = IBV_LINK_LAYER_ETHERNET },
		/* 127.0.0.1, so that real sockets can reach it; of RoCE v1 first, which is not for us. */
		.gids = { { .gid.raw = { [10] = 0xff, 0xff, 127, 0, 0, 1 },
			    .gid_index = 2,
			    .port_num = 1,
			    .ndev_ifindex = if_nametoindex("lo"),
			    .gid_type = IBV_GID_TYPE_ROCE_V1 },
			  { .gid.raw = { [10] = 0xff, 0xff, 127, 0, 0, 1 },
			    .gid_index = 3,
			    .port_num = 1,
			    .ndev_ifindex = if_nametoindex("lo"),
			    .gid_type = IBV_GID_TYPE_ROCE_V2 } },
		.gid_count = 2,
		.inline_max = 512,
		.inline_grants = 256,
	};
}
