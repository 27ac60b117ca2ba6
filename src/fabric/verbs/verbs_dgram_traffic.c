/* SPDX-License-Identifier: Apache-2.0 */
/* Datagrams over UD: posting, polling, getting ready to sleep. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "fabric/verbs/verbs_dgram.h"

#define ACK_EVERY 64u
#define DRAIN_MS 100u

static uint8_t *slot_at(const struct verbs_dg *dg, unsigned slot)
{
	return dg->memory + slot * dg->stride;
}

/* ---- Receiving ---- */

int verbs_dg_post_receive(struct verbs_dg *dg, unsigned slot)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)slot_at(dg, slot),
		.length = (uint32_t)(VERBS_GRH + dg->base.max_bytes),
		.lkey = dg->mr->lkey,
	};
	struct ibv_recv_wr *bad, wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 };

	return verbs_errnum(ibv_post_recv(dg->home->qp, &wr, &bad));
}

void verbs_dg_give_back(struct vb__dg *base, unsigned slot)
{
	struct verbs_dg *dg = (struct verbs_dg *)base;
	int rc = verbs_dg_post_receive(dg, slot);

	if (rc)
		verbs_dg_break(dg, rc, "ibv_post_recv");
}

static void fail_wc(struct verbs_dg *dg, enum ibv_wc_status status, enum vb__op_kind kind)
{
	verbs_fail_wc(&dg->base.down, status, kind, dg->base.address);
}

/* Without a GRH in front of it, or from ourselves by a group: not for the application. */
static bool take(struct verbs_dg *dg, const struct ibv_wc *wc, struct vb__dg_arrival *arrival)
{
	unsigned slot = (unsigned)wc->wr_id;
	const uint8_t *at = slot_at(dg, slot);

	if (wc->status != IBV_WC_SUCCESS) {
		fail_wc(dg, wc->status, VB__OP_RECV);
		return false;
	}
	if (wc->byte_len < VERBS_GRH || !verbs_dg_origin(dg, wc, at, &arrival->from)) {
		verbs_dg_give_back(&dg->base, slot);
		return false;
	}
	arrival->bytes = at + VERBS_GRH;
	arrival->len = wc->byte_len - VERBS_GRH;
	arrival->slot = slot;
	return true;
}

/* Polls if there is nothing left of what was polled before. False: there is nothing. */
static bool anything_done(struct verbs_dg *dg)
{
	int n;

	if (dg->done_next < dg->done_count)
		return true;
	n = ibv_poll_cq(dg->receives, VERBS_DGRAM_BATCH, dg->done);
	if (n < 0)
		verbs_dg_break(dg, EIO, "ibv_poll_cq"); /* errno is not defined here */
	dg->done_next = 0;
	dg->done_count = n > 0 ? (unsigned)n : 0;
	return n > 0;
}

int verbs_dg_receive(struct vb__dg *base, struct vb__dg_arrival *arrival)
{
	struct verbs_dg *dg = (struct verbs_dg *)base;

	if (vb__idle_enough(&dg->idle))
		verbs_dg_look_after(dg);
	while (base->down.code == VB_OK && anything_done(dg))
		if (take(dg, &dg->done[dg->done_next++], arrival))
			return 1;
	return base->down.code;
}

/* ---- Sending ---- */

/* Of an error, which the device only reports where the queue pair is done for, all is over. */
static void reap(struct verbs_dg *dg)
{
	struct ibv_wc wcs[VERBS_DGRAM_BATCH];
	int n;

	do {
		n = ibv_poll_cq(dg->sends, VERBS_DGRAM_BATCH, wcs);
		for (int i = 0; i < n; i++) {
			if (wcs[i].status != IBV_WC_SUCCESS)
				fail_wc(dg, wcs[i].status, VB__OP_SEND);
			dg->completed++;
			dg->stuck = false;
		}
	} while (n == VERBS_DGRAM_BATCH);
	if (n < 0)
		verbs_dg_break(dg, EIO, "ibv_poll_cq");
}

static bool is_full(const struct verbs_dg *dg)
{
	return dg->posted - dg->completed == dg->room;
}

