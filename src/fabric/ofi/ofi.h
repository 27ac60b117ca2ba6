/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the libfabric backend share. Nothing here is for anybody else. */
#ifndef VB_FABRIC_OFI_H
#define VB_FABRIC_OFI_H

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

struct ofi_ep {
	struct vb__ep base;
	struct vb__waiter waiter;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_pep *pep; /* the request's, used only if there is no endpoint for it */
	struct vb__log log;
	uint64_t next_key;
	uint32_t peer_timeout_ms;
	struct vb__idle idle;
	uint64_t silent_since_ns; /* no acknowledgement of waiting data since then; 0: all well */
	int socket;		  /* the provider's, if it has one; see ofi_liveness.c */
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
};

struct ofi_request {
	struct vb__request base;
	struct fi_info *info; /* carries the handle of the request */
	struct fid_pep *pep;
};

void ofi_prepare(void);

/* The providers' answer for the way to `peer`, from `source` if not NULL; or, without a peer, for listening there. */
int ofi_info_get(const struct vb__settings *settings, const struct vb__address *peer,
		 const struct vb__address *source, struct fi_info **info, struct vb_error *err);

/* Turns a libfabric result (negative or positive) into an error. */
int ofi_fail(struct vb_error *err, long result, const char *operation, const char *object);
enum vb_err ofi_code(int fi_errnum);

/* Opens an event queue with a descriptor. */
int ofi_eq_open(struct fid_fabric *fabric, struct fid_eq **eq, int *fd, struct vb_error *err);
void ofi_close(struct fid *fid);

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

/* ofi_listener.c */
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

/* ofi_liveness.c */
void ofi_liveness_start(struct ofi_ep *ep);
void ofi_liveness_check(struct ofi_ep *ep);

#endif
