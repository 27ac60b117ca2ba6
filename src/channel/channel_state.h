/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a channel, for the files of this folder. Everything is under `lock`. */
#ifndef VB_CHANNEL_STATE_H
#define VB_CHANNEL_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include <verbatim/memory.h>

#include "channel/credits.h"
#include "channel/slots.h"
#include "core/settings.h"
#include "fabric/fabric.h"
#include "wire/hello.h"
#include "wire/packet.h"

/* What progress brought; also what a sleeper waits for. */
enum vb__news {
	VB__NEWS_RECEIVED = 1, /* messages, the peer's end */
	VB__NEWS_SENT = 2,     /* by ourselves: free slots, finished tickets */
	VB__NEWS_STATE = 4,    /* up, down */
	VB__NEWS_ROOM = 8,     /* the peer gave credits, confirmed our end, or takes no more */

	/* For event loops, where each call looks for its own: SENT as well. */
	VB__NEWS_TICKET = 16, /* a message's buffers are free */
	VB__NEWS_ACCESS = 32, /* an access is done */
};

/* A received packet: in a slot of the channel's own, or come through the endpoint's pool. */
struct vb__received {
	uint8_t *bytes;	   /* NULL: none */
	uint32_t payload;  /* so many of them are messages */
	uint32_t messages; /* in frames, or a single one without */
	bool framed;
	struct vb__slot *slot;
	struct vb__arrival *arrival;
};

/* Received packets in order, and how far the first of them is read. */
struct vb__inbox {
	struct vb__received *ring;
	unsigned first, count;
	size_t at;		   /* FRAMED: where the next frame starts */
	uint32_t taken;		   /* messages of the first packet already given out */
	struct vb__received shown; /* holds the message that the user looks at */
};

/* Receives of the channel's own slots. */
struct vb__receives {
	unsigned posted, most;
	struct vb__slot *later; /* to be posted when others have completed; the last one first */
};

/* Small messages put together while earlier packets are under way. */
struct vb__outbox {
	struct vb__slot *slot; /* NULL: none open */
	uint32_t messages;
};

/*
 * An event loop's view. It waits for what its last calls said AGAIN for; if
 * such news is taken by a call for something else, or by another thread, its
 * descriptor stays readable until it has looked.
 */
struct vb__loop {
	int epoll, wake;	   /* negative: nobody has asked for the descriptor */
	unsigned watched, pending; /* news waited for; of those, what has come */
	void (*told)(void *arg);   /* or NULL: also to be told, by whichever thread brings news */
	void *told_arg;
};

/*
 * A thread for what is to be done while the program is in no call: sends the outbox, polls for accesses where the
 * fabric needs that, and looks for a stream at what came. See flusher.c.
 */
struct vb__flusher {
	pthread_t thread;
	pthread_cond_t wanted;
	bool running, idle, stop;
	bool attends;		 /* to the peer's accesses, all the time */
	atomic_bool stands_in;	 /* for others, while nobody else polls; set under the lock */
	atomic_bool in_use;	 /* somebody did poll lately; set under the lock */
	bool sleeps;		 /* standing in */
	unsigned watchers;	 /* of the program's, who wait and look at what changes */
	bool rests;		 /* while there are any */
	bool steps_back;	 /* for some milliseconds, and then looks in any case */
	bool (*look)(void *arg); /* or NULL: for who has to look at what changed then */
	void *look_arg;
	unsigned looked_at; /* `changes` */
	bool to_send;	    /* it left something to be said */
	bool missed;	    /* it could not be started */
};

/* Accesses to the peer's memory that are under way. Handles count them. */
#define VB__ACCESS_DEPTH 64u
struct vb__accesses {
	unsigned limit; /* at once */
	int64_t posted, done;
	int64_t done_well; /* written under the lock, atomically: some read it without */
	int64_t local;	   /* the last one that uses memory of ours */
	bool finished[VB__ACCESS_DEPTH]; /* by handle, for those that overtook others */
	bool spoiled;			 /* one went wrong */
	bool of_peer;			 /* there was one to the peer's memory */
};

/* Numbers from the peer's vb_put_notify, which wait for vb_notice_wait. */
struct vb__notices {
	uint32_t *ring; /* as long as the depth: each holds a credit of the peer's */
	unsigned first, count;
};

struct vb_channel {
	struct vb__ep *ep;
	struct vb__settings settings;
	char description[640];
	uint32_t max_message;
	int pass; /* by which it came in at a listener, or negative */

	pthread_mutex_t lock; /* see vb__channel_lock */
	atomic_uint wanted;   /* threads that found it taken */
	pthread_cond_t changed;
	unsigned waiting; /* threads on `changed` */
	unsigned blocked_senders;
	unsigned waiting_for_sent; /* threads that want VB__NEWS_SENT */
	unsigned sleeper_for; /* news that the thread sleeping on the descriptor wants; 0: none */

