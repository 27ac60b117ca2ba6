/* SPDX-License-Identifier: Apache-2.0 */
/* Rails of datagrams. */
#include "perf/perf_datagrams.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "perf/perf_pattern.h"

#define BATCH 16

int vb__perf_dg_here(const struct vb__address *peer, struct vb__address *here, struct vb_error *err)
{
	struct sockaddr_storage sa = { 0 };
	socklen_t len = sizeof(sa);
	int fd = socket(peer->sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc = 0;

	/* Nothing is sent: the kernel only says which way it would go. */
	if (fd < 0 || connect(fd, (const struct sockaddr *)&peer->sa, peer->len) != 0 ||
	    getsockname(fd, (struct sockaddr *)&sa, &len) != 0)
		rc = vb__fail_errno(err, errno, "find the way to", peer->text);
	if (fd >= 0)
		close(fd);
	if (rc)
		return rc;
	vb__address_from(here, (struct sockaddr *)&sa);
	vb__address_set_port(here, 0);
	return 0;
}

static const struct vb__dgrams *table_of(enum vb_fabric fabric)
{
	const struct vb__dgrams *const *f = vb__dgrams_all;

	while (*f && (*f)->id != fabric)
		f++;
	return *f;
}

int vb__perf_dg_open(const struct vb__perf_plan *plan, struct vb__perf_rail *rail,
		     enum vb_fabric fabric, const struct vb__address *here, struct vb_error *err)
{
	const struct vb__dgrams *table = table_of(fabric);
	struct vb__dg_attr attr = { .receives = plan->layout.receives, .settings = plan->settings };
	void *memory;
	int rc;

	if (!table)
		return vb__fail(err, &(struct vb__failure){
					     .code = VB_ERR_UNSUPPORTED,
					     .operation = "measure over",
					     .object = "UD",
					     .cause = "this fabric has no datagrams",
				     });
	rc = vb__dg_open(table, &attr, here, &rail->dg, err);
	if (rc == 0)
		rc = vb__perf_cell_fits(&plan->cell, 0, rail->dg->max_bytes, rail->dg->device, err);
	if (rc)
		return rc;
	memory = mmap(NULL, plan->layout.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
	if (memory == MAP_FAILED)
		return vb__fail_errno(err, errno, "mmap", NULL);
	rail->memory = memory;
	return 0;
}

int vb__perf_dg_resolve(struct vb__perf_rail *rail, const struct vb__address *there,
			uint64_t deadline_ns, struct vb_error *err)
{
	uint8_t greeting[VB__GREETING_BYTES];

	return vb__dg_resolve(rail->dg, there, deadline_ns, greeting, &rail->to, err);
}

void vb__perf_dg_knock(const struct vb__perf_plan *plan, struct vb__perf_rail *rail)
{
	vb__dg_send(rail->dg, rail->to, NULL, 0, &plan->key, sizeof(plan->key), NULL);
}

int vb__perf_dg_post(const struct vb__perf_plan *plan, struct vb__perf_rail *rail,
		     struct vb_error *err)
{
	uint8_t *slot = rail->memory + plan->layout.out_at;
	int rc;

	if (plan->cell.check)
		vb__perf_pattern_fill(slot, plan->cell.bytes, rail->posted);
	rc = vb__dg_send(rail->dg, rail->to, NULL, 0, slot, plan->cell.bytes, err);
	if (rc == 0) {
		/* It was copied: that is all that is ever heard of it. */
		rail->posted++;
		rail->completed++;
	}
	return rc;
}

static bool is_knock(const struct vb__perf_plan *plan, const struct vb__dg_arrival *a)
{
	return a->len == sizeof(plan->key) && memcmp(a->bytes, &plan->key, a->len) == 0;
}

static void take(const struct vb__perf_plan *plan, struct vb__perf_rail *rail,
		 const struct vb__dg_arrival *a)
{
	if (a->len != plan->cell.bytes)
		return; /* a stranger's */
	rail->arrived++;
	if (plan->cell.check &&
	    !vb__perf_pattern_is(a->bytes, a->len, vb__perf_pattern_number(a->bytes, a->len)))
		rail->corrupt++;
}

int vb__perf_dg_poll(const struct vb__perf_plan *plan, struct vb__perf_rail *rail,
		     struct vb_error *err)
{
	struct vb__dg_arrival arrival;
	int n = 0, rc = 0;

	for (; n < BATCH && rc == 0; n++) {
		int got = vb__dg_receive(rail->dg, &arrival);

		if (got < 0)
			return vb__fail_again(err, &rail->dg->down);
		if (got == 0)
			break;
		if (is_knock(plan, &arrival) && !rail->to)
			rc = vb__dg_peer_of(rail->dg, &arrival.from, &rail->to, err);
		else if (!is_knock(plan, &arrival))
			take(plan, rail, &arrival);
		vb__dg_give_back(rail->dg, arrival.slot);
	}
	return rc < 0 ? rc : n;
}
