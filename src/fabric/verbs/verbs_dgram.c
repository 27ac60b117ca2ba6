/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Datagrams over UD queue pairs: the endpoint's life, and the table. rdma_cm binds it to
 * the device that has the address, and gives the queue pair the Q_Key that all of rdma_cm's UDP
 * port space has.
 */
#include "fabric/verbs/verbs_dgram.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SENDS 64u
#define BACKLOG 64
#define CACHE_LINE 64u

void verbs_dg_break(struct verbs_dg *dg, int errnum, const char *operation)
{
	verbs_fail(&dg->base.down, errnum, operation, dg->base.device);
	vb__waiter_wake(&dg->waiter);
}

static void on_device_event(struct verbs_dg *dg)
{
	int type = verbs_fatal_event(&dg->watcher);

	if (type == VERBS_NO_EVENT)
		return;
	vb__fail(&dg->base.down, &(struct vb__failure){
					 .code = VB_ERR_LOST,
					 .native_kind = VB_NATIVE_ASYNC,
					 .native = type,
					 .operation = "datagrams at",
					 .object = dg->base.address,
					 .cause = ibv_event_type_str((enum ibv_event_type)type),
					 .hint = "see the kernel's log (`dmesg`) for the device",
				 });
	vb__waiter_wake(&dg->waiter);
}

void verbs_dg_look_after(struct verbs_dg *dg)
{
	uint32_t ready = vb__waiter_check(&dg->waiter, 0);
	int rc = 0;

	if (ready & VERBS_DGRAM_CM)
		verbs_dg_take_cm_events(dg);
	if (ready & VERBS_DGRAM_DEVICE)
		rc = verbs_take_device_events(dg->home->verbs);
	if (rc)
		verbs_dg_break(dg, rc, "ibv_get_async_event");
	dg->base.ways_changed += atomic_exchange(&dg->watcher.gids_moved, false);
	on_device_event(dg);
}

/* ---- Opening ---- */

static int fail_bind(struct vb_error *err, int errnum, const char *operation,
		     const struct vb__address *at)
{
	bool none = errnum == ENODEV || errnum == EADDRNOTAVAIL;

	if (!none) {
		int rc = verbs_fail(err, errnum, operation, at->text);

		if (errnum == EADDRINUSE)
			vb__error_hint(err, "another program has datagrams on this port: choose "
					    "another one");
		return rc;
	}
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_NO_DEVICE,
				     .native_kind = VB_NATIVE_ERRNO,
				     .native = errnum,
				     .operation = operation,
				     .object = at->text,
				     .cause = "no RDMA device has this address",
				     .hint = "see `rdma link` and `ip addr`; give an address of "
					     "this machine on the RDMA network",
			     });
}

static int bind_at(struct verbs_dg *dg, const struct vb__address *at, struct rdma_cm_id **id,
		   struct vb_error *err)
{
	if (rdma_create_id(dg->cm, id, NULL, RDMA_PS_UDP) != 0)
		return verbs_fail(err, errno, "rdma_create_id", at->text);
	if (rdma_bind_addr(*id, (struct sockaddr *)&at->sa) != 0)
		return fail_bind(err, errno, "rdma_bind_addr", &dg->at);
	return (*id)->verbs ? 0 : fail_bind(err, ENODEV, "rdma_bind_addr", &dg->at);
}

static int check_device(struct verbs_dg *dg, const struct vb__settings *settings,
			struct vb_error *err)
{
	const struct ibv_device *device = dg->home->verbs->device;
	char cause[200];

