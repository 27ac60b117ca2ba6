/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fabric contract: a connected endpoint, the same over libibverbs and over
 * libfabric. What stands above it never sees a type of either.
 *
 * Promises:
 * - Receives can be posted before the connection is made, so that nothing
 *   that the peer sends ever finds no room.
 * - Both sides pass up to VB__PRIVATE_DATA bytes while connecting.
 * - Every operation that was posted completes exactly once: with success, with
 *   an error, or flushed (VB_ERR_FLUSHED) because the connection went down. If a
 *   driver loses one then, it counts as outstanding for a second at most, and its memory
 *   is not used any more.
 * - Operations posted on one endpoint are carried out in order, and sends and
 *   receives complete in order.
 * - The end of a connection, for whatever reason, turns the state to DOWN with
 *   the first cause in `down`. What arrived before can still be polled.
 * - A peer that cannot be heard for the peer time-out is such an end, as long
 *   as somebody polls.
 * - One descriptor (wait_fd) wakes up for all of this.
 *
 * An endpoint is not locked: one thread at a time, except vb__ep_wake and
 * sleeping on wait_fd. Backends start no threads.
 */
#ifndef VB_FABRIC_FABRIC_H
#define VB_FABRIC_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <verbatim/error.h>

#include "core/failure.h"
#include "core/settings.h"
#include "fabric/address.h"

#define VB__PRIVATE_DATA 48u

enum vb__ep_state {
	VB__EP_NEW = 0,	   /* receives may be posted */
	VB__EP_CONNECTING, /* accepted, not yet confirmed by the peer */
	VB__EP_UP,
	VB__EP_DOWN, /* `down` tells why; posted operations come back flushed */
};

/*
 * What carries an endpoint. UC is verbs only, and of the wire-up by TCP: what was sent may be lost without
 * a word, also what completed before the end of the connection, and so may a message of which a part was
 * lost. It cannot read (no VB__CAP_READ) and has no atomics.
 */
enum vb__qp_type {
	VB__QP_RC = 0, /* a reliable connection */
	VB__QP_UC,     /* an unreliable one */
};

/* What an endpoint can do beyond send, receive and write. */
enum vb__ep_cap {
	VB__CAP_IMM = 1,	/* VB__OP_SEND_IMM and VB__OP_WRITE_IMM */
	VB__CAP_ATOMIC = 2,	/* VB__OP_FETCH_ADD and VB__OP_COMPARE_SWAP on 8 aligned bytes */
	VB__CAP_ANY_BUFFER = 4, /* local buffers need no registration */
	VB__CAP_SLOW_POST = 8,	/* posting costs a system call: worth to put messages together */
	VB__CAP_CONNECTOR_FIRST =
		16,		/* who accepted must not send before it has received (iWARP) */
	VB__CAP_WINDOW = 32,	/* VB__OP_BIND and VB__OP_UNBIND */
	VB__CAP_SINK = 64,	/* the local target of a read needs VB__ACCESS_READ_SINK */
	VB__CAP_MUTE = 256,	/* of a refused access only the end of the connection is heard */
	VB__CAP_ATTENDED = 128, /* the peer's reads and writes go on only while somebody polls */
	VB__CAP_READ = 512,	/* VB__OP_READ */
	VB__CAP_PATIENT = 1024, /* messages wait for receives; while none is posted nobody sleeps */
};

enum vb__op_kind {
	VB__OP_RECV = 0,
	VB__OP_SEND,
	VB__OP_SEND_IMM, /* whose receive completes with `imm` */
	VB__OP_WRITE,
	VB__OP_WRITE_IMM, /* takes a receive at the peer, which completes with `imm` */
	VB__OP_READ,
	VB__OP_FETCH_ADD,    /* one sge of 8 bytes for the former value; `operand` is added */
	VB__OP_COMPARE_SWAP, /* likewise; `operand` is stored if the value is `compare` */
	VB__OP_BIND,	     /* gives `access` to one sge by `window` */
	VB__OP_UNBIND,	     /* takes it back */
};

enum vb__access {
	VB__ACCESS_LOCAL = 0, /* send from it, receive into it */
	VB__ACCESS_REMOTE_READ = 1,
	VB__ACCESS_REMOTE_WRITE = 2,
	VB__ACCESS_REMOTE_ATOMIC = 4,
	VB__ACCESS_READ_SINK = 8, /* local target of VB__OP_READ, see VB__CAP_SINK */
	VB__ACCESS_BINDABLE = 16, /* windows can be bound to it */
	VB__ACCESS_SOURCE = 32,	  /* only sent from, and so it may be read-only memory */
};

