/* SPDX-License-Identifier: Apache-2.0 */
/* Receiving messages: out of the inbox, one view at a time. */
#include <string.h>

#include "channel/channel_state.h"

/* Up to this a message is copied out, so that its slot can go back before the answer is sent. */
#define SMALL_MESSAGE 1024u

static struct vb__slot *first_slot(struct vb_channel *ch)
{
	return &ch->rx.slot[ch->inbox.ring[ch->inbox.first]];
}

/* The first packet is read: its receive goes back, and the peer is owed a credit. */
static void drop_first(struct vb_channel *ch)
{
	struct vb__inbox *in = &ch->inbox;
	struct vb__slot *slot = first_slot(ch);
	struct vb_error err = { .code = VB_OK };

	in->first = (in->first + 1) % ch->credits.depth;
	in->count--;
	in->at = 0;
	in->taken = 0;
	in->holds_first = false;
	if (ch->ep->state == VB__EP_DOWN)
		return;
	if (vb__packet_post_recv(ch, slot, &err) != 0) {
		vb__fail_again(&ch->failure, &err);
		vb__channel_fail(ch, NULL);
		return;
	}
	ch->credits.owed++;
}

/* Takes the next message of the first packet; false if the packet makes no sense. */
static bool take_message(struct vb_channel *ch, const uint8_t **message, size_t *len, bool *last)
{
	struct vb__inbox *in = &ch->inbox;
	struct vb__slot *slot = first_slot(ch);
	struct vb__packet packet;

	if (!vb__packet_decode(&packet, slot->header, slot->received))
		return false;
	if (!(packet.flags & VB__PACKET_FRAMED)) {
		*message = slot->payload;
		*len = packet.payload;
		*last = true;
		return true;
	}
	if (!vb__frame_next(slot->payload, packet.payload, &in->at, message, len))
		return false;
	in->taken++;
	*last = in->taken == packet.messages;
	return !*last || in->at == packet.payload;
}

/* Gives the next message out of the inbox, which is not empty. */
static ssize_t give(struct vb_channel *ch, const void **message, struct vb_error *err)
{
	const uint8_t *found;
	size_t len;
	bool last;

	if (!take_message(ch, &found, &len, &last)) {
		vb__channel_fail(ch, &(struct vb__failure){
					     .code = VB_ERR_PROTOCOL,
					     .operation = "receive from",
					     .object = ch->ep->peer,
					     .cause = "messages in a packet make no sense",
				     });
		return vb__fail_again(err, &ch->failure);
	}
	ch->counters.messages_received++;
	ch->counters.bytes_received += len;
	*message = found;
	if (!last)
		return (ssize_t)len;
	if (len <= SMALL_MESSAGE) {
		memcpy(ch->inbox.small, found, len);
		*message = ch->inbox.small;
		drop_first(ch);
	} else {
		ch->inbox.holds_first = true;
	}
	return (ssize_t)len;
}

static int check_end(struct vb_channel *ch, struct vb_error *err)
{
	if (ch->peer_ended)
		return vb__fail(err, &(struct vb__failure){
					     .code = VB_ERR_EOF,
					     .operation = "receive from",
					     .object = ch->ep->peer,
					     .cause = "end of stream",
				     });
	if (ch->failure.code)
		return vb__fail_again(err, &ch->failure);
	return 0;
}

static ssize_t receive(struct vb_channel *ch, const void **message, bool blocking,
		       struct vb_error *err)
{
	struct vb__wait wait = { .spin_until_ns = 0 };
	int rc;

	if (ch->inbox.holds_first)
		drop_first(ch);
	for (;;) {
		/* Only now: an answer to the last message may have taken them along. */
		vb__packet_post_credits(ch);
		if (ch->failure.code != VB_ERR_PROTOCOL && ch->inbox.count)
			return give(ch, message, err);
		rc = check_end(ch, err);
		if (rc)
			return rc;
		vb__outbox_push(ch);
		if (blocking)
			vb__channel_wait(ch, &wait,
					 VB__NEWS_RECEIVED |
						 (vb__credits_due(&ch->credits) ? VB__NEWS_SENT
										: 0));
		else if (vb__channel_would_block(ch))
			return VB_ERR_AGAIN;
	}
}

ssize_t vb_channel_recv(struct vb_channel *ch, const void **message, struct vb_error *err)
{
	ssize_t n;

	vb__error_clear(err);
	pthread_mutex_lock(&ch->lock);
	n = receive(ch, message, true, err);
	pthread_mutex_unlock(&ch->lock);
	return n;
}

ssize_t vb_channel_try_recv(struct vb_channel *ch, const void **message, struct vb_error *err)
{
	ssize_t n;

	vb__error_clear(err);
	pthread_mutex_lock(&ch->lock);
	n = receive(ch, message, false, err);
	pthread_mutex_unlock(&ch->lock);
	return n;
}
