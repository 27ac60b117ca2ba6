/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channels: messages with boundaries between two processes, in order, each
 * exactly once, over RDMA or, where there is none, over TCP.
 *
 * The least program: one side
 *
 *	vb_listener_open(NULL, "7471", NULL, &listener, &err);
 *	vb_listener_accept(listener, &channel, &err);
 *	while ((n = vb_channel_recv(channel, &message, &err)) >= 0)
 *		use(message, n);
 *	if (n != VB_ERR_EOF)
 *		complain(&err);
 *	vb_channel_close(channel, &err);
 *
 * and the other
 *
 *	vb_channel_connect("host", "7471", NULL, &channel, &err);
 *	vb_channel_send(channel, "hello", 5, &err);
 *	vb_channel_close(channel, &err);
 *
 * Threads: any number of threads may send on one channel, and one thread at a
 * time may receive from it, all at once. A listener is for one thread at a
 * time. Nobody else may be using a channel or a listener when it is closed.
 * Different channels are independent.
 *
 * Blocking calls have no time limit as long as the peer is alive, unless
 * vb_channel_set_timeout gives them one; or use the calls under "Event loops".
 */
#ifndef VERBATIM_CHANNEL_H
#define VERBATIM_CHANNEL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <verbatim/error.h>
#include <verbatim/options.h>

