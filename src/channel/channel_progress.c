/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What completes, and who waits for it. There is no thread of ours at work:
 * whoever needs something handles whatever has completed for everybody. One
 * thread at a time sleeps on the descriptor, the others on a condition.
 */
#include <limits.h>
#include <sched.h>
#include <string.h>

#include "channel/channel_state.h"
#include "core/clock.h"
#include "core/condition.h"
#include "fabric/waiter.h"

#define BATCH 16
#define POLLS_PER_YIELD 32u
/* In the middle of a large transfer: from one wait to the next it takes as long as some 100 KiB to a MiB. */
#define FLOW_SPINS 10u
#define POLLS_TO_MEASURE 32u
#define SPINS_PER_MEASUREMENT 1024u

void vb__channel_tell(struct vb_channel *ch, unsigned news)
{
	ch->changes++;
	if (ch->waiting)
		pthread_cond_broadcast(&ch->changed);
	if (ch->sleeper_for & news)
		vb__ep_wake(ch->ep);
	vb__loop_tell(ch, news);
}

void vb__channel_alert(struct vb_channel *ch)
{
	ch->changes++;
	if (ch->waiting)
		pthread_cond_broadcast(&ch->changed);
	if (ch->sleeper_for)
		vb__ep_wake(ch->ep);
}

/* After some codes a channel goes on: what has ended one must not be told by them, whatever a call or a device made of it. */
static void keep_from_going_on(struct vb_error *failure)
{
	switch (failure->code) {
	case VB_ERR_EOF:
	case VB_ERR_TOO_BIG:
	case VB_ERR_INVALID:
	case VB_ERR_AGAIN:
	case VB_ERR_TIMEOUT:
		failure->code = VB_ERR_SYSTEM;
		break;
	default:
		break;
	}
}

int vb__channel_fail(struct vb_channel *ch, const struct vb__failure *cause)
{
	if (cause)
		vb__fail(&ch->failure, cause);
	keep_from_going_on(&ch->failure);
	vb__ep_disconnect(ch->ep);
	vb__channel_tell(ch, VB__NEWS_STATE);
	return ch->failure.code;
}

static unsigned violated(struct vb_channel *ch, const char *how)
{
	vb__channel_fail(ch, &(struct vb__failure){
				     .code = VB_ERR_PROTOCOL,
				     .operation = "receive from",
				     .object = ch->ep->peer,
				     .cause = how,
				     .hint = "the peer runs a broken or foreign program",
			     });
	return VB__NEWS_STATE;
}

/* A packet without messages, or a bad one: its receive is posted again at once. */
static unsigned repost(struct vb_channel *ch, const struct vb__received *received)
{
	if (received->arrival) {
		vb__pool_give_back(ch->ep->pool, received->arrival);
		return 0;
	}
	if (ch->ep->state == VB__EP_DOWN ||
	    vb__packet_post_recv(ch, received->slot, &ch->failure) == 0)
		return 0;
	vb__channel_fail(ch, NULL);
	return VB__NEWS_STATE;
}

static unsigned on_data(struct vb_channel *ch, struct vb__received *received,
			const struct vb__packet *packet)
{
	struct vb__inbox *in = &ch->inbox;

	if (ch->peer_ended || in->count + ch->lent + ch->notices.count == ch->credits.depth ||
	    packet->payload > ch->max_message)
		return violated(ch, "data came that was not allowed") | repost(ch, received);
	received->payload = packet->payload;
	received->messages = packet->messages;
	received->framed = packet->flags & VB__PACKET_FRAMED;
	ch->credits.came++;
	in->ring[(in->first + in->count++) % ch->credits.depth] = *received;
	return VB__NEWS_RECEIVED;
}

