/* SPDX-License-Identifier: Apache-2.0 */
/* Rails. The loops over them are not here. */
#include "perf/perf_rail.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "perf/perf_datagrams.h"
#include "perf/perf_pattern.h"

#define TELLING VB__OP_ID_MAX
#define OPENING (VB__OP_ID_MAX - 1)
#define BATCH 16

/* Besides the messages: the ledger, and the opening. */
#define OTHERS 2u

/* One at a time, but the next goes out before the last one is known to have. */
#define DEPTH_OF_LATENCY 16u

static uint8_t *ledger_of(const struct vb__perf_rail *rail)
{
	return rail->memory;
}

/* What our peer's ledger is written from. */
static uint8_t *scratch_of(const struct vb__perf_rail *rail)
{
	return rail->memory + 64;
}

static bool has_ledger(const struct vb__perf_plan *plan)
{
	return plan->cell.kind == VB_PERF_BANDWIDTH && vb__perf_takes_receives(plan->cell.op) &&
	       !vb__perf_is_lossy(plan->cell.qp);
}

struct vb__ep_attr vb__perf_rail_attr(const struct vb__perf_plan *plan)
{
	unsigned depth = plan->cell.kind == VB_PERF_LATENCY ? DEPTH_OF_LATENCY : plan->cell.depth;

	return (struct vb__ep_attr){
		.send_depth = depth + OTHERS,
		.recv_depth = plan->layout.receives,
		.sge = 1,
		.settings = plan->settings,
		.qp_type = plan->cell.qp == VB_PERF_UC ? VB__QP_UC : VB__QP_RC,
	};
}

/* ---- Memory ---- */

static unsigned target_access(enum vb_perf_op op)
{
	switch (op) {
	case VB_PERF_WRITE:
	case VB_PERF_WRITE_IMM:
		return VB__ACCESS_REMOTE_WRITE;
	case VB_PERF_READ:
		return VB__ACCESS_REMOTE_READ;
	case VB_PERF_FETCH_ADD:
	case VB_PERF_CAS:
		return VB__ACCESS_REMOTE_ATOMIC;
	case VB_PERF_SEND:
		break;
	}
	return VB__ACCESS_LOCAL;
}

static int register_all(const struct vb__perf_plan *plan, struct vb__perf_rail *rail,
			struct vb_error *err)
{
	const struct vb__perf_layout *l = &plan->layout;
	enum vb_perf_op op = plan->cell.op;
	unsigned sink = op == VB_PERF_READ ? VB__ACCESS_READ_SINK : VB__ACCESS_LOCAL;
	int rc = 0;

	if (has_ledger(plan))
		rc = vb__mr_open(rail->ep, rail->memory, VB__PERF_PAGE, VB__ACCESS_REMOTE_WRITE,
				 &rail->ledger_mr, err);
	if (rc == 0)
		rc = vb__mr_open(rail->ep, rail->memory + l->out_at, l->in_at - l->out_at, sink,
				 &rail->out_mr, err);
	if (rc == 0)
		rc = vb__mr_open(rail->ep, rail->memory + l->in_at, l->bytes - l->in_at,
				 plan->is_target ? target_access(op) : VB__ACCESS_LOCAL,
				 &rail->in_mr, err);
	return rc;
}

/* A division for each message would show in its time, and mostly there is one slot. */
static uint64_t nth(uint64_t number, uint64_t slots)
{
	return slots == 1 ? 0 : number % slots;
}

static uint8_t *in_slot(const struct vb__perf_plan *plan, const struct vb__perf_rail *rail,
			uint64_t number)
{
	const struct vb__perf_layout *l = &plan->layout;

	return rail->memory + l->in_at + nth(number, l->in_slots) * l->slot_bytes;
}

static uint8_t *out_slot(const struct vb__perf_plan *plan, const struct vb__perf_rail *rail,
			 uint64_t number)
{
	const struct vb__perf_layout *l = &plan->layout;

	return rail->memory + l->out_at + nth(number, l->out_slots) * l->slot_bytes;
}

