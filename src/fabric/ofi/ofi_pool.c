/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Endpoints that share libfabric's domain and queues, which cost half a
 * megabyte and six descriptors if each has its own. Receives are not shared:
 * one completion queue for all would not tell whose a shared one was. They are
 * posted here for each member, into memory that costs nothing before it is used.
 *
 * One lock serialises all use of the domain. Whoever polls for one endpoint
 * takes all that has happened, and hands it to those it is for.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fabric/ofi/ofi.h"

#define BATCH 16
#define CACHE_LINE 64u
#define READY_QUEUES VB__READY_OWN

#define KIND_SHIFT 56
#define MEMBER_SHIFT 40
#define MEMBER_MAX (1u << (KIND_SHIFT - MEMBER_SHIFT))
#define ID_MASK ((UINT64_C(1) << MEMBER_SHIFT) - 1)

void ofi_lock(struct ofi_ep *ep)
{
	if (ep->share.pool)
		pthread_mutex_lock(&ep->share.pool->lock);
}

void ofi_unlock(struct ofi_ep *ep)
{
	if (ep->share.pool)
		pthread_mutex_unlock(&ep->share.pool->lock);
}

uint64_t ofi_pool_mark(const struct ofi_ep *ep)
{
	return ep->share.pool ? (uint64_t)ep->share.number << MEMBER_SHIFT : 0;
}

/* ---- Handing out; lock held ---- */

static bool has_news(const struct ofi_share *share)
{
	return share->count || share->connected || share->shut_down || share->event_error;
}

static void hand_over(struct ofi_pool *pool, uint64_t context, size_t len, int error,
		      const struct ofi_ep *mine)
{
	unsigned number = (unsigned)(context >> MEMBER_SHIFT) & (MEMBER_MAX - 1);
	struct ofi_ep *ep = number < pool->size ? pool->members[number] : NULL;
	struct ofi_handed *handed;
	bool had_news;

	if (!ep)
		return; /* it has left */
	had_news = has_news(&ep->share);
	handed = &ep->share.ring[(ep->share.first + ep->share.count++) % ep->share.size];
	*handed = (struct ofi_handed){
		.done = { .id = context & ID_MASK,
			  .kind = (enum vb__op_kind)(context >> KIND_SHIFT),
			  .status = error ? ofi_code(error) : VB_OK,
			  .len = len },
		.error = error,
	};
	if (handed->done.kind == VB__OP_RECV && !error)
		handed->done.arrival = &ep->share.slots[handed->done.id].base;
	if (ep != mine && !had_news)
		vb__waiter_wake(&ep->waiter);
}

static struct ofi_ep *member_of(struct ofi_pool *pool, const struct fid *fid)
{
	for (unsigned i = 0; i < pool->size; i++)
		if (pool->members[i] && pool->members[i]->ep && &pool->members[i]->ep->fid == fid)
			return pool->members[i];
	return NULL;
}

static void note_event(struct ofi_pool *pool, const struct fid *fid, uint32_t event, int error,
		       const struct ofi_ep *mine)
{
	struct ofi_ep *ep = member_of(pool, fid);

	if (!ep)
		return;
	ep->share.connected |= !error && event == FI_CONNECTED;
	ep->share.shut_down |= !error && event == FI_SHUTDOWN;
	if (error && !ep->share.event_error)
		ep->share.event_error = error;
	if (ep != mine)
		vb__waiter_wake(&ep->waiter);
}

/* A queue that cannot be read any more: nobody would hear of anything. */
static void fail_all(struct ofi_pool *pool, ssize_t result, const char *call,
		     const struct ofi_ep *mine)
{
	if (!pool->broken)
		ofi_note(&pool->log, result, call, pool->info->fabric_attr->prov_name,
			 "all connections that share it are lost");
	pool->broken = true;
	for (unsigned i = 0; i < pool->size; i++)
		if (pool->members[i] && pool->members[i]->ep)
			note_event(pool, &pool->members[i]->ep->fid, 0, (int)-result, mine);
}

