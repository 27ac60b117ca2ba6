/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who gets what of a pool. Whoever polls for one endpoint takes all that has
 * completed, and hands it to those it is for. The completion queue is always
 * armed: whoever takes its event arms it again and then takes what has
 * completed, so nobody's sleep depends on what another thread has taken.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "fabric/verbs/verbs.h"

#define BATCH 16

/* It is of no use any more: all members are to find that out. */
static void give_up(struct verbs_pool *pool, int errnum, const char *operation)
{
	if (pool->failed)
		return;
	pool->failed = errnum;
	pool->failed_call = operation;
	verbs_note(&pool->log, errnum, operation, pool->device, "who shares receives there ends");
	for (unsigned i = 0; i < VERBS_POOL_BUCKETS; i++)
		for (struct verbs_ep *ep = pool->members[i]; ep; ep = ep->share.next)
			vb__waiter_wake(&ep->waiter);
}

void verbs_pool_post(struct verbs_pool *pool, struct verbs_arrival *slot)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)slot->base.bytes,
		.length = (uint32_t)pool->room,
		.lkey = pool->mr->lkey,
	};
	struct ibv_recv_wr *bad, wr = {
		.wr_id = (uint64_t)(slot - pool->slots),
		.sg_list = &sge,
		.num_sge = 1,
	};
	int rc = verbs_errnum(ibv_post_srq_recv(pool->srq, &wr, &bad));

	if (rc)
		give_up(pool, rc, "ibv_post_srq_recv");
	else
		pool->posted++;
}

static void let_go(struct verbs_pool *pool, struct verbs_arrival *arrival)
{
	if (arrival->copy)
		free(arrival);
	else
		verbs_pool_post(pool, arrival);
}

void verbs_pool_give_back(struct vb__pool *base, struct vb__arrival *arrival)
{
	struct verbs_pool *pool = (struct verbs_pool *)base;

	pthread_mutex_lock(&pool->lock);
	let_go(pool, (struct verbs_arrival *)arrival);
	pthread_mutex_unlock(&pool->lock);
}

/* ---- Handing out; lock held ---- */

static struct verbs_ep **bucket_of(struct verbs_pool *pool, uint32_t qp_num)
{
	return &pool->members[qp_num % VERBS_POOL_BUCKETS];
}

static struct verbs_ep *member(struct verbs_pool *pool, uint32_t qp_num)
{
	struct verbs_ep *ep = *bucket_of(pool, qp_num);

	while (ep && ep->share.qp_num != qp_num)
		ep = ep->share.next;
	return ep;
}

/*
 * What waits to be read must not keep the pool empty: then the word that a
 * blocked sender of ours waits for could not arrive. So when little is left
 * the message moves to memory of its own, and its receive is posted again.
 */
static struct verbs_arrival *keep(struct verbs_pool *pool, struct verbs_arrival *slot, size_t len)
{
	struct verbs_arrival *copy;

	if (pool->posted >= pool->count / 2)
		return slot;
	copy = malloc(sizeof(*copy) + len);
	if (!copy)
		return slot;
	*copy = (struct verbs_arrival){
		.base = { .bytes = (uint8_t *)(copy + 1) },
		.copy = true,
	};
	memcpy(copy->base.bytes, slot->base.bytes, len);
	verbs_pool_post(pool, slot);
	return copy;
}

static void add_arrival(struct verbs_ep *ep, struct verbs_arrival *arrival, const struct ibv_wc *wc)
{
	struct verbs_share *share = &ep->share;

	arrival->wc = *wc;
	arrival->next = NULL;
	if (share->last)
		share->last->next = arrival;
	else
		share->first = arrival;
	share->last = arrival;
	share->arrived++;
}

static void hand_over_receive(struct verbs_pool *pool, struct verbs_ep *ep, const struct ibv_wc *wc)
{
	struct verbs_arrival *slot = &pool->slots[wc->wr_id];
	/* What is written with immediate data goes elsewhere: the receive holds nothing. */
	size_t len = wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM ? 0 : wc->byte_len;

	pool->posted--;
	if (!ep || wc->status != IBV_WC_SUCCESS || ep->share.arrived >= ep->base.recv_depth) {
		verbs_pool_post(pool, slot);
		if (ep && wc->status != IBV_WC_SUCCESS)
			ep->share.bad_receive = wc->status;
		else if (ep)
			ep->share.overrun = true;
		return;
	}
	add_arrival(ep, keep(pool, slot, len), wc);
}

