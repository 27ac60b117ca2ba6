/* SPDX-License-Identifier: Apache-2.0 */
/* Cells. What a connection is made of is not known here. */
#include "perf/perf_cell.h"

#include <stdio.h>

#define DEFAULT_BYTES 65536u
#define DEFAULT_DEPTH 16u
#define DEFAULT_DURATION_MS 500u

/* Enough that the ledger is rarely written, and a sender hardly ever waits for it. */
#define RECEIVES 512u
/* Where each message needs memory of its own, so much of it, but for two messages at least. */
#define CHECKED_BYTES (UINT64_C(32) << 20)

/* Whoever is slower than this is taken for stuck: 10 MB/s, and a message a millisecond. */
#define SLOW_BYTES_PER_MS 10000u
#define SPAN_MAX_MS UINT64_C(0xffffffff)

static const char *const op_names[] = {
	[VB_PERF_SEND] = "send",	   [VB_PERF_WRITE] = "write",
	[VB_PERF_WRITE_IMM] = "write_imm", [VB_PERF_READ] = "read",
	[VB_PERF_FETCH_ADD] = "fetch_add", [VB_PERF_CAS] = "cas",
};
static const char *const qp_names[] = {
	[VB_PERF_RC] = "rc",
	[VB_PERF_UC] = "uc",
	[VB_PERF_UD] = "ud",
};

const char *vb_perf_op_name(enum vb_perf_op op)
{
	return op <= VB_PERF_CAS ? op_names[op] : "?";
}

const char *vb_perf_qp_name(enum vb_perf_qp qp)
{
	return qp <= VB_PERF_UD ? qp_names[qp] : "?";
}

void vb__perf_cell_settle(struct vb_perf_cell *cell)
{
	if (!cell->bytes)
		cell->bytes = vb__perf_is_atomic(cell->op) ? 8 : DEFAULT_BYTES;
	if (!cell->depth)
		cell->depth = DEFAULT_DEPTH;
	if (!cell->rails)
		cell->rails = 1;
	if (!cell->duration_ms)
		cell->duration_ms = DEFAULT_DURATION_MS;
}

static int unsupported(struct vb_error *err, const struct vb_perf_cell *cell, const char *object,
		       const char *cause, const char *hint)
{
	char operation[40];

	snprintf(operation, sizeof(operation), "measure %s over", vb_perf_op_name(cell->op));
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_UNSUPPORTED,
				     .operation = operation,
				     .object = object,
				     .cause = cause,
				     .hint = hint,
			     });
}

static int check_limits(const struct vb_perf_cell *cell, struct vb_error *err)
{
	if (cell->op > VB_PERF_CAS || cell->qp > VB_PERF_UD || cell->kind > VB_PERF_LATENCY ||
	    cell->wait > VB_PERF_EVENT)
		return vb__fail_invalid(err, "measure", "there is no such operation");
	if (cell->bytes > VB_PERF_BYTES_MAX)
		return vb__fail_invalid(err, "measure", "%u bytes are over the limit of %u",
					cell->bytes, VB_PERF_BYTES_MAX);
	if (cell->depth > VB_PERF_DEPTH_MAX)
		return vb__fail_invalid(err, "measure", "a depth of %u is over the limit of %u",
					cell->depth, VB_PERF_DEPTH_MAX);
	if (cell->rails > VB_PERF_RAILS_MAX)
		return vb__fail_invalid(err, "measure", "%u rails are over the limit of %u",
					cell->rails, VB_PERF_RAILS_MAX);
	if (cell->duration_ms > VB_PERF_DURATION_MAX_MS)
		return vb__fail_invalid(err, "measure", "more than an hour");
	if (vb__perf_is_atomic(cell->op) && cell->bytes && cell->bytes != 8)
		return vb__fail_invalid(err, "measure", "an atomic operation is on 8 bytes, not %u",
					cell->bytes);
	return 0;
}

int vb_perf_check(const struct vb_perf_cell *cell, struct vb_error *err)
{
	int rc;

	vb__error_clear(err);
	rc = check_limits(cell, err);
	if (rc)
		return rc;
	if (cell->qp == VB_PERF_UD && cell->op != VB_PERF_SEND)
		return unsupported(err, cell, "UD",
				   "a datagram can only be sent: there is no connection whose "
				   "memory could be read or written",
				   "use rc");
	if (cell->qp == VB_PERF_UC && (cell->op == VB_PERF_READ || vb__perf_is_atomic(cell->op)))
		return unsupported(err, cell, "UC",
				   "nothing comes back on an unreliable connection, and a read or "
				   "an atomic operation is an answer",
				   "use rc");
	if (cell->kind == VB_PERF_LATENCY && cell->op == VB_PERF_WRITE) {
		if (cell->wait == VB_PERF_EVENT)
			return unsupported(
				err, cell, "events",
				"the other side has no event of a write, it must look at "
				"its memory again and again",
				"poll, or measure write_imm");
		if (cell->qp == VB_PERF_UC)
			return unsupported(err, cell, "UC",
					   "the other side could not tell a lost write from a late "
					   "one, and both would wait",
					   "measure write_imm, or use rc");
	}
	return 0;
}

