/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receives that the endpoints of one device share: a shared receive queue with
 * its memory, and one completion queue for all of them. That one holds as many
 * entries as there can be completions, so it never overflows, whatever a peer
 * sends. How it is shared is verbs_share.c's business.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "core/clock.h"
#include "fabric/verbs/verbs.h"

#define ROOM_AT_FIRST 256u
#define CACHE_LINE 64u
#define LOW_AGAIN_MS 1000u

static int fail_unsupported(struct vb_error *err, const char *device)
{
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_UNSUPPORTED,
				     .operation = "share receives on",
				     .object = device,
				     .cause = "the device cannot hold senders back",
			     });
}

/*
 * iWARP has no "receiver not ready": a message that finds no receive ends the connection. There the
 * pool would have to hold every member's receives, and nothing would be shared.
 */
static int settle_limits(struct verbs_pool *pool, const struct vb__pool_attr *attr,
			 struct vb_error *err)
{
	struct ibv_device_attr device;
	int rc;

	if (pool->context->device->transport_type == IBV_TRANSPORT_IWARP)
		return fail_unsupported(err, pool->device);
	rc = ibv_query_device(pool->context, &device);
	if (rc)
		return verbs_fail(err, rc, "ibv_query_device", pool->device);
	if (device.max_srq <= 0 || device.max_srq_wr <= 0 || device.max_srq_sge <= 0)
		return fail_unsupported(err, pool->device);
	pool->count = attr->receives;
	if (pool->count > (unsigned)device.max_srq_wr)
		pool->count = (unsigned)device.max_srq_wr;
	pool->cq_max = (unsigned)device.max_cqe;
	if (pool->count > pool->cq_max / 2)
		pool->count = pool->cq_max / 2;
	pool->cq_size = pool->count + ROOM_AT_FIRST;
	if (pool->cq_size > pool->cq_max)
		pool->cq_size = pool->cq_max;
	return 0;
}

static int open_memory(struct verbs_pool *pool, struct vb_error *err)
{
	size_t stride = (pool->room + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;

	pool->memory_bytes = pool->count * stride;
	pool->memory = mmap(NULL, pool->memory_bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pool->slots = calloc(pool->count, sizeof(*pool->slots));
	if (pool->memory == MAP_FAILED || !pool->slots)
		return verbs_fail(err, ENOMEM, pool->slots ? "mmap" : "calloc", NULL);
	for (unsigned i = 0; i < pool->count; i++)
		pool->slots[i].base = (struct vb__arrival){ pool->memory + i * stride };
	pool->mr = ibv_reg_mr(pool->pd, pool->memory, pool->memory_bytes, IBV_ACCESS_LOCAL_WRITE);
	if (!pool->mr)
		return verbs_fail_memory(err, errno, "ibv_reg_mr", pool->device,
					 pool->memory_bytes);
	return 0;
}

static int open_completion_queue(struct verbs_pool *pool, struct vb_error *err)
{
	int fd, rc;

	pool->completions = ibv_create_comp_channel(pool->context);
	if (!pool->completions)
		return verbs_fail(err, errno, "ibv_create_comp_channel", pool->device);
	fd = pool->completions->fd;
	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) != 0)
		return verbs_fail(err, errno, "fcntl", "completion channel");
	errno = 0; /* providers do not always say why */
	pool->cq = ibv_create_cq(pool->context, (int)pool->cq_size, NULL, pool->completions, 0);
	if (!pool->cq)
		return verbs_fail_queue(err, errno ? errno : EIO, "ibv_create_cq", pool->device,
					pool->cq_size, 0);
	rc = ibv_req_notify_cq(pool->cq, 0);
	if (rc)
		return verbs_fail(err, rc, "ibv_req_notify_cq", pool->device);
	return vb__waiter_add(&pool->waiter, fd, VERBS_POOL_CQ, err);
}

/* One descriptor for the members' completions and for what the device has to tell. */
static int open_waiter(struct verbs_pool *pool, struct vb_error *err)
{
	int rc = vb__waiter_open(&pool->waiter, 0, err);

	pool->base.wait_fd = pool->waiter.epoll;
	return rc;
}