void verbs_dg_drain(struct verbs_dg *dg)
{
	const struct timespec nap = { .tv_nsec = 100000 };
	uint64_t deadline = vb__now_ns() + vb__ms(DRAIN_MS);

	while (dg->posted != dg->completed && dg->base.down.code == VB_OK) {
		reap(dg);
		if (dg->stuck || dg->posted == dg->completed)
			return;
		dg->stuck = vb__now_ns() >= deadline;
		nanosleep(&nap, NULL);
	}
}

static int post_send(struct verbs_dg *dg, const struct verbs_dg_peer *peer, uint8_t *at, size_t len)
{
	struct ibv_sge sge = { .addr = (uintptr_t)at,
			       .length = (uint32_t)len,
			       .lkey = dg->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = len ? 1 : 0,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED | (len <= dg->inline_bytes ? IBV_SEND_INLINE : 0),
		.wr.ud = { .ah = peer->ah, .remote_qpn = peer->qp_num, .remote_qkey = peer->qkey },
	};

	return verbs_errnum(ibv_post_send(dg->home->qp, &wr, &bad));
}

int verbs_dg_send(struct vb__dg *base, struct vb__dg_peer *peer, const void *head, size_t head_len,
		  const void *bytes, size_t len, struct vb_error *err)
{
	struct verbs_dg *dg = (struct verbs_dg *)base;
	uint8_t *at;
	int rc;

	if (vb__idle_enough(&dg->idle))
		verbs_dg_look_after(dg);
	if (is_full(dg))
		reap(dg);
	if (base->down.code != VB_OK)
		return vb__fail_again(err, &base->down);
	if (is_full(dg))
		return VB_ERR_AGAIN;
	rc = verbs_dg_refresh(dg, (struct verbs_dg_peer *)peer, err);
	if (rc)
		return rc;
	at = slot_at(dg, dg->slots + dg->posted % dg->room);
	if (head_len)
		memcpy(at, head, head_len);
	if (len)
		memcpy(at + head_len, bytes, len);
	rc = post_send(dg, (struct verbs_dg_peer *)peer, at, head_len + len);
	if (rc)
		return verbs_fail(err, rc, "ibv_post_send", peer->text);
	dg->posted++;
	return 0;
}

/* ---- Sleeping ---- */

static void count_event(struct ibv_cq *cq, unsigned *unacked)
{
	if (++*unacked == ACK_EVERY) {
		ibv_ack_cq_events(cq, *unacked);
		*unacked = 0;
	}
}

/* True if there were any for receives. */
static bool take_completion_events(struct verbs_dg *dg)
{
	bool received = false;
	struct ibv_cq *cq;
	void *context;

	while (ibv_get_cq_event(dg->completions, &cq, &context) == 0) {
		if (cq == dg->receives) {
			received = true;
			count_event(cq, &dg->unacked_receives);
		} else {
			count_event(cq, &dg->unacked_sends);
		}
	}
	if (errno != EAGAIN && errno != EINTR)
		verbs_dg_break(dg, errno, "ibv_get_cq_event");
	return received;
}

static void notify(struct verbs_dg *dg, struct ibv_cq *cq)
{
	int rc = ibv_req_notify_cq(cq, 0);

	if (rc)
		verbs_dg_break(dg, rc, "ibv_req_notify_cq");
}

/* Arming comes before the last look, or what completes in between would wake nobody. */
int verbs_dg_arm(struct vb__dg *base, bool for_room)
{
	struct verbs_dg *dg = (struct verbs_dg *)base;
	bool received;

	verbs_dg_look_after(dg);
	if (!for_room)
		vb__waiter_check(&dg->waiter, VB__READY_WAKE);
	received = take_completion_events(dg);
	notify(dg, for_room ? dg->sends : dg->receives);
	if (for_room && received) {
		/* Somebody may sleep on that who now would not hear of it. */
		notify(dg, dg->receives);
		vb__waiter_wake(&dg->waiter);
	}
	if (base->down.code != VB_OK)
		return 1;
	if (for_room) {
		reap(dg);
		return !is_full(dg) || base->down.code != VB_OK;
	}
	return anything_done(dg) || base->down.code != VB_OK;
}
