/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libibverbs and librdmacm with one device that exists on paper only: linked
 * in place of the real libraries, driven by the test. The descriptors are real.
 *
 * What it insists upon (see mock_complaint): nothing is used or destroyed after
 * it was destroyed, nothing is destroyed while something stands on it or with
 * events that were not acknowledged, nothing is sent from memory that is not
 * registered, no read of an event would block.
 */
#ifndef VB_TESTS_MOCK_VERBS_H
#define VB_TESTS_MOCK_VERBS_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

#define MOCK_DEVICE "mock0"
#define MOCK_PORT 7471
#define MOCK_RNR_TIMER_UNSET 255

/* Back to nothing: all mocks, and the device and the peer as they are by default. */
void mock_verbs_reset(void);

/* ---- The device ---- */

struct mock_device {
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	unsigned inline_max;	/* rdma_create_qp refuses to ask for more */
	unsigned inline_grants; /* and grants at least so much */
	bool no_address;	/* rdma_bind_addr finds no device */
	unsigned srq_grants;	/* ibv_create_srq gives so many; 0: what was asked for */
	struct ibv_gid_entry gids[4];
	unsigned gid_count;
};
extern struct mock_device mock_device;

/* The port's partitions; and that of lo, if it is to be an IPoIB interface of this port: else 0. */
extern uint16_t mock_pkeys[3];
extern uint16_t mock_ipoib_pkey;
extern struct ibv_context mock_context;

/* ---- The peer and the network ---- */

/* What follows upon a call, or nothing. */
struct mock_answer {
	bool none;
	enum rdma_cm_event_type event;
	int status;
	const void *data;
	uint8_t len;
};

struct mock_peer {
	struct mock_answer resolve_addr, resolve_route, connect, join;
};
extern struct mock_peer mock_peer;

/* Raises a CM event on the id's channel. */
void mock_cm_event(struct rdma_cm_id *id, const struct mock_answer *what);

/* Somebody asks the listener for a connection. */
void mock_connect_request(struct rdma_cm_id *listener, const void *data, uint8_t len);

/* What was last given to rdma_connect, rdma_accept and rdma_reject. */
extern struct mock_said {
	struct rdma_conn_param param;
	uint8_t data[256];
	uint8_t len;
} mock_said;

/* ---- Datagrams ---- */

/* Where somebody who asks by a UDP port is told to send to; groups have a queue pair of their own. */
#define MOCK_UD_QP 77u
#define MOCK_GROUP_QP 0xffffffu
#define MOCK_QKEY 0x01234567u

/* What an address handle was last asked for with. */
extern struct ibv_ah_attr mock_way;

/* Who sent what completes next. */
extern uint32_t mock_src_qp;

/* What is asked for by index, before the device's own GIDs; all zero: an entry that is not used. */
#define MOCK_GIDS 4
extern struct ibv_gid_entry mock_gids[MOCK_GIDS];

/* ---- Windows ---- */

/* What the window with this key gives; NULL if no window is bound with it. */
const struct ibv_mw_bind_info *mock_window(uint32_t rkey);

/* ---- Queue pairs ---- */

struct mock_wr {
	uint64_t wr_id;
	bool send;
	enum ibv_wr_opcode opcode;
	unsigned flags;
	int num_sge;
	struct ibv_sge sge; /* the first one */
	uint32_t remote_qp; /* of a datagram */
};

/* The capacities that rdma_create_qp was asked for. */
struct ibv_qp_cap mock_qp_asked(const struct ibv_qp *qp);
uint8_t mock_qp_rnr_timer(const struct ibv_qp *qp);

/* What ibv_modify_qp last gave when it took the queue pair to this state, and which of it counts. */
struct ibv_qp_attr mock_qp_step(const struct ibv_qp *qp, enum ibv_qp_state state, int *mask);

/* Posted and not completed. */
unsigned mock_qp_pending(const struct ibv_qp *qp);
struct mock_wr mock_qp_last_sent(const struct ibv_qp *qp);

/*
 * Completes the oldest send (receive) that is pending. With a status that is
 * an error the QP goes to its error state, and all the rest is flushed.
 */
void mock_complete_send(struct ibv_qp *qp, enum ibv_wc_status status);
void mock_complete_recv(struct ibv_qp *qp, enum ibv_wc_status status, uint32_t len);

/* Receives that are posted to a shared queue. What completes for a queue pair with one is taken from there. */
unsigned mock_srq_pending(const struct ibv_srq *srq);

/* The limit that is armed, 0: none. */
unsigned mock_srq_low(const struct ibv_srq *srq);

/* A completion event that stands for no completion. */
void mock_empty_completion_event(struct ibv_cq *cq);

/* Sends that are flushed never complete, as with siw now and then. */
extern bool mock_lose_flushes;

/* What fails to post returns -1 and has the reason in errno, as siw's library does. */
extern bool mock_post_by_errno;

/* Flushes, as rdma_disconnect does. For the mock of rdma_cm. */
void mock_qp_error(struct ibv_qp *qp);

/* ---- The device's asynchronous events ---- */

void mock_async_event(enum ibv_event_type type, void *element);
unsigned mock_async_pending(void);

/* ---- Between the two mocked libraries ---- */

struct ibv_qp *mock_qp_create(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
void mock_qp_destroy(struct ibv_qp *qp);
void mock_rdmacm_reset(void);

#endif
