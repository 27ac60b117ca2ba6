/* SPDX-License-Identifier: Apache-2.0 */
/* A channel's beginning and end: memory, receives, limits; and taking it all down. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "channel/channel_state.h"
#include "core/condition.h"

/* Beyond those of the credits: one ACCESSING, where the fabric has it. */
#define RESERVE (VB__CREDIT_RESERVE + 1u)
#define CONTROL_SLOTS RESERVE
#define PIECES 8u

struct vb__ep_attr vb__channel_ep_attr(const struct vb__settings *settings)
{
	return (struct vb__ep_attr){
		/* One slot more for the outbox. */
		.send_depth = settings->depth + 1 + CONTROL_SLOTS + VB__ACCESS_DEPTH,
		.recv_depth = settings->depth + RESERVE,
		.sge = PIECES,
		.settings = settings,
	};
}

/* What the device granted may be less than what was wished for. */
static unsigned possible_depth(const struct vb__ep *ep, unsigned wished)
{
	unsigned by_sends = ep->send_depth - 1 - CONTROL_SLOTS - 1; /* one for an access */
	unsigned by_receives = ep->recv_depth - RESERVE;
	unsigned depth = by_sends < by_receives ? by_sends : by_receives;

	return depth < wished ? depth : wished;
}

static int check_endpoint(const struct vb__ep *ep, struct vb_error *err)
{
	if (ep->send_depth > 2 + CONTROL_SLOTS && ep->recv_depth > RESERVE && ep->sge >= 2 &&
	    ep->max_bytes > VB__PACKET_TRAILER)
		return 0;
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_UNSUPPORTED,
				     .operation = "use",
				     .object = ep->device,
				     .cause = "its queues are too short for a channel",
			     });
}

int vb__channel_open_sends(struct vb_channel *ch, struct vb_error *err)
{
	unsigned slots = ch->credits.depth + (ch->ep->caps & VB__CAP_SLOW_POST ? 1 : 0);
	size_t bytes = ch->settings.traffic == VB__TRAFFIC_IN ? 0 : ch->max_message;

	return ch->tx.slot ? 0 : vb__slots_open(&ch->tx, ch->ep, slots, bytes, err);
}

static int open_memory(struct vb_channel *ch, unsigned depth, struct vb_error *err)
{
	size_t in = ch->settings.traffic == VB__TRAFFIC_OUT ? 0 : ch->max_message;
	unsigned reserve = ch->ep->caps & VB__CAP_ATTENDED ? RESERVE : VB__CREDIT_RESERVE;
	int rc;

	ch->inbox.ring = calloc(depth, sizeof(*ch->inbox.ring));
	ch->notices.ring = calloc(depth, sizeof(*ch->notices.ring));
	if (!ch->inbox.ring || !ch->notices.ring)
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	rc = vb__slots_open(&ch->control, ch->ep, CONTROL_SLOTS, 0, err);
	if (rc || ch->ep->pool)
		return rc;
	/* One more than is posted, for the message that the user looks at. */
	rc = vb__slots_open(&ch->rx, ch->ep, depth + reserve + 1, in, err);
	return rc ? rc : vb__channel_open_sends(ch, err);
}

/*
 * What is received into is next to be read: in few slots, which are used again and again, it is still in the
 * CPU's cache. So where messages can wait, only so many bytes are posted; but only for a transfer, to which
 * what waits is worth nothing when the peer is lost. Others get all that had arrived.
 */
#define POSTED_BYTES (1u << 20)
#define POSTED_LEAST 2u

static unsigned most_receives(const struct vb_channel *ch)
{
	size_t most;

	if (!(ch->ep->caps & VB__CAP_PATIENT) || ch->settings.traffic != VB__TRAFFIC_IN)
		return UINT_MAX;
	most = POSTED_BYTES / ch->rx.room;
	return most < POSTED_LEAST ? POSTED_LEAST : (unsigned)most;
}

