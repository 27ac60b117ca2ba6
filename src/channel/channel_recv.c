/* SPDX-License-Identifier: Apache-2.0 */
/* Receiving messages: out of the inbox, one view at a time. */
#include <string.h>

#include "channel/channel_state.h"
#include "channel/inside.h"

static struct vb__received *first(struct vb_channel *ch)
{
	return &ch->inbox.ring[ch->inbox.first];
}

static void let_go(struct vb_channel *ch, const struct vb__received *received)
{
	if (received->arrival)
		vb__pool_give_back(ch->ep->pool, received->arrival);
	else
		vb__slot_give_back(&ch->rx, received->slot);
}

void vb__inbox_release(struct vb_channel *ch)
{
	if (ch->inbox.shown.bytes)
		let_go(ch, &ch->inbox.shown);
	ch->inbox.shown.bytes = NULL;
}

void vb__inbox_empty(struct vb_channel *ch)
{
	struct vb__inbox *in = &ch->inbox;

	vb__inbox_release(ch);
	for (; in->count; in->count--) {
		let_go(ch, first(ch));
		in->first = (in->first + 1) % ch->credits.depth;
	}
}

/*
 * The last message of the first packet goes to the user, who looks at it
 * where it lies. The spare slot takes its place, so that what the user holds
 * does not count against the depth; a pool has others.
 */
static void show_first(struct vb_channel *ch)
{
	struct vb__inbox *in = &ch->inbox;

	in->shown = *first(ch);
	in->first = (in->first + 1) % ch->credits.depth;
	in->count--;
	in->at = 0;
	in->taken = 0;
	if (ch->ep->state == VB__EP_DOWN)
		return;
	if (!ch->ep->pool && vb__packet_post_recv(ch, vb__slot_take(&ch->rx), &ch->failure) != 0) {
		vb__channel_fail(ch, NULL);
		return;
	}
	ch->credits.owed++;
	if (ch->blocked_senders)
		vb__packet_post_control(ch);
}

/* Takes the next message of the first packet; false if the packet makes no sense. */
static bool take_message(struct vb_channel *ch, const uint8_t **message, size_t *len, bool *last)
{
	struct vb__inbox *in = &ch->inbox;
	const struct vb__received *received = first(ch);

	if (!received->framed) {
		*message = received->bytes;
		*len = received->payload;
		*last = true;
		return true;
	}
	if (!vb__frame_next(received->bytes, received->payload, &in->at, message, len))
		return false;
	in->taken++;
	*last = in->taken == received->messages;
	return !*last || in->at == received->payload;
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
					     .hint = "the peer runs a broken or foreign program",
				     });
		return vb__fail_again(err, &ch->failure);
	}
	ch->counters.messages_received++;
	ch->counters.bytes_received += len;
	*message = found;
	if (last)
		show_first(ch);
	return (ssize_t)len;
}

void vb__channel_take_rest(struct vb_channel *ch)
{
	if (ch->failure.code)
		vb__channel_progress(ch);
}

int vb__channel_check_not_ended(struct vb_channel *ch, struct vb_error *err)
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
	uint64_t deadline = vb__channel_patience(ch, blocking);
	int rc;

	vb__inbox_release(ch);
	for (;;) {
		/* Only now: an answer to the last message may have taken them along. */
		vb__packet_post_control(ch);
		if (!ch->inbox.count)
			vb__channel_take_rest(ch);
		if (ch->failure.code != VB_ERR_PROTOCOL && ch->inbox.count)
			return give(ch, message, err);
		rc = vb__channel_check_not_ended(ch, err);
		if (rc)
			return rc;
		vb__outbox_push(ch);
		rc = vb__channel_await(ch, VB__NEWS_RECEIVED, deadline, "receive from", err);
		if (rc)
			return rc;
	}
}

ssize_t vb_channel_recv(struct vb_channel *ch, const void **message, struct vb_error *err)
{
	ssize_t n;

	vb__error_clear(err);
	vb__channel_lock(ch);
	n = receive(ch, message, true, err);
	vb__channel_unlock(ch);
	return n;
}

ssize_t vb_channel_try_recv(struct vb_channel *ch, const void **message, struct vb_error *err)
{
	ssize_t n;

	vb__error_clear(err);
	vb__channel_lock(ch);
	n = receive(ch, message, false, err);
	vb__channel_unlock(ch);
	return n;
}

bool vb__channel_is_silent(struct vb_channel *ch)
{
	bool silent;

	vb__channel_lock(ch);
	do
		silent = !ch->inbox.count && !ch->peer_ended && !ch->failure.code;
	while (silent && !vb__channel_would_block(ch, VB__NEWS_RECEIVED));
	vb__channel_unlock(ch);
	return silent;
}
