/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What channels and listeners offer to the layers above them in the library,
 * besides what is public: buffers lent both ways, so that nothing is copied;
 * giving up from another thread; and passes, by which a listener knows whom it
 * expects.
 */
#ifndef VB_CHANNEL_INSIDE_H
#define VB_CHANNEL_INSIDE_H

#include <stdbool.h>

#include <verbatim/memory.h>

#include "core/settings.h"
#include "wire/hello.h"

/* A page-aligned buffer of the channel that is lent to the caller. */
struct vb__loan {
	uint8_t *data;
	size_t bytes;	 /* to send: the room; received: the message's length */
	uint64_t turn;	 /* received: how many messages came before it */
	unsigned number; /* the channel's own */
};

/*
 * A buffer for a message to be. Blocks until one is free; there are as many as
 * the depth. Any thread, any number at once. Each goes back by send or give_back.
 */
int vb__channel_borrow(struct vb_channel *channel, struct vb__loan *loan, struct vb_error *err);

/* Sends the first `len` bytes as one message. Blocks while the peer has no room. Takes the loan back in any case. */
int vb__channel_send_loan(struct vb_channel *channel, const struct vb__loan *loan, size_t len,
			  struct vb_error *err);

/* As vb_channel_recv, but the message stays until it is given back, and only then the peer gets its credit. Any thread. */
int vb__channel_recv_loan(struct vb_channel *channel, struct vb__loan *loan, struct vb_error *err);

/* Gives back what was not sent, or was received. */
void vb__channel_give_back_unsent(struct vb_channel *channel, const struct vb__loan *loan);
void vb__channel_give_back(struct vb_channel *channel, const struct vb__loan *loan);

/* How it was brought together; VB_WIREUP_AUTO: its fabric has but one way. */
enum vb_wireup vb__channel_wireup(const struct vb_channel *channel);

/* ---- For a layer that waits by itself, for several things at once ---- */

/* As above, but not waiting: VB_ERR_AGAIN if there is no buffer, or no message. Here `err` is not NULL. */
int vb__channel_try_borrow(struct vb_channel *channel, struct vb__loan *loan, struct vb_error *err);
int vb__channel_try_recv_loan(struct vb_channel *channel, struct vb__loan *loan,
			      struct vb_error *err);

/*
 * Sends the caller's memory `before`, unless it is NULL, and behind it the first `len` bytes of the loan, as one
 * message. Returns a ticket for vb_channel_wait: until then `before` must not change. VB_ERR_AGAIN if the peer
 * has no room: then the loan stays with the caller, else it is taken back.
 */
int64_t vb__channel_try_send_loan(struct vb_channel *channel, const struct vb__loan *loan,
				  size_t len, const struct iovec *before, struct vb_error *err);

/* Memory need not be registered to be sent, and sending it is done with it soon: `before` may be used, and pays. */
bool vb__channel_sends_any_memory(const struct vb_channel *channel);

/* How many messages the peer has room for. */
unsigned vb__channel_room(struct vb_channel *channel);

/* Why nothing can be sent any more; 0 if it can. */
int vb__channel_check_open(struct vb_channel *channel, struct vb_error *err);

/*
 * A number that changes whenever something has: read it, look at everything, and only then wait,
 * if it is still the same. Waiting may end for nothing. Without `to_send` it is for messages and the end only.
 */
unsigned vb__channel_changes(struct vb_channel *channel);
void vb__channel_await_change(struct vb_channel *channel, unsigned seen, bool to_send);

/* For event loops: true if nothing has changed, and the descriptor will wake for what does. */
bool vb__channel_is_quiet(struct vb_channel *channel, unsigned seen, bool to_send);

/* Something has changed above the channel: whoever waits looks again; the descriptor is readable until somebody does. */
void vb__channel_poke(struct vb_channel *channel);
void vb__channel_wake_loop(struct vb_channel *channel);

/* The loop does not wait for room any more, or for nothing at all: news of that does not keep the descriptor readable. */
void vb__channel_unwatch(struct vb_channel *channel, bool all);

/* ---- Looking after it ---- */

/* Loans that are out or under way, in percent of the depth. */
unsigned vb__channel_filled(struct vb_channel *channel);

/* Looks after what is under way although nobody is inside a call. True if something is. */
bool vb__channel_tend(struct vb_channel *channel);

/* As vb_region_open, for memory that is only sent or put from: it may be read-only. */
int vb__region_open_source(struct vb_channel *channel, const void *addr, size_t len,
			   struct vb_region **region, struct vb_error *err);

/* As vb_access_post; `attended`: to memory that is used only while somebody is inside a call of its channel, see below. */
int64_t vb__access_post(struct vb_channel *channel, const struct vb_access *accesses, int count,
			bool attended, struct vb_error *err);

/* How many bytes can be accessed at once before posting more has to wait for that. */
uint64_t vb__access_room(struct vb_channel *channel);

/* It is over, and went well. */
bool vb__access_is_done(const struct vb_channel *channel, int64_t handle);

