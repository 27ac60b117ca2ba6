/* SPDX-License-Identifier: Apache-2.0 */
#include "failing.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "core/failure.h"
#include "fabric/fabric.h"

static _Thread_local bool doomed;
static atomic_uint counted, fatal;
static const char *_Atomic failed;

void failing_begin(unsigned nth)
{
	atomic_store(&counted, 0);
	atomic_store(&fatal, nth);
	atomic_store(&failed, NULL);
	doomed = true;
}

void failing_end(void)
{
	doomed = false;
}

const char *failing_call(void)
{
	return atomic_load(&failed);
}

unsigned failing_count(void)
{
	return atomic_load(&counted);
}

/* Is it this call's turn? */
static bool fails(const char *call, int errnum)
{
	if (!doomed || atomic_fetch_add(&counted, 1) + 1 != atomic_load(&fatal))
		return false;
	atomic_store(&failed, call);
	errno = errnum;
	return true;
}

/* ---- The system ---- */

__typeof__(calloc) __real_calloc, __wrap_calloc;
__typeof__(malloc) __real_malloc, __wrap_malloc;
__typeof__(strdup) __real_strdup, __wrap_strdup;
__typeof__(mmap) __real_mmap, __wrap_mmap, __wrap_mmap64;
__typeof__(epoll_create1) __real_epoll_create1, __wrap_epoll_create1;
__typeof__(epoll_ctl) __real_epoll_ctl, __wrap_epoll_ctl;
__typeof__(eventfd) __real_eventfd, __wrap_eventfd;
__typeof__(pthread_create) __real_pthread_create, __wrap_pthread_create;

void *__wrap_calloc(size_t count, size_t size)
{
	return fails("calloc", ENOMEM) ? NULL : __real_calloc(count, size);
}

void *__wrap_malloc(size_t size)
{
	return fails("malloc", ENOMEM) ? NULL : __real_malloc(size);
}

char *__wrap_strdup(const char *text)
{
	return fails("strdup", ENOMEM) ? NULL : __real_strdup(text);
}

void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	return fails("mmap", ENOMEM) ? MAP_FAILED : __real_mmap(addr, len, prot, flags, fd, offset);
}

/* Which of the two it is depends on the C library's headers. */
void *__wrap_mmap64(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	return __wrap_mmap(addr, len, prot, flags, fd, offset);
}

int __wrap_epoll_create1(int flags)
{
	return fails("epoll_create1", EMFILE) ? -1 : __real_epoll_create1(flags);
}

int __wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
	if (op == EPOLL_CTL_ADD && fails("epoll_ctl", ENOSPC))
		return -1;
	return __real_epoll_ctl(epoll, op, fd, event);
}

int __wrap_eventfd(unsigned count, int flags)
{
	return fails("eventfd", EMFILE) ? -1 : __real_eventfd(count, flags);
}

struct start {
	void *(*run)(void *);
	void *arg;
};

static void *run_doomed(void *arg)
{
	struct start start = *(struct start *)arg;

	free(arg);
	doomed = true;
	return start.run(start.arg);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg)
{
	struct start *start;
	int rc;

	if (!doomed)
		return __real_pthread_create(thread, attr, run, arg);
	if (fails("pthread_create", EAGAIN))
		return EAGAIN;
	start = __real_malloc(sizeof(*start));
	*start = (struct start){ .run = run, .arg = arg };
	rc = __real_pthread_create(thread, attr, run_doomed, start);
	if (rc)
		free(start);
	return rc;
}

/* ---- The fabric ---- */

__typeof__(vb__ep_open) __real_vb__ep_open, __wrap_vb__ep_open;
__typeof__(vb__ep_connect) __real_vb__ep_connect, __wrap_vb__ep_connect;
__typeof__(vb__pep_open) __real_vb__pep_open, __wrap_vb__pep_open;
__typeof__(vb__pep_next) __real_vb__pep_next, __wrap_vb__pep_next;
__typeof__(vb__ep_accept_open) __real_vb__ep_accept_open, __wrap_vb__ep_accept_open;
__typeof__(vb__ep_accept) __real_vb__ep_accept, __wrap_vb__ep_accept;
__typeof__(vb__pool_for) __real_vb__pool_for, __wrap_vb__pool_for;
__typeof__(vb__mr_open) __real_vb__mr_open, __wrap_vb__mr_open;
__typeof__(vb__ep_post) __real_vb__ep_post, __wrap_vb__ep_post;

static int fail_fabric(const char *call, struct vb_error *err)
{
	return fails(call, EIO) ? vb__fail_errno(err, EIO, call, NULL) : 0;
}

int __wrap_vb__ep_open(const struct vb__fabric *fabric, const struct vb__ep_attr *attr,
		       const struct vb__address *peer, uint64_t deadline_ns, struct vb__ep **ep,
		       struct vb_error *err)
{
	int rc = fail_fabric("ep_open", err);

	return rc ? rc : __real_vb__ep_open(fabric, attr, peer, deadline_ns, ep, err);
}

int __wrap_vb__ep_connect(struct vb__ep *ep, const void *data, size_t len, uint64_t deadline_ns,
			  struct vb_error *err)
{
	int rc = fail_fabric("ep_connect", err);

	return rc ? rc : __real_vb__ep_connect(ep, data, len, deadline_ns, err);
}

int __wrap_vb__pep_open(const struct vb__fabric *fabric, const struct vb__settings *settings,
			const struct vb__address *at, struct vb__pep **pep, struct vb_error *err)
{
	int rc = fail_fabric("pep_open", err);

	return rc ? rc : __real_vb__pep_open(fabric, settings, at, pep, err);
}

int __wrap_vb__pep_next(struct vb__pep *pep, struct vb__request **request, struct vb_error *err)
{
	int rc = fail_fabric("pep_next", err);

	return rc ? rc : __real_vb__pep_next(pep, request, err);
}

/* It ends the request on failure as well. */
int __wrap_vb__ep_accept_open(struct vb__request *request, const struct vb__ep_attr *attr,
			      struct vb__ep **ep, struct vb_error *err)
{
	int rc = fail_fabric("ep_accept_open", err);

	if (rc == 0)
		return __real_vb__ep_accept_open(request, attr, ep, err);
	vb__request_reject(request, attr->refusal.data, attr->refusal.len);
	return rc;
}

int __wrap_vb__ep_accept(struct vb__ep *ep, const void *data, size_t len, struct vb_error *err)
{
	int rc = fail_fabric("ep_accept", err);

	return rc ? rc : __real_vb__ep_accept(ep, data, len, err);
}

int __wrap_vb__pool_for(struct vb__request *request, const struct vb__pool_attr *attr,
			struct vb__pool **list, struct vb__pool **pool, struct vb_error *err)
{
	int rc = fail_fabric("pool_for", err);

	return rc ? rc : __real_vb__pool_for(request, attr, list, pool, err);
}

int __wrap_vb__mr_open(struct vb__ep *ep, void *addr, size_t len, unsigned access,
		       struct vb__mr **mr, struct vb_error *err)
{
	int rc = fail_fabric("mr_open", err);

	return rc ? rc : __real_vb__mr_open(ep, addr, len, access, mr, err);
}

int __wrap_vb__ep_post(struct vb__ep *ep, const struct vb__op *op, struct vb_error *err)
{
	int rc = fail_fabric("ep_post", err);

	return rc ? rc : __real_vb__ep_post(ep, op, err);
}