	unsigned changes;    /* counts whatever a waiting thread may want to know of */
	uint32_t timeout_ms; /* how long calls wait for the peer's program; 0: without limit */
	unsigned spins, spin_polls; /* how often was spun; how many polls make up spin_us */
	unsigned in_flow;	    /* threads that move something large, which has no long waits */

	struct vb_error failure;
	struct vb__credits credits;
	struct vb__slots rx, tx, control;
	unsigned lent;	       /* received messages that are lent out */
	unsigned control_busy; /* control packets being sent */
	struct vb__receives receives;
	struct vb__inbox inbox;
	struct vb__outbox outbox;
	struct vb__flusher flusher;
	struct vb__loop loop;
	struct vb_region *regions;
	struct vb__accesses accesses;
	struct vb__notices notices;

	/* Serial numbers of data packets, which are also tickets. */
	int64_t posted, done, done_well;

	bool silent;	 /* the peer has to speak first */
	bool ending;	 /* no more sending on our side */
	bool end_sent;	 /* the END is under way or confirmed */
	bool end_seen;	 /* the peer confirmed it */
	bool peer_ended; /* the peer sends no more */
	bool end_to_confirm;
	bool closing; /* no more receiving either */
	bool closing_sent;
	bool peer_closing; /* the peer receives no more */

	/* Where the fabric does not say what is under way (VB__CAP_ATTENDED): has there been any access? */
	bool accessing, peer_accesses;

	struct vb_counters counters;
};

/* A thread that polls keeps the lock until it is told that another wants it. */
static inline void vb__channel_lock(struct vb_channel *ch)
{
	if (pthread_mutex_trylock(&ch->lock) == 0)
		return;
	atomic_fetch_add_explicit(&ch->wanted, 1, memory_order_relaxed);
	pthread_mutex_lock(&ch->lock);
	atomic_fetch_sub_explicit(&ch->wanted, 1, memory_order_relaxed);
}

static inline void vb__channel_unlock(struct vb_channel *ch)
{
	pthread_mutex_unlock(&ch->lock);
}

struct vb_region {
	struct vb_region *next;
	struct vb_channel *channel;
	uint8_t *addr;
	size_t len;
	size_t mapped;	     /* bytes of ours that close gives back; 0: the user's memory */
	struct vb__mr *mr;   /* NULL where none is needed */
	struct vb__mr *sink; /* for the target of reads, where that needs more rights */
	struct vb_grant *grants;
};

/* ---- channel_setup.c ---- */

/* What an endpoint for these settings must be able to do. */
struct vb__ep_attr vb__channel_ep_attr(const struct vb__settings *settings);

/* A channel on a NEW endpoint, which it takes over: memory and receives are ready. */
int vb__channel_create(struct vb__ep *ep, const struct vb__settings *settings,
		       struct vb_channel **channel, struct vb_error *err);

/* Our side of the hello. */
struct vb__hello vb__channel_hello(const struct vb_channel *ch, enum vb__hello_kind kind);

/* Both sides have agreed: the limits from now on. */
void vb__channel_agree(struct vb_channel *ch, uint32_t max_message, unsigned depth);

/* For the side that accepts: nothing is sent before the peer has spoken, where the fabric wants that. */
void vb__channel_keep_silent(struct vb_channel *ch);

/* Frees everything, from any state. */
void vb__channel_destroy(struct vb_channel *ch);

/* A member of a pool has no memory to send from before it sends. Lock held. */
int vb__channel_open_sends(struct vb_channel *ch, struct vb_error *err);

/* ---- channel_progress.c: lock held ---- */

/* Handles what has completed; returns news. */
unsigned vb__channel_progress(struct vb_channel *ch);

/*
 * Waits for news of the given kinds; may come back for nothing. Waiting for
 * SENT or ROOM is a sender's waiting: it returns all credits first.
 */
void vb__channel_wait(struct vb_channel *ch, unsigned news);
void vb__channel_wait_until(struct vb_channel *ch, unsigned news, uint64_t deadline_ns);

/* For non-blocking calls that want such news: true if it is time to wait on the descriptor. */
bool vb__channel_would_block(struct vb_channel *ch, unsigned news);

/* Until when a call waits for the peer's program. */
#define VB__NOT_AT_ALL 0
uint64_t vb__channel_patience(const struct vb_channel *ch, bool blocking);

/* Either of the two above: 0 to look again, VB_ERR_AGAIN, or VB_ERR_TIMEOUT after the deadline, for this operation. */
int vb__channel_await(struct vb_channel *ch, unsigned news, uint64_t deadline_ns,
		      const char *operation, struct vb_error *err);

/* News that did not come from the fabric: wakes whoever waits for it. */
void vb__channel_tell(struct vb_channel *ch, unsigned news);