static int open_receives(struct verbs_pool *pool, struct vb_error *err)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = pool->count, .max_sge = 1 } };

	errno = 0;
	pool->srq = ibv_create_srq(pool->pd, &attr);
	if (!pool->srq)
		return verbs_fail_queue(err, errno ? errno : EIO, "ibv_create_srq", pool->device,
					pool->count, 1);
	if (attr.attr.max_wr && attr.attr.max_wr < pool->count)
		pool->count = attr.attr.max_wr;
	for (unsigned i = 0; i < pool->count && !pool->failed; i++)
		verbs_pool_post(pool, &pool->slots[i]);
	return pool->failed ? verbs_fail(err, pool->failed, pool->failed_call, pool->device) : 0;
}

void verbs_pool_arm_limit(struct verbs_pool *pool)
{
	struct ibv_srq_attr attr = { .srq_limit = pool->count / 8 };

	pool->rearm_ns = vb__now_ns() + vb__ms(LOW_AGAIN_MS);
	if (attr.srq_limit)
		verbs_note(&pool->log, ibv_modify_srq(pool->srq, &attr, IBV_SRQ_LIMIT),
			   "ibv_modify_srq", pool->device,
			   "nobody will be told that its receives run low");
}

static int watch(struct verbs_pool *pool, struct vb_error *err)
{
	int rc;

	pool->watcher.srq = pool->srq;
	rc = verbs_watch(&pool->watcher, pool->context, err);
	if (rc == 0)
		rc = vb__waiter_add(&pool->waiter, pool->context->async_fd, VERBS_POOL_DEVICE, err);
	if (rc == 0)
		verbs_pool_arm_limit(pool);
	return rc;
}

int verbs_pool_open(struct vb__request *base, const struct vb__pool_attr *attr,
		    struct vb__pool **out, struct vb_error *err)
{
	struct verbs_pool *pool = calloc(1, sizeof(*pool));
	int rc;

	if (!pool)
		return verbs_fail(err, ENOMEM, "calloc", NULL);
	pthread_mutex_init(&pool->lock, NULL);
	pool->context = ((struct verbs_request *)base)->context;
	verbs_device_hold(pool->context);
	pool->device = ibv_get_device_name(pool->context->device);
	pool->log = attr->log;
	pool->room = attr->bytes;
	pool->memory = MAP_FAILED;
	pool->waiter = VB__WAITER_NONE;
	rc = settle_limits(pool, attr, err);
	if (rc == 0) {
		pool->pd = ibv_alloc_pd(pool->context);
		rc = pool->pd ? 0 : verbs_fail(err, errno, "ibv_alloc_pd", pool->device);
	}
	if (rc == 0)
		rc = open_memory(pool, err);
	if (rc == 0)
		rc = open_waiter(pool, err);
	if (rc == 0)
		rc = open_completion_queue(pool, err);
	if (rc == 0)
		rc = open_receives(pool, err);
	if (rc == 0)
		rc = watch(pool, err);
	if (rc) {
		verbs_pool_close(&pool->base);
		return rc;
	}
	*out = &pool->base;
	return 0;
}

bool verbs_pool_serves(struct vb__pool *base, const struct vb__request *request, unsigned sends)
{
	struct verbs_pool *pool = (struct verbs_pool *)base;
	bool has_room;

	pthread_mutex_lock(&pool->lock);
	has_room = !pool->failed && pool->count + pool->sends + sends + 1 <= pool->cq_max;
	pthread_mutex_unlock(&pool->lock);
	return has_room && ((const struct verbs_request *)request)->context == pool->context;
}

/* After all of its endpoints. */
void verbs_pool_close(struct vb__pool *base)
{
	struct verbs_pool *pool = (struct verbs_pool *)base;

	verbs_unwatch(&pool->watcher);
	if (pool->cq && pool->unacked)
		ibv_ack_cq_events(pool->cq, pool->unacked);
	if (pool->srq)
		VERBS_UNDO(&pool->log, pool->device, ibv_destroy_srq, pool->srq);
	if (pool->mr)
		VERBS_UNDO(&pool->log, pool->device, ibv_dereg_mr, pool->mr);
	if (pool->cq)
		VERBS_UNDO(&pool->log, pool->device, ibv_destroy_cq, pool->cq);
	if (pool->completions)
		VERBS_UNDO(&pool->log, pool->device, ibv_destroy_comp_channel, pool->completions);
	if (pool->pd)
		VERBS_UNDO(&pool->log, pool->device, ibv_dealloc_pd, pool->pd);
	if (pool->memory != MAP_FAILED)
		munmap(pool->memory, pool->memory_bytes);
	free(pool->slots);
	vb__waiter_close(&pool->waiter);
	verbs_device_release(pool->context, &pool->log);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}
