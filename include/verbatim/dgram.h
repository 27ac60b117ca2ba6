/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Datagrams: messages that travel each by itself, to one endpoint or to a
 * group, up to the size of one packet. They may get lost, overtake each other
 * or, rarely, come twice; a sender never waits for a receiver. For messages
 * that arrive all and in order take channel.h.
 *
 * An echo:
 *
 *	vb_dgram_open("10.0.0.1", "7471", NULL, &dgram, &err);
 *	while (vb_dgram_recv(dgram, -1, &got, &err) == 0)
 *		vb_dgram_send(dgram, got.from, got.bytes, got.len, &err);
 *
 * and somebody who asks:
 *
 *	vb_dgram_open("10.0.0.2", "0", NULL, &dgram, &err);
 *	vb_dgram_resolve(dgram, "10.0.0.1", "7471", &peer, &err);
 *	vb_dgram_send(dgram, peer, "hello", 5, &err);
 *	vb_dgram_recv(dgram, 1000, &got, &err);
 *
 * They go over unreliable datagrams (UD) of RoCE and InfiniBand, or else over
 * UDP by libfabric, where there are no groups. iWARP has none, which opening says. Both
 * ends must be on the same fabric: it is chosen by the address that an endpoint is opened at.
 *
 * Nothing is proven or encrypted: whoever is on the network can send, and can
 * listen to a group.
 *
 * Threads: any number may send on one endpoint, and one at a time may receive
 * from it, all at once. The other calls are for any thread; nobody else may be
 * using a peer or an endpoint when it is closed.
 */
#ifndef VERBATIM_DGRAM_H
#define VERBATIM_DGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <verbatim/error.h>
#include <verbatim/options.h>