/* A packet that carries no messages. */
static unsigned on_control(struct vb_channel *ch, enum vb__packet_kind kind)
{
	switch (kind) {
	case VB__PACKET_END:
		if (ch->peer_ended)
			return violated(ch, "a second end came");
		ch->peer_ended = true;
		ch->credits.came++;
		ch->end_to_confirm = true;
		ch->credits.owed++;
		return VB__NEWS_RECEIVED;
	case VB__PACKET_END_SEEN:
		if (!ch->end_sent || ch->end_seen)
			return violated(ch, "an end was confirmed that was not sent");
		ch->end_seen = true;
		return VB__NEWS_ROOM;
	case VB__PACKET_CLOSING:
		if (ch->peer_closing)
			return violated(ch, "a second notice of closing came");
		ch->peer_closing = true;
		return VB__NEWS_ROOM | VB__NEWS_RECEIVED;
	case VB__PACKET_ACCESSING:
		if (ch->peer_accesses || !(ch->ep->caps & VB__CAP_ATTENDED))
			return violated(ch, "a notice of accesses came that was not allowed");
		ch->peer_accesses = true;
		return 0;
	default: /* CREDIT */
		ch->credits.seen++;
		return 0;
	}
}

/* The receive holds nothing: it is posted again, though the peer's credit stays taken for now. */
static unsigned on_notice(struct vb_channel *ch, const struct vb__received *received,
			  uint32_t number)
{
	if (ch->peer_ended || !vb__notice_keep(ch, number))
		return violated(ch, "a notice came that was not allowed") | repost(ch, received);
	ch->credits.came++;
	return VB__NEWS_RECEIVED | repost(ch, received);
}

static unsigned on_immediate(struct vb_channel *ch, const struct vb__received *received,
			     uint32_t number)
{
	unsigned news = on_notice(ch, received, number);

	vb__credits_deduce(&ch->credits);
	return news;
}

static unsigned on_packet(struct vb_channel *ch, struct vb__received *received,
			  const struct vb__packet *packet)
{
	unsigned news = 0;

	ch->counters.packets_received++;
	ch->silent = false;
	if (!vb__credits_returned(&ch->credits, packet->credits, packet->seen))
		return violated(ch, "more credits were returned than given") | repost(ch, received);
	if (packet->credits)
		news |= VB__NEWS_ROOM;
	if (packet->kind == VB__PACKET_DATA && packet->flags & VB__PACKET_NOTICE)
		return news | on_notice(ch, received, vb__notice_number(received->bytes));
	if (packet->kind == VB__PACKET_DATA)
		return news | on_data(ch, received, packet);
	news |= on_control(ch, packet->kind);
	return news | repost(ch, received);
}

/* Of a single message without a trailer the immediate data tells the rest. */
static bool decode(struct vb_channel *ch, const struct vb__received *received,
		   const struct vb__completion *c, struct vb__packet *packet)
{
	if (c->has_imm)
		return vb__packet_from_immediate(packet, c->imm, c->len, ch->credits.confirmed);
	return vb__packet_decode(packet, received->bytes, c->len);
}

/* Also if it failed or was flushed: the buffers are free all the same. */
static unsigned on_sent(struct vb_channel *ch, uint64_t id, bool well)
{
	struct vb__slot *slot;

	if (id & VB__CONTROL_ID) {
		ch->control_busy--;
		vb__slot_give_back(&ch->control, &ch->control.slot[id & ~VB__CONTROL_ID]);
		return VB__NEWS_SENT;
	}
	slot = &ch->tx.slot[id];
	ch->done = slot->serial;
	if (well)
		ch->done_well = slot->serial;
	vb__slot_give_back(&ch->tx, slot);
	return VB__NEWS_SENT | VB__NEWS_TICKET;
}

static struct vb__received received_by(struct vb_channel *ch, const struct vb__completion *c)
{
	struct vb__received received = { .bytes = NULL };

	if (c->arrival) {
		received.arrival = c->arrival;
		received.bytes = c->arrival->bytes;
	} else {
		received.slot = &ch->rx.slot[c->id];
		received.bytes = received.slot->bytes;
		vb__packet_recv_done(ch);
	}
	return received;
}