static void take_completions(struct ofi_pool *pool, const struct ofi_ep *mine)
{
	struct fi_cq_data_entry entries[BATCH];
	struct fi_cq_err_entry error;
	ssize_t n;

	for (;;) {
		n = fi_cq_read(pool->cq, entries, BATCH);
		for (ssize_t i = 0; i < n; i++)
			hand_over(pool, (uintptr_t)entries[i].op_context, entries[i].len, 0, mine);
		if (n == -FI_EAVAIL) {
			error = (struct fi_cq_err_entry){ .err_data_size = 0 };
			n = fi_cq_readerr(pool->cq, &error, 0);
			if (n < 1)
				break;
			hand_over(pool, (uintptr_t)error.op_context, 0, error.err, mine);
		} else if (n < BATCH) {
			break;
		}
	}
	if (n < 0 && n != -FI_EAGAIN)
		fail_all(pool, n, "fi_cq_read", mine);
}

static void take_events(struct ofi_pool *pool, const struct ofi_ep *mine)
{
	union {
		struct fi_eq_cm_entry entry;
		uint8_t room[sizeof(struct fi_eq_cm_entry) + 256];
	} u;
	struct fi_eq_err_entry error;
	uint32_t event;
	ssize_t n;

	for (;;) {
		n = fi_eq_read(pool->eq, &event, &u, sizeof(u), 0);
		if (n == -FI_EAVAIL) {
			error = (struct fi_eq_err_entry){ .err_data_size = 0 };
			n = fi_eq_readerr(pool->eq, &error, 0);
			if (n < 0)
				break;
			note_event(pool, error.fid, 0, error.err, mine);
		} else if (n >= (ssize_t)sizeof(u.entry)) {
			note_event(pool, u.entry.fid, event, 0, mine);
		} else {
			break;
		}
	}
	if (n < 0 && n != -FI_EAGAIN)
		fail_all(pool, n, "fi_eq_read", mine);
}

/*
 * Looking at the descriptor is a system call; reading a queue or arming it makes libfabric look at
 * each member, which takes longer if there are many.
 */
static bool nothing_since_armed(struct ofi_pool *pool)
{
	return pool->armed && !vb__waiter_check(&pool->waiter, 0);
}

static void hand_out(struct ofi_pool *pool, const struct ofi_ep *mine)
{
	if (nothing_since_armed(pool))
		return;
	pool->armed = false;
	take_completions(pool, mine);
	take_events(pool, mine);
}

/* Arms the queues, which takes back their signals; false if there is more to take. */
static bool is_quiet(struct ofi_pool *pool)
{
	struct fid *fids[] = { &pool->cq->fid, &pool->eq->fid };

	if (!nothing_since_armed(pool))
		pool->armed = fi_trywait(pool->fabric, fids, 2) == FI_SUCCESS;
	return pool->armed;
}

void ofi_pool_look_after(struct vb__pool *base)
{
	struct ofi_pool *pool = (struct ofi_pool *)base;

	pthread_mutex_lock(&pool->lock);
	hand_out(pool, NULL);
	if (!is_quiet(pool))
		hand_out(pool, NULL);
	pthread_mutex_unlock(&pool->lock);
}

/* ---- For the members ---- */

int ofi_pool_poll(struct ofi_ep *ep, struct ofi_handed *taken, int max)
{
	struct ofi_share *share = &ep->share;
	int n = 0;

	pthread_mutex_lock(&share->pool->lock);
	if (!share->count)
		hand_out(share->pool, ep);
	for (; n < max && share->count; n++, share->count--) {
		taken[n] = share->ring[share->first];
		share->first = (share->first + 1) % share->size;
	}
	pthread_mutex_unlock(&share->pool->lock);
	return n;
}

/*
 * While a message waits for which its member has no receive, the queues are never quiet. It is that member
 * that must be looked after, so no other may wait for it: when all is taken that can be, there is nothing
 * for this one. Whoever sleeps in spite of it is woken at once, by the descriptor.
 */
bool ofi_pool_quiet(struct ofi_ep *ep)
{
	struct ofi_pool *pool = ep->share.pool;
	bool quiet;

	pthread_mutex_lock(&pool->lock);
	for (int i = 0; i < 2 && !is_quiet(pool); i++)
		hand_out(pool, ep);
	quiet = !has_news(&ep->share);
	pthread_mutex_unlock(&pool->lock);
	return quiet;
}

struct ofi_happened ofi_pool_events(struct ofi_ep *ep)
{
	struct ofi_share *share = &ep->share;
	struct ofi_happened happened;