	snprintf(dg->base.device, sizeof(dg->base.device), "%s", device->name);
	if (device->transport_type == IBV_TRANSPORT_IWARP)
		return vb__fail(err, &(struct vb__failure){
					     .code = VB_ERR_UNSUPPORTED,
					     .operation = "datagrams on",
					     .object = dg->base.device,
					     .cause = "it is an iWARP device, and iWARP has no "
						      "datagrams",
					     .hint = "use channels, which work on it, or a device "
						     "of RoCE or InfiniBand",
				     });
	if (!settings->device[0] || !strcmp(settings->device, device->name))
		return 0;
	snprintf(cause, sizeof(cause), "the address belongs to device %s, but %s is asked for",
		 device->name, settings->device);
	return vb__fail(err,
			&(struct vb__failure){
				.code = VB_ERR_NO_DEVICE,
				.operation = "datagrams at",
				.object = dg->at.text,
				.cause = cause,
				.hint = "give an address of that device, or leave the choice of "
					"the device to the address",
			});
}

/* One for the queue pair, at any port; what it is bound to beside the port tells the device. */
static int bind_home(struct verbs_dg *dg, const struct vb__settings *settings, struct vb_error *err)
{
	struct vb__address any_port = dg->at;
	int rc;

	vb__address_set_port(&any_port, 0);
	rc = bind_at(dg, &any_port, &dg->home, err);
	return rc ? rc : check_device(dg, settings, err);
}

static int open_door(struct verbs_dg *dg, struct vb_error *err)
{
	int rc = bind_at(dg, &dg->at, &dg->door, err);

	if (rc)
		return rc;
	if (rdma_listen(dg->door, BACKLOG) != 0)
		return fail_bind(err, errno, "rdma_listen", &dg->at);
	dg->base.port = ntohs(rdma_get_src_port(dg->door));
	vb__address_set_port(&dg->at, dg->base.port);
	snprintf(dg->base.address, sizeof(dg->base.address), "%s", dg->at.text);
	return 0;
}

static unsigned within(unsigned wanted, int limit)
{
	return limit > 0 && wanted > (unsigned)limit ? (unsigned)limit : wanted;
}

static int settle_limits(struct verbs_dg *dg, unsigned receives, struct vb_error *err)
{
	struct ibv_context *context = dg->home->verbs;
	struct ibv_device_attr device;
	struct ibv_port_attr port;
	int rc = ibv_query_device(context, &device);

	if (rc)
		return verbs_fail(err, rc, "ibv_query_device", dg->base.device);
	rc = ibv_query_port(context, dg->home->port_num, &port);
	if (rc)
		return verbs_fail(err, rc, "ibv_query_port", dg->base.device);
	dg->base.max_bytes = (size_t)128 << port.active_mtu;
	dg->base.receives = within(within(receives, device.max_qp_wr), device.max_cqe);
	dg->room = within(within(SENDS, device.max_qp_wr), device.max_cqe);
	while (dg->room & (dg->room - 1)) /* a power of two, so that counts may run over */
		dg->room &= dg->room - 1;
	dg->ethernet = port.link_layer == IBV_LINK_LAYER_ETHERNET;
	dg->lid = port.lid;
	return 0;
}

static int open_queue(struct verbs_dg *dg, unsigned entries, struct ibv_cq **cq,
		      struct vb_error *err)
{
	errno = 0; /* providers do not always say why */
	*cq = ibv_create_cq(dg->home->verbs, (int)entries, NULL, dg->completions, 0);
	if (!*cq)
		return verbs_fail_queue(err, errno ? errno : EIO, "ibv_create_cq", dg->base.device,
					entries, 0);
	return 0;
}

static int open_queues(struct verbs_dg *dg, struct vb_error *err)
{
	int fd, rc;

	dg->pd = ibv_alloc_pd(dg->home->verbs);
	if (!dg->pd)
		return verbs_fail(err, errno, "ibv_alloc_pd", dg->base.device);
	dg->completions = ibv_create_comp_channel(dg->home->verbs);
	if (!dg->completions)
		return verbs_fail(err, errno, "ibv_create_comp_channel", dg->base.device);
	fd = dg->completions->fd;
	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) != 0)
		return verbs_fail(err, errno, "fcntl", "completion channel");
	rc = open_queue(dg, dg->room, &dg->sends, err);
	return rc ? rc : open_queue(dg, dg->base.receives, &dg->receives, err);
}

