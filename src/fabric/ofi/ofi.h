/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the libfabric backend share. Nothing here is for anybody else. */
#ifndef VB_FABRIC_OFI_H
#define VB_FABRIC_OFI_H

#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include "fabric/fabric.h"
#include "fabric/ofi/ofi_library.h"
#include "fabric/waiter.h"

#define VB__OFI_API FI_VERSION(1, 11)

/* A receive of a pool's member, with what came. */
struct ofi_arrival {
	struct vb__arrival base;
	struct ofi_ep *ep;
};

/* A completion that was handed to a member; `error` is libfabric's. */
struct ofi_handed {
	struct vb__completion done;
	int error;
};

/* An endpoint's part of a pool: what has been handed to it and not yet polled. Under the pool's lock. */
struct ofi_share {
	struct ofi_pool *pool; /* NULL: it has queues of its own */
	bool joined;
	unsigned number; /* among the members */
	struct ofi_handed *ring;
	unsigned size, first, count;
	bool connected, shut_down;
	int event_error;
	struct ofi_arrival *slots;
	uint8_t *memory;
	size_t memory_bytes;
};

struct ofi_pool {
	struct vb__pool base;
	struct vb__waiter waiter;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_cq *cq;
	struct vb__log log;
	size_t room; /* bytes of a receive */
	bool broken; /* a queue of it cannot be read */

	pthread_mutex_t lock; /* for all of the above and what follows */
	struct ofi_ep **members;
	unsigned size;
	bool armed; /* the descriptor tells of whatever comes */
};

struct ofi_ep {
	struct vb__ep base;
	struct ofi_share share;
	struct vb__waiter waiter;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_pep *pep; /* the request's, until it is accepted; else NULL */
	struct vb__log log;
	uint64_t next_key;
	uint32_t peer_timeout_ms;
	struct vb__idle idle;
	uint64_t silent_since_ns; /* no acknowledgement of waiting data since then; 0: all well */
	int socket;		  /* the provider's, if it has one; see ofi_liveness.c */
	bool lively;		  /* the kernel has been told to ask for the peer */
};

struct ofi_mr {
	struct vb__mr base;
	struct fid_mr *mr;
};

struct ofi_pep {
	struct vb__pep base;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_eq *eq;
	struct fid_pep *pep;
	struct vb__log log;
	uint64_t look_next_ns; /* see ofi_callers.c */
};

struct ofi_request {
	struct vb__request base;
	struct fi_info *info; /* carries the handle of the request */
	struct fid_pep *pep;
	struct vb__log log;
};

void ofi_prepare(void);

/* The providers' answer for the way to `peer`, from `source` if not NULL; or, without a peer, for listening there. */
int ofi_info_get(const struct vb__settings *settings, const struct vb__address *peer,
		 const struct vb__address *source, struct fi_info **info, struct vb_error *err);

/* Turns a libfabric result (negative or positive) into an error. */
int ofi_fail(struct vb_error *err, long result, const char *operation, const char *object);
enum vb_err ofi_code(int fi_errnum);

/*
 * A failure that no call returns goes to the log, with its reason and what becomes of it. `result` is libfabric's (negative
 * or positive) or an errno; 0: there is none. Returns whether it failed.
 */
bool ofi_note(const struct vb__log *log, long result, const char *call, const char *object,
	      const char *then);

/* Opens an event queue with a descriptor. */
int ofi_eq_open(struct fid_fabric *fabric, struct fid_eq **eq, int *fd, struct vb_error *err);

/* NULL is closed already. That it cannot be closed is a warning in the log, which nobody expects. */
void ofi_close(const struct vb__log *log, struct fid *fid, const char *object);

/* ofi_connection.c: the endpoint's table entries */
int ofi_ep_open(const struct vb__ep_attr *attr, const struct vb__address *peer,
		uint64_t deadline_ns, struct vb__ep **ep, struct vb_error *err);
int ofi_ep_connect(struct vb__ep *ep, const void *data, size_t len, uint64_t deadline_ns,
		   struct vb_error *err);
int ofi_ep_accept_open(struct vb__request *request, const struct vb__ep_attr *attr,
		       struct vb__ep **ep, struct vb_error *err);
