/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lending the channel's own buffers: messages are made and read where the
 * fabric takes and puts them. Also what only the layers above need to know.
 */
#include "channel/channel_state.h"
#include "channel/inside.h"

static struct vb__loan loan_of(const struct vb_channel *ch, const struct vb__slot *slot)
{
	return (struct vb__loan){ .data = slot->bytes,
				  .bytes = ch->max_message,
				  .number = slot->number };
}

int vb__channel_borrow(struct vb_channel *ch, struct vb__loan *loan, struct vb_error *err)
{
	struct vb__slot *slot;
	int rc;

	vb__channel_lock(ch);
	while ((rc = vb__channel_check_peer_open(ch, err)) == 0 && !(slot = vb__slot_take(&ch->tx)))
		vb__channel_wait(ch, VB__NEWS_SENT);
	vb__channel_unlock(ch);
	if (rc == 0)
		*loan = loan_of(ch, slot);
	return rc;
}

int vb__channel_try_borrow(struct vb_channel *ch, struct vb__loan *loan, struct vb_error *err)
{
	struct vb__slot *slot;
	int rc;

	vb__channel_lock(ch);
	rc = vb__channel_check_peer_open(ch, err);
	slot = rc ? NULL : vb__slot_take(&ch->tx);
	vb__channel_unlock(ch);
	if (slot)
		*loan = loan_of(ch, slot);
	return slot ? 0 : rc ? rc : VB_ERR_AGAIN;
}

/* There is a credit for it. */
static int post_loan(struct vb_channel *ch, struct vb__slot *slot, size_t len,
		     const struct iovec *before, struct vb_error *err)
{
	struct vb__packet packet = { .kind = VB__PACKET_DATA, .messages = 1 };
	struct vb__sge sge = { .addr = NULL };
	size_t sum = len;

	slot->filled = len;
	if (before) {
		sge = (struct vb__sge){ .addr = before->iov_base, .len = before->iov_len };
		sum += before->iov_len;
	}
	if (vb__packet_post(ch, slot, packet, &sge, before ? 1 : 0) != 0)
		return vb__fail_again(err, &ch->failure);
	ch->counters.messages_sent++;
	ch->counters.bytes_sent += sum;
	return 0;
}

int vb__channel_send_loan(struct vb_channel *ch, const struct vb__loan *loan, size_t len,
			  struct vb_error *err)
{
	struct vb__slot *slot = &ch->tx.slot[loan->number];
	bool stalled = false;
	int rc;

	vb__channel_lock(ch);
	while ((rc = vb__channel_check_peer_open(ch, err)) == 0 && !ch->credits.held) {
		ch->counters.credit_stalls += !stalled;
		stalled = true;
		vb__channel_wait(ch, VB__NEWS_ROOM);
	}
	if (rc)
		vb__slot_give_back(&ch->tx, slot);
	else
		rc = post_loan(ch, slot, len, NULL, err);
	vb__channel_unlock(ch);
	return rc;
}

bool vb__channel_sends_any_memory(const struct vb_channel *ch)
{
	const unsigned both = VB__CAP_ANY_BUFFER | VB__CAP_SLOW_POST;

	return (ch->ep->caps & both) == both && ch->ep->sge >= 2;
}

int64_t vb__channel_try_send_loan(struct vb_channel *ch, const struct vb__loan *loan, size_t len,
				  const struct iovec *before, struct vb_error *err)
{
	int64_t ticket = 0;
	int rc;

	vb__channel_lock(ch);
	rc = vb__channel_check_peer_open(ch, err);
	if (rc == 0 && !ch->credits.held)
		rc = VB_ERR_AGAIN;
	if (rc == 0)
		rc = post_loan(ch, &ch->tx.slot[loan->number], len, before, err);
	else if (rc != VB_ERR_AGAIN)
		vb__slot_give_back(&ch->tx, &ch->tx.slot[loan->number]);
	ticket = ch->posted;
	vb__channel_unlock(ch);
	return rc ? rc : ticket;
}

