/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a queue pair gets from RESET to RTS, and how the end of its connection
 * is heard. There are several ways, each a table of the functions below; the
 * endpoint is the same afterwards, and nobody else has to know which it was.
 */
#ifndef VB_FABRIC_VERBS_WIREUP_H
#define VB_FABRIC_VERBS_WIREUP_H

#include "fabric/verbs/verbs.h"

struct verbs_wireup {
	enum vb_wireup id;
	unsigned qp_types; /* bits, 1 << enum vb__qp_type */

	/* Connecting: finds the device that leads to the peer, and tells it as the endpoint's context and port. */
	int (*find)(struct verbs_ep *ep, const struct vb__ep_attr *attr,
		    const struct vb__address *peer, uint64_t deadline_ns, struct vb_error *err);

	/* Accepting: the same for a request, of which only the memory is left to the caller. Or it fails, and nothing of the request has changed. */
	int (*adopt)(struct verbs_ep *ep, struct verbs_request *request, struct vb_error *err);

	/* The queue pair, as the endpoint's own: 0 or an errno. Destroying works from any state. */
	int (*create_qp)(struct verbs_ep *ep, struct ibv_qp_init_attr *attr);
	const char *create_qp_call; /* its name, for errors */
	void (*destroy_qp)(struct verbs_ep *ep);

	/* All queues are there: makes the queue pair ready for receives to be posted. */
	int (*get_ready)(struct verbs_ep *ep, struct vb_error *err);

	/* As in the fabric contract. */
	int (*connect)(struct verbs_ep *ep, const void *data, size_t len, uint64_t deadline_ns,
		       struct vb_error *err);
	int (*accept)(struct verbs_ep *ep, const void *data, size_t len, struct vb_error *err);

	/* What was adopted comes to nothing: the peer is told, in the words of its refusal. */
	void (*refuse)(struct verbs_ep *ep);

	/* Looks after VERBS_READY_WIRE. */
	void (*look_after)(struct verbs_ep *ep);

	/* Or NULL: the peer's first data or its word is there; before the state changes. */
	void (*established)(struct verbs_ep *ep);

	/* Ends the connection: what is posted gets flushed, the peer hears of it. Again and again without harm. */
	void (*disconnect)(struct verbs_ep *ep);

	/* From any half-made state; after the queue pair. */
	void (*close)(struct verbs_ep *ep);

	/* Listening, as in the fabric contract. The others do nothing where this one failed or was not called. */
	int (*listen)(struct verbs_pep *pep, const struct vb__settings *settings,
		      const struct vb__address *at, struct vb_error *err);
	int (*next_request)(struct verbs_pep *pep, struct vb__request **request,
			    struct vb_error *err);
	void (*unlisten)(struct verbs_pep *pep);

	/* Says no, and ends the request. */
	void (*reject)(struct verbs_request *request, const void *data, size_t len);
};

extern const struct verbs_wireup verbs_cm, verbs_tcp;

/* verbs_cm_listener.c, for verbs_cm */
int verbs_cm_listen(struct verbs_pep *pep, const struct vb__settings *settings,
		    const struct vb__address *at, struct vb_error *err);
int verbs_cm_next_request(struct verbs_pep *pep, struct vb__request **request,
			  struct vb_error *err);
void verbs_cm_unlisten(struct verbs_pep *pep);
void verbs_cm_reject(struct verbs_request *request, const void *data, size_t len);

struct verbs_cm_request {
	struct verbs_request base;
	struct rdma_cm_id *id;
	uint8_t responder_resources, initiator_depth;
};

#endif
