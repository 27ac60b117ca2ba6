/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the verbs backend share. Nothing here is for anybody else. */
#ifndef VB_FABRIC_VERBS_H
#define VB_FABRIC_VERBS_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>

#include "fabric/fabric.h"
#include "fabric/waiter.h"
#include "wire/wireup.h"

/*
 * Keep-alive: a read of zero bytes, which the peer's device answers by itself,
 * whatever the peer's process is doing.
 */
struct verbs_probe {
	uint8_t sink[8];
	struct ibv_mr *mr;
	bool outstanding;
	uint64_t posted_ns;
	uint64_t heard_ns; /* the last sign of life */
	bool too_early;	   /* iWARP, on the side that accepts: until the peer has spoken */
};

/*
 * Somebody who is to hear of a device's asynchronous events: of those about the
 * objects named here, and of those about the device and the port. The strings,
 * the log and the waiter are the owner's.
 */
struct verbs_watcher {
	struct ibv_context *context; /* NULL: it does not watch */
	struct verbs_watcher *next;
	struct rdma_cm_id *id; /* or NULL */
	const struct ibv_qp *qp;
	const struct ibv_cq *cqs[2];
	const struct ibv_srq *srq;
	uint8_t port;		   /* 0: all ports */
	const char *device, *peer; /* in words */
	const struct vb__log *log; /* or NULL */
	struct vb__waiter *waiter; /* or NULL: nothing of what it has to do can end */
	atomic_int fatal;	   /* one more than the event that ends it; 0: none so far */
	atomic_bool ran_low;	   /* its shared receives; to be armed again */
	atomic_bool gids_moved; /* what was looked up in the table of GIDs is to be looked up again */
};

#define VERBS_NO_EVENT (-1)

/* A receive of a pool with what came; or a copy of that, so that the receive could be posted again. */
struct verbs_arrival {
	struct vb__arrival base;
	struct verbs_arrival *next;
	struct ibv_wc wc;
	bool copy;
};

struct verbs_sent {
	uint64_t wr_id;
	enum ibv_wc_status status;
};

/* An endpoint's part of a pool: what has been handed to it and not yet polled. Under the pool's lock. */
struct verbs_share {
	struct verbs_pool *pool; /* NULL: it has receives of its own */
	bool joined;
	uint32_t qp_num;
	struct verbs_ep *next; /* member of the same bucket */
	struct verbs_arrival *first, *last;
	unsigned arrived;
	struct verbs_sent *sent; /* a ring */
	unsigned sent_size, sent_first, sent_count;
	enum ibv_wc_status bad_receive;
	bool overrun; /* more came than the peer had credits for */
};

#define VERBS_POOL_BUCKETS 256u

/* What a pool's waiter tells. */
#define VERBS_POOL_CQ VB__READY_OWN
#define VERBS_POOL_DEVICE (VB__READY_OWN << 1)

struct verbs_pool {
	struct vb__pool base;
	struct vb__waiter waiter; /* for completions and for the device's events, for all members */
	struct ibv_context *context;
	const char *device;
	struct vb__log log;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_srq *srq;
	struct ibv_comp_channel *completions;
	struct ibv_cq *cq;
	unsigned cq_size, cq_max;
	uint8_t *memory;
	size_t memory_bytes, room;
	struct verbs_arrival *slots;
	unsigned count;
	struct verbs_watcher watcher; /* so that events are taken while there are no members */

	pthread_mutex_t lock; /* for all that follows, and the members' shares */
	unsigned posted;
	unsigned sends;	   /* of all members at once */
	uint64_t rearm_ns; /* not before: a crowd is one notice in a while */
	unsigned unacked;  /* completion events */
	int failed;	   /* errno of failed_call; 0: it works */
	const char *failed_call;
	struct verbs_ep *members[VERBS_POOL_BUCKETS]; /* by the number of the queue pair */
};

/* A completion that was handed to an endpoint; a good receive has an arrival. */
struct verbs_taken {
	struct ibv_wc wc;
	struct verbs_arrival *arrival;
};