/* What is read has something in it; all else is zeros, as a counter wants it, and the mark of a write that has not come. */
static void fill(const struct vb__perf_plan *plan, struct vb__perf_rail *rail)
{
	const struct vb__perf_layout *l = &plan->layout;

	for (unsigned i = 0; i < l->out_slots; i++)
		vb__perf_pattern_fill(out_slot(plan, rail, i), plan->cell.bytes, i);
	for (unsigned i = 0; plan->cell.op == VB_PERF_READ && i < l->in_slots; i++)
		vb__perf_pattern_fill(in_slot(plan, rail, i), plan->cell.bytes, i);
}

/* ---- Receives ---- */

static int post_receive(const struct vb__perf_plan *plan, struct vb__perf_rail *rail,
			struct vb_error *err)
{
	uint64_t number = rail->recvs;
	struct vb__sge sge = { .addr = in_slot(plan, rail, number),
			       .len = plan->cell.bytes,
			       .mr = rail->in_mr };
	struct vb__op op = { .kind = VB__OP_RECV, .id = number, .sge = &sge, .sge_count = 1 };
	int rc = vb__ep_post(rail->ep, &op, err);

	if (rc == 0)
		rail->recvs++;
	return rc;
}

static int tell(struct vb__perf_rail *rail, struct vb_error *err)
{
	struct vb__sge sge = { .addr = scratch_of(rail),
			       .len = sizeof(rail->arrived),
			       .mr = rail->ledger_mr };
	struct vb__op op = {
		.kind = VB__OP_WRITE,
		.id = TELLING,
		.sge = &sge,
		.sge_count = 1,
		.remote_addr = rail->peer.ledger.addr,
		.remote_key = rail->peer.ledger.key,
	};
	int rc;

	if (rail->telling || rail->arrived - rail->told < (rail->receives + 1) / 2)
		return 0;
	memcpy(scratch_of(rail), &rail->arrived, sizeof(rail->arrived));
	rc = vb__ep_post(rail->ep, &op, err);
	if (rc == 0) {
		rail->telling = true;
		rail->told = rail->arrived;
	}
	return rc;
}

int vb__perf_rail_repay(const struct vb__perf_plan *plan, struct vb__perf_rail *rail,
			struct vb_error *err)
{
	int rc = 0;

	for (; rc == 0 && rail->owed; rail->owed--)
		rc = post_receive(plan, rail, err);
	if (rc == 0 && rail->ledger_mr)
		rc = tell(rail, err);
	return rc;
}

/* ---- Life ---- */

static int check_depth(const struct vb__perf_plan *plan, const struct vb__ep *ep,
		       struct vb_error *err)
{
	struct vb__ep_attr wanted = vb__perf_rail_attr(plan);
	char cause[120];

	if (ep->send_depth >= wanted.send_depth && ep->recv_depth)
		return 0;
	snprintf(cause, sizeof(cause), "it takes at most %u operations at once", ep->send_depth);
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_TOO_BIG,
				     .operation = "measure over",
				     .object = ep->device,
				     .cause = cause,
				     .hint = "try less depth",
			     });
}

int vb__perf_rail_equip(const struct vb__perf_plan *plan, struct vb__perf_rail *rail,
			struct vb_error *err)
{
	struct vb__ep *ep = rail->ep;
	void *memory;
	int rc = vb__perf_cell_fits(&plan->cell, ep->caps, ep->max_bytes, ep->device, err);