/* Registered memory. Belongs to its endpoint, and goes with it at the latest. */
struct vb__mr {
	struct vb__ep *ep;
	struct vb__mr *next;
	void *addr;
	size_t len;
	uint64_t remote_addr; /* what the peer must use as the address of byte 0 */
	uint64_t remote_key;
};

/* Rights on a part of registered memory, which are given and taken by posting. Belongs to its endpoint. */
struct vb__window {
	struct vb__ep *ep;
	struct vb__window *next;
	uint64_t remote_key; /* as it was bound last; the address is the memory's own */
};

struct vb__sge {
	void *addr;
	size_t len;
	struct vb__mr *mr; /* may be NULL with VB__CAP_ANY_BUFFER, or if the bytes go inline */
};

#define VB__SGE_MAX 16u
#define VB__OP_ID_MAX ((UINT64_C(1) << 56) - 1)

struct vb__op {
	enum vb__op_kind kind;
	unsigned sge_count;
	const struct vb__sge *sge;
	uint64_t id;			  /* comes back in the completion; at most VB__OP_ID_MAX */
	uint64_t remote_addr, remote_key; /* for all but send and receive */
	uint64_t operand, compare;
	struct vb__window *window;
	uint32_t imm;
	unsigned access; /* of enum vb__access, for VB__OP_BIND */
};

/*
 * Receives that several endpoints of one device share. Locked inside, since
 * the endpoints may be used by different threads. A sender that finds the
 * pool empty is held back by the devices until there is room again.
 */
struct vb__pool {
	const struct vb__fabric *fabric;
	struct vb__pool *next; /* for its owner */
	int wait_fd;	       /* wakes for what comes to any member; beside the members' own */
	bool watched;	       /* for its owner */
};

/* What came through a pool. It goes back by vb__pool_give_back. */
struct vb__arrival {
	uint8_t *bytes;
};

struct vb__pool_attr {
	unsigned receives;
	size_t bytes;	/* of each */
	unsigned sends; /* of a member, outstanding at once */
	struct vb__log log;
};

struct vb__completion {
	uint64_t id;
	enum vb__op_kind kind;
	enum vb_err status; /* VB_OK or the error; the details are in the endpoint's `down` */
	bool has_imm;
	bool by_write; /* the receive was taken by a VB__OP_WRITE_IMM, and holds nothing */
	uint32_t imm;
	size_t len; /* received bytes */
	struct vb__arrival
		*arrival; /* a good receive of a member of a pool; `id` means nothing then */
};

/* Private data of an answer. */
struct vb__private_data {
	const void *data;
	size_t len;
};

/* What an endpoint is asked for; what it got is in struct vb__ep. */
struct vb__ep_attr {
	unsigned send_depth, recv_depth; /* operations outstanding at once */
	unsigned sge;			 /* pieces per operation */
	const struct vb__settings *settings;
	const struct vb__address *source; /* to connect from; NULL: by the route */
	struct vb__pool *pool;		  /* to receive through; NULL: none. Only where accepting */
	enum vb__qp_type qp_type;	  /* where accepting: that of the request */
	/* Where accepting: what who asked is told if it comes to nothing. Stays the caller's until that is known. */
	struct vb__private_data refusal;
};

struct vb__ep {
	const struct vb__fabric *fabric;
	enum vb__ep_state state;
	bool was_up; /* it has been UP, whatever it is now */
	struct vb_error down;
	int wait_fd;
	unsigned outstanding; /* posted and not yet completed */
	unsigned caps;
	unsigned send_depth, recv_depth, sge;
	size_t inline_bytes; /* a send or write up to this is copied before post returns */
	size_t max_bytes;    /* the largest operation */
	enum vb_wireup
		wireup; /* that brought it together; VB_WIREUP_AUTO: the fabric has but one way */
	char device[64];
	char peer[VB__ADDRESS_TEXT];
	char how[200]; /* what else is worth telling of how it was connected, and why so; or empty */
	uint8_t peer_data[VB__PRIVATE_DATA];
	size_t peer_data_len; /* may be padded by the fabric */
	struct vb__mr *mrs;
	uint64_t registrations; /* how often memory was registered so far */
	struct vb__window *windows;
	struct vb__pool *pool;		 /* or NULL */
	struct vb__private_data refusal; /* until it is accepted */
};

/* A listening endpoint. */
struct vb__pep {
	const struct vb__fabric *fabric;
	int wait_fd;
	uint16_t port;
	char device[200];      /* for the description */
	bool shares_tcp_ports; /* an iWARP device holds the TCP port of the same number */
};