/* What the completion queue will raise an event for, each more than the one before. */
enum verbs_armed {
	VERBS_ARMED_NOT = 0,
	VERBS_ARMED_ARRIVALS, /* receives, and errors */
	VERBS_ARMED_ALL,
};

struct verbs_wireup;

/* What an endpoint's waiter tells. */
#define VERBS_READY_CQ VB__READY_OWN
#define VERBS_READY_WIRE (VB__READY_OWN << 1)
#define VERBS_READY_DEVICE (VB__READY_OWN << 2)

/* A port of a device, and how it is reached. */
struct verbs_port {
	struct ibv_context *context; /* held, see verbs_device_open */
	uint8_t number;
	uint8_t gid_index;
	uint8_t link; /* enum vb__wireup_link */
	uint16_t lid; /* InfiniBand only */
	uint16_t pkey_index;
	uint16_t mtu_bytes; /* that is active */
	uint8_t gid[16];
};

/* A record of the wire-up by TCP that is coming in. */
struct verbs_record {
	uint8_t bytes[VB__WIREUP_BYTES];
	size_t have;
};

/* The part of the wire-up by TCP. */
struct verbs_tcp_end {
	int fd;			     /* the connection's sign of life; -1: none */
	struct verbs_port port;	     /* ours */
	uint32_t psn;		     /* of what we send */
	struct vb__address from, to; /* connecting */
	struct vb__wireup peer;	     /* accepting: what it asked for */
	struct verbs_record in;	     /* what is being read */
	bool ready;		     /* no record is to come any more */
};

/* The part of the wire-up by rdma_cm. */
struct verbs_cm_end {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	int last_event; /* while connecting */
};

struct verbs_ep {
	struct vb__ep base;
	struct vb__waiter waiter;
	struct vb__log log;
	uint32_t peer_timeout_ms;
	struct vb_qp_options tuning;

	const struct verbs_wireup *wireup;
	struct verbs_cm_end cm;
	struct verbs_tcp_end tcp;
	struct ibv_context *context; /* the device, opened by the wire-up */
	uint8_t port;
	struct ibv_qp *qp;
	struct ibv_pd *pd;
	struct ibv_comp_channel *completions;
	struct ibv_cq *cq;
	unsigned unacked; /* completion events taken and not yet acknowledged */
	enum verbs_armed armed;
	bool settled; /* armed, and all else was looked after: until something completes or we sleep */
	enum vb__qp_type type;
	bool iwarp;
	bool asked;				      /* for, by somebody who has no answer yet */
	uint8_t responder_resources, initiator_depth; /* as many as are wanted, then as can be */
	struct vb__idle idle;
	struct verbs_probe probe;
	uint64_t flushing_ns; /* down, and something is outstanding, since then; 0: not */
	bool worse;	      /* down, and something else has failed since then */
	struct verbs_share share;

	struct verbs_watcher watcher;
};

struct verbs_mr {
	struct vb__mr base;
	struct ibv_mr *mr;
};

struct verbs_window {
	struct vb__window base;
	struct ibv_mw *mw;
};

/* What a listener's waiter tells. */
#define VERBS_PEP_CM VB__READY_OWN
#define VERBS_PEP_TCP (VB__READY_OWN << 1)
#define VERBS_PEP_DEVICE (VB__READY_OWN << 2)

struct verbs_pep {
	struct vb__pep base;
	struct vb__waiter waiter;
	struct {
		struct rdma_event_channel *channel;
		struct rdma_cm_id *id, *id_four; /* the second beside a wildcard of IPv6 */
	} cm;
	struct verbs_tcp_listener *tcp; /* NULL: none */
	char only_device[64];
	struct vb__log log;
};

struct verbs_request {
	struct vb__request base;
	const struct verbs_wireup *wireup;
	struct ibv_context *context; /* of the device that it came to */
	struct vb__log log;
};

/* verbs_failure.c: native results in words */

