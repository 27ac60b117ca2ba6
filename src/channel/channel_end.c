/* SPDX-License-Identifier: Apache-2.0 */
/* A channel's farewell: finish, close, abort. See docs/protocol.md, "The end". */
#include "channel/channel_state.h"
#include "channel/inside.h"

/* Sends the END behind everything else, once there is a credit for it. */
static void send_end(struct vb_channel *ch)
{
	struct vb__slot *slot;

	vb__outbox_push(ch);
	if (ch->end_sent || ch->outbox.slot || !ch->credits.held)
		return;
	if (vb__channel_open_sends(ch, &ch->failure) != 0) {
		vb__channel_fail(ch, NULL);
		return;
	}
	slot = vb__slot_take(&ch->tx);
	if (!slot)
		return;
	ch->end_sent = true;
	vb__packet_post(ch, slot, (struct vb__packet){ .kind = VB__PACKET_END }, NULL, 0);
}

/* Packets with messages that the peer has not taken, as far as it told. */
static unsigned untaken(const struct vb_channel *ch)
{
	unsigned end = ch->end_sent && !ch->end_seen ? 1 : 0;
	unsigned used = vb__credits_used(&ch->credits);

	return (used > end ? used - end : 0) + (ch->outbox.slot ? 1 : 0);
}

static int fail_untaken(struct vb_channel *ch, struct vb_error *err)
{
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_CLOSED,
				     .operation = "end the channel to",
				     .object = ch->ep->peer,
				     .cause = "the peer closed before it had taken all messages",
				     .hint = "look there why: it ended early, or did not want them",
			     });
}

/* Until the peer has confirmed our END, or receives no more. */
static int finish(struct vb_channel *ch, bool blocking, struct vb_error *err)
{
	uint64_t deadline = vb__channel_patience(ch, blocking);
	int rc;

	ch->ending = true;
	while (!ch->end_seen) {
		if (ch->peer_closing)
			return untaken(ch) ? fail_untaken(ch, err) : 0;
		if (ch->failure.code)
			return vb__fail_again(err, &ch->failure);
		send_end(ch);
		rc = vb__channel_await(ch, VB__NEWS_SENT | VB__NEWS_ROOM, deadline,
				       "end the channel to", err);
		if (rc)
			return rc;
	}
	return 0;
}

static int finish_locked(struct vb_channel *ch, bool blocking, struct vb_error *err)
{
	int rc;

	vb__error_clear(err);
	vb__channel_lock(ch);
	rc = finish(ch, blocking, err);
	vb__channel_unlock(ch);
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

/* What we have sent last must be with the peer, or on its way, before the endpoint goes. */
static bool is_sent(const struct vb_channel *ch)
{
	return ch->failure.code ||
	       (ch->done == ch->posted && !ch->end_to_confirm && !ch->control_busy &&
		ch->closing_sent && ch->accesses.done == ch->accesses.posted);
}

static void begin_farewell(struct vb_channel *ch)
{
	vb__inbox_release(ch);
	ch->closing = true;
	vb__packet_post_control(ch); /* the notice goes before the END */
}

static int say_farewell(struct vb_channel *ch, struct vb_error *err)
{
	int rc;

	begin_farewell(ch);
	rc = finish(ch, true, err);
	while (rc != VB_ERR_TIMEOUT && !is_sent(ch))
		vb__channel_wait(ch, VB__NEWS_SENT);
	return rc;
}

int vb__channel_try_close(struct vb_channel *ch, struct vb_error *err)
{
	int rc;

	vb__channel_lock(ch);
	begin_farewell(ch);
	rc = finish(ch, false, err);
	while (rc != VB_ERR_AGAIN && !is_sent(ch))
		if (vb__channel_would_block(ch, VB__NEWS_SENT))
			rc = VB_ERR_AGAIN;
	vb__channel_unlock(ch);
	return rc;
}

int vb_channel_try_close(struct vb_channel *ch, struct vb_error *err)
{
	int rc;

	vb__error_clear(err);
	if (!ch)
		return 0;
	rc = vb__channel_try_close(ch, err);
	if (rc == VB_ERR_AGAIN)
		vb__error_clear(err);
	else
		vb__channel_destroy(ch);
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
	vb__channel_lock(ch);
	rc = say_farewell(ch, err);
	vb__channel_unlock(ch);
	vb__channel_destroy(ch);
	return rc;
}

void vb_channel_abort(struct vb_channel *ch)
{
	if (ch)
		vb__channel_destroy(ch);
}