static void add_sent(struct verbs_share *share, const struct ibv_wc *wc)
{
	unsigned at = (share->sent_first + share->sent_count++) % share->sent_size;

	share->sent[at] = (struct verbs_sent){ wc->wr_id, wc->status };
}

static bool has_news(const struct verbs_share *share)
{
	return share->first || share->sent_count || share->bad_receive || share->overrun;
}

static void hand_over(struct verbs_pool *pool, const struct ibv_wc *wc, const struct verbs_ep *mine)
{
	struct verbs_ep *ep = member(pool, wc->qp_num);
	bool had_news = ep && has_news(&ep->share);

	/* Of a failed one the opcode is not defined: the ids tell, those of receives are the slots'. */
	if (wc->wr_id < pool->count)
		hand_over_receive(pool, ep, wc);
	else if (ep)
		add_sent(&ep->share, wc);
	if (ep && ep != mine && !had_news)
		vb__waiter_wake(&ep->waiter);
}

/* All that had completed was taken, so what is posted is what the device has left. */
static void watch_for_low(struct verbs_pool *pool)
{
	if (!atomic_load_explicit(&pool->watcher.ran_low, memory_order_relaxed) ||
	    pool->posted < pool->count / 4 || vb__now_ns() < pool->rearm_ns)
		return;
	atomic_store(&pool->watcher.ran_low, false);
	verbs_pool_arm_limit(pool);
}

static void hand_out(struct verbs_pool *pool, const struct verbs_ep *mine)
{
	struct ibv_wc wcs[BATCH];
	int n;

	do {
		n = ibv_poll_cq(pool->cq, BATCH, wcs);
		for (int i = 0; i < n; i++)
			hand_over(pool, &wcs[i], mine);
	} while (n == BATCH);
	if (n < 0)
		give_up(pool, EIO, "ibv_poll_cq"); /* errno is not defined here */
	else
		watch_for_low(pool);
}

static bool take_events(struct verbs_pool *pool)
{
	struct ibv_cq *cq;
	void *context;
	bool any = false;

	while (ibv_get_cq_event(pool->completions, &cq, &context) == 0) {
		any = true;
		if (++pool->unacked == 64) {
			ibv_ack_cq_events(pool->cq, pool->unacked);
			pool->unacked = 0;
		}
	}
	if (errno != EAGAIN && errno != EINTR)
		give_up(pool, errno, "ibv_get_cq_event");
	return any;
}

/* Lock not held: the members that a device's event concerns are told of it. */
static uint32_t check(struct verbs_pool *pool)
{
	uint32_t ready = vb__waiter_check(&pool->waiter, 0);
	int rc = ready & VERBS_POOL_DEVICE ? verbs_take_device_events(pool->context) : 0;

	if (rc) {
		pthread_mutex_lock(&pool->lock);
		give_up(pool, rc, "ibv_get_async_event");
		pthread_mutex_unlock(&pool->lock);
	}
	return ready;
}

static void look_after(struct verbs_pool *pool, uint32_t ready, const struct verbs_ep *mine)
{
	int rc;

	if (!(ready & VERBS_POOL_CQ) || !take_events(pool))
		return;
	rc = ibv_req_notify_cq(pool->cq, 0);
	if (rc)
		give_up(pool, rc, "ibv_req_notify_cq");
	hand_out(pool, mine);
}

void verbs_pool_look_after(struct vb__pool *base)
{
	struct verbs_pool *pool = (struct verbs_pool *)base;
	uint32_t ready = check(pool);

	pthread_mutex_lock(&pool->lock);
	look_after(pool, ready, NULL);
	pthread_mutex_unlock(&pool->lock);
}

/* ---- For the endpoints ---- */

static int take_arrivals(struct verbs_share *share, struct verbs_taken *taken, int max)
{
	int n = 0;

	while (n < max && share->first) {
		taken[n++] = (struct verbs_taken){ share->first->wc, share->first };
		share->first = share->first->next;
		share->arrived--;
	}
	if (!share->first)
		share->last = NULL;
	if (n < max && share->bad_receive) {
		taken[n++] = (struct verbs_taken){ { .status = share->bad_receive }, NULL };
		share->bad_receive = IBV_WC_SUCCESS;
	}
	return n;
}

static int take_sent(struct verbs_share *share, struct verbs_taken *taken, int max)
{
	int n = 0;

	for (; n < max && share->sent_count; n++) {
		const struct verbs_sent *sent = &share->sent[share->sent_first];

		taken[n] = (struct verbs_taken){ { .wr_id = sent->wr_id, .status = sent->status },
						 NULL };
		share->sent_first = (share->sent_first + 1) % share->sent_size;
		share->sent_count--;
	}
	return n;
}

