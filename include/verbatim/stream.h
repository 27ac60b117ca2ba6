/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams: bytes in order, with the manners of a socket, over RDMA or, where
 * there is none, over TCP.
 *
 * One side
 *
 *	vb_stream_serve(NULL, "7471", NULL, &server, &err);
 *	vb_stream_accept(server, &stream, &err);
 *	vb_stream_read(stream, question, 40, &err);
 *	vb_stream_write(stream, "hello from server!", 18, &err);
 *	vb_stream_close(stream, &err);
 *
 * and the other
 *
 *	vb_stream_connect("host", "7471", NULL, &stream, &err);
 *	vb_stream_write(stream, question, 40, &err);
 *	vb_stream_read(stream, answer, 18, &err);
 *	vb_stream_close(stream, &err);
 *
 * Small writes are put together, and go with the next sync, flush, read or
 * close, when a block is full, or at once while another thread waits in a read.
 * Large ones go straight from the writer's memory into the reader's, without a
 * copy, if the read is large as well.
 *
 * Threads: one may read and one may write at once. Nobody may be using a stream
 * when it is closed. Streams are independent of each other.
 */
#ifndef VERBATIM_STREAM_H
#define VERBATIM_STREAM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <verbatim/error.h>
#include <verbatim/options.h>

#ifdef __cplusplus
extern "C" {
#endif

struct vb_stream_server;
struct vb_stream;

struct vb_stream_options {
	/* Here max_message_bytes and depth are of the blocks that small writes go in. 128 KiB and 12. */
	struct vb_options connection;

	/*
	 * Writes and reads from this size on go without a copy, but for those of event
	 * loops. 0: what was measured to be best; UINT64_MAX: never, which is for
	 * reading from peers that are not trusted over libfabric: see docs/security.md.
	 */
	uint64_t direct_bytes;

	/*
	 * How much of the peer's may pile up here while nobody reads, so that two who
	 * only write do not wait for each other for ever: at the side that accepted during
	 * a write, at either during a sync. When so much has piled up they do wait, until
	 * somebody reads: there is a warning in the log then, once. 1 GiB. Nothing piles up
	 * for calls that do not wait: an event loop that writes has to read as well.
	 */
	uint64_t spill_bytes;
};

/* Starts to listen, as vb_listener_open does. */
int vb_stream_serve(const char *host, const char *port, const struct vb_stream_options *options,
		    struct vb_stream_server **server, struct vb_error *err);

/* Waits for the next peer. */
int vb_stream_accept(struct vb_stream_server *server, struct vb_stream **stream,
		     struct vb_error *err);

/* As vb_channel_connect. */
int vb_stream_connect(const char *host, const char *port, const struct vb_stream_options *options,
		      struct vb_stream **stream, struct vb_error *err);

/*
 * Reads exactly `len` bytes and returns `len`. Less only at the end of the
 * peer's stream: what was left, and then 0. If the peer is lost: an error, and the
 * buffer's contents are undefined.
 */
ssize_t vb_stream_read(struct vb_stream *stream, void *data, size_t len, struct vb_error *err);

/* Writes all of it. On return the memory is the caller's again, but the bytes may not be under way yet. */
int vb_stream_write(struct vb_stream *stream, const void *data, size_t len, struct vb_error *err);

/*
 * Returns when the peer's application has read everything that was written so
 * far, whether or not it makes any further call on that stream.
 */
int vb_stream_sync(struct vb_stream *stream, struct vb_error *err);

/* Sends what was put together. Waits for room at most, not until it has been read. */
int vb_stream_flush(struct vb_stream *stream, struct vb_error *err);

/*
 * Ends the stream in good order and frees it, whatever it returns: the peer reads what was
 * written, and then 0. Returns when the peer's library has all of it, which may be before the application
 * has read it. VB_ERR_CLOSED if the peer closed before it had read all. NULL is fine.
 */
int vb_stream_close(struct vb_stream *stream, struct vb_error *err);

/* Frees the stream at once; the peer sees a lost connection. NULL is fine. */
void vb_stream_abort(struct vb_stream *stream);

/* Stops listening. Accepted streams live on. NULL is fine. */
void vb_stream_server_close(struct vb_stream_server *server);

/* ---- Event loops ---- */

/*
 * Never blocking: as much as is possible now, at least one byte, or
 * VB_ERR_AGAIN; then wait until the descriptor is readable. 0 is the end.
 * vb_stream_try_sync and _try_flush: VB_ERR_AGAIN until it is done.
 */
ssize_t vb_stream_try_read(struct vb_stream *stream, void *data, size_t len, struct vb_error *err);
ssize_t vb_stream_try_write(struct vb_stream *stream, const void *data, size_t len,
			    struct vb_error *err);
int vb_stream_try_sync(struct vb_stream *stream, struct vb_error *err);
int vb_stream_try_flush(struct vb_stream *stream, struct vb_error *err);
int vb_stream_try_accept(struct vb_stream_server *server, struct vb_stream **stream,
			 struct vb_error *err);

/* For poll or epoll, as vb_channel_fd. */
int vb_stream_fd(struct vb_stream *stream, struct vb_error *err);
int vb_stream_server_fd(const struct vb_stream_server *server);

/* ---- Memory ---- */

/*
 * Memory of direct reads and writes is registered for the call, and no longer:
 * what is freed and mapped anew must never be taken for what was there before.
 * Memory that is used again and again can be kept registered: from `keep` until
 * `forget`, or the stream's end, reads and writes inside of it register nothing,
 * but for the first direct read where the device has no memory windows (Soft-RoCE,
 * siw, libfabric). It must be writable, and stay mapped as it is until then.
 *
 * The price where there are no windows: from that first read until `forget` the
 * peer of this stream could write anywhere in what is kept, not just where a read
 * is under way, if it broke the protocol. Do not keep memory of streams whose peer is not trusted.
 */
int vb_stream_keep(struct vb_stream *stream, void *data, size_t len, struct vb_error *err);

/* Undoes vb_stream_keep of memory that begins there. Nothing happens if there is none. Waits until what was written has left. */
void vb_stream_forget(struct vb_stream *stream, void *data);

/* ---- Looking at it ---- */

int vb_stream_server_port(const struct vb_stream_server *server);
const char *vb_stream_description(const struct vb_stream *stream);
const char *vb_stream_peer(const struct vb_stream *stream);

struct vb_stream_counters {
	uint64_t bytes_read, bytes_written;
	uint64_t direct_read, direct_written; /* of these, without a copy */
	uint64_t messages_sent;

	/* How often memory of yours was registered with the device or provider; how often
	 * that was not needed because the memory was kept. */
	uint64_t registrations, registrations_saved;
};
void vb_stream_counters(struct vb_stream *stream, struct vb_stream_counters *counters);

#ifdef __cplusplus
}
#endif
#endif