	if (rc == 0)
		rc = check_depth(plan, ep, err);
	if (rc)
		return rc;
	memory = mmap(NULL, plan->layout.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
	if (memory == MAP_FAILED)
		return vb__fail_errno(err, errno, "mmap", NULL);
	rail->memory = memory;
	fill(plan, rail);
	rc = register_all(plan, rail, err);
	rail->receives = ep->recv_depth < plan->layout.receives ? ep->recv_depth
								: plan->layout.receives;
	for (unsigned i = 0; rc == 0 && i < rail->receives; i++)
		rc = post_receive(plan, rail, err);
	return rc;
}

struct vb__perf_pass vb__perf_rail_pass(const struct vb__perf_plan *plan,
					const struct vb__perf_rail *rail, unsigned number)
{
	struct vb__perf_pass pass = { .key = plan->key,
				      .rail = (uint8_t)number,
				      .receives = rail->receives };

	if (rail->in_mr && plan->is_target) {
		pass.data.addr = rail->in_mr->remote_addr;
		pass.data.key = rail->in_mr->remote_key;
	}
	if (rail->ledger_mr) {
		pass.ledger.addr = rail->ledger_mr->remote_addr;
		pass.ledger.key = rail->ledger_mr->remote_key;
	}
	return pass;
}

void vb__perf_rail_close(const struct vb__perf_plan *plan, struct vb__perf_rail *rail)
{
	vb__ep_close(rail->ep);
	vb__dg_close(rail->dg);
	if (rail->memory)
		munmap(rail->memory, plan->layout.bytes);
	*rail = (struct vb__perf_rail){ .ep = NULL };
}

int vb__perf_rail_fd(const struct vb__perf_rail *rail)
{
	return rail->dg ? rail->dg->wait_fd : rail->ep ? rail->ep->wait_fd : -1;
}

int vb__perf_rail_arm(const struct vb__perf_rail *rail, bool sends)
{
	if (rail->dg)
		return vb__dg_arm(rail->dg, sends);
	return rail->ep ? vb__ep_arm(rail->ep) : 0;
}

bool vb__perf_rail_is_attended(const struct vb__perf_rail *rail)
{
	return rail->ep && rail->ep->caps & VB__CAP_ATTENDED;
}

/* ---- Posting ---- */

static uint64_t taken_by_peer(const struct vb__perf_rail *rail)
{
	return __atomic_load_n((const uint64_t *)(const void *)ledger_of(rail), __ATOMIC_ACQUIRE);
}

bool vb__perf_rail_has_room(const struct vb__perf_rail *rail, unsigned depth)
{
	if (rail->posted - rail->completed >= depth)
		return false;
	return !rail->ledger_mr || rail->posted - taken_by_peer(rail) < rail->peer.receives;
}

static const enum vb__op_kind kinds[] = {
	[VB_PERF_SEND] = VB__OP_SEND,		[VB_PERF_WRITE] = VB__OP_WRITE,
	[VB_PERF_WRITE_IMM] = VB__OP_WRITE_IMM, [VB_PERF_READ] = VB__OP_READ,
	[VB_PERF_FETCH_ADD] = VB__OP_FETCH_ADD, [VB_PERF_CAS] = VB__OP_COMPARE_SWAP,
};

/* What a message of latency ends with is its mark; the others' end is seen by a completion. */
static void write_content(const struct vb__perf_plan *plan, uint8_t *slot, uint64_t number)
{
	const struct vb_perf_cell *cell = &plan->cell;

	if (cell->check && cell->op != VB_PERF_READ && !vb__perf_is_atomic(cell->op))
		vb__perf_pattern_fill(slot, cell->bytes, number);
	if (cell->kind == VB_PERF_LATENCY && cell->op == VB_PERF_WRITE)
		slot[cell->bytes - 1] = vb__perf_mark_of(number);
}

int vb__perf_rail_post(const struct vb__perf_plan *plan, struct vb__perf_rail *rail,
		       struct vb_error *err)
{
	const struct vb__perf_layout *l = &plan->layout;
	uint64_t number = rail->posted;
	uint8_t *slot = out_slot(plan, rail, number);
	struct vb__sge sge = { .addr = slot, .len = plan->cell.bytes, .mr = rail->out_mr };
	struct vb__op op = {
		.kind = kinds[plan->cell.op],
		.id = number,
		.sge = &sge,
		.sge_count = 1,
		.remote_addr = rail->peer.data.addr + nth(number, l->in_slots) * l->slot_bytes,
		.remote_key = rail->peer.data.key,
		.imm = (uint32_t)number,
		.operand = 1,
	};
	int rc;

