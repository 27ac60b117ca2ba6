/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of doors and sessions, for the files of this folder. */
#ifndef VB_TRANSFER_SESSION_STATE_H
#define VB_TRANSFER_SESSION_STATE_H

#include <verbatim/transfer.h>

#include "channel/inside.h"
#include "core/failure.h"
#include "transfer/parley.h"
#include "transfer/seal.h"
#include "wire/block.h"
#include "wire/words.h"

/* Options checked and made our own. The key becomes the secret. */
struct vb__plan {
	struct vb__settings connection; /* for the channel of the parley */
	struct vb__secret secret;
	uint32_t block_bytes, window, rails; /* 0: by the fabric */
	uint32_t workers;		     /* 0: by the CPUs */
	uint64_t bytes_per_second;
	bool fsync;
	enum vb_encrypt encrypt;
	uint8_t pack; /* as in struct vb__terms */
	enum vb_direct direct;
	uint32_t wait_timeout_ms;
	int stop_fd; /* -1: none */
	vb_progress_fn progress;
	void *progress_arg;
};

/* All but the secret, which takes a while. */
int vb__plan_from(struct vb__plan *plan, const struct vb_transfer_options *options,
		  struct vb_error *err);

/* The key that was given, as a secret: that of the plan. Takes some tens of ms, unless it is random. */
int vb__plan_secret(struct vb__plan *plan, const struct vb_transfer_options *options,
		    struct vb_error *err);

/* Fills in what a sender proposes, for the fabric that leads to the peer. */
void vb__plan_propose(const struct vb__plan *plan, bool tcp, struct vb__terms *terms);

/* Makes proposed terms such that a receiver can accept them. */
void vb__plan_restrict(const struct vb__plan *plan, bool tcp, struct vb__terms *terms);

/* Of a pipe and its like, whose bytes come one after the other, and nobody knows how many. */
static inline bool vb__terms_of_stream(const struct vb__terms *terms)
{
	return !terms->tree && terms->total_bytes == UINT64_MAX;
}

/* What the threads that carry blocks do all day. */
enum vb__labour {
	VB__LABOUR_IN_TURN, /* they read a stream, one at a time; who receives it moves */
	VB__LABOUR_MOVE,
	VB__LABOUR_COMPUTE,
};

/* How many there are. */
unsigned vb__plan_workers(const struct vb__plan *plan, enum vb__labour labour);

/* True if the user wants it to stop. */
bool vb__plan_stopped(const struct vb__plan *plan);

struct vb_session {
	struct vb__plan plan;
	struct vb_channel *channel;
	struct vb__parley *parley;
	struct vb_door *door; /* NULL: this side connected, to this address: */
	char host[256], port[32];
	bool used;	   /* it has carried its transfer, or is at it */
	bool failed;	   /* and that failed; */
	bool told_by_peer; /* the peer said so first */
	char peer[128];
	char description[768];

	/* What the peer has said in the transfer. */
	struct vb__sum theirs; /* PROGRESS */
	bool ready_heard, end_heard, verdict_heard;
	bool end_said; /* by us: only then can there be a verdict */
	struct vb__sum end;
	struct vb__source *notes_to; /* who hears them; NULL: there must be none */

	struct vb__terms agreed;
	struct vb__seal_secret secrets[VB_RAILS_MAX]; /* where it is agreed to seal */
	struct vb_channel *rails[VB_RAILS_MAX];
	unsigned rail_count;
};

/* ---- session.c ---- */

/* The data goes over TCP: nothing is pinned, and a CPU moves it. */
bool vb__session_is_tcp(const struct vb_session *session);

/* Takes the channel and the parley over. */
int vb__session_create(const struct vb__plan *plan, struct vb_channel *channel,
		       struct vb__parley *parley, struct vb_session **session,
		       struct vb_error *err);

/* A session is for one transfer. */
int vb__session_begin(struct vb_session *session, struct vb_error *err);
void vb__session_close_rails(struct vb_session *session);

/* ---- terms.c: both sides say what they want, and the rails are connected ---- */

/* The sender proposes, the receiver answers; what they agree on is in session->agreed. */
int vb__session_propose(struct vb_session *session, const struct vb__terms *ours,
			struct vb_error *err);
int vb__session_answer(struct vb_session *session, bool tree, struct vb_error *err);

/* Opens all rails; they are closed with the session. */
int vb__session_open_rails(struct vb_session *session, bool sends, struct vb_error *err);

/* ---- talk.c: words, over the parley ---- */

int vb__session_say(struct vb_session *session, const struct vb__words *words,
		    struct vb_error *err);

/* The next words, or VB_ERR_AGAIN. A verdict that is a failure is returned as an error. */
int vb__session_hear(struct vb_session *session, struct vb__words *words, struct vb_error *err);

/* Waits until there may be something to hear, `other_fd` (or -1) or stop_fd is readable, or the deadline. */
void vb__session_await(struct vb_session *session, int other_fd, uint64_t deadline_ns);
void vb__await_words(struct vb_channel *channel, int stop_fd, int other_fd, uint64_t deadline_ns);

/* Waits for words of this kind only; others but progress are a failure. */
int vb__session_expect(struct vb_session *session, enum vb__words_kind kind,
		       struct vb__words *words, uint64_t deadline_ns, struct vb_error *err);

/* Once the terms are agreed on: takes note of all that the peer has said so far. */
int vb__session_listen(struct vb_session *session, struct vb_error *err);

/* Tells the peer what has failed, unless it was the peer who told us, and as far as it can be told. */
void vb__session_tell_failure(struct vb_session *session, const struct vb_error *failure);

/* ---- door.c ---- */

/* Accepts the session's rails, by the passes that were expected. */
int vb__door_accept_rails(struct vb_door *door, struct vb_session *session, uint64_t deadline_ns,
			  struct vb_error *err);
struct vb_listener *vb__door_listener(struct vb_door *door);

#endif