static int try_queue_pair(struct verbs_dg *dg, unsigned inline_bytes)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = dg->sends,
		.recv_cq = dg->receives,
		.cap = {
			.max_send_wr = dg->room,
			.max_recv_wr = dg->base.receives,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = inline_bytes,
		},
		.qp_type = IBV_QPT_UD,
	};

	if (rdma_create_qp(dg->home, dg->pd, &attr) != 0)
		return errno;
	dg->inline_bytes = attr.cap.max_inline_data;
	return 0;
}

/* Devices differ in how much inline data they take, and refuse rather than give less. */
static int open_queue_pair(struct verbs_dg *dg, struct vb_error *err)
{
	static const unsigned wishes[] = { 220, 64, 0 };
	struct ibv_qp_init_attr unused;
	struct ibv_qp_attr attr;
	int rc = EINVAL;

	for (unsigned i = 0; i < sizeof(wishes) / sizeof(wishes[0]); i++) {
		rc = try_queue_pair(dg, wishes[i]);
		if (rc != EINVAL && rc != ENOMEM)
			break;
		verbs_note(&dg->log, rc, "rdma_create_qp", dg->base.device,
			   "less inline data is tried");
	}
	if (rc)
		return verbs_fail_queue(err, rc, "rdma_create_qp", dg->base.device,
					dg->room + dg->base.receives, 1);
	rc = ibv_query_qp(dg->home->qp, &attr, IBV_QP_QKEY, &unused);
	dg->qkey = attr.qkey;
	return rc ? verbs_fail(err, rc, "ibv_query_qp", dg->base.device) : 0;
}