	pthread_mutex_lock(&share->pool->lock);
	hand_out(share->pool, ep);
	happened = (struct ofi_happened){ share->connected, share->shut_down, share->event_error };
	share->connected = share->shut_down = false;
	share->event_error = 0;
	pthread_mutex_unlock(&share->pool->lock);
	return happened;
}

static int post(struct ofi_ep *ep, struct ofi_arrival *slot)
{
	struct iovec iov = { .iov_base = slot->base.bytes, .iov_len = ep->share.pool->room };
	struct fi_msg msg = {
		.msg_iov = &iov,
		.iov_count = 1,
		.context =
			(void *)(uintptr_t)(ofi_pool_mark(ep) | (uint64_t)(slot - ep->share.slots)),
	};

	return (int)fi_recvmsg(ep->ep, &msg, FI_COMPLETION);
}

void ofi_pool_give_back(struct vb__pool *base, struct vb__arrival *arrival)
{
	struct ofi_pool *pool = (struct ofi_pool *)base;
	struct ofi_arrival *slot = (struct ofi_arrival *)arrival;

	pthread_mutex_lock(&pool->lock);
	ofi_note(&pool->log, post(slot->ep, slot), "fi_recvmsg", slot->ep->base.peer,
		 "a connection that is down needs it no more");
	pthread_mutex_unlock(&pool->lock);
}

/* ---- Joining and leaving ---- */

static int open_memory(struct ofi_ep *ep, struct vb_error *err)
{
	struct ofi_share *share = &ep->share;
	size_t stride = (share->pool->room + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
	unsigned receives = ep->base.recv_depth;

	share->size = ep->base.send_depth + receives;
	share->ring = calloc(share->size, sizeof(*share->ring));
	share->slots = calloc(receives, sizeof(*share->slots));
	if (!share->ring || !share->slots)
		return vb__fail_errno(err, FI_ENOMEM, "calloc", NULL);
	share->memory_bytes = receives * stride;
	share->memory = mmap(NULL, share->memory_bytes, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (share->memory == MAP_FAILED)
		return vb__fail_errno(err, FI_ENOMEM, "mmap", "message buffers");
	for (unsigned i = 0; i < receives; i++)
		share->slots[i] = (struct ofi_arrival){ { share->memory + i * stride }, ep };
	return 0;
}

/* A number for the member; lock held. */
static bool enlist(struct ofi_pool *pool, struct ofi_ep *ep)
{
	struct ofi_ep **more;
	unsigned size = pool->size ? 2 * pool->size : 16, i = 0;

	while (i < pool->size && pool->members[i])
		i++;
	if (i == pool->size) {
		more = size <= MEMBER_MAX ? realloc(pool->members, size * sizeof(struct ofi_ep *))
					  : NULL;
		if (!more)
			return false;
		memset(more + pool->size, 0, (size - pool->size) * sizeof(struct ofi_ep *));
		pool->members = more;
		pool->size = size;
	}
	pool->members[i] = ep;
	ep->share.number = i;
	ep->share.joined = true;
	return true;
}

int ofi_pool_join(struct ofi_ep *ep, struct vb__pool *base, struct vb_error *err)
{
	struct ofi_pool *pool = (struct ofi_pool *)base;
	int rc;

	ep->base.pool = base;
	ep->share.pool = pool;
	ep->share.memory = MAP_FAILED;
	rc = open_memory(ep, err);
	if (rc)
		return rc;
	pthread_mutex_lock(&pool->lock);
	if (!enlist(pool, ep))
		rc = vb__fail_errno(err, FI_ENOMEM, "realloc", NULL);
	pthread_mutex_unlock(&pool->lock);
	ep->fabric = pool->fabric;
	ep->domain = pool->domain;
	ep->cq = pool->cq;
	ep->eq = pool->eq;
	return rc;
}

int ofi_pool_post_receives(struct ofi_ep *ep, struct vb_error *err)
{
	for (unsigned i = 0; i < ep->base.recv_depth; i++) {
		int rc = post(ep, &ep->share.slots[i]);

		if (rc)
			return ofi_fail(err, rc, "fi_recvmsg", ep->base.device);
	}
	return 0;
}

/* After its endpoint is closed, which leaves flushed operations in the queue. Lock held. */
void ofi_pool_leave(struct ofi_ep *ep)
{
	struct ofi_pool *pool = ep->share.pool;

	if (ep->share.joined)
		pool->members[ep->share.number] = NULL;
	hand_out(pool, ep);
}

void ofi_pool_free_share(struct ofi_share *share)
{
	if (share->memory && share->memory != MAP_FAILED)
		munmap(share->memory, share->memory_bytes);
	free(share->slots);
	free(share->ring);
}

/* ---- The pool itself ---- */

static int open_queues(struct ofi_pool *pool, struct vb_error *err)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_FD };
	int fd, rc = ofi_eq_open(pool->fabric, &pool->eq, &fd, err);

	if (rc == 0)
		rc = vb__waiter_add(&pool->waiter, fd, READY_QUEUES, err);
	if (rc)
		return rc;
	rc = fi_cq_open(pool->domain, &attr, &pool->cq, NULL);
	if (rc)
		return ofi_fail(err, rc, "fi_cq_open", pool->info->fabric_attr->prov_name);
	rc = fi_control(&pool->cq->fid, FI_GETWAIT, &fd);
	if (rc)
		return ofi_fail(err, rc, "fi_control", "completion queue");
	return vb__waiter_add(&pool->waiter, fd, READY_QUEUES, err);
}

