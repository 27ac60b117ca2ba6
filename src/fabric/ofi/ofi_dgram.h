/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of datagrams over libfabric share. Nothing here is for anybody else. */
#ifndef VB_FABRIC_OFI_DGRAM_H
#define VB_FABRIC_OFI_DGRAM_H

#include "fabric/dgrams.h"
#include "fabric/ofi/ofi.h"

#define OFI_DGRAM_CQ VB__READY_OWN
#define OFI_DGRAM_TIMER (VB__READY_OWN << 1)

struct ofi_dg_peer {
	struct vb__dg_peer base;
	fi_addr_t at;
};

/* Somebody waits for the answer of the endpoint of this name. */
struct ofi_dg_question {
	struct ofi_dg_question *next;
	struct vb__origin of;
	bool answered;
	uint8_t greeting[VB__GREETING_BYTES];
};

struct ofi_dg_waiting {
	unsigned slot;
	size_t len; /* with the envelope */
};

struct ofi_dg {
	struct vb__dg base;
	struct vb__waiter waiter;
	int timer; /* for who waits for room, which libfabric does not tell of */
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *sends, *receives;
	struct fid_ep *ep;
	struct vb__log log;
	struct vb__address at;
	struct vb__envelope envelope; /* ours */

	uint8_t *memory;
	size_t stride;
	unsigned slots;
	struct ofi_dg_waiting *waiting; /* a ring: received, and not yet shown */
	unsigned first, count;
	struct ofi_dg_question *questions;
};

/* ofi_dgram_traffic.c */

/* What the sender at this address puts around its data. */
struct vb__envelope ofi_dg_envelope(const struct vb__address *at);
int ofi_dg_post_receive(struct ofi_dg *dg, unsigned slot);
int ofi_dg_resolve(struct vb__dg *dg, const struct vb__address *at, uint64_t deadline_ns,
		   uint8_t greeting[VB__GREETING_BYTES], struct vb__dg_peer **peer,
		   struct vb_error *err);
int ofi_dg_peer_of(struct vb__dg *dg, const struct vb__origin *origin, struct vb__dg_peer **peer,
		   struct vb_error *err);
void ofi_dg_peer_close(struct vb__dg_peer *peer);
int ofi_dg_send(struct vb__dg *dg, struct vb__dg_peer *peer, const void *head, size_t head_len,
		const void *bytes, size_t len, struct vb_error *err);
int ofi_dg_receive(struct vb__dg *dg, struct vb__dg_arrival *arrival);
void ofi_dg_give_back(struct vb__dg *dg, unsigned slot);
int ofi_dg_arm(struct vb__dg *dg, bool for_room);

#endif