int ofi_ep_accept(struct vb__ep *ep, const void *data, size_t len, struct vb_error *err);
void ofi_ep_disconnect(struct vb__ep *ep);
void ofi_ep_close(struct vb__ep *ep);

/* Takes what the event queue holds; the state may change. */
void ofi_events(struct ofi_ep *ep);

/* It goes down by this libfabric result; or by nothing but its end, for which the guard may know the reason. */
void ofi_break(struct ofi_ep *ep, long result, const char *operation);
void ofi_over(struct ofi_ep *ep);

/* ofi_listener.c */

/* Says no to who asked with this info, which stays the caller's. */
void ofi_turn_away(const struct vb__log *log, struct fid_pep *pep, const struct fi_info *info,
		   const struct vb__private_data *words);
int ofi_listen(const struct vb__settings *settings, const struct vb__address *at,
	       struct vb__pep **pep, struct vb_error *err);
int ofi_next_request(struct vb__pep *pep, struct vb__request **request, struct vb_error *err);
int ofi_pep_arm(struct vb__pep *pep);
void ofi_reject(struct vb__request *request, const void *data, size_t len);
void ofi_pep_close(struct vb__pep *pep);

/* ofi_transfer.c */
int ofi_register(struct vb__ep *ep, void *addr, size_t len, unsigned access, struct vb__mr **mr,
		 struct vb_error *err);
void ofi_deregister(struct vb__mr *mr);
int ofi_post(struct vb__ep *ep, const struct vb__op *op, struct vb_error *err);
int ofi_poll(struct vb__ep *ep, struct vb__completion *done, int max);
int ofi_arm(struct vb__ep *ep, bool arrivals_only);

/* ofi_pool.c: the table entries */
int ofi_pool_open(struct vb__request *request, const struct vb__pool_attr *attr,
		  struct vb__pool **pool, struct vb_error *err);
bool ofi_pool_serves(struct vb__pool *pool, const struct vb__request *request, unsigned sends);
void ofi_pool_look_after(struct vb__pool *pool);
void ofi_pool_give_back(struct vb__pool *pool, struct vb__arrival *arrival);
void ofi_pool_close(struct vb__pool *pool);

/* Around every call of libfabric's on an endpoint; nothing where it is not in a pool. */
void ofi_lock(struct ofi_ep *ep);
void ofi_unlock(struct ofi_ep *ep);

/* What a member's contexts bear, so that its completions are known as its own. */
uint64_t ofi_pool_mark(const struct ofi_ep *ep);

/* Joining takes the pool's objects over. A half-made member may leave as well; then its share is freed. */
int ofi_pool_join(struct ofi_ep *ep, struct vb__pool *pool, struct vb_error *err);
int ofi_pool_post_receives(struct ofi_ep *ep, struct vb_error *err); /* locked */
void ofi_pool_leave(struct ofi_ep *ep);				     /* locked */
void ofi_pool_free_share(struct ofi_share *share);

/* What has happened to the connection; what has completed; is there nothing, and are the queues armed? */
struct ofi_happened {
	bool connected, shut_down;
	int error;
};
struct ofi_happened ofi_pool_events(struct ofi_ep *ep);
int ofi_pool_poll(struct ofi_ep *ep, struct ofi_handed *taken, int max);
bool ofi_pool_quiet(struct ofi_ep *ep);

/*
 * ofi_sockets.c: the provider's socket between two addresses, or with `peer` NULL the one that listens; negative: there
 * is none. It was opened soon before or after `sibling`, or, of many that were accepted at once, soon after the last one's.
 */
int ofi_socket_find(int sibling, const struct sockaddr *local, const struct sockaddr *peer);

/* ofi_callers.c: once when listening at this address; and whenever nobody has asked for anything, which is cheap. */
void ofi_callers_start(struct ofi_pep *pep, const struct sockaddr *local);
void ofi_callers_look_after(struct ofi_pep *pep);

/* ofi_liveness.c */
void ofi_liveness_start(struct ofi_ep *ep);
void ofi_liveness_check(struct ofi_ep *ep);

#endif