static int start(struct ofi_pool *pool, struct vb_error *err)
{
	int rc = vb__waiter_open(&pool->waiter, 0, err);

	if (rc)
		return rc;
	if (!pool->info)
		return vb__fail_errno(err, FI_ENOMEM, "fi_dupinfo", NULL);
	rc = ofi_library.fabric(pool->info->fabric_attr, &pool->fabric, NULL);
	if (rc)
		return ofi_fail(err, rc, "fi_fabric", pool->info->fabric_attr->name);
	rc = fi_domain(pool->fabric, pool->info, &pool->domain, NULL);
	if (rc)
		return ofi_fail(err, rc, "fi_domain", pool->info->domain_attr->name);
	return open_queues(pool, err);
}

int ofi_pool_open(struct vb__request *request, const struct vb__pool_attr *attr,
		  struct vb__pool **out, struct vb_error *err)
{
	const struct fi_info *info = ((struct ofi_request *)request)->info;
	struct ofi_pool *pool;
	int rc;

	if (info->domain_attr->mr_mode & FI_MR_LOCAL)
		return vb__fail(err, &(struct vb__failure){ .code = VB_ERR_UNSUPPORTED,
							    .operation = "share receives" });
	pool = calloc(1, sizeof(*pool));
	if (!pool)
		return vb__fail_errno(err, FI_ENOMEM, "calloc", NULL);
	pthread_mutex_init(&pool->lock, NULL);
	pool->waiter = VB__WAITER_NONE;
	pool->log = attr->log;
	pool->room = attr->bytes;
	pool->info = ofi_library.dupinfo(info);
	rc = start(pool, err);
	if (rc) {
		ofi_pool_close(&pool->base);
		return rc;
	}
	pool->base.wait_fd = pool->waiter.epoll;
	*out = &pool->base;
	return 0;
}

bool ofi_pool_serves(struct vb__pool *base, const struct vb__request *request, unsigned sends)
{
	const struct fi_info *ours = ((struct ofi_pool *)base)->info;
	const struct fi_info *theirs = ((const struct ofi_request *)request)->info;

	(void)sends; /* its queue grows */
	return !strcmp(ours->fabric_attr->name, theirs->fabric_attr->name) &&
	       !strcmp(ours->domain_attr->name, theirs->domain_attr->name);
}

void ofi_pool_close(struct vb__pool *base)
{
	struct ofi_pool *pool = (struct ofi_pool *)base;

	ofi_close(&pool->log, pool->cq ? &pool->cq->fid : NULL, "completion queue");
	ofi_close(&pool->log, pool->domain ? &pool->domain->fid : NULL, "domain");
	ofi_close(&pool->log, pool->eq ? &pool->eq->fid : NULL, "event queue");
	ofi_close(&pool->log, pool->fabric ? &pool->fabric->fid : NULL, "fabric");
	if (pool->info)
		ofi_library.freeinfo(pool->info);
	vb__waiter_close(&pool->waiter);
	free(pool->members);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}
