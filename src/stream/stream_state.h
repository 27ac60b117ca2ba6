/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a stream, for the files of this folder. Everything is under
 * `lock`, which nobody holds while waiting. Offsets count the bytes of one
 * direction from its beginning.
 */
#ifndef VB_STREAM_STATE_H
#define VB_STREAM_STATE_H

#include <pthread.h>

#include <verbatim/memory.h>
#include <verbatim/stream.h>

#include "channel/inside.h"
#include "core/failure.h"
#include "core/log.h"
#include "wire/stream_word.h"

/*
 * Data leaves so many of the peer's receives to words, which must get through while data waits to be read. Not more
 * than one: a peer returns credits one by one if it has to, but by no more than two packets before it hears from us, so we
 * must not wait for a third.
 */
#define VB__STREAM_RESERVE 1u
#define VB__STREAM_LEAST_DEPTH 4u

/* Words that are to be said as soon as there is room for them. */
enum vb__due {
	VB__DUE_LEDGER = 1, /* where to look up how far was read */
	VB__DUE_BYE = 2,
	VB__DUE_SYNCED = 4,
	VB__DUE_PULL = 8,
	VB__DUE_WANT = 16,
	VB__DUE_PLACED = 32,
	VB__DUE_READY = 64,
	VB__DUE_SYNC = 128,
	VB__DUE_FLUSH = 256, /* the open block */
};

/* What an event loop was told to wait for. */
enum vb__wish {
	VB__WISH_READ = 1,
	VB__WISH_WRITE = 2,
	VB__WISH_SYNC = 4,
	VB__WISH_FLUSH = 8,
};

/* A call that may have to wait. */
struct vb__call {
	enum vb__wish wish;
	bool blocking;
	unsigned seen; /* vb__channel_changes, before it looked */
};

/* Data that has arrived and was not read yet, where the channel received it. */
struct vb__arrived {
	struct vb__loan loan;
	uint64_t offset;
	size_t len;
};

struct vb__arrivals {
	struct vb__arrived *ring;
	unsigned size, first, count;
};

/* Data that was copied out of the way of what comes behind it. */
struct vb__spilled;

struct vb__spill {
	struct vb__spilled *first, **last;
	uint64_t bytes;
};

/* Memory of the application that stays registered. */
struct vb__kept {
	struct vb__kept *next;
	uint8_t *addr;
	size_t len;
	struct vb_region *region;
	struct vb__mr *exposed; /* since the first direct read where there are no windows */
};

/* Where the peer may place what comes next: the buffer of a read. */
struct vb__want {
	bool open, used;
	uint64_t from, to; /* offsets */
	struct vb_token token;
	struct vb_grant *grant; /* by a window in kept memory */
	struct vb__mr *exposed; /* not kept, and so for this time only */
};

/* Where the peer wants it placed. */
struct vb__target {
	uint64_t from, to;
	struct vb_token token;
};

/* Where each side can look up how far the other one has read. */
struct vb__ledger {
	struct vb_region *region;
	struct vb_token ours, theirs;
	bool known;   /* theirs was told */
	bool due;     /* it has to be looked up, behind the question that has left */
	int64_t look; /* the access that does; 0: none is under way */
};

struct vb__incoming {
	struct vb__spill spill; /* read first */
	struct vb__arrivals arrivals;
	uint64_t received; /* everything before this offset has come */
	uint64_t consumed; /* and everything before this one was read */
	uint64_t ready_to; /* the peer has said that bytes up to here wait there */
	uint64_t pulled_to;
	struct vb__want want;
	bool is_placed;			/* the peer writes large, and so will place it */
	uint64_t asked_at, answered_at; /* where the peer wanted to know of it; where it was told */
	uint64_t settled;		/* about that the ledger tells whoever asks from now on */
	bool ended;			/* the peer writes no more */
};

struct vb__outgoing {
	bool open; /* there is a block that small writes are put into */
	struct vb__loan block;
	size_t filled;
	uint64_t written; /* by the application; some of it may be in the open block */
	uint64_t sent;
	int64_t ticket; /* of the last that was sent straight from the application's memory */
	int64_t access; /* likewise, of what was placed */
	struct vb__target target;
	uint64_t placed_from; /* not yet said; up to `sent` */

	uint64_t ready_to; /* we have said that bytes up to here wait */
	uint64_t ready_at; /* up to where this will have to be said */
	uint64_t pulled_to;
	uint64_t asked_at, answered_to, synced_to;
	bool peer_left; /* it reads no more */
	uint64_t peer_read;
};

struct vb_stream {
	struct vb_channel *channel;
	size_t block_bytes;
	uint64_t direct_bytes, spill_bytes;
	struct vb__kept *kept;
	bool accepted; /* so it is this side that makes way when both are in a write */
	struct vb__log log;