static unsigned on_completion(struct vb_channel *ch, const struct vb__completion *c)
{
	struct vb__received received;
	struct vb__packet packet;

	if (c->kind == VB__OP_SEND || c->kind == VB__OP_SEND_IMM)
		return on_sent(ch, c->id, c->status == VB_OK) | (c->status ? VB__NEWS_STATE : 0);
	if (c->id & VB__ACCESS_ID)
		return vb__access_done(ch, c->id, c->status == VB_OK);
	if (c->status != VB_OK)
		return VB__NEWS_STATE;
	received = received_by(ch, c);
	if (c->has_imm && c->by_write)
		return on_immediate(ch, &received, c->imm);
	if (!decode(ch, &received, c, &packet))
		return violated(ch, "a packet makes no sense") | repost(ch, &received);
	return on_packet(ch, &received, &packet);
}

/* The endpoint is down and all that had arrived is handled. */
static unsigned on_down(struct vb_channel *ch)
{
	if (ch->failure.code)
		return 0;
	vb__fail_again(&ch->failure, &ch->ep->down);
	keep_from_going_on(&ch->failure);
	if (ch->failure.code == VB_ERR_LOST && ch->ep->caps & VB__CAP_MUTE && ch->accesses.of_peer)
		vb__error_hint(
			&ch->failure,
			"look at the peer: it was killed or crashed; or it refused an access "
			"to its memory, which is not granted for this, or not any more");
	return VB__NEWS_STATE;
}

static unsigned take(struct vb_channel *ch, const struct vb__completion *done, int n)
{
	unsigned news = 0;

	for (int i = 0; i < n; i++)
		news |= on_completion(ch, &done[i]);
	return news;
}

/* What follows from the `n` that a poll has found, and all further ones that are there. */
static unsigned follow_up(struct vb_channel *ch, struct vb__completion *done, int n,
			  enum vb__ep_state before)
{
	bool was_down = before == VB__EP_DOWN;
	unsigned news = take(ch, done, n);

	/* Once it is down, all that had arrived before is taken: one more look, to be sure. */
	while (n == BATCH || (ch->ep->state == VB__EP_DOWN && (n || !was_down))) {
		was_down = ch->ep->state == VB__EP_DOWN;
		n = vb__ep_poll(ch->ep, done, BATCH);
		news |= take(ch, done, n);
	}
	if (was_down)
		news |= on_down(ch);
	if (ch->ep->state != before)
		news |= VB__NEWS_STATE;
	if (ch->end_to_confirm || ch->blocked_senders)
		vb__packet_post_control(ch);
	if ((news & VB__NEWS_ROOM) &&
	    vb__credits_used(&ch->credits) < vb__credits_half(&ch->credits))
		vb__outbox_push(ch);
	if (news)
		vb__channel_tell(ch, news);
	return news;
}

/* Most polls find nothing, and what comes next waits for the end of this one. */
unsigned vb__channel_progress(struct vb_channel *ch)
{
	struct vb__completion done[BATCH];
	enum vb__ep_state before = ch->ep->state;
	int n = vb__ep_poll(ch->ep, done, BATCH);

	if (n == 0 && before == VB__EP_UP && ch->ep->state == before && !ch->end_to_confirm &&
	    !ch->blocked_senders)
		return 0;
	return follow_up(ch, done, n, before);
}

/* Another thread is waiting for the lock, or may wake up with a need for it. */
static bool is_lock_wanted(struct vb_channel *ch)
{
	return atomic_load_explicit(&ch->wanted, memory_order_relaxed) || ch->waiting ||
	       ch->outbox.slot;
}

static void lend_lock(struct vb_channel *ch, bool yield)
{
	vb__channel_unlock(ch);
	if (yield)
		sched_yield();
	vb__channel_lock(ch);
}