/* Of what a call has returned: an errno or, as siw's library says it where others return an errno, -1 with errno. */
int verbs_errnum(int rc);
int verbs_fail(struct vb_error *err, int errnum, const char *operation, const char *object);
int verbs_fail_memory(struct vb_error *err, int errnum, const char *operation, const char *object,
		      size_t bytes);

/* A queue of so many entries, of so many pieces each: what it would have taken is estimated. */
int verbs_fail_queue(struct vb_error *err, int errnum, const char *operation, const char *object,
		     unsigned entries, unsigned sge);
int verbs_fail_cm(struct vb_error *err, const struct rdma_cm_event *event, const char *operation,
		  const char *object);

/* Of a connection that was up: whatever the event says, a loss. An acceptor that dies early "rejects", for instance. */
int verbs_lost_cm(struct vb_error *err, const struct rdma_cm_event *event, const char *operation,
		  const char *object);
void verbs_fail_wc(struct vb_error *err, enum ibv_wc_status status, enum vb__op_kind kind,
		   const char *object);
enum vb_err verbs_wc_code(enum ibv_wc_status status, enum vb__op_kind kind);

/*
 * A failure that no call returns goes to the log (NULL: there is none), with its reason and what becomes of it. `rc` is what
 * the call has returned: 0, an errno, or -1 with errno. Returns whether it failed.
 */
bool verbs_note(const struct vb__log *log, int rc, const char *call, const char *object,
		const char *then);

/* The same for a call that gives something back, which nobody expects to fail. */
#define VERBS_UNDO(log, object, call, arg) verbs_undone(log, object, #call, call(arg))
void verbs_undone(const struct vb__log *log, const char *object, const char *call, int rc);

/* A node below /dev/infiniband cannot be opened. */
int verbs_fail_node(struct vb_error *err, const char *node, int errnum);

/*
 * Why verbs cannot work on this machine at all, told by what `root` ("" for
 * the real system) shows under /sys and /dev; 0 if nothing speaks against it.
 * With `cm` also why rdma_cm cannot. What was good once is not looked at again:
 * that would cost each connection some twenty system calls.
 */
int verbs_preflight(const char *root, bool cm, struct vb_error *err);

/*
 * verbs_opened.c: devices that are opened without librdmacm. Opens one, or shares what was opened so before.
 * Each ends by a release. Holding and releasing those of librdmacm does nothing: it keeps them open.
 */
int verbs_device_open(struct ibv_device *device, struct ibv_context **context,
		      struct vb_error *err);
int verbs_device_open_named(const char *name, struct ibv_context **context, struct vb_error *err);
void verbs_device_hold(struct ibv_context *context);
void verbs_device_release(struct ibv_context *context, const struct vb__log *log);

/*
 * verbs_device.c: a device's asynchronous events. Watching begins with what happens
 * from then on. Ending it, also what never began, leaves nobody behind who would write to the watcher.
 */
int verbs_watch(struct verbs_watcher *watcher, struct ibv_context *context, struct vb_error *err);
void verbs_unwatch(struct verbs_watcher *watcher);

/* The event that ends the watcher, once; VERBS_NO_EVENT: there is none. */
int verbs_fatal_event(struct verbs_watcher *watcher);

/* Takes all events and tells every watcher, waking those that they end. 0, or the errno of a failure. */
int verbs_take_device_events(struct ibv_context *context);

/* For tests: windows also where their bounds are not kept. */
extern bool verbs_any_windows;

/* verbs_queues.c: PD, CQ, QP with capacities that were asked for and checked */
int verbs_queues_open(struct verbs_ep *ep, const struct vb__ep_attr *attr, struct vb_error *err);
void verbs_queues_close(struct verbs_ep *ep);

/* verbs_pool.c */
int verbs_pool_open(struct vb__request *request, const struct vb__pool_attr *attr,
		    struct vb__pool **pool, struct vb_error *err);
bool verbs_pool_serves(struct vb__pool *pool, const struct vb__request *request, unsigned sends);
void verbs_pool_close(struct vb__pool *pool);

/* So that the device tells when the receives run low, once. Where it cannot, the log says so. */
void verbs_pool_arm_limit(struct verbs_pool *pool);

