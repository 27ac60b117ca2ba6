/* SPDX-License-Identifier: Apache-2.0 */
/* Sending packets: trailers, credits that ride along, and the outbox of small messages. */
#include "channel/channel_state.h"

int vb__packet_post_recv(struct vb_channel *ch, struct vb__slot *slot, struct vb_error *err)
{
	struct vb__sge sge = { .addr = slot->bytes, .len = ch->rx.room, .mr = ch->rx.mr };
	struct vb__op op = { .kind = VB__OP_RECV, .id = slot->number, .sge = &sge, .sge_count = 1 };

	if (ch->receives.posted == ch->receives.most) {
		slot->next_free = ch->receives.later;
		ch->receives.later = slot;
		return 0;
	}
	ch->receives.posted++;
	return vb__ep_post(ch->ep, &op, err);
}

void vb__packet_recv_done(struct vb_channel *ch)
{
	struct vb__slot *slot = ch->receives.later;

	ch->receives.posted--;
	if (!slot || ch->ep->state == VB__EP_DOWN)
		return;
	ch->receives.later = slot->next_free;
	if (vb__packet_post_recv(ch, slot, &ch->failure) != 0)
		vb__channel_fail(ch, NULL);
}

int vb__packet_post(struct vb_channel *ch, struct vb__slot *slot, struct vb__packet packet,
		    const struct vb__sge *lent, unsigned count)
{
	bool control = packet.kind > VB__PACKET_END;
	bool bare = ch->ep->caps & VB__CAP_IMM && packet.kind == VB__PACKET_DATA && !packet.flags;
	struct vb__sge sge[VB__SGE_MAX];
	struct vb__op op = {
		.kind = bare ? VB__OP_SEND_IMM : VB__OP_SEND,
		.id = slot->number | (control ? VB__CONTROL_ID : 0),
		.sge = sge,
		.sge_count = count + 1,
	};

	packet.payload = (uint32_t)slot->filled;
	for (unsigned i = 0; i < count; i++) {
		sge[i] = lent[i];
		packet.payload += (uint32_t)lent[i].len;
	}
	sge[count] = (struct vb__sge){ .addr = slot->bytes,
				       .len = slot->filled + (bare ? 0 : VB__PACKET_TRAILER),
				       .mr = control ? ch->control.mr : ch->tx.mr };
	op.sge_count -= sge[count].len == 0;
	packet.credits = (uint16_t)vb__credits_pay(&ch->credits);
	packet.seen = ch->credits.seen;
	if (bare)
		op.imm = vb__packet_immediate(&packet);
	else
		vb__packet_encode(slot->bytes + slot->filled, &packet);
	if (control) {
		ch->control_busy++;
	} else {
		ch->credits.held--;
		slot->serial = ++ch->posted;
	}
	if (vb__ep_post(ch->ep, &op, &ch->failure) != 0)
		return vb__channel_fail(ch, NULL);
	ch->counters.packets_sent++;
	vb__flusher_see_off(ch);
	return 0;
}

/* Sends a packet that takes no credit; false if there is no slot for it now. */
static bool post_control(struct vb_channel *ch, enum vb__packet_kind kind)
{
	struct vb__slot *slot = vb__slot_take(&ch->control);

	return slot && vb__packet_post(ch, slot, (struct vb__packet){ .kind = kind }, NULL, 0) == 0;
}

void vb__packet_post_control(struct vb_channel *ch)
{
	unsigned owed;

	if (ch->ep->state != VB__EP_UP || ch->failure.code || ch->silent)
		return;
	if (ch->end_to_confirm && post_control(ch, VB__PACKET_END_SEEN))
		ch->end_to_confirm = false;
	if (ch->closing && !ch->closing_sent)
		ch->closing_sent = post_control(ch, VB__PACKET_CLOSING);
	/* After its END the peer has no use for credits. */
	owed = ch->credits.owed;
	if (!ch->peer_ended && vb__credits_due(&ch->credits, ch->blocked_senders > 0) &&
	    post_control(ch, VB__PACKET_CREDIT))
		vb__credits_sent(&ch->credits, owed);
}

bool vb__packet_post_accessing(struct vb_channel *ch)
{
	return post_control(ch, VB__PACKET_ACCESSING);
}

void vb__outbox_push(struct vb_channel *ch)
{
	struct vb__outbox *out = &ch->outbox;
	struct vb__slot *slot = out->slot;
	struct vb__packet packet = {
		.kind = VB__PACKET_DATA,
		.flags = VB__PACKET_FRAMED,
		.messages = out->messages,
	};

	if (!slot || !ch->credits.held || ch->failure.code)
		return;
	*out = (struct vb__outbox){ .slot = NULL };
	vb__packet_post(ch, slot, packet, NULL, 0);
}