void vb__channel_give_back_unsent(struct vb_channel *ch, const struct vb__loan *loan)
{
	vb__channel_lock(ch);
	vb__slot_give_back(&ch->tx, &ch->tx.slot[loan->number]);
	vb__channel_tell(ch, VB__NEWS_SENT);
	vb__channel_unlock(ch);
}

/* Takes the first packet out of the inbox, which is not empty. */
static int take_packet(struct vb_channel *ch, struct vb__loan *loan, struct vb_error *err)
{
	struct vb__inbox *in = &ch->inbox;
	const struct vb__received *first = &in->ring[in->first];
	struct vb__slot *slot = first->slot;
	uint32_t payload = first->payload;

	if (first->framed) {
		vb__channel_fail(ch, &(struct vb__failure){
					     .code = VB_ERR_PROTOCOL,
					     .operation = "receive from",
					     .object = ch->ep->peer,
					     .cause = "small messages came where blocks belong",
				     });
		return vb__fail_again(err, &ch->failure);
	}
	in->first = (in->first + 1) % ch->credits.depth;
	in->count--;
	ch->lent++;
	*loan = (struct vb__loan){ .data = slot->bytes,
				   .bytes = payload,
				   .turn = ch->counters.messages_received++,
				   .number = slot->number };
	ch->counters.bytes_received += payload;
	return 0;
}

int vb__channel_recv_loan(struct vb_channel *ch, struct vb__loan *loan, struct vb_error *err)
{
	int rc = 0;

	vb__channel_lock(ch);
	while (!ch->inbox.count && (rc = vb__channel_check_not_ended(ch, err)) == 0)
		vb__channel_wait(ch, VB__NEWS_RECEIVED);
	if (rc == 0)
		rc = take_packet(ch, loan, err);
	vb__channel_unlock(ch);
	return rc;
}

int vb__channel_try_recv_loan(struct vb_channel *ch, struct vb__loan *loan, struct vb_error *err)
{
	int rc = VB_ERR_AGAIN;

	vb__channel_lock(ch);
	if (ch->inbox.count && ch->failure.code != VB_ERR_PROTOCOL)
		rc = take_packet(ch, loan, err);
	else if (vb__channel_check_not_ended(ch, err) != 0)
		rc = err->code;
	vb__channel_unlock(ch);
	return rc;
}

void vb__channel_give_back(struct vb_channel *ch, const struct vb__loan *loan)
{
	vb__channel_lock(ch);
	ch->lent--;
	if (ch->ep->state != VB__EP_DOWN) {
		if (vb__packet_post_recv(ch, &ch->rx.slot[loan->number], &ch->failure) != 0) {
			vb__channel_fail(ch, NULL);
		} else {
			ch->credits.owed++;
			vb__packet_post_control(ch);
		}
	}
	vb__channel_unlock(ch);
}

unsigned vb__channel_filled(struct vb_channel *ch)
{
	unsigned used;

	vb__channel_lock(ch);
	used = ch->settings.traffic == VB__TRAFFIC_IN ? ch->inbox.count + ch->lent
						      : vb__credits_used(&ch->credits);
	used = used * 100 / ch->credits.depth;
	vb__channel_unlock(ch);
	return used;
}

bool vb__channel_tend(struct vb_channel *ch)
{
	bool busy;

	vb__channel_lock(ch);
	/* Somebody sleeping on the descriptor looks after it. */
	if (!ch->sleeper_for)
		vb__channel_progress(ch);
	busy = ch->done < ch->posted || ch->control_busy;
	vb__channel_unlock(ch);
	return busy;
}

void vb__channel_listen(struct vb_channel *ch)
{
	vb__channel_lock(ch);
	while (vb__channel_progress(ch) != 0)
		;
	vb__channel_unlock(ch);
}