/* verbs_share.c */
void verbs_pool_post(struct verbs_pool *pool, struct verbs_arrival *slot);
void verbs_pool_give_back(struct vb__pool *pool, struct vb__arrival *arrival);
void verbs_pool_look_after(struct vb__pool *pool);

/* For a member with a queue pair. Leaving, which a half-made one may as well, destroys that. */
int verbs_pool_join(struct verbs_ep *ep, struct vb_error *err);
void verbs_pool_leave(struct verbs_ep *ep);
int verbs_pool_poll(struct verbs_ep *ep, struct verbs_taken *taken, int max);

/* True if nothing waits to be polled and the queue is armed. */
bool verbs_pool_quiet(struct verbs_ep *ep);

/* verbs_connection.c */
enum vb_wireup verbs_second_wireup(const struct vb__settings *settings);
int verbs_ep_open(const struct vb__ep_attr *attr, const struct vb__address *peer,
		  uint64_t deadline_ns, struct vb__ep **ep, struct vb_error *err);
int verbs_ep_connect(struct vb__ep *ep, const void *data, size_t len, uint64_t deadline_ns,
		     struct vb_error *err);
int verbs_ep_accept_open(struct vb__request *request, const struct vb__ep_attr *attr,
			 struct vb__ep **ep, struct vb_error *err);
int verbs_ep_accept(struct vb__ep *ep, const void *data, size_t len, struct vb_error *err);
void verbs_ep_disconnect(struct vb__ep *ep);
void verbs_ep_close(struct vb__ep *ep);

/* Ends the connection, whatever it is worth: what is posted gets flushed. The state is the caller's business. */
void verbs_cut(struct verbs_ep *ep);
void verbs_destroy_qp(struct verbs_ep *ep);

/* The connection is broken by a failing call; what is posted gets flushed. */
void verbs_break(struct verbs_ep *ep, int errnum, const char *operation);

/* Events of the wire-up and of the device, and ticks: what concerns all threads. */
void verbs_look_after(struct verbs_ep *ep);

/* A read that found nothing, which is no failure. */
bool verbs_nothing_more(int errnum);

/* The same for the thread that is about to sleep: also a completion event, and wakes; true if there was one of these. */
bool verbs_take_wakes(struct verbs_ep *ep);

/* True if there was one: then the queue is to be armed again. More of them would only wake us once more. */
bool verbs_take_completion_event(struct verbs_ep *ep);

/* The connection stands. Done once, and again without harm. */
void verbs_on_established(struct verbs_ep *ep);

/* verbs_listener.c */
int verbs_listen(const struct vb__settings *settings, const struct vb__address *at,
		 struct vb__pep **pep, struct vb_error *err);
int verbs_next_request(struct vb__pep *pep, struct vb__request **request, struct vb_error *err);
void verbs_reject(struct vb__request *request, const void *data, size_t len);
void verbs_pep_close(struct vb__pep *pep);

/* verbs_cm.c: a CM event channel that never blocks. */
int verbs_cm_open(struct rdma_event_channel **cm, struct vb_error *err);

/* verbs_transfer.c */
int verbs_register(struct vb__ep *ep, void *addr, size_t len, unsigned access, struct vb__mr **mr,
		   struct vb_error *err);
void verbs_deregister(struct vb__mr *mr);
int verbs_window_open(struct vb__ep *ep, struct vb__window **window, struct vb_error *err);
void verbs_window_close(struct vb__window *window);
int verbs_post(struct vb__ep *ep, const struct vb__op *op, struct vb_error *err);
int verbs_poll(struct vb__ep *ep, struct vb__completion *done, int max);
int verbs_arm(struct vb__ep *ep, bool arrivals_only);

/* verbs_liveness.c */
int verbs_probe_open(struct verbs_ep *ep, struct vb_error *err);
void verbs_probe_tick(struct verbs_ep *ep);
void verbs_probe_done(struct verbs_ep *ep);
uint8_t verbs_ack_timeout(const struct verbs_ep *ep);

#define VERBS_PROBE_ID UINT64_MAX

#endif