static int post_receives(struct vb_channel *ch, struct vb_error *err)
{
	int rc = 0;

	ch->receives.most = most_receives(ch);

	for (unsigned i = 1; i < ch->rx.count && rc == 0; i++)
		rc = vb__packet_post_recv(ch, vb__slot_take(&ch->rx), err);
	return rc;
}

int vb__channel_create(struct vb__ep *ep, const struct vb__settings *settings,
		       struct vb_channel **channel, struct vb_error *err)
{
	struct vb_channel *ch = calloc(1, sizeof(*ch));
	unsigned depth;
	int rc;

	if (!ch) {
		vb__ep_close(ep);
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	}
	ch->ep = ep;
	ch->settings = *settings;
	ch->settings.given_up = NULL;
	ch->pass = -1;
	ch->loop.epoll = ch->loop.wake = -1;
	ch->posted = ch->done = ch->done_well = 1; /* tickets are positive, as handles are */
	ch->accesses.posted = ch->accesses.done = ch->accesses.done_well = 1;
	pthread_mutex_init(&ch->lock, NULL);
	vb__cond_init(&ch->changed);
	vb__cond_init(&ch->flusher.wanted);
	rc = check_endpoint(ep, err);
	if (rc)
		goto undo;
	ch->max_message = settings->max_message;
	if (ch->max_message > ep->max_bytes - VB__PACKET_TRAILER)
		ch->max_message = (uint32_t)(ep->max_bytes - VB__PACKET_TRAILER);
	depth = possible_depth(ep, settings->depth);
	ch->credits = vb__credits_of(depth);
	ch->accesses.limit = ep->send_depth - 1 - CONTROL_SLOTS - depth;
	if (ch->accesses.limit > VB__ACCESS_DEPTH)
		ch->accesses.limit = VB__ACCESS_DEPTH;
	rc = open_memory(ch, depth, err);
	if (rc == 0)
		rc = post_receives(ch, err);
	if (rc)
		goto undo;
	*channel = ch;
	return 0;
undo:
	vb__channel_destroy(ch);
	return rc;
}

struct vb__hello vb__channel_hello(const struct vb_channel *ch, enum vb__hello_kind kind)
{
	struct vb__hello hello = {
		.kind = kind,
		.version = VB__PROTOCOL_VERSION,
		.max_message = ch->max_message,
		.depth = (uint16_t)ch->credits.depth,
	};

	if (kind == VB__HELLO_OPEN)
		memcpy(hello.token, ch->settings.token, sizeof(hello.token));
	return hello;
}

void vb__channel_agree(struct vb_channel *ch, uint32_t max_message, unsigned depth)
{
	ch->max_message = max_message;
	ch->credits = vb__credits_of(depth);
	if (ch->ep->caps & VB__CAP_CONNECTOR_FIRST)
		vb__credits_grant(&ch->credits);
}

void vb__channel_keep_silent(struct vb_channel *ch)
{
	if (!(ch->ep->caps & VB__CAP_CONNECTOR_FIRST))
		return;
	ch->silent = true;
	vb__credits_withhold(&ch->credits);
}

void vb__channel_destroy(struct vb_channel *ch)
{
	struct vb_region *region;

	vb__flusher_stop(ch);
	vb__loop_close(ch);
	if (ch->ep->pool)
		vb__inbox_empty(ch);
	/* The endpoint first: nothing may write into memory that is gone. */
	vb__ep_close(ch->ep);
	while ((region = ch->regions)) {
		ch->regions = region->next;
		vb__region_free(region);
	}
	vb__slots_close(&ch->rx);
	vb__slots_close(&ch->tx);
	vb__slots_close(&ch->control);
	free(ch->inbox.ring);
	free(ch->notices.ring);
	pthread_cond_destroy(&ch->flusher.wanted);
	pthread_cond_destroy(&ch->changed);
	pthread_mutex_destroy(&ch->lock);
	free(ch);
}