	pthread_mutex_t lock;
	bool reading;	   /* a thread is inside read */
	unsigned awaiting; /* threads that wait for anything but data to read */
	bool reader_waits; /* a thread waits for data to read */
	bool closing;	   /* what comes is not wanted any more */
	bool warned;	   /* that nothing more can be made way for */
	unsigned due;	   /* of enum vb__due */
	unsigned unmet;	   /* of enum vb__wish */
	struct vb_error failure, send_failure;

	struct vb__incoming in;
	struct vb__outgoing out;
	struct vb__ledger ledger;
	struct vb_stream_counters counters;
	uint64_t registered_before; /* the channel's own memory */
};

/* The peer waits to hear how far was read. */
static inline bool vb__stream_owes_answer(const struct vb_stream *s)
{
	return s->in.asked_at > s->in.answered_at;
}

/* ---- stream_words.c: lock held ---- */

/* Takes in what has arrived and says what is due. What fails is in s->failure and s->send_failure. */
void vb__stream_attend(struct vb_stream *s, struct vb__call *call);

/* The same for a peer who asks while nobody is in a call. True: something is due still. Lock not held. */
bool vb__stream_look(void *stream);

/* Part of a call: 0 when it is done, VB_ERR_AGAIN if it has to wait, or a failure. */
typedef int (*vb__stream_step)(struct vb_stream *s, void *arg, struct vb_error *err);

/* Takes the step again and again until it is done, or would have to wait and must not. */
int vb__stream_until(struct vb_stream *s, struct vb__call *call, vb__stream_step step, void *arg,
		     struct vb_error *err);

/* Says what is due, as far as there is room. */
void vb__stream_say_due(struct vb_stream *s);

/* At the end of a call: what is due still is said by a thread, when there is room. */
void vb__stream_leave(struct vb_stream *s);

/* Asks for the part of what waits at the peer, if anything does and nothing is asked for yet. */
void vb__stream_pull(struct vb_stream *s, uint64_t most);

/* The peer breaks the protocol: the end of the connection. */
void vb__stream_violated(struct vb_stream *s, const char *how);

/* ---- stream_write.c: lock held ---- */

/*
 * Sends the open block if there is room for it, `asks` for an answer when it has been read. 0, VB_ERR_AGAIN, or a failure, which
 * is in s->send_failure.
 */
int vb__stream_push(struct vb_stream *s, bool asks);

bool vb__stream_can_write(struct vb_stream *s);

/* ---- stream_direct.c: lock held ---- */

/* Lets the peer place what comes next in this memory; false if that cannot be. */
bool vb__stream_want(struct vb_stream *s, void *data, size_t len);

/* From now on it cannot any more. */
void vb__stream_unwant(struct vb_stream *s);

/* What the peer said about that. */
void vb__stream_on_want(struct vb_stream *s, const struct vb__stream_word *word,
			const uint8_t token[VB__STREAM_TOKEN]);
void vb__stream_on_placed(struct vb_stream *s, const struct vb__stream_word *word);

/*
 * Makes memory ready to be placed from; `region` is set to what has to be closed after it. False
 * if that cannot be.
 */
bool vb__stream_ready_memory(struct vb_stream *s, const void *data, size_t len,
			     struct vb_region **region);

/* Places this at the target, as much as fits and can be under way; returns how much, or a failure. The word for it is due then. */
ssize_t vb__stream_place(struct vb_stream *s, const void *data, size_t len);

/* After the channel is closed: the regions went with it. */
void vb__stream_free_kept(struct vb_stream *s);

/* ---- stream_ledger.c: lock held ---- */

/* On a stream that is there otherwise, if its peer can read memory while nobody polls here. */
int vb__ledger_open(struct vb_stream *s, struct vb_error *err);

/* Lets the peer see how far was read. */
void vb__ledger_note(struct vb_stream *s);

void vb__stream_on_ledger(struct vb_stream *s, const uint8_t token[VB__STREAM_TOKEN]);

/* Looks up how far the peer has read, if that is due; takes what was found. */
void vb__ledger_look(struct vb_stream *s);

/* ---- stream_arrivals.c: lock held ---- */

int vb__arrivals_open(struct vb__arrivals *a, unsigned size, struct vb_error *err);
void vb__arrivals_close(struct vb__arrivals *a);

/* One more, of which there is one place for each loan of the channel. */
void vb__arrivals_add(struct vb__arrivals *a, const struct vb__loan *loan, uint64_t offset,
		      size_t len);

/* Copies what comes next, `len` at most; returns how much. */
size_t vb__stream_take(struct vb_stream *s, uint8_t *to, size_t len);

/* There is something to take. */
bool vb__stream_has_some(const struct vb_stream *s);

/*
 * Makes way for the peer, who may be writing only as well, and not read before that is done. Of two in a write one
 * is enough; but in a sync we wait for what the peer does after its write.
 */
void vb__stream_make_way(struct vb_stream *s, enum vb__wish waits_for);

/* Gives back and frees all that was not read. */
void vb__stream_drop(struct vb_stream *s);

#endif
