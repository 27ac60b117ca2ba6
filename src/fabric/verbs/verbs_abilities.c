/* SPDX-License-Identifier: Apache-2.0 */
/* What a device can do: what it says, and where it says nothing, what it was seen to do. */
#include "fabric/verbs/verbs_abilities.h"

#include <errno.h>
#include <stdio.h>

#include "fabric/verbs/verbs.h"

/* No attribute tells how much goes inline: a queue pair has to be asked for it. */
static unsigned try_inline(struct ibv_pd *pd, struct ibv_cq *cq)
{
	static const uint32_t sizes[] = { 1024, 512, 256, 128, 64, 32 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct ibv_qp_init_attr attr = {
			.send_cq = cq,
			.recv_cq = cq,
			.qp_type = IBV_QPT_RC,
			.cap = { .max_send_wr = 1,
				 .max_recv_wr = 1,
				 .max_send_sge = 1,
				 .max_recv_sge = 1,
				 .max_inline_data = sizes[i] },
		};
		struct ibv_qp *qp = ibv_create_qp(pd, &attr);

		if (!qp)
			continue;
		ibv_destroy_qp(qp);
		return attr.cap.max_inline_data;
	}
	return 0;
}

/* Nothing can come of a descriptor that is none; how it is refused tells whether the driver knows of dmabufs. */
static bool try_dmabuf(struct ibv_pd *pd)
{
#ifdef VB_HAVE_REG_DMABUF
	struct ibv_mr *mr = ibv_reg_dmabuf_mr(pd, 0, 4096, 0, -1, IBV_ACCESS_LOCAL_WRITE);

	if (!mr)
		return errno == EBADF;
	ibv_dereg_mr(mr);
	return true;
#else
	(void)pd;
	return false;
#endif
}

static void try_out(struct ibv_context *context, struct vb_abilities *can)
{
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = pd ? ibv_create_cq(context, 2, NULL, NULL, 0) : NULL;

	if (cq)
		can->max_inline_bytes = try_inline(pd, cq);
	if (pd)
		can->dmabuf = try_dmabuf(pd);
	if (cq)
		ibv_destroy_cq(cq);
	if (pd)
		ibv_dealloc_pd(pd);
}

static unsigned positive(int number)
{
	return number > 0 ? (unsigned)number : 0;
}

void verbs_abilities_read(struct ibv_context *context, struct vb_device *device)
{
	struct ibv_device_attr_ex attr = { .comp_mask = 0 };
	const struct ibv_device_attr *a = &attr.orig_attr;
	unsigned flags;
	int errnum = ibv_query_device_ex(context, NULL, &attr);

	if (errnum) {
		verbs_fail(&device->trouble, errnum, "ibv_query_device_ex", device->name);
		return;
	}
	flags = a->device_cap_flags;
	device->can = (struct vb_abilities){
		.max_qp = positive(a->max_qp),
		.max_cq = positive(a->max_cq),
		.max_mr = positive(a->max_mr),
		.max_pd = positive(a->max_pd),
		.max_qp_requests = positive(a->max_qp_wr),
		.max_sge = positive(a->max_sge),
		.max_sge_read = positive(a->max_sge_rd),
		.max_reads_out = positive(a->max_qp_init_rd_atom),
		.max_reads_in = positive(a->max_qp_rd_atom),
		.atomics = a->atomic_cap != IBV_ATOMIC_NONE,
		.atomics_with_cpu = a->atomic_cap == IBV_ATOMIC_GLOB,
		.max_srq = positive(a->max_srq),
		.windows_1 = flags & IBV_DEVICE_MEM_WINDOW,
		.windows_2 = flags &
			     (IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B),
		.on_demand_paging = attr.odp_caps.general_caps & IBV_ODP_SUPPORT,
	};
	snprintf(device->firmware, sizeof(device->firmware), "%.63s", a->fw_ver);
	try_out(context, &device->can);
}