int vb__perf_cell_fits(const struct vb_perf_cell *cell, unsigned caps, size_t max_bytes,
		       const char *where, struct vb_error *err)
{
	char cause[160];

	if (cell->op == VB_PERF_WRITE_IMM && !(caps & VB__CAP_IMM))
		return unsupported(err, cell, where, "it has no immediate data",
				   "measure write or send");
	if (vb__perf_is_atomic(cell->op) && !(caps & VB__CAP_ATOMIC))
		return unsupported(err, cell, where, "it has no atomic operations", NULL);
	if (cell->bytes <= max_bytes)
		return 0;
	snprintf(cause, sizeof(cause), "%u bytes are over the largest message there, %zu",
		 cell->bytes, max_bytes);
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_TOO_BIG,
				     .operation = "measure over",
				     .object = where,
				     .cause = cause,
			     });
}

uint64_t vb__perf_patience_ms(const struct vb_perf_cell *cell, uint32_t slack_ms)
{
	return slack_ms + (uint64_t)cell->bytes * cell->depth * cell->rails / SLOW_BYTES_PER_MS;
}

uint64_t vb__perf_span_ms(const struct vb_perf_cell *cell)
{
	uint64_t each = 1 + cell->bytes / SLOW_BYTES_PER_MS, all;

	if (!cell->count)
		return cell->duration_ms;
	all = (uint64_t)cell->count * cell->rails * each;
	return all < SPAN_MAX_MS ? all : SPAN_MAX_MS;
}

bool vb__perf_is_possible(const struct vb_perf_cell *cell, uint64_t said, uint64_t arrived,
			  uint64_t receives)
{
	if (cell->count && said > (uint64_t)cell->count * cell->rails)
		return false;
	if (cell->kind != VB_PERF_BANDWIDTH || !vb__perf_takes_receives(cell->op) ||
	    vb__perf_is_lossy(cell->qp))
		return true;
	return said >= arrived && said - arrived <= receives;
}

/* Slots begin at cache lines, large ones at pages. */
static size_t stride(size_t bytes)
{
	size_t step = bytes < VB__PERF_PAGE ? 64 : VB__PERF_PAGE;

	return (bytes + step - 1) / step * step;
}

static unsigned clamp(uint64_t value, unsigned least, unsigned most)
{
	return value < least ? least : value > most ? most : (unsigned)value;
}

static size_t round_to_pages(size_t bytes)
{
	return (bytes + VB__PERF_PAGE - 1) / VB__PERF_PAGE * VB__PERF_PAGE;
}

static int fail_memory(const struct vb_perf_cell *cell, uint64_t needed, struct vb_error *err)
{
	char cause[160];

	snprintf(cause, sizeof(cause),
		 "%u rails of %u bytes%s take %llu MiB of memory, the limit is %llu MiB",
		 cell->rails, cell->bytes, cell->check ? ", checked," : "",
		 (unsigned long long)(needed >> 20),
		 (unsigned long long)(VB_PERF_MEMORY_MAX >> 20));
	return vb__fail(err,
			&(struct vb__failure){
				.code = VB_ERR_TOO_BIG,
				.operation = "measure",
				.cause = cause,
				.hint = "less depth, fewer rails or smaller messages take less",
			});
}

int vb__perf_layout(const struct vb_perf_cell *cell, struct vb__perf_layout *layout,
		    struct vb_error *err)
{
	unsigned wanted = 2 * cell->depth > RECEIVES ? 2 * cell->depth : RECEIVES;
	struct vb__perf_layout l = {
		.slot_bytes = stride(cell->bytes + (cell->qp == VB_PERF_UD ? 64u : 0u)),
		.out_slots = 1,
		.in_slots = 1,
		.receives = 4,
	};
	uint64_t all;

	/* One piece of memory for all, as long as nobody looks at what is in it. */
	if (cell->kind == VB_PERF_BANDWIDTH && vb__perf_takes_receives(cell->op))
		l.receives = wanted;
	if (cell->check && cell->kind == VB_PERF_BANDWIDTH) {
		l.out_slots = cell->depth;
		l.in_slots = clamp(CHECKED_BYTES / l.slot_bytes / cell->rails, 2, l.receives);
		if (!vb__perf_takes_receives(cell->op))
			l.in_slots = vb__perf_is_atomic(cell->op) ? 1 : cell->depth;
		else
			l.receives = l.in_slots;
	}
	if (vb__perf_is_atomic(cell->op))
		l.out_slots = cell->depth;
	l.out_at = VB__PERF_PAGE;
	l.in_at = l.out_at + round_to_pages(l.slot_bytes * l.out_slots);
	l.bytes = l.in_at + round_to_pages(l.slot_bytes * l.in_slots);
	all = (uint64_t)l.bytes * cell->rails;
	if (all > VB_PERF_MEMORY_MAX)
		return fail_memory(cell, all, err);
	*layout = l;
	return 0;
}