/* Nothing new, but for those who wait in a call something to look at: not for an event loop. */
void vb__channel_alert(struct vb_channel *ch);

/* The channel is broken; the first cause stays. Returns its code. */
int vb__channel_fail(struct vb_channel *ch, const struct vb__failure *cause);

/* ---- channel_send.c, channel_recv.c: lock held ---- */

/* Why nothing can be sent, or nothing more will be received; 0 if it can. */
int vb__channel_check_peer_open(struct vb_channel *ch, struct vb_error *err);
int vb__channel_check_not_ended(struct vb_channel *ch, struct vb_error *err);

/* A call may have failed before all that had arrived was taken: this comes before the failure is told. */
void vb__channel_take_rest(struct vb_channel *ch);

/* Until the buffers of this and all earlier tickets are free. */
int vb__channel_wait_ticket(struct vb_channel *ch, int64_t ticket, uint64_t deadline_ns,
			    struct vb_error *err);

/* ---- regions.c, grants.c, access.c, notices.c: lock held ---- */

/* The region that the piece lies in; NULL if in none. */
struct vb_region *vb__region_find(const struct vb_channel *ch, const struct iovec *piece);

/* After its grants and registrations are gone. */
void vb__region_free(struct vb_region *region);

/* After its rights are gone. */
void vb__grant_free(struct vb_grant *grant);

int vb__fail_no_atomics(const struct vb_channel *ch, struct vb_error *err);

/* Ids of accesses. */
#define VB__ACCESS_ID (UINT64_C(1) << 33)

/* Posts an operation of the sort, when there is room for it. Returns its handle. */
int64_t vb__access_start(struct vb_channel *ch, struct vb__op *op, struct vb_error *err);
int vb__access_finish(struct vb_channel *ch, int64_t handle, struct vb_error *err);

/* It has completed. */
unsigned vb__access_done(struct vb_channel *ch, uint64_t id, bool well);

/* A notice came; false if there is no room, which the peer knew. */
bool vb__notice_keep(struct vb_channel *ch, uint32_t number);

/* ---- event_loop.c: lock held ---- */

/* The descriptor; the first call makes it. */
int vb__loop_open(struct vb_channel *ch, struct vb_error *err);

/* News has come, for whoever it was. */
void vb__loop_tell(struct vb_channel *ch, unsigned news);

/* The loop looks for such news itself now; it will wait for it. */
void vb__loop_looks(struct vb_channel *ch, unsigned news);
void vb__loop_waits(struct vb_channel *ch, unsigned news);
void vb__loop_close(struct vb_channel *ch);

/* ---- packets.c: lock held ---- */

/* Posts the receive of a slot, at once or when another has completed. */
int vb__packet_post_recv(struct vb_channel *ch, struct vb__slot *slot, struct vb_error *err);

/* One has completed. */
void vb__packet_recv_done(struct vb_channel *ch);

/*
 * Sends a packet: the pieces of the user's memory that are lent to it, then
 * what the slot is filled with, then the trailer. DATA and END take a credit.
 */
int vb__packet_post(struct vb_channel *ch, struct vb__slot *slot, struct vb__packet packet,
		    const struct vb__sge *lent, unsigned count);

/* Ids of operations on control slots, which are apart from the others. */
#define VB__CONTROL_ID (UINT64_C(1) << 32)

/* Sends what takes no credit and is due: returned credits, confirmation, notice of closing. */
void vb__packet_post_control(struct vb_channel *ch);

/* Tells the peer of the first access to its memory; false if there is no slot for it now. */
bool vb__packet_post_accessing(struct vb_channel *ch);

/* The message given out last is not looked at any more; its slot goes back. */
void vb__inbox_release(struct vb_channel *ch);

/* Nor is anything else that was received. */
void vb__inbox_empty(struct vb_channel *ch);

/* Sends the outbox if there is one and a credit for it. */
void vb__outbox_push(struct vb_channel *ch);

/* ---- flusher.c ---- */
int vb__flusher_ready(struct vb_channel *ch);	   /* lock held; starts it, or returns an errno */
void vb__flusher_wake(struct vb_channel *ch);	   /* lock held */
int vb__flusher_attend(struct vb_channel *ch);	   /* lock held; from now on, or an errno */
int vb__flusher_stand_in(struct vb_channel *ch);   /* lock held; with each access, or an errno */
void vb__flusher_see_off(struct vb_channel *ch);   /* lock held; something was posted */
void vb__flusher_make_room(struct vb_channel *ch); /* lock held; who waits now sleeps itself */
void vb__flusher_note_use(struct vb_channel *ch);  /* lock held; the program is in a call */
void vb__flusher_watch(
	struct vb_channel *ch); /* lock held; from now on the program's thread looks itself */
void vb__flusher_unwatch(struct vb_channel *ch); /* lock held */
void vb__flusher_stop(struct vb_channel *ch);	 /* lock not held */

#endif
