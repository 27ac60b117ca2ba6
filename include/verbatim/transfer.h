/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transfers: a file or a pipe from one host to another, whole and proven, or
 * not at all. Both sides must know the same key. The side that waits
 *
 *	vb_door_open(NULL, "7471", &options, &door, &err);
 *	vb_door_wait(door, &session, &err);
 *	vb_session_receive(session, &(struct vb_output){ .path = "copy" }, &report, &err);
 *	vb_session_close(session);
 *	vb_door_close(door);
 *
 * and the side that connects
 *
 *	vb_session_connect("host", "7471", &options, &session, &err);
 *	vb_session_send(session, &(struct vb_input){ .path = "original" }, &report, &err);
 *	vb_session_close(session);
 *
 * Either side may send; the other must receive. A session carries one transfer.
 *
 * Both ends return the same verdict: 0 only after the receiver has checked and
 * stored everything. Whatever fails at one end, a full disk say, is returned
 * at both. A file stands under its name only when it is complete.
 *
 * Doors and sessions are for one thread at a time. The calls block; to end one
 * from elsewhere, make `stop_fd` readable.
 */
#ifndef VERBATIM_TRANSFER_H
#define VERBATIM_TRANSFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <verbatim/error.h>
#include <verbatim/options.h>

#ifdef __cplusplus
extern "C" {
#endif

struct vb_door;
struct vb_session;

/* How far it is; see `progress` below. */
struct vb_progress {
	uint64_t bytes;	      /* sent or stored so far, holes included */
	uint64_t total_bytes; /* UINT64_MAX: not known */
	uint64_t elapsed_ns;
	unsigned filled_here, filled_there; /* buffers in use, in percent */

	/* Of trees. */
	uint64_t files, total_files; /* done, and found so far */
	bool counting;		     /* the totals still grow */
	char name[256];		     /* one that is under way, its end if it is long */
};

typedef void (*vb_progress_fn)(void *arg, const struct vb_progress *progress);

/* May files be read and written past the page cache? */
enum vb_direct {
	VB_DIRECT_AUTO = 0, /* where it gains: large files that are not in the cache */
	VB_DIRECT_ALWAYS,   /* wherever the file system can */
	VB_DIRECT_NEVER,
};

/*
 * Is the data to be encrypted? What is said about the transfer always is, but data blocks, and with
 * them names and attributes of trees, only if one of the two sides wants it and neither will not.
 */
enum vb_encrypt {
	VB_ENCRYPT_IF_ASKED = 0, /* if the other side wants it */
	VB_ENCRYPT_ASK,		 /* if the other side can; vb_session_cipher tells */
	VB_ENCRYPT_REQUIRE,	 /* or VB_ERR_REFUSED before any data is sent */
	VB_ENCRYPT_NEVER,	 /* then a side that requires it will refuse */
};

/* Zero means the default; the library copies what it keeps. */
struct vb_transfer_options {
	/* The connection. Its max_message_bytes and depth are not looked at. */
	struct vb_options connection;

	/* What both sides must know: any bytes, at least one. */
	const void *key;
	size_t key_bytes;

	/* The key has 32 bytes or more of pure chance, made for this: no time is spent on making it
	 * hard to guess. Both sides say it, or neither. */
	bool key_is_random;

	/* How much is read, sent and written at a time, and how many such blocks are under way
	 * on each rail. The receiver's count, up to what the sender asks for. 512 KiB and 8 over
	 * RDMA, or 256 KiB where less than 32 MiB may be pinned; 512 KiB and 4 over TCP. */
	uint32_t block_bytes;
	uint32_t window_blocks;

	/* Connections that share the work. The sender's count. 2 over RDMA, or 1 where less than
	 * 32 MiB may be pinned; over TCP, where each keeps a CPU busy, one for every CPU, up to 8,
	 * or 4 if the input is a stream. No more by default than there are blocks, where that is known. */
	uint32_t rails;

	/* Threads that read and check, or check and write. By the number of CPUs, up to 4, or 2 that
	 * read a stream; if the data is encrypted or compressed, one for each CPU. A receiver has one
	 * for each rail at least. */
	uint32_t workers;

	/* No faster than this, as it is sent, so compressed. Either side's counts. 0: no limit. */
	uint64_t max_bytes_per_second;

	/* The receiver has the data on stable storage before it reports success. */
	bool fsync;

	enum vb_direct direct;

	enum vb_encrypt encrypt;

	/* Blocks are compressed on their way (zstd): by a level from 1 to VB_COMPRESS_MAX, or
	 * VB_COMPRESS_AUTO, as far as that makes it faster. What the sender says counts; if it says
	 * nothing (0), what the receiver does. VB_COMPRESS_NEVER: not even if the other side asks. */
	int compress;

	/* How long vb_door_wait waits. 0: for ever. */
	uint32_t wait_timeout_ms;

	/* When this descriptor becomes readable, the call under way ends with
	 * VB_ERR_INTERRUPTED, here and at the peer. 0: none. Nothing is read from it. Then, and
	 * after a failure, a thread may still be in name servers or libraries, where nothing can
	 * end it, and log. */
	int stop_fd;

	/* Called a few times a second, and when all is done, by the thread that is in
	 * vb_session_send or _receive. */
	vb_progress_fn progress;
	void *progress_arg;
};

#define VB_COMPRESS_MAX 19
#define VB_COMPRESS_AUTO (-1)
#define VB_COMPRESS_NEVER (-2)

#define VB_BLOCK_MIN 4096u
#define VB_BLOCK_MAX (64u << 20)
#define VB_WINDOW_MAX 1000u
#define VB_RAILS_MAX 16u
#define VB_WORKERS_MAX 64u

/*
 * Called when all input was read, or all output written and closed, before
 * success is reported to the peer: returns 0, or a negative enum vb_err with
 * `err` filled in. For what may fail later, as a command at the pipe's other end.
 * It may take its time, in a thread of the library's. When `cancel_fd` becomes
 * readable the transfer has failed or is to stop, and it must return soon; what
 * it returns does not matter then.
 */
typedef int (*vb_at_end_fn)(void *arg, int cancel_fd, struct vb_error *err);

/* What to send: a file by its path, or whatever `fd` gives until its end. */
struct vb_input {
	const char *path; /* NULL: fd */
	int fd;		  /* stays open */
	vb_at_end_fn at_end;
	void *at_end_arg;
	const char *name; /* what errors call `fd`, at both ends; NULL: by its number */
	const struct vb_error
		*failure; /* why there is none, told at both ends; NULL or VB_OK: there is */
};

/*
 * Where to: a file by its path, or `fd`. A regular file is written beside its
 * place and moved there at the end; everything else is written to as it is.
 */
struct vb_output {
	const char *path; /* NULL: fd */
	int fd;		  /* closed before at_end, or stays open if there is no at_end */
	vb_at_end_fn at_end;
	void *at_end_arg;
	const char *name; /* these as of struct vb_input */
	const struct vb_error *failure;
};

/* What came of it. */
struct vb_report {
	uint64_t bytes;	     /* holes included */
	uint64_t hole_bytes; /* of those, not sent: they are zeros */
	uint64_t blocks;
	uint64_t elapsed_ns; /* from the first block to the verdict */
	uint64_t digest;     /* over all blocks: the same at both ends */
	uint64_t wire_bytes; /* what was sent for them: fewer if they were compressed, and no holes */
	uint64_t pack_ns; /* that this side's workers spent on compressing, or the opposite, in sum */
};

/*
 * Starts to listen on `port` of `host` (NULL: all addresses). `options->key` is needed. Name servers are
 * waited for if `host` is a name.
 */
int vb_door_open(const char *host, const char *port, const struct vb_transfer_options *options,
		 struct vb_door **door, struct vb_error *err);

/*
 * Waits for a peer that proves to know the key, and proves it to that peer.
 * Others do not disturb the wait: they are told off and logged as warnings.
 */
int vb_door_wait(struct vb_door *door, struct vb_session **session, struct vb_error *err);

/* The port that is listened on; what is served there, in words. */
int vb_door_port(const struct vb_door *door);
const char *vb_door_description(const struct vb_door *door);

/* Sessions live on. NULL is fine. */
void vb_door_close(struct vb_door *door);

/*
 * Connects to a door and exchanges proofs of the key. While nobody listens it goes on trying for
 * connection.connect_timeout_ms. VB_ERR_KEY: the keys differ.
 */
int vb_session_connect(const char *host, const char *port,
		       const struct vb_transfer_options *options, struct vb_session **session,
		       struct vb_error *err);

/* Does the transfer. `report` may be NULL. A session that came from a door needs that door open. */
int vb_session_send(struct vb_session *session, const struct vb_input *input,
		    struct vb_report *report, struct vb_error *err);
int vb_session_receive(struct vb_session *session, const struct vb_output *output,
		       struct vb_report *report, struct vb_error *err);

/* What was chosen and why; after a transfer also its block size, window and rails, and what sealed it. */
const char *vb_session_description(const struct vb_session *session);

/*
 * What the data was, or is, encrypted by: "AES-256-GCM", "ChaCha20-Poly1305". NULL: by nothing, or that is
 * not agreed on yet. It needs no freeing and outlives the session.
 */
const char *vb_session_cipher(const struct vb_session *session);

/* The peer's address in words. */
const char *vb_session_peer(const struct vb_session *session);

/*
 * May wait for the peer to have heard the last words, for the peer time-out at most; for half a second after
 * a failure, or once `stop_fd` is readable. NULL is fine.
 */
void vb_session_close(struct vb_session *session);

#ifdef __cplusplus
}
#endif
#endif