static void end_overrun(struct verbs_ep *ep)
{
	vb__ep_down(&ep->base, &(struct vb__failure){
				       .code = VB_ERR_PROTOCOL,
				       .operation = "receive from",
				       .object = ep->base.peer,
				       .cause = "the peer sent more than it was allowed to",
				       .hint = "the peer runs a broken or foreign program",
			       });
	verbs_cut(ep);
}

int verbs_pool_poll(struct verbs_ep *ep, struct verbs_taken *taken, int max)
{
	struct verbs_pool *pool = ep->share.pool;
	bool overrun;
	int n, failed;

	pthread_mutex_lock(&pool->lock);
	hand_out(pool, ep);
	n = take_arrivals(&ep->share, taken, max);
	n += take_sent(&ep->share, taken + n, max - n);
	overrun = ep->share.overrun;
	ep->share.overrun = false;
	failed = pool->failed;
	pthread_mutex_unlock(&pool->lock);
	if (failed)
		verbs_break(ep, failed, pool->failed_call);
	if (overrun && ep->base.state != VB__EP_DOWN)
		end_overrun(ep);
	return n;
}

bool verbs_pool_quiet(struct verbs_ep *ep)
{
	struct verbs_pool *pool = ep->share.pool;
	uint32_t ready = check(pool);
	bool quiet;

	pthread_mutex_lock(&pool->lock);
	look_after(pool, ready, ep);
	quiet = !has_news(&ep->share) && !pool->failed;
	pthread_mutex_unlock(&pool->lock);
	return quiet;
}

/* ---- Joining and leaving ---- */

/* The completion queue grows so that all completions of all members fit. Lock held. */
static int make_room(struct verbs_pool *pool, unsigned sends, struct vb_error *err)
{
	unsigned needed = pool->count + pool->sends + sends, wanted = pool->cq_size;
	int rc;

	while (wanted < needed)
		wanted *= 2;
	if (wanted > pool->cq_max)
		wanted = pool->cq_max;
	if (wanted < needed)
		return verbs_fail(err, ENOMEM, "ibv_resize_cq", pool->device);
	rc = wanted > pool->cq_size ? ibv_resize_cq(pool->cq, (int)wanted) : 0;
	if (rc)
		return verbs_fail_queue(err, rc, "ibv_resize_cq", pool->device, wanted, 0);
	pool->cq_size = wanted;
	return 0;
}

int verbs_pool_join(struct verbs_ep *ep, struct vb_error *err)
{
	struct verbs_pool *pool = ep->share.pool;
	struct verbs_ep **bucket;
	int rc;

	ep->share.sent_size = ep->base.send_depth + 1;
	ep->share.sent = calloc(ep->share.sent_size, sizeof(*ep->share.sent));
	if (!ep->share.sent)
		return verbs_fail(err, ENOMEM, "calloc", NULL);
	pthread_mutex_lock(&pool->lock);
	rc = make_room(pool, ep->share.sent_size, err);
	if (rc == 0) {
		pool->sends += ep->share.sent_size;
		ep->share.joined = true;
		ep->share.qp_num = ep->qp->qp_num; /* the queue pair may go before its member */
		bucket = bucket_of(pool, ep->share.qp_num);
		ep->share.next = *bucket;
		*bucket = ep;
	}
	pthread_mutex_unlock(&pool->lock);
	return rc;
}

/* Lock held. */
static void forget(struct verbs_pool *pool, struct verbs_ep *ep)
{
	struct verbs_ep **at = bucket_of(pool, ep->share.qp_num);

	while (*at != ep)
		at = &(*at)->share.next;
	*at = ep->share.next;
	pool->sends -= ep->share.sent_size;
	while (ep->share.first) {
		struct verbs_arrival *arrival = ep->share.first;

		ep->share.first = arrival->next;
		let_go(pool, arrival);
	}
}

/*
 * What it has received goes back to the pool. It receives nothing more, being disconnected; still
 * what the device had begun is looked for once more: some drivers leave it in the completion queue
 * when the queue pair goes, others take it away.
 */
void verbs_pool_leave(struct verbs_ep *ep)
{
	struct verbs_pool *pool = ep->share.pool;

	pthread_mutex_lock(&pool->lock);
	hand_out(pool, ep);
	if (ep->share.joined)
		forget(pool, ep);
	verbs_destroy_qp(ep);
	hand_out(pool, ep);
	pthread_mutex_unlock(&pool->lock);
	free(ep->share.sent);
	ep->share = (struct verbs_share){ .pool = NULL };
	ep->cq = NULL;
}
