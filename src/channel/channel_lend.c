/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lending the channel's own buffers: messages are made and read where the
 * fabric takes and puts them. Also what only the layers above need to know.
 */
#include "channel/channel_state.h"
#include "channel/inside.h"

int vb__channel_borrow(struct vb_channel *ch, struct vb__loan *loan, struct vb_error *err)
{
	struct vb__slot *slot;
	int rc;

	pthread_mutex_lock(&ch->lock);
	while ((rc = vb__channel_check_peer_open(ch, err)) == 0 && !(slot = vb__slot_take(&ch->tx)))
		vb__channel_wait(ch, VB__NEWS_SENT);
	pthread_mutex_unlock(&ch->lock);
	if (rc == 0)
		*loan = (struct vb__loan){ .data = slot->bytes,
					   .bytes = ch->max_message,
					   .number = slot->number };
	return rc;
}

int vb__channel_send_loan(struct vb_channel *ch, const struct vb__loan *loan, size_t len,
			  struct vb_error *err)
{
	struct vb__slot *slot = &ch->tx.slot[loan->number];
	struct vb__packet packet = { .kind = VB__PACKET_DATA, .messages = 1 };
	bool stalled = false;
	int rc;

	slot->filled = len;
	pthread_mutex_lock(&ch->lock);
	while ((rc = vb__channel_check_peer_open(ch, err)) == 0 && !ch->credits.held) {
		ch->counters.credit_stalls += !stalled;
		stalled = true;
		vb__channel_wait(ch, VB__NEWS_ROOM);
	}
	if (rc) {
		vb__slot_give_back(&ch->tx, slot);
	} else if (vb__packet_post(ch, slot, packet, NULL, 0) != 0) {
		rc = vb__fail_again(err, &ch->failure);
	} else {
		ch->counters.messages_sent++;
		ch->counters.bytes_sent += len;
	}
	pthread_mutex_unlock(&ch->lock);
	return rc;
}

void vb__channel_give_back_unsent(struct vb_channel *ch, const struct vb__loan *loan)
{
	pthread_mutex_lock(&ch->lock);
	vb__slot_give_back(&ch->tx, &ch->tx.slot[loan->number]);
	vb__channel_tell(ch, VB__NEWS_SENT);
	pthread_mutex_unlock(&ch->lock);
}

/* Takes the first packet out of the inbox, which is not empty. */
static int take_packet(struct vb_channel *ch, struct vb__loan *loan, struct vb_error *err)
{
	struct vb__inbox *in = &ch->inbox;
	struct vb__slot *slot = &ch->rx.slot[in->ring[in->first]];
	struct vb__packet packet;

	if (!vb__packet_decode(&packet, slot->bytes, slot->filled) ||
	    packet.flags & VB__PACKET_FRAMED) {
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
	ch->counters.messages_received++;
	ch->counters.bytes_received += packet.payload;
	*loan = (struct vb__loan){ .data = slot->bytes,
				   .bytes = packet.payload,
				   .number = slot->number };
	return 0;
}

int vb__channel_recv_loan(struct vb_channel *ch, struct vb__loan *loan, struct vb_error *err)
{
	int rc = 0;

	pthread_mutex_lock(&ch->lock);
	while (!ch->inbox.count && (rc = vb__channel_check_not_ended(ch, err)) == 0)
		vb__channel_wait(ch, VB__NEWS_RECEIVED);
	if (rc == 0)
		rc = take_packet(ch, loan, err);
	pthread_mutex_unlock(&ch->lock);
	return rc;
}

void vb__channel_give_back(struct vb_channel *ch, const struct vb__loan *loan)
{
	struct vb_error err = { .code = VB_OK };

	pthread_mutex_lock(&ch->lock);
	ch->lent--;
	if (ch->ep->state != VB__EP_DOWN) {
		if (vb__packet_post_recv(ch, &ch->rx.slot[loan->number], &err) != 0) {
			vb__fail_again(&ch->failure, &err);
			vb__channel_fail(ch, NULL);
		} else {
			ch->credits.owed++;
			vb__packet_post_control(ch);
		}
	}
	pthread_mutex_unlock(&ch->lock);
}

unsigned vb__channel_filled(struct vb_channel *ch)
{
	unsigned used;

	pthread_mutex_lock(&ch->lock);
	used = ch->settings.traffic == VB__TRAFFIC_IN ? ch->inbox.count + ch->lent
						      : vb__credits_used(&ch->credits);
	used = used * 100 / ch->credits.depth;
	pthread_mutex_unlock(&ch->lock);
	return used;
}

bool vb__channel_tend(struct vb_channel *ch)
{
	bool busy;

	pthread_mutex_lock(&ch->lock);
	/* Somebody sleeping on the descriptor looks after it. */
	if (!ch->sleeper_for)
		vb__channel_progress(ch);
	busy = ch->done < ch->posted || ch->control_busy;
	pthread_mutex_unlock(&ch->lock);
	return busy;
}

void vb__channel_stop_spinning(struct vb_channel *ch)
{
	pthread_mutex_lock(&ch->lock);
	ch->settings.spin_us = 0;
	pthread_mutex_unlock(&ch->lock);
}

void vb__channel_cancel(struct vb_channel *ch, const struct vb_error *why)
{
	pthread_mutex_lock(&ch->lock);
	vb__fail_again(&ch->failure, why);
	vb__channel_fail(ch, NULL);
	pthread_mutex_unlock(&ch->lock);
}

int vb__channel_pass(const struct vb_channel *ch)
{
	return ch->pass;
}
