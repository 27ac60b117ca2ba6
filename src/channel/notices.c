/* SPDX-License-Identifier: Apache-2.0 */
/* Notices: numbers that come behind the bytes of a put. Each takes a credit until it is looked at. */
#include "channel/channel_state.h"

bool vb__notice_keep(struct vb_channel *ch, uint32_t number)
{
	struct vb__notices *n = &ch->notices;

	if (n->count + ch->inbox.count + ch->lent >= ch->credits.depth)
		return false;
	n->ring[(n->first + n->count++) % ch->credits.depth] = number;
	return true;
}

static void take(struct vb_channel *ch, uint32_t *number)
{
	struct vb__notices *n = &ch->notices;

	*number = n->ring[n->first];
	n->first = (n->first + 1) % ch->credits.depth;
	n->count--;
	ch->credits.owed++;
	vb__packet_post_control(ch);
}

static bool any(struct vb_channel *ch)
{
	if (!ch->notices.count)
		vb__channel_take_rest(ch);
	return ch->notices.count;
}

static int next(struct vb_channel *ch, uint32_t *number, bool blocking, struct vb_error *err)
{
	uint64_t deadline;
	int rc = 0;

	vb__error_clear(err);
	vb__channel_lock(ch);
	deadline = vb__channel_patience(ch, blocking);
	while (rc == 0 && !any(ch)) {
		rc = vb__channel_check_not_ended(ch, err);
		if (rc)
			break;
		vb__outbox_push(ch);
		rc = vb__channel_await(ch, VB__NEWS_RECEIVED, deadline, "wait for a notice of",
				       err);
	}
	if (rc == 0)
		take(ch, number);
	vb__channel_unlock(ch);
	return rc;
}

int vb_notice_wait(struct vb_channel *ch, uint32_t *number, struct vb_error *err)
{
	return next(ch, number, true, err);
}

int vb_notice_try(struct vb_channel *ch, uint32_t *number, struct vb_error *err)
{
	return next(ch, number, false, err);
}
