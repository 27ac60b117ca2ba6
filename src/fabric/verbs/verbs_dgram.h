/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of datagrams over UD share. Nothing here is for anybody else. */
#ifndef VB_FABRIC_VERBS_DGRAM_H
#define VB_FABRIC_VERBS_DGRAM_H

#include "fabric/dgrams.h"
#include "fabric/verbs/verbs.h"

/* In front of every datagram that is received; on RoCE over IPv4 that header is in its last 20 bytes. */
#define VERBS_GRH 40u

#define VERBS_DGRAM_CQ VB__READY_OWN
#define VERBS_DGRAM_CM (VB__READY_OWN << 1)
#define VERBS_DGRAM_DEVICE (VB__READY_OWN << 2)

#define VERBS_DGRAM_BATCH 16

struct verbs_dg_peer {
	struct vb__dg_peer base;
	struct ibv_ah *ah;
	struct ibv_ah_attr way; /* that it was made of */
	unsigned ways_changed;	/* the endpoint's, when it was made or found to be the same */
	uint64_t retry_ns;	/* not before: a new way could not be had */
	uint32_t qp_num, qkey;
	struct sockaddr_storage group; /* that was joined; family AF_UNSPEC: none */
};

/* A CM event that somebody waits for, with what it tells. */
struct verbs_dg_answer {
	struct verbs_dg_answer *next;
	const struct rdma_cm_id *id;
	const struct verbs_dg_peer *joining; /* else everything but the joining of a group */
	int event;			     /* VERBS_NO_EVENT: not yet */
	struct ibv_ah_attr ah;
	uint32_t qp_num, qkey;
	uint8_t greeting[VB__GREETING_BYTES];
	struct vb_error failure;
};

struct verbs_dg {
	struct vb__dg base;
	struct vb__waiter waiter;
	struct vb__idle idle;
	struct vb__log log;
	struct rdma_event_channel *cm;
	struct rdma_cm_id *home; /* has the queue pair and the groups; such a one cannot listen */
	struct rdma_cm_id *door; /* where others ask */
	struct vb__address at;
	struct ibv_pd *pd;
	struct ibv_comp_channel *completions;
	struct ibv_cq *sends, *receives;
	unsigned unacked_sends, unacked_receives;
	struct ibv_mr *mr;
	uint32_t qkey;
	struct verbs_watcher watcher;
	struct verbs_dg_answer *awaited;
	bool ethernet;
	uint16_t lid;

	uint8_t *memory;
	size_t memory_bytes, stride;
	unsigned slots;			  /* for receiving; those for sending come behind them */
	unsigned room, posted, completed; /* sends: how many at once, and counts of all that were */
	bool stuck; /* the device does not complete what was sent; until it completes something */
	size_t inline_bytes;
	struct ibv_wc done[VERBS_DGRAM_BATCH]; /* received and not yet shown */
	unsigned done_count, done_next;
};

/* verbs_dgram.c */
int verbs_dg_open(const struct vb__dg_attr *attr, const struct vb__address *at, struct vb__dg **dg,
		  struct vb_error *err);
void verbs_dg_close(struct vb__dg *dg);

/* It is broken by a failing call. */
void verbs_dg_break(struct verbs_dg *dg, int errnum, const char *operation);

/* CM events and device events. */
void verbs_dg_look_after(struct verbs_dg *dg);

/* verbs_dgram_peers.c */
int verbs_dg_resolve(struct vb__dg *dg, const struct vb__address *at, uint64_t deadline_ns,
		     uint8_t greeting[VB__GREETING_BYTES], struct vb__dg_peer **peer,
		     struct vb_error *err);
int verbs_dg_join(struct vb__dg *dg, const struct vb__address *group, uint64_t deadline_ns,
		  struct vb__dg_peer **peer, struct vb_error *err);
int verbs_dg_peer_of(struct vb__dg *dg, const struct vb__origin *origin, struct vb__dg_peer **peer,
		     struct vb_error *err);
void verbs_dg_peer_close(struct vb__dg_peer *peer);

/*
 * Makes the way anew, if our address has moved in the table of GIDs since it was made: the old one names an entry that is
 * gone. Where that cannot be (nobody answers to the question for the peer's hardware address, or what was sent does not
 * complete) the old one stays, and it is tried again some seconds later. VB_ERR_UNREACHABLE: our own address is gone.
 */
int verbs_dg_refresh(struct verbs_dg *dg, struct verbs_dg_peer *peer, struct vb_error *err);
void verbs_dg_take_cm_events(struct verbs_dg *dg);

/* verbs_dgram_origin.c: who has sent it, told by the completion and the GRH. False: we ourselves, to a group. */
bool verbs_dg_origin(const struct verbs_dg *dg, const struct ibv_wc *wc, const uint8_t *grh,
		     struct vb__origin *origin);

/* The index of our own GID. Looked up each time, since indexes move when a port goes down and comes back. */
int verbs_dg_find_gid(struct verbs_dg *dg, uint8_t *index, struct vb_error *err);

/* The way back to there. */
int verbs_dg_way_to(struct verbs_dg *dg, const struct vb__origin *origin, struct ibv_ah_attr *ah,
		    uint32_t *qp_num, char text[VB__ADDRESS_TEXT], struct vb_error *err);

/* verbs_dgram_traffic.c */
int verbs_dg_post_receive(struct verbs_dg *dg, unsigned slot);
int verbs_dg_send(struct vb__dg *dg, struct vb__dg_peer *peer, const void *head, size_t head_len,
		  const void *bytes, size_t len, struct vb_error *err);
int verbs_dg_receive(struct vb__dg *dg, struct vb__dg_arrival *arrival);
void verbs_dg_give_back(struct vb__dg *dg, unsigned slot);
int verbs_dg_arm(struct vb__dg *dg, bool for_room);

/* Waits until nothing that was sent is under way: for a tenth of a second, and not again while the device is stuck. */
void verbs_dg_drain(struct verbs_dg *dg);

#endif
