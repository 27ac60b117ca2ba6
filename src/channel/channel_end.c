/* SPDX-License-Identifier: Apache-2.0 */
/* A channel's farewell: finish, close, abort. See docs/protocol.md, "The end". */
#include "channel/channel_state.h"
#include "core/clock.h"
#include "fabric/waiter.h"

/* Sends the END once there is a credit for it; false if there is none yet. */
static bool send_end(struct vb_channel *ch, bool closing)
{
	struct vb__packet packet = { .kind = VB__PACKET_END,
				     .flags = closing ? VB__PACKET_CLOSING : 0 };
	struct vb__slot *slot;

	vb__outbox_push(ch);
	if (ch->outbox.slot || !ch->credits.held)
		return false;
	slot = vb__slot_take(&ch->tx);
	if (!slot)
		return false;
	ch->end_sent = true;
	ch->end_seen = false;
	ch->closing_sent = closing;
	vb__packet_post(ch, slot, packet, NULL, 0);
	return true;
}

/* Packets with messages that the peer has not taken, as far as it told. */
static unsigned untaken(const struct vb_channel *ch)
{
	unsigned end = ch->end_sent && !ch->end_seen ? 1 : 0;

	return vb__credits_used(&ch->credits) - end + (ch->outbox.slot ? 1 : 0);
}

static int fail_untaken(struct vb_channel *ch, struct vb_error *err)
{
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_CLOSED,
				     .operation = "close",
				     .object = ch->ep->peer,
				     .cause = "the peer closed before it had taken all messages",
			     });
}

static bool is_finished(const struct vb_channel *ch, bool closing)
{
	return ch->end_seen && (!closing || ch->closing_sent);
}

static int finish(struct vb_channel *ch, bool closing, bool blocking, struct vb_error *err)
{
	struct vb__wait wait = { .spin_until_ns = 0 };

	ch->ending = true;
	while (!is_finished(ch, closing)) {
		/* A peer that closes has nothing to confirm any more. */
		if (ch->peer_closing)
			return untaken(ch) ? fail_untaken(ch, err) : 0;
		if (ch->failure.code)
			return vb__fail_again(err, &ch->failure);
		/* A second END, if the first one did not say that we close. */
		if (!ch->end_sent || (ch->end_seen && !ch->closing_sent))
			send_end(ch, closing);
		if (blocking)
			vb__channel_wait(ch, &wait, VB__NEWS_SENT);
		else if (vb__channel_would_block(ch))
			return VB_ERR_AGAIN;
	}
	return 0;
}

static int finish_locked(struct vb_channel *ch, bool blocking, struct vb_error *err)
{
	int rc;

	vb__error_clear(err);
	pthread_mutex_lock(&ch->lock);
	rc = finish(ch, false, blocking, err);
	pthread_mutex_unlock(&ch->lock);
	return rc;
}

int vb_channel_finish(struct vb_channel *ch, struct vb_error *err)
{
	return finish_locked(ch, true, err);
}

int vb_channel_try_finish(struct vb_channel *ch, struct vb_error *err)
{
	return finish_locked(ch, false, err);
}

/*
 * The peer closes and waits for our confirmation, then it disconnects. Going
 * away before would take the confirmation along. It cannot take long.
 */
static void await_disconnect(struct vb_channel *ch)
{
	uint64_t deadline = vb__now_ns() + vb__ms(ch->settings.peer_timeout_ms);

	while (ch->ep->state == VB__EP_UP && vb__now_ns() < deadline) {
		vb__channel_progress(ch);
		if (vb__ep_arm(ch->ep) == 0)
			vb__waiter_sleep(ch->ep->wait_fd, deadline);
	}
}

/* What we have sent last must be on its way before the endpoint goes. */
static void await_sent(struct vb_channel *ch)
{
	struct vb__wait wait = { .spin_until_ns = 0 };

	while (!ch->failure.code &&
	       (ch->done < ch->posted || ch->end_to_confirm || ch->control_busy))
		vb__channel_wait(ch, &wait, VB__NEWS_SENT);
}

static int say_farewell(struct vb_channel *ch, struct vb_error *err)
{
	int rc = finish(ch, true, true, err);

	if (rc && !ch->peer_closing)
		return rc;
	await_sent(ch);
	if (ch->peer_closing && !is_finished(ch, true))
		await_disconnect(ch);
	return rc;
}

int vb_channel_close(struct vb_channel *ch, struct vb_error *err)
{
	struct vb_error local = { .code = VB_OK };
	int rc;

	if (!ch)
		return 0;
	err = err ? err : &local;
	vb__error_clear(err);
	pthread_mutex_lock(&ch->lock);
	rc = say_farewell(ch, err);
	pthread_mutex_unlock(&ch->lock);
	vb__channel_destroy(ch);
	return rc;
}

void vb_channel_abort(struct vb_channel *ch)
{
	if (ch)
		vb__channel_destroy(ch);
}