/* Somebody wants to connect. Ends with accept_open or reject. */
struct vb__request {
	const struct vb__fabric *fabric;
	uint8_t data[VB__PRIVATE_DATA];
	size_t data_len;
	enum vb__qp_type qp_type; /* what the other side has */
};

/* One table per backend. Use the functions below, which keep the common books. */
struct vb__fabric {
	const char *name;
	enum vb_fabric id;
	unsigned qp_types; /* bits, 1 << enum vb__qp_type */

	/* Or NULL: does what takes long the first time. Any thread. */
	void (*prepare)(void);

	/*
	 * Or NULL: what else than the way that open takes with these settings could lead to a listener that is
	 * not found by it; VB_WIREUP_AUTO: nothing. To be asked for by settings->wireup.
	 */
	enum vb_wireup (*second_wireup)(const struct vb__settings *settings);

	int (*open)(const struct vb__ep_attr *attr, const struct vb__address *peer,
		    uint64_t deadline_ns, struct vb__ep **ep, struct vb_error *err);
	int (*connect)(struct vb__ep *ep, const void *data, size_t len, uint64_t deadline_ns,
		       struct vb_error *err);
	void (*close)(struct vb__ep *ep);

	int (*listen)(const struct vb__settings *settings, const struct vb__address *at,
		      struct vb__pep **pep, struct vb_error *err);
	int (*next_request)(struct vb__pep *pep, struct vb__request **request,
			    struct vb_error *err);
	int (*pep_arm)(struct vb__pep *pep);
	int (*accept_open)(struct vb__request *request, const struct vb__ep_attr *attr,
			   struct vb__ep **ep, struct vb_error *err);
	int (*accept)(struct vb__ep *ep, const void *data, size_t len, struct vb_error *err);
	void (*reject)(struct vb__request *request, const void *data, size_t len);
	void (*pep_close)(struct vb__pep *pep);

	int (*register_memory)(struct vb__ep *ep, void *addr, size_t len, unsigned access,
			       struct vb__mr **mr, struct vb_error *err);
	void (*deregister)(struct vb__mr *mr);
	int (*window_open)(struct vb__ep *ep, struct vb__window **window, struct vb_error *err);
	void (*window_close)(struct vb__window *window);

	int (*post)(struct vb__ep *ep, const struct vb__op *op, struct vb_error *err);
	int (*poll)(struct vb__ep *ep, struct vb__completion *done, int max);
	int (*arm)(struct vb__ep *ep, bool arrivals_only);
	void (*disconnect)(struct vb__ep *ep);
	void (*wake)(struct vb__ep *ep);
	bool (*is_behind)(const struct vb__ep *ep); /* or NULL: it never is */

	/* All NULL where receives cannot be shared. */
	int (*pool_open)(struct vb__request *request, const struct vb__pool_attr *attr,
			 struct vb__pool **pool, struct vb_error *err);
	bool (*pool_serves)(struct vb__pool *pool, const struct vb__request *request,
			    unsigned sends);
	void (*pool_look_after)(struct vb__pool *pool);
	void (*pool_give_back)(struct vb__pool *pool, struct vb__arrival *arrival);
	void (*pool_close)(struct vb__pool *pool);
};

/* The backends that were built in, best first; NULL at the end. */
extern const struct vb__fabric *const vb__fabrics[];
extern const struct vb__fabric vb__verbs_fabric;
extern const struct vb__fabric vb__ofi_fabric;

/* Fails with the fact that this build has not the fabric that was asked for. */
int vb__fabric_fail_missing(enum vb_fabric fabric, const char *operation, struct vb_error *err);

/* ---- Connecting side ---- */

/*
 * Finds out by which device the peer can be reached and makes an endpoint on
 * it, state NEW. VB_ERR_NO_DEVICE: this fabric does not lead there.
 * VB_ERR_UNSUPPORTED: it has no such endpoints. Blocks until the deadline at most.
 */
int vb__ep_open(const struct vb__fabric *fabric, const struct vb__ep_attr *attr,
		const struct vb__address *peer, uint64_t deadline_ns, struct vb__ep **ep,
		struct vb_error *err);

/*
 * Connects; blocks until UP, an error or the deadline. peer_data holds what
 * the other side answered, if it refused (VB_ERR_REFUSED) as well.
 */
int vb__ep_connect(struct vb__ep *ep, const void *data, size_t len, uint64_t deadline_ns,
		   struct vb_error *err);

/* ---- Listening side; nothing here blocks ---- */

int vb__pep_open(const struct vb__fabric *fabric, const struct vb__settings *settings,
		 const struct vb__address *at, struct vb__pep **pep, struct vb_error *err);