bool vb__channel_is_attended(const struct vb_channel *ch)
{
	return ch->ep->caps & VB__CAP_ATTENDED;
}

void vb__channel_begin_flow(struct vb_channel *ch)
{
	vb__channel_lock(ch);
	ch->in_flow += ch->ep->caps & VB__CAP_ATTENDED ? 1 : 0;
	vb__channel_unlock(ch);
}

void vb__channel_end_flow(struct vb_channel *ch)
{
	vb__channel_lock(ch);
	ch->in_flow -= ch->ep->caps & VB__CAP_ATTENDED ? 1 : 0;
	vb__channel_unlock(ch);
}

void vb__channel_stop_spinning(struct vb_channel *ch)
{
	vb__channel_lock(ch);
	ch->settings.spin_us = 0;
	vb__channel_unlock(ch);
}

void vb__channel_cancel(struct vb_channel *ch, const struct vb_error *why)
{
	vb__channel_lock(ch);
	vb__fail_again(&ch->failure, why);
	vb__channel_fail(ch, NULL);
	vb__channel_unlock(ch);
}

unsigned vb__channel_room(struct vb_channel *ch)
{
	unsigned room;

	vb__channel_lock(ch);
	room = ch->credits.held;
	vb__channel_unlock(ch);
	return room;
}

int vb__channel_check_open(struct vb_channel *ch, struct vb_error *err)
{
	int rc;

	vb__channel_lock(ch);
	rc = vb__channel_check_peer_open(ch, err);
	vb__channel_unlock(ch);
	return rc;
}

unsigned vb__channel_changes(struct vb_channel *ch)
{
	unsigned changes;

	vb__channel_lock(ch);
	changes = ch->changes;
	vb__flusher_note_use(ch);
	vb__channel_unlock(ch);
	return changes;
}

static unsigned news_for(bool to_send)
{
	return VB__NEWS_RECEIVED | (to_send ? VB__NEWS_SENT | VB__NEWS_ROOM : 0);
}

void vb__channel_await_change(struct vb_channel *ch, unsigned seen, bool to_send)
{
	vb__channel_lock(ch);
	if (ch->changes == seen) {
		if (!to_send)
			ch->flusher.to_send = false;
		vb__flusher_watch(ch);
		vb__channel_wait(ch, news_for(to_send));
		vb__flusher_unwatch(ch);
	}
	vb__channel_unlock(ch);
}

bool vb__channel_is_quiet(struct vb_channel *ch, unsigned seen, bool to_send)
{
	bool quiet;

	vb__channel_lock(ch);
	quiet = ch->changes == seen && vb__channel_would_block(ch, news_for(to_send));
	vb__channel_unlock(ch);
	return quiet;
}

void vb__channel_poke(struct vb_channel *ch)
{
	vb__channel_lock(ch);
	vb__channel_tell(ch, news_for(true) | VB__NEWS_STATE);
	vb__channel_unlock(ch);
}

void vb__channel_wake_loop(struct vb_channel *ch)
{
	vb__channel_lock(ch);
	vb__loop_waits(ch, VB__NEWS_RECEIVED);
	vb__loop_tell(ch, VB__NEWS_RECEIVED);
	vb__channel_unlock(ch);
}

void vb__channel_unwatch(struct vb_channel *ch, bool all)
{
	vb__channel_lock(ch);
	vb__loop_looks(ch, VB__NEWS_SENT | VB__NEWS_ROOM |
				   (all ? VB__NEWS_RECEIVED | VB__NEWS_STATE : 0));
	vb__channel_unlock(ch);
}

int vb__channel_wait_fd(const struct vb_channel *ch)
{
	return ch->ep->wait_fd;
}

void vb__channel_release(struct vb_channel *ch)
{
	vb__channel_lock(ch);
	vb__inbox_release(ch);
	vb__packet_post_control(ch);
	vb__channel_unlock(ch);
}

int vb__channel_pass(const struct vb_channel *ch)
{
	return ch->pass;
}