/* Memory is accessed only while somebody polls, at both ends. */
bool vb__channel_is_attended(const struct vb_channel *channel);

/*
 * After vb__channel_leave, a thread of the channel calls `look` when anything has changed while nobody was inside a
 * call for some milliseconds, without locks. True: it has more to send than there was room for.
 */
void vb__channel_appoint(struct vb_channel *channel, bool (*look)(void *arg), void *arg);

/*
 * At the end of a call: that thread may be needed from now on; or, with `to_send`, is needed until that is done.
 */
void vb__channel_leave(struct vb_channel *channel, bool to_send);

/* Takes in all that has come, without waiting for anything. */
void vb__channel_listen(struct vb_channel *channel);

/* Gives the peer the right, VB_RIGHT_READ or _WRITE, by tokens for parts of this memory, until it is covered. Here, too, somebody must be inside a call. */
struct vb__mr;
int vb__channel_expose(struct vb_channel *channel, void *addr, size_t len, unsigned right,
		       struct vb__mr **mr, struct vb_error *err);
void vb__exposure_token(const struct vb__mr *mr, const void *addr, size_t len, unsigned right,
			struct vb_token *token);
void vb__channel_cover(struct vb_channel *channel, struct vb__mr *mr);

/* Grants come and go without a registration. */
bool vb__channel_has_windows(const struct vb_channel *channel);

/* How often memory was registered for this channel so far, its own included. */
uint64_t vb__channel_registrations(struct vb_channel *channel);

/*
 * Between these, a thread moves something large, and the peer does so, too: what it waits for will be there soon,
 * and falling asleep would take longer. For fabrics where the CPU itself moves the data.
 */
void vb__channel_begin_flow(struct vb_channel *channel);
void vb__channel_end_flow(struct vb_channel *channel);

/* From now on waiting is sleeping: where the CPU itself has to move the data, spinning is in its way. */
void vb__channel_stop_spinning(struct vb_channel *channel);

/* Breaks the channel: whoever is inside a call comes back with `why`. Any thread. */
void vb__channel_cancel(struct vb_channel *channel, const struct vb_error *why);

/*
 * For one that waits for many channels: `told` is called, by any thread and with the channel's lock
 * held, when there is something that the last vb_channel_try_recv did not find.
 */
void vb__channel_watch(struct vb_channel *channel, void (*told)(void *arg), void *arg);
void *vb__channel_watcher(const struct vb_channel *channel);

/* There is neither a message nor an end to be received. Takes nothing, and does not block. */
bool vb__channel_is_silent(struct vb_channel *channel);

/* The endpoint's own descriptor, to be waited for after vb_channel_try_recv said VB_ERR_AGAIN, or it was silent. */
int vb__channel_wait_fd(const struct vb_channel *channel);

/* The message that was received last is not looked at any more. */
void vb__channel_release(struct vb_channel *channel);

/*
 * Closes as vb_channel_close does, but without blocking: VB_ERR_AGAIN until the farewell is over.
 * Then, or when it takes too long, free the channel by vb_channel_abort.
 */
int vb__channel_try_close(struct vb_channel *channel, struct vb_error *err);

/* As vb_channel_connect, with settings that are checked already. */
int vb__channel_connect(const char *host, const char *port, const struct vb__settings *settings,
			struct vb_channel **channel, struct vb_error *err);

/* As vb_listener_open, likewise. */
int vb__listener_open(const char *host, const char *port, const struct vb__settings *settings,
		      struct vb_listener **listener, struct vb_error *err);

/* Whether it listens on that fabric. */
bool vb__listener_serves(const struct vb_listener *listener, enum vb_fabric fabric);

/* From now on so many may come in at most, besides those that were accepted already and those with a pass; the others are refused as busy. */
void vb__listener_set_room(struct vb_listener *listener, unsigned room);

/* Tells the log of those who were counted, if that is due. Returns when it will be, UINT64_MAX if there are none. */
uint64_t vb__listener_tell(struct vb_listener *listener);

/*
 * Where the fabric can do that, those who come in receive through these pools, which are made as
 * they are needed. The list is the caller's, to be closed after all channels that came in.
 */
struct vb__pool;
void vb__listener_share(struct vb_listener *listener, unsigned receives, struct vb__pool **pools);

/* Whom to expect: the token that is shown, and the limits that hold for it. */
struct vb__pass {
	uint8_t token[VB__TOKEN_BYTES];
	uint32_t max_message, depth;
	enum vb__traffic traffic;
};

#define VB__PASSES_MAX 16u

/*
 * Lets those in who show one of these tokens, each once, with the limits of
 * the pass and not the listener's own. Replaces earlier passes; they are copied. Whoever
 * shows another token is refused; who shows none comes in as ever.
 */
void vb__listener_expect(struct vb_listener *listener, const struct vb__pass *passes,
			 unsigned count);

/* For one that was expected before the expectations were replaced. */
#define VB__PASS_STALE (-2)

/* The number of the pass by which an accepted channel came in, or negative. */
int vb__channel_pass(const struct vb_channel *channel);

#endif