/* 1 and a request, 0 if there is none, or an error of the listener itself. */
int vb__pep_next(struct vb__pep *pep, struct vb__request **request, struct vb_error *err);
/* Gets ready to sleep on wait_fd: 0 if it is safe, 1 if there may be a request first. */
int vb__pep_arm(struct vb__pep *pep);
void vb__pep_close(struct vb__pep *pep);

/*
 * An endpoint for the request, of its type and in state NEW. Ends the request, also on failure: then, and if the
 * endpoint is closed before it has accepted, the refusal is said. Over libfabric it may be too late for words: the
 * peer hears that it was hung up on.
 */
int vb__ep_accept_open(struct vb__request *request, const struct vb__ep_attr *attr,
		       struct vb__ep **ep, struct vb_error *err);

/* Says yes; the state goes to CONNECTING and, when the peer confirms, to UP. */
int vb__ep_accept(struct vb__ep *ep, const void *data, size_t len, struct vb_error *err);

/* Says no and ends the request. */
void vb__request_reject(struct vb__request *request, const void *data, size_t len);

/* ---- Pools ---- */

/*
 * The pool of `list` that an endpoint for this request can join; opens one if
 * there is none. VB_ERR_UNSUPPORTED: receives cannot be shared there.
 */
int vb__pool_for(struct vb__request *request, const struct vb__pool_attr *attr,
		 struct vb__pool **list, struct vb__pool **pool, struct vb_error *err);

/* When wait_fd is readable: hands what has come to the members that it is for, and wakes them. */
void vb__pool_look_after(struct vb__pool *pool);

/* The receive is posted again. Any thread. */
void vb__pool_give_back(struct vb__pool *pool, struct vb__arrival *arrival);

/* All of the list. After their members. */
void vb__pools_close(struct vb__pool **list);

/* ---- Both ---- */

int vb__mr_open(struct vb__ep *ep, void *addr, size_t len, unsigned access, struct vb__mr **mr,
		struct vb_error *err);
void vb__mr_close(struct vb__mr *mr);

/* With VB__CAP_WINDOW. Closing unbinds it, and comes before the closing of the memory. */
int vb__window_open(struct vb__ep *ep, struct vb__window **window, struct vb_error *err);
void vb__window_close(struct vb__window *window);

/* Posts an operation. The caller keeps to send_depth and recv_depth. Members of a pool post no receives. */
int vb__ep_post(struct vb__ep *ep, const struct vb__op *op, struct vb_error *err);

/* Takes up to `max` completions, returns how many. Looks after events every now and then. */
int vb__ep_poll(struct vb__ep *ep, struct vb__completion *done, int max);

/*
 * Gets ready to sleep on wait_fd: 0 if it is safe to sleep, 1 if there may be
 * something to poll first. Looks after events before or, if that is soon enough,
 * leaves them to wait_fd, which is readable until the next arming takes them.
 */
int vb__ep_arm(struct vb__ep *ep);

/*
 * The same for those who wait for what the peer sends, or for the end: what
 * else completes need not wake them, and does not where the fabric can tell.
 */
int vb__ep_arm_for_arrivals(struct vb__ep *ep);

/* Sleeps until there is something for the endpoint, the deadline, or for nothing. After arming; lock-free. */
void vb__ep_sleep(const struct vb__ep *ep, uint64_t deadline_ns);

/*
 * Something that was posted did not leave at once, though it may have completed, and will only while somebody polls or
 * sleeps here.
 */
bool vb__ep_is_behind(const struct vb__ep *ep);

/* Ends the connection; the peer sees that after everything that completed here. */
void vb__ep_disconnect(struct vb__ep *ep);

/* Makes wait_fd readable once. From any thread. */
void vb__ep_wake(struct vb__ep *ep);

/* Frees the endpoint and its registrations from any state. NULL is fine. */
void vb__ep_close(struct vb__ep *ep);

/* ---- For backends ---- */

/* Ticks per peer time-out, at which the peer's liveness is looked after. */
#define VB__TICKS 8u

/* Turns the state to UP, unless it is DOWN already. */
void vb__ep_up(struct vb__ep *ep);

/* Turns the state to DOWN; the first cause stays. */
void vb__ep_down(struct vb__ep *ep, const struct vb__failure *cause);

/* Is this errno the kernel's way to say that a connection's peer was not heard for too long? */
bool vb__errno_is_silence(int errnum);

/* The usual causes: the peer was not heard for the peer time-out; it went without a farewell. */
void vb__ep_down_silent(struct vb__ep *ep);
void vb__ep_down_gone(struct vb__ep *ep);

/* We end it ourselves. */
void vb__ep_down_closed(struct vb__ep *ep);

#endif