#ifdef __cplusplus
extern "C" {
#endif

struct vb_listener;
struct vb_channel;
struct vb_region;

/* ---- The simple part ---- */

/*
 * Starts to listen on `port` (a number or a service name; "0" for any free
 * one) at `host`, or at all addresses if `host` is NULL. Serves every fabric
 * that this machine has, on the same port number, unless the options name one.
 */
int vb_listener_open(const char *host, const char *port, const struct vb_options *options,
		     struct vb_listener **listener, struct vb_error *err);

/*
 * Waits for the next peer. Strangers that do not speak our protocol are
 * refused without disturbing the wait, and so is whom there are too few
 * descriptors or too little memory for: that is a warning in the log. Blocks
 * without limit.
 */
int vb_listener_accept(struct vb_listener *listener, struct vb_channel **channel,
		       struct vb_error *err);

/* Stops listening and frees the listener. Accepted channels live on. NULL is fine. */
void vb_listener_close(struct vb_listener *listener);

/*
 * Connects to a listener at `host`, a name or an address, in brackets or not.
 * While nobody listens yet it goes on trying for connect_timeout_ms, then tells
 * what each address and fabric answered.
 */
int vb_channel_connect(const char *host, const char *port, const struct vb_options *options,
		       struct vb_channel **channel, struct vb_error *err);

/*
 * Sends one message of `len` bytes, 0 included. Blocks while the peer has no
 * room. On return the buffer is the caller's again. A message over
 * vb_channel_max_message is VB_ERR_TOO_BIG and leaves the channel as it was.
 */
int vb_channel_send(struct vb_channel *channel, const void *message, size_t len,
		    struct vb_error *err);

/*
 * Receives the next message and returns its length. `*message` points into the
 * channel's memory and stays valid until the next receive or close. After the
 * last message of a peer that has closed: VB_ERR_EOF. If the peer died or
 * cannot be reached any more: VB_ERR_LOST, after all that had arrived.
 */
ssize_t vb_channel_recv(struct vb_channel *channel, const void **message, struct vb_error *err);

/*
 * Ends the channel in good order and frees it. Returns 0 when the peer's
 * library has everything that was sent, and waits for that as long as the peer
 * is alive. VB_ERR_CLOSED if the peer closed before it had taken all messages.
 * Always frees the channel, whatever it returns. NULL is fine.
 */
int vb_channel_close(struct vb_channel *channel, struct vb_error *err);

/* Frees the channel at once; the peer sees a lost connection. NULL is fine. */
void vb_channel_abort(struct vb_channel *channel);

/*
 * How long calls wait for a peer that is alive, but does not go on; from now on.
 * Then they return VB_ERR_TIMEOUT, nothing is lost, and the call may be repeated
 * (but for vb_channel_close, which frees the channel; and what was to be finished
 * takes no more messages). 0, as at first: without limit. With a limit
 * vb_channel_send always copies, as it must not wait for its buffer. There is no
 * limit for vb_region_close, and for access to memory but for the notices of
 * vb_put_notify: a device uses that memory. No other thread may be using the channel.
 */
void vb_channel_set_timeout(struct vb_channel *channel, uint32_t timeout_ms);

/* ---- Gather, half-close, zero-copy ---- */

/* As vb_channel_send, one message gathered from `count` pieces. */
int vb_channel_sendv(struct vb_channel *channel, const struct iovec *pieces, int count,
		     struct vb_error *err);

/*
 * Tells the peer that nothing more will be sent: it reads VB_ERR_EOF after the
 * last message. Receiving goes on. Returns when the peer's library
 * has all of it; until then it may block for want of room, as a send does.
 */
int vb_channel_finish(struct vb_channel *channel, struct vb_error *err);

/*
 * Registers [addr, addr + len): messages from there go out without a copy, but for
 * small ones (some hundred bytes; over libfabric 2 KiB by vb_channel_send, which may travel
 * together), and for more pieces than the device takes. vb_channel_send then waits
 * until the message has been sent, which makes many of some KiB slower than from other memory,
 * where they are copied; vb_channel_post, below, does not wait. The memory must stay
 * mapped until vb_region_close. A region that lies over another one is VB_ERR_INVALID.
 */
int vb_region_open(struct vb_channel *channel, void *addr, size_t len, struct vb_region **region,
		   struct vb_error *err);

/*
 * Undoes vb_region_open; waits for posted messages first. The end of the
 * channel closes what is left. NULL is fine.
 */
void vb_region_close(struct vb_region *region);

/*
 * Starts to send one message and returns a ticket (positive). The pieces must
 * not change until vb_channel_wait(ticket) returned; if all of them lie in
 * regions, they are not copied. Blocks only while the peer has no room.
 */
int64_t vb_channel_post(struct vb_channel *channel, const struct iovec *pieces, int count,
			struct vb_error *err);

/* Waits until the buffers of this and all earlier tickets are the caller's again. After VB_ERR_TIMEOUT they are not yet. */
int vb_channel_wait(struct vb_channel *channel, int64_t ticket, struct vb_error *err);

/* ---- Event loops ---- */

/*
 * As their namesakes, but never blocking: VB_ERR_AGAIN means that it is not
 * done yet, call again when the descriptor below is readable (it may wake you
 * for nothing). vb_channel_try_wait tells so whether the buffers of a ticket, of
 * vb_channel_try_post for instance, are the caller's again. After the first vb_channel_try_finish nothing can be sent. vb_channel_try_send copies: the buffer is the caller's on return.
 * Connecting blocks, for connect_timeout_ms at most: a loop does it in a thread.
 */
int vb_listener_try_accept(struct vb_listener *listener, struct vb_channel **channel,
			   struct vb_error *err);
int vb_channel_try_send(struct vb_channel *channel, const void *message, size_t len,
			struct vb_error *err);
int64_t vb_channel_try_post(struct vb_channel *channel, const struct iovec *pieces, int count,
			    struct vb_error *err);
int vb_channel_try_wait(struct vb_channel *channel, int64_t ticket, struct vb_error *err);
ssize_t vb_channel_try_recv(struct vb_channel *channel, const void **message, struct vb_error *err);
int vb_channel_try_finish(struct vb_channel *channel, struct vb_error *err);

/* Frees the channel unless it returns VB_ERR_AGAIN: then there is nothing left to do with it but this, or vb_channel_abort. */
int vb_channel_try_close(struct vb_channel *channel, struct vb_error *err);

/*
 * A descriptor for poll or epoll, for reading only. Wait on it only after a
 * _try_ call on the same object returned VB_ERR_AGAIN: that arms it. It is
 * level-triggered, readable until such a call has looked, and may be so for
 * nothing; do not use it with EPOLLET, as not all news is an edge. It belongs to the
 * library. A channel's is made by the first call, which may fail; all others
 * return the same.
 */
int vb_listener_fd(const struct vb_listener *listener);
int vb_channel_fd(struct vb_channel *channel, struct vb_error *err);

/* ---- Looking at it ---- */

/* The port that is listened on, as a number. */
int vb_listener_port(const struct vb_listener *listener);

/* What is served and what is not, and why: "verbs: rxe0; ofi: tcp". */
const char *vb_listener_description(const struct vb_listener *listener);

/* What was chosen and why: "verbs on rxe0 to 10.0.0.2 port 7471: it owns the route to the peer". */
const char *vb_channel_description(const struct vb_channel *channel);

/* "verbs" or "ofi", the device or provider, the peer's address in words. */
const char *vb_channel_fabric(const struct vb_channel *channel);
const char *vb_channel_device(const struct vb_channel *channel);
const char *vb_channel_peer(const struct vb_channel *channel);

/* What both ends agreed on. */
size_t vb_channel_max_message(const struct vb_channel *channel);
unsigned vb_channel_depth(const struct vb_channel *channel);

struct vb_counters {
	uint64_t messages_sent, bytes_sent;
	uint64_t messages_received, bytes_received;
	uint64_t packets_sent, packets_received; /* several small messages may share one */
	uint64_t credit_stalls;			 /* a send had to wait for the peer's room */
	uint64_t bytes_copied; /* of those sent; the others went from where they were */
};
void vb_channel_counters(struct vb_channel *channel, struct vb_counters *counters);

#ifdef __cplusplus
}
#endif
#endif
