/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contract for datagrams, beside that for connections (fabric.h): an
 * endpoint that is not connected, peers to send to, and what comes from anybody.
 *
 * Promises:
 * - What is sent is copied, and goes out whole or not at all.
 * - What is received is shown where it lies, without anything that the fabric
 *   puts in front, until it is given back.
 * - Who sent it is told by a name, which a peer can be made of.
 * - An endpoint never hears what itself has sent to a group.
 * - One descriptor (wait_fd) wakes up for all of this.
 * - Only the device's end is an end: `down` tells why then, for good.
 *
 * Not locked: one thread at a time, except sleeping on wait_fd, and waiting
 * for an answer if there is `lock`. No threads. Whoever takes something from the
 * descriptor that another one may be asleep for wakes that one.
 */
#ifndef VB_FABRIC_DGRAMS_H
#define VB_FABRIC_DGRAMS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <verbatim/error.h>

#include "core/failure.h"
#include "core/settings.h"
#include "fabric/address.h"
#include "wire/datagram.h"

#define VB__ORIGIN_BYTES 24u

/* Who sent a datagram. Equal bytes: the same endpoint. */
struct vb__origin {
	uint8_t bytes[VB__ORIGIN_BYTES];
};

/* Belongs to its endpoint, and goes with it at the latest. */
struct vb__dg_peer {
	struct vb__dg *dg;
	struct vb__dg_peer *next;
	char text[VB__ADDRESS_TEXT];
	size_t max_bytes;
	bool group;
};

struct vb__dg_arrival {
	const uint8_t *bytes;
	size_t len;
	struct vb__origin from;
	unsigned slot; /* for giving it back */
};

struct vb__dg_attr {
	unsigned receives; /* posted at once, besides the one that is shown */
	const struct vb__settings *settings;
};

struct vb__dg {
	const struct vb__dgrams *fabric;
	int wait_fd;
	size_t max_bytes;
	unsigned receives;
	uint16_t port;
	char device[64];
	char address[VB__ADDRESS_TEXT];
	struct vb_error down;
	struct vb__dg_peer *peers;
	unsigned ways_changed; /* so often that peers made of senders before may not be reached any more */
	uint8_t greeting
		[VB__GREETING_BYTES]; /* what those who ask for us are told; the owner's to set */

	/* Who shares the endpoint between threads says here by what lock: it is let go of during waits
	 * for an answer. Or NULL. */
	pthread_mutex_t *lock;
};

/* One table per backend. Use the functions below. */
struct vb__dgrams {
	const char *name;
	enum vb_fabric id;

	int (*open)(const struct vb__dg_attr *attr, const struct vb__address *at,
		    struct vb__dg **dg, struct vb_error *err);
	void (*close)(struct vb__dg *dg);

	int (*resolve)(struct vb__dg *dg, const struct vb__address *at, uint64_t deadline_ns,
		       uint8_t greeting[VB__GREETING_BYTES], struct vb__dg_peer **peer,
		       struct vb_error *err);
	int (*join)(struct vb__dg *dg, const struct vb__address *group, uint64_t deadline_ns,
		    struct vb__dg_peer **peer, struct vb_error *err);
	int (*peer_of)(struct vb__dg *dg, const struct vb__origin *origin,
		       struct vb__dg_peer **peer, struct vb_error *err);
	void (*peer_close)(struct vb__dg_peer *peer);

	int (*send)(struct vb__dg *dg, struct vb__dg_peer *peer, const void *head, size_t head_len,
		    const void *bytes, size_t len, struct vb_error *err);
	int (*receive)(struct vb__dg *dg, struct vb__dg_arrival *arrival);
	void (*give_back)(struct vb__dg *dg, unsigned slot);
	int (*arm)(struct vb__dg *dg, bool for_room);
};

/* The backends that were built in and have datagrams, best first; NULL at the end. */
extern const struct vb__dgrams *const vb__dgrams_all[];
extern const struct vb__dgrams vb__verbs_dgrams;
extern const struct vb__dgrams vb__ofi_dgrams;

/*
 * Opens an endpoint at an address of ours, whose port may be 0.
 * VB_ERR_NO_DEVICE: this fabric does not serve that address. `dg->receives` is
 * what the device could give.
 */
int vb__dg_open(const struct vb__dgrams *fabric, const struct vb__dg_attr *attr,
		const struct vb__address *at, struct vb__dg **dg, struct vb_error *err);
void vb__dg_close(struct vb__dg *dg);

/*
 * Asks once who is there. VB_ERR_REFUSED: nobody. `greeting` is what it said of itself, zeros if
 * nothing. Meanwhile those who ask for us are answered. Blocks until the deadline at most.
 */
int vb__dg_resolve(struct vb__dg *dg, const struct vb__address *at, uint64_t deadline_ns,
		   uint8_t greeting[VB__GREETING_BYTES], struct vb__dg_peer **peer,
		   struct vb_error *err);
int vb__dg_join(struct vb__dg *dg, const struct vb__address *group, uint64_t deadline_ns,
		struct vb__dg_peer **peer, struct vb_error *err);
int vb__dg_peer_of(struct vb__dg *dg, const struct vb__origin *origin, struct vb__dg_peer **peer,
		   struct vb_error *err);
void vb__dg_peer_close(struct vb__dg_peer *peer);

/* Sends `head` and `bytes` as one. VB_ERR_AGAIN: no room, without details. */
int vb__dg_send(struct vb__dg *dg, struct vb__dg_peer *peer, const void *head, size_t head_len,
		const void *bytes, size_t len, struct vb_error *err);

/* 1 and an arrival, 0 if there is none, or the code of `down`. Looks after events every now and then. */
int vb__dg_receive(struct vb__dg *dg, struct vb__dg_arrival *arrival);

/* Its receive is posted again. */
void vb__dg_give_back(struct vb__dg *dg, unsigned slot);

/*
 * Looks after events and gets ready to sleep on wait_fd until something comes or, `for_room`, until
 * there is room for sending: 0 if it is safe to sleep, 1 if it is worth another try first.
 */
int vb__dg_arm(struct vb__dg *dg, bool for_room);

/* ---- For backends ---- */

/* Sleeps on a descriptor of the backend's, the lock let go of, until the deadline or for a moment. */
void vb__dg_doze(struct vb__dg *dg, int fd, uint64_t deadline_ns);

#endif
