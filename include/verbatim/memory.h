/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One-sided memory: a peer is granted a part of our memory, and reads it, writes
 * it or counts in it by itself, with no call of ours.
 *
 * The owner of the memory
 *
 *	vb_region_alloc(channel, 1 << 20, &region, &err);
 *	vb_grant(region, 0, 1 << 20, VB_RIGHT_WRITE, &grant, &err);
 *	vb_channel_send(channel, vb_grant_token(grant), sizeof(struct vb_token), &err);
 *	vb_notice_wait(channel, &number, &err);
 *	vb_revoke(grant);
 *
 * and the peer
 *
 *	vb_channel_recv(channel, &message, &err);
 *	memcpy(&token, message, sizeof(token));
 *	vb_put(channel, &token, 0, data, len, &err);
 *	vb_put_notify(channel, &token, len, more, more_len, 42, &err);
 *
 * A grant is good for the peer of this channel only (for a client of a vb_server
 * over libfabric: for whichever client learns the token). What is outside of it,
 * was revoked or never granted is refused. Where the token tells, that is
 * VB_ERR_REMOTE_ACCESS before anything is sent. Else the device refuses, which
 * ends the channel: with VB_ERR_REMOTE_ACCESS over RoCE and InfiniBand, and with
 * VB_ERR_LOST over iWARP and libfabric, where the end is all that is heard, maybe
 * by a later call only.
 *
 * Order: accesses of one channel are carried out and complete in the order in
 * which they were posted, and before any message that is sent later. An access
 * has completed when local memory is the caller's again, and for get and the
 * atomics holds what was read; a put's bytes are in the peer's memory before the
 * peer receives anything that was sent, or notified, afterwards.
 *
 * Threads: as with messages, any number at once. Revoke and close a region
 * only when nobody uses it.
 */
#ifndef VERBATIM_MEMORY_H
#define VERBATIM_MEMORY_H

#include <verbatim/channel.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The owner's side ---- */

/*
 * As vb_region_open, with memory of the library's, zeroed, on huge pages where
 * there are some. vb_region_close frees it.
 */
int vb_region_alloc(struct vb_channel *channel, size_t len, struct vb_region **region,
		    struct vb_error *err);
void *vb_region_addr(const struct vb_region *region);
size_t vb_region_len(const struct vb_region *region);

enum vb_right {
	VB_RIGHT_READ = 1,
	VB_RIGHT_WRITE = 2,
	VB_RIGHT_ATOMIC = 4, /* VB_ERR_UNSUPPORTED where the fabric has no atomics */
};

/* What the peer needs to know. Plain bytes, to be sent in a message; whoever has them, and this channel, has the rights. */
struct vb_token {
	uint8_t bytes[32];
};

struct vb_grant;

/*
 * Gives the peer rights (of enum vb_right) on a part of a region. VB_ERR_UNSUPPORTED for a
 * client of a vb_server on a RoCE or InfiniBand device without memory windows, such as
 * Soft-RoCE: keys would be good for all clients there.
 */
int vb_grant(struct vb_region *region, size_t offset, size_t len, unsigned rights,
	     struct vb_grant **grant, struct vb_error *err);
const struct vb_token *vb_grant_token(const struct vb_grant *grant);

/*
 * Takes the rights back: when it returns, nothing of the peer's reaches this
 * memory any more. Over libfabric an access that has begun cannot be stopped: it
 * is waited for, and if the peer's program is stopped just then, so that it is not
 * over within the peer time-out, the channel is ended (VB_ERR_LOST). Frees the
 * grant. vb_region_close and the end of the channel revoke what is left. NULL is
 * fine.
 */
void vb_revoke(struct vb_grant *grant);

/* ---- The peer's side: each returns when it has completed ---- */

/* How many bytes a token grants, and which rights; VB_ERR_INVALID if it is none. */
int vb_token_read(const struct vb_token *token, uint64_t *len, unsigned *rights,
		  struct vb_error *err);

/*
 * Local memory that lies in a region is used as it is; other memory is
 * registered for the call, which costs more.
 */
int vb_put(struct vb_channel *channel, const struct vb_token *token, uint64_t offset,
	   const void *data, size_t len, struct vb_error *err);
int vb_get(struct vb_channel *channel, const struct vb_token *token, uint64_t offset, void *data,
	   size_t len, struct vb_error *err);

/* On 8 bytes at an offset that is a multiple of 8 in memory, in the owner's byte order. `before` may be NULL. */
int vb_fetch_add(struct vb_channel *channel, const struct vb_token *token, uint64_t offset,
		 uint64_t add, uint64_t *before, struct vb_error *err);
int vb_compare_swap(struct vb_channel *channel, const struct vb_token *token, uint64_t offset,
		    uint64_t expected, uint64_t desired, uint64_t *before, struct vb_error *err);

/*
 * A put, and a number that the owner gets by vb_notice_wait when the bytes are
 * there. Blocks while the owner has as many notices and messages waiting as the depth.
 */
int vb_put_notify(struct vb_channel *channel, const struct vb_token *token, uint64_t offset,
		  const void *data, size_t len, uint32_t number, struct vb_error *err);

/* ---- Notices, at the owner ---- */

/* The next notice, in the order in which they were given. VB_ERR_EOF and the others as vb_channel_recv. */
int vb_notice_wait(struct vb_channel *channel, uint32_t *number, struct vb_error *err);
int vb_notice_try(struct vb_channel *channel, uint32_t *number, struct vb_error *err);

/* ---- Posting: many under way at once ---- */

enum vb_access_kind {
	VB_PUT = 1,
	VB_GET,
	VB_FETCH_ADD,
	VB_COMPARE_SWAP,
	VB_PUT_NOTIFY,
};

struct vb_access {
	enum vb_access_kind kind;
	const struct vb_token *token;
	uint64_t offset;
	const struct iovec *pieces; /* local memory; for the atomics 8 bytes for the former value */
	int count;
	uint64_t operand;  /* to be added or stored */
	uint64_t expected; /* VB_COMPARE_SWAP */
	uint32_t number;   /* VB_PUT_NOTIFY */
};

/*
 * Starts the accesses in order and returns the handle of the last one
 * (positive). Local memory must lie in regions, where the fabric wants
 * that, and must not be touched until it is done. Blocks only while as many are
 * under way as fit. If it fails, those before the bad one may have been done; they are
 * over, and so the memory is the caller's again.
 */
int64_t vb_access_post(struct vb_channel *channel, const struct vb_access *accesses, int count,
		       struct vb_error *err);

/* Waits until this access and all before it have completed; 0 if all of them went well. */
int vb_access_wait(struct vb_channel *channel, int64_t handle, struct vb_error *err);
int vb_access_try(struct vb_channel *channel, int64_t handle, struct vb_error *err);

#ifdef __cplusplus
}
#endif
#endif