	if (rail->dg)
		return vb__perf_dg_post(plan, rail, err);
	if (plan->cell.op == VB_PERF_CAS) {
		op.compare = number;
		op.operand = number + 1;
	}
	write_content(plan, slot, number);
	rc = vb__ep_post(rail->ep, &op, err);
	if (rc == 0)
		rail->posted++;
	return rc;
}

int vb__perf_rail_open_talk(struct vb__perf_rail *rail, struct vb_error *err)
{
	struct vb__sge sge = { .addr = rail->out_mr->addr, .len = 1, .mr = rail->out_mr };
	struct vb__op op = { .kind = VB__OP_SEND, .id = OPENING, .sge = &sge, .sge_count = 1 };

	return vb__ep_post(rail->ep, &op, err);
}

/* ---- What comes back ---- */

static bool is_as_sent(const struct vb__perf_plan *plan, const struct vb__perf_rail *rail,
		       const struct vb__completion *done)
{
	const struct vb_perf_cell *cell = &plan->cell;
	bool by_write = cell->op == VB_PERF_WRITE_IMM;
	const uint8_t *slot = in_slot(plan, rail, by_write ? done->imm : done->id);

	/* Who may lose messages does not wait for us either: what is there may be younger. */
	if (by_write && vb__perf_is_lossy(cell->qp))
		return true;
	if (by_write && (!done->has_imm || done->imm != (uint32_t)rail->arrived))
		return false;
	if (!by_write && done->len != cell->bytes)
		return false;
	return vb__perf_pattern_is(slot, cell->bytes,
				   vb__perf_is_lossy(cell->qp)
					   ? vb__perf_pattern_number(slot, cell->bytes)
					   : rail->arrived);
}

static void take_arrival(const struct vb__perf_plan *plan, struct vb__perf_rail *rail,
			 const struct vb__completion *done)
{
	rail->owed++;
	if (rail->expects_opening) {
		rail->expects_opening = false;
		return;
	}
	if (plan->cell.check && !is_as_sent(plan, rail, done))
		rail->corrupt++;
	rail->arrived++;
}

static bool is_answer(const struct vb__perf_plan *plan, const struct vb__perf_rail *rail,
		      uint64_t number)
{
	const uint8_t *slot = out_slot(plan, rail, number);
	uint64_t before;

	if (plan->cell.op == VB_PERF_READ)
		return vb__perf_pattern_is(slot, plan->cell.bytes, number % plan->layout.in_slots);
	memcpy(&before, slot, sizeof(before));
	return before == number;
}

static void take_own(const struct vb__perf_plan *plan, struct vb__perf_rail *rail,
		     const struct vb__completion *done)
{
	if (done->id == OPENING)
		return;
	if (done->id == TELLING) {
		rail->telling = false;
		return;
	}
	if (plan->cell.check &&
	    (plan->cell.op == VB_PERF_READ || vb__perf_is_atomic(plan->cell.op)) &&
	    !is_answer(plan, rail, done->id))
		rail->corrupt++;
	rail->completed++;
}

int vb__perf_rail_poll(const struct vb__perf_plan *plan, struct vb__perf_rail *rail,
		       struct vb_error *err)
{
	struct vb__completion done[BATCH];
	int n;

	if (rail->dg)
		return vb__perf_dg_poll(plan, rail, err);
	n = vb__ep_poll(rail->ep, done, BATCH);
	for (int i = 0; i < n; i++) {
		if (done[i].status != VB_OK)
			return vb__fail_again(err, &rail->ep->down);
		if (done[i].kind == VB__OP_RECV)
			take_arrival(plan, rail, &done[i]);
		else
			take_own(plan, rail, &done[i]);
	}
	if (n == 0 && rail->ep->state == VB__EP_DOWN)
		return vb__fail_again(err, &rail->ep->down);
	return n;
}

static bool is_zero(const uint8_t *from, size_t len)
{
	return !from[0] && memcmp(from, from + 1, len - 1) == 0;
}

void vb__perf_rail_check_memory(const struct vb__perf_plan *plan, struct vb__perf_rail *rail)
{
	const struct vb_perf_cell *cell = &plan->cell;

	if (!cell->check || cell->op != VB_PERF_WRITE || cell->kind == VB_PERF_LATENCY)
		return;
	for (unsigned i = 0; i < plan->layout.in_slots; i++) {
		const uint8_t *slot = in_slot(plan, rail, i);
		uint64_t number = vb__perf_pattern_number(slot, cell->bytes);

		/* Where nothing was written, all is still zero. */
		if (!is_zero(slot, cell->bytes))
			rail->corrupt += !vb__perf_pattern_is(slot, cell->bytes, number);
	}
}