/*
 * Polls until anything has changed, at most `polls` times; returns how many
 * were made. Whoever wants the lock meanwhile gets it, so what changed may have
 * been brought by another thread. Now and then the CPU is given away as well:
 * whoever has to do the work that is waited for (a device in software, the peer
 * on the same machine) may be waiting for just this one.
 */
static unsigned poll_for_change(struct vb_channel *ch, unsigned polls)
{
	unsigned before = ch->changes, made = 0;

	while (made < polls && ch->changes == before) {
		bool yield = ++made % POLLS_PER_YIELD == 0;

		if (yield || is_lock_wanted(ch))
			lend_lock(ch, yield);
		if (ch->changes == before)
			vb__channel_progress(ch);
	}
	return made;
}

static unsigned polls_within(uint64_t budget_ns, uint64_t poll_ns)
{
	uint64_t polls = budget_ns / poll_ns + 1;

	return polls < UINT_MAX ? (unsigned)polls : UINT_MAX;
}

/*
 * Busy-waits for about spin_us; true if anything changed or the time is not
 * over. The time is counted in polls, because reading a clock may take longer
 * than several of them; how long one takes is measured now and then.
 */
static bool spin(struct vb_channel *ch)
{
	uint64_t start, took, budget = (uint64_t)ch->settings.spin_us * 1000;
	unsigned before = ch->changes, made, times = ch->in_flow ? FLOW_SPINS : 1;

	if (!budget)
		return false;
	if (ch->spins++ % SPINS_PER_MEASUREMENT != 0 && ch->spin_polls) {
		poll_for_change(ch, ch->spin_polls > UINT_MAX / times ? UINT_MAX
								      : ch->spin_polls * times);
		return ch->changes != before;
	}
	start = vb__now_ns();
	made = poll_for_change(ch, POLLS_TO_MEASURE);
	took = vb__now_ns() - start;
	if (made == POLLS_TO_MEASURE)
		ch->spin_polls = polls_within(budget, took / made + 1);
	return ch->changes != before || took < budget * times;
}

static void sleep_on_descriptor(struct vb_channel *ch, unsigned news, uint64_t deadline_ns)
{
	ch->sleeper_for = news;
	vb__channel_unlock(ch);
	vb__ep_sleep(ch->ep, deadline_ns);
	vb__channel_lock(ch);
	ch->sleeper_for = 0;
	if (ch->waiting)
		pthread_cond_broadcast(&ch->changed); /* one of them sleeps next */
}

/* Most waiting is for the peer; being woken by one's own sends would be in vain. */
static int arm_for(struct vb_channel *ch, unsigned news)
{
	return news & VB__NEWS_SENT ? vb__ep_arm(ch->ep) : vb__ep_arm_for_arrivals(ch->ep);
}

/* Spinning does not look at the clock. */
static bool is_far(const struct vb_channel *ch, uint64_t deadline_ns)
{
	return deadline_ns == UINT64_MAX ||
	       vb__now_ns() + (uint64_t)ch->settings.spin_us * 1000 < deadline_ns;
}

static void wait_for(struct vb_channel *ch, unsigned news, uint64_t deadline_ns)
{
	unsigned brought = vb__channel_progress(ch);

	vb__flusher_note_use(ch);
	vb__packet_post_control(ch);
	if (brought & news)
		return;
	if (news != VB__NEWS_STATE && is_far(ch, deadline_ns) && spin(ch))
		return;
	if (ch->sleeper_for) {
		vb__flusher_make_room(ch);
		if (news & ~ch->sleeper_for & VB__NEWS_SENT)
			vb__ep_wake(ch->ep); /* it must be armed for more */
		ch->waiting++;
		vb__cond_wait(&ch->changed, &ch->lock, deadline_ns);
		ch->waiting--;
		return;
	}
	/* The others rely on the one that sleeps, and so does a control packet without a slot. */
	if (ch->waiting_for_sent || !ch->control.free)
		news |= VB__NEWS_SENT;
	if (arm_for(ch, news) == 0)
		sleep_on_descriptor(ch, news, deadline_ns);
}