/* One slot is shown while all receives are posted. */
static int open_memory(struct verbs_dg *dg, struct vb_error *err)
{
	size_t bytes = VERBS_GRH + dg->base.max_bytes;

	dg->slots = dg->base.receives + 1;
	dg->stride = (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
	dg->memory_bytes = dg->stride * (dg->slots + dg->room);
	dg->memory = mmap(NULL, dg->memory_bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (dg->memory == MAP_FAILED)
		return verbs_fail(err, errno, "mmap", NULL);
	dg->mr = ibv_reg_mr(dg->pd, dg->memory, dg->memory_bytes, IBV_ACCESS_LOCAL_WRITE);
	if (!dg->mr)
		return verbs_fail_memory(err, errno, "ibv_reg_mr", dg->base.device,
					 dg->memory_bytes);
	return 0;
}

/* The last slot is the first one that giving back posts. */
static int post_receives(struct verbs_dg *dg, struct vb_error *err)
{
	int rc = 0;

	for (unsigned i = 0; i < dg->base.receives && rc == 0; i++)
		rc = verbs_dg_post_receive(dg, i);
	return rc ? verbs_fail(err, rc, "ibv_post_recv", dg->base.device) : 0;
}

static int watch(struct verbs_dg *dg, struct vb_error *err)
{
	struct ibv_context *context = dg->home->verbs;
	int rc;

	dg->watcher = (struct verbs_watcher){
		.qp = dg->home->qp,
		.cqs = { dg->sends, dg->receives },
		.port = dg->home->port_num,
		.device = dg->base.device,
		.peer = dg->base.address,
		.log = &dg->log,
		.waiter = &dg->waiter,
	};
	rc = verbs_watch(&dg->watcher, context, err);
	if (rc == 0)
		rc = vb__waiter_add(&dg->waiter, context->async_fd, VERBS_DGRAM_DEVICE, err);
	if (rc == 0)
		rc = vb__waiter_add(&dg->waiter, dg->completions->fd, VERBS_DGRAM_CQ, err);
	return rc;
}

static int equip(struct verbs_dg *dg, const struct vb__dg_attr *attr, struct vb_error *err)
{
	int rc = bind_home(dg, attr->settings, err);

	if (rc == 0)
		rc = settle_limits(dg, attr->receives, err);
	if (rc == 0)
		rc = open_queues(dg, err);
	if (rc == 0)
		rc = open_queue_pair(dg, err);
	if (rc == 0)
		rc = open_memory(dg, err);
	if (rc == 0)
		rc = watch(dg, err);
	if (rc == 0)
		rc = post_receives(dg, err);
	return rc;
}

int verbs_dg_open(const struct vb__dg_attr *attr, const struct vb__address *at, struct vb__dg **out,
		  struct vb_error *err)
{
	struct verbs_dg *dg = calloc(1, sizeof(*dg));
	int rc;

	if (!dg)
		return verbs_fail(err, ENOMEM, "calloc", NULL);
	dg->base.fabric = &vb__verbs_dgrams;
	dg->at = *at;
	dg->log = attr->settings->log;
	dg->memory = MAP_FAILED;
	rc = vb__waiter_open(&dg->waiter, 0, err);
	dg->base.wait_fd = dg->waiter.epoll;
	if (rc == 0)
		rc = verbs_cm_open(&dg->cm, err);
	if (rc == 0)
		rc = vb__waiter_add(&dg->waiter, dg->cm->fd, VERBS_DGRAM_CM, err);
	if (rc == 0)
		rc = equip(dg, attr, err);
	if (rc == 0)
		rc = open_door(dg, err);
	if (rc) {
		verbs_dg_close(&dg->base);
		return rc;
	}
	*out = &dg->base;
	return 0;
}

/* ---- Closing ---- */

/* Events are acknowledged first, or destroying waits for ever; then from the QP outwards. */
static void close_queues(struct verbs_dg *dg)
{
	if (dg->sends && dg->unacked_sends)
		ibv_ack_cq_events(dg->sends, dg->unacked_sends);
	if (dg->receives && dg->unacked_receives)
		ibv_ack_cq_events(dg->receives, dg->unacked_receives);
	if (dg->home && dg->home->qp)
		rdma_destroy_qp(dg->home);
	if (dg->mr)
		VERBS_UNDO(&dg->log, dg->base.device, ibv_dereg_mr, dg->mr);
	if (dg->sends)
		VERBS_UNDO(&dg->log, dg->base.device, ibv_destroy_cq, dg->sends);
	if (dg->receives)
		VERBS_UNDO(&dg->log, dg->base.device, ibv_destroy_cq, dg->receives);
	if (dg->completions)
		VERBS_UNDO(&dg->log, dg->base.device, ibv_destroy_comp_channel, dg->completions);
	if (dg->pd)
		VERBS_UNDO(&dg->log, dg->base.device, ibv_dealloc_pd, dg->pd);
}

void verbs_dg_close(struct vb__dg *base)
{
	struct verbs_dg *dg = (struct verbs_dg *)base;

	verbs_unwatch(&dg->watcher);
	while (base->peers)
		vb__dg_peer_close(base->peers);
	close_queues(dg);
	if (dg->door)
		VERBS_UNDO(&dg->log, dg->at.text, rdma_destroy_id, dg->door);
	if (dg->home)
		VERBS_UNDO(&dg->log, dg->at.text, rdma_destroy_id, dg->home);
	if (dg->cm)
		rdma_destroy_event_channel(dg->cm);
	vb__waiter_close(&dg->waiter);
	if (dg->memory != MAP_FAILED)
		munmap(dg->memory, dg->memory_bytes);
	free(dg);
}

const struct vb__dgrams vb__verbs_dgrams = {
	.name = "verbs",
	.id = VB_FABRIC_VERBS,
	.open = verbs_dg_open,
	.close = verbs_dg_close,
	.resolve = verbs_dg_resolve,
	.join = verbs_dg_join,
	.peer_of = verbs_dg_peer_of,
	.peer_close = verbs_dg_peer_close,
	.send = verbs_dg_send,
	.receive = verbs_dg_receive,
	.give_back = verbs_dg_give_back,
	.arm = verbs_dg_arm,
};