#ifdef __cplusplus
extern "C" {
#endif

struct vb_dgram;      /* an endpoint: it sends and receives */
struct vb_dgram_peer; /* where datagrams can be sent: an endpoint somewhere, or a group */

struct vb_dgram_options {
	/* Of these count: fabric, device, family; connect_timeout_ms, for resolving and joining;
	 * peer_timeout_ms, for a device that does not send; spin_us, and the log. */
	struct vb_options connection;

	/* So many datagrams wait for the application; what comes while they do is lost. 256 */
	uint32_t receives;

	/* Datagrams carry a number, so that the receiver knows how many were lost before each one. Takes
	 * 8 bytes of each. Either all who talk to each other do this, or nobody. */
	bool numbered;
};

/* What was received. */
struct vb_datagram {
	const void *bytes; /* valid until the next receive */
	size_t len;

	/* Who sent it, to be answered; valid until the next receive, see vb_dgram_keep. */
	struct vb_dgram_peer *from;

	/* With numbers: how many that the sender sent here, or to the same group, before this one and after the
	 * one received before it, did not come. Counting begins with the first that comes. */
	uint32_t lost;

	/* With numbers: it was overtaken by younger ones, and had been counted as lost. */
	bool late;
};

/* ---- Endpoints ---- */

/*
 * Opens an endpoint at an address of this machine, `host`, and `port` (a
 * number, or "0" for any free one). `host` NULL: at the first address that
 * an RDMA device has, else the first one that is not only for this machine itself. Others find it by the two. It answers them when
 * somebody is inside, or regularly calls, vb_dgram_recv or vb_dgram_send: there is no thread.
 */
int vb_dgram_open(const char *host, const char *port, const struct vb_dgram_options *options,
		  struct vb_dgram **dgram, struct vb_error *err);

/* Closes it, with all peers of its. NULL is fine. */
void vb_dgram_close(struct vb_dgram *dgram);

/* The largest datagram, and the port, as a number. */
size_t vb_dgram_max(const struct vb_dgram *dgram);
int vb_dgram_port(const struct vb_dgram *dgram);

/* "verbs on rxe0 at 10.0.0.1 port 7471, datagrams of up to 4096 bytes". */
const char *vb_dgram_description(const struct vb_dgram *dgram);

/* ---- Peers ---- */

/*
 * Asks the endpoint at `host` and `port` where to send to. While there is none
 * yet, or no answer, it goes on asking for connect_timeout_ms. What is received
 * meanwhile waits. In the end it is VB_ERR_REFUSED if nobody is there, or VB_ERR_TIMEOUT if that cannot
 * be told apart from no answer. VB_ERR_PROTOCOL if only one of the two numbers its datagrams.
 */
int vb_dgram_resolve(struct vb_dgram *dgram, const char *host, const char *port,
		     struct vb_dgram_peer **peer, struct vb_error *err);

/*
 * Joins a multicast group, an address such as "239.1.2.3" or "ff15::7": from
 * now on what others send to it is received here, and sending to `peer` sends
 * to all others in the group. What the endpoint itself sends to it does not come back.
 * VB_ERR_INVALID if it has been joined already. VB_ERR_UNSUPPORTED
 * over libfabric, and for groups of IPv6 over RoCE, which Linux does not have.
 */
int vb_dgram_join(struct vb_dgram *dgram, const char *group, struct vb_dgram_peer **peer,
		  struct vb_error *err);

/* Makes a peer of the sender of what was received last, for longer than until the next receive. */
int vb_dgram_keep(struct vb_dgram *dgram, const struct vb_datagram *received,
		  struct vb_dgram_peer **peer, struct vb_error *err);

/* Leaves the group, or just forgets the peer. Not for `from` of a struct vb_datagram. NULL is fine. */
void vb_dgram_peer_close(struct vb_dgram_peer *peer);

/* Who it is: "10.0.0.1 port 7471", "group 239.1.2.3", or of a sender what its datagram tells. */
const char *vb_dgram_peer_text(const struct vb_dgram_peer *peer);

/* The largest datagram to this peer: the less of what the way, it and we can take. */
size_t vb_dgram_peer_max(const struct vb_dgram_peer *peer);

/* ---- Sending and receiving ---- */

/*
 * Sends one datagram of `len` bytes, 0 included; on return the buffer is the
 * caller's again. Whether it arrives is not known. Over the peer's limit it is
 * VB_ERR_TOO_BIG, and nothing is sent. Waits at most while the device has
 * no room, a matter of microseconds; VB_ERR_TIMEOUT if that is so for the peer time-out.
 */
int vb_dgram_send(struct vb_dgram *dgram, struct vb_dgram_peer *peer, const void *bytes, size_t len,
		  struct vb_error *err);

/* Never waits: VB_ERR_AGAIN if there is no room. */
int vb_dgram_try_send(struct vb_dgram *dgram, struct vb_dgram_peer *peer, const void *bytes,
		      size_t len, struct vb_error *err);

/*
 * Receives the next datagram. Waits for `timeout_ms` at most, without limit if
 * negative, not at all if 0; VB_ERR_AGAIN if none has come. Other failures
 * are those of the device, and final.
 */
int vb_dgram_recv(struct vb_dgram *dgram, int timeout_ms, struct vb_datagram *received,
		  struct vb_error *err);

/*
 * For poll or epoll, for reading only: readable when it is time for another call, after
 * vb_dgram_recv(..., 0, ...) or vb_dgram_try_send said VB_ERR_AGAIN. Now and then for nothing. It belongs to the library.
 */
int vb_dgram_fd(const struct vb_dgram *dgram);

struct vb_dgram_counters {
	uint64_t sent, sent_bytes;
	uint64_t received, received_bytes;
	uint64_t lost; /* with numbers: of all senders; those that came late are taken off again */
	uint64_t late; /* with numbers: overtaken by younger ones */
	uint64_t foreign; /* with numbers: came without one, and were thrown away */
};
void vb_dgram_counters(struct vb_dgram *dgram, struct vb_dgram_counters *counters);

#ifdef __cplusplus
}
#endif
#endif