/*
 * All credits go back: a sender's waiting; or somebody waits for a message while notices lie there, or the
 * other way round. Those keep the credits that half of the depth would be made of.
 */
static bool is_urgent(const struct vb_channel *ch, unsigned news)
{
	return news & (VB__NEWS_SENT | VB__NEWS_ROOM) ||
	       (news & VB__NEWS_RECEIVED && (ch->notices.count || ch->inbox.count));
}

void vb__channel_wait_until(struct vb_channel *ch, unsigned news, uint64_t deadline_ns)
{
	bool sent = news & VB__NEWS_SENT, sender = is_urgent(ch, news);

	ch->blocked_senders += sender;
	ch->waiting_for_sent += sent;
	wait_for(ch, news | VB__NEWS_STATE, deadline_ns);
	ch->waiting_for_sent -= sent;
	ch->blocked_senders -= sender;
	/* An event loop in another thread may have been armed for what was taken here. */
	vb__loop_tell(ch, ch->loop.watched);
}

void vb__channel_wait(struct vb_channel *ch, unsigned news)
{
	vb__channel_wait_until(ch, news, UINT64_MAX);
}

/*
 * Another thread may be asleep on the same descriptor. A wake that is found there is for that one: it
 * is no news to us, and is set again, or that thread would miss it.
 */
static bool arm_beside_sleeper(struct vb_channel *ch)
{
	bool armed = vb__ep_arm(ch->ep) == 0;

	if (!armed && ch->sleeper_for) {
		armed = vb__ep_arm(ch->ep) == 0;
		vb__ep_wake(ch->ep);
	}
	return armed;
}

bool vb__channel_would_block(struct vb_channel *ch, unsigned news)
{
	bool sender = is_urgent(ch, news), quiet;

	vb__loop_looks(ch, news | VB__NEWS_STATE);
	ch->blocked_senders += sender;
	quiet = vb__channel_progress(ch) == 0;
	vb__packet_post_control(ch);
	ch->blocked_senders -= sender;
	quiet = quiet && arm_beside_sleeper(ch);
	if (quiet)
		vb__loop_waits(ch, news | VB__NEWS_STATE);
	return quiet;
}

uint64_t vb__channel_patience(const struct vb_channel *ch, bool blocking)
{
	if (!blocking)
		return VB__NOT_AT_ALL;
	return ch->timeout_ms ? vb__now_ns() + vb__ms(ch->timeout_ms) : UINT64_MAX;
}

static int fail_late(const struct vb_channel *ch, const char *operation, struct vb_error *err)
{
	vb__fail(err, &(struct vb__failure){
			      .code = VB_ERR_TIMEOUT,
			      .operation = operation,
			      .object = ch->ep->peer,
			      .cause = "the peer is alive, but its program does not go on",
		      });
	vb__error_hint(err, "look at it: is it stopped, or busy? It was waited for %u ms",
		       ch->timeout_ms);
	return VB_ERR_TIMEOUT;
}

int vb__channel_await(struct vb_channel *ch, unsigned news, uint64_t deadline_ns,
		      const char *operation, struct vb_error *err)
{
	if (deadline_ns == VB__NOT_AT_ALL)
		return vb__channel_would_block(ch, news) ? VB_ERR_AGAIN : 0;
	if (deadline_ns != UINT64_MAX && vb__now_ns() >= deadline_ns) {
		/* It may have come while we were asleep, or stopped ourselves. */
		if (vb__channel_progress(ch) & (news | VB__NEWS_STATE))
			return 0;
		return fail_late(ch, operation, err);
	}
	vb__channel_wait_until(ch, news, deadline_ns);
	return 0;
}
