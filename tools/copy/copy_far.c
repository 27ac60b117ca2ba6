/* SPDX-License-Identifier: Apache-2.0 */
/* The far side of a copy. */
#include "copy/copy_far.h"

#include <string.h>

/* ---- What it says; by the link's thread ---- */

static bool hear_invitation(struct copy_far *side, struct unpack *unpack)
{
	struct invitation invitation;

	invitation_unpack(unpack, &invitation);
	if (!unpack_end(unpack))
		return false;
	pthread_mutex_lock(&side->far.lock);
	side->invitation = invitation;
	side->invited = true;
	pthread_mutex_unlock(&side->far.lock);
	far_tell(&side->far);
	return true;
}

static bool hear_glimpse(struct copy_far *side, struct unpack *unpack)
{
	struct glimpse glimpse;

	glimpse_unpack(unpack, &glimpse);
	if (!unpack_end(unpack))
		return false;
	pthread_mutex_lock(&side->far.lock);
	side->glimpse = glimpse;
	side->looked = true;
	pthread_mutex_unlock(&side->far.lock);
	far_tell(&side->far);
	return true;
}

static bool hear_ending(struct copy_far *side, struct unpack *unpack)
{
	struct ending ending = { .phase = PHASE_CHECK };

	ending_unpack(unpack, &ending);
	if (!unpack_end(unpack))
		return false;
	pthread_mutex_lock(&side->far.lock);
	side->ending = ending;
	side->ended = true;
	pthread_mutex_unlock(&side->far.lock);
	far_tell(&side->far);
	return true;
}

static bool hear_event(struct copy_far *side, struct unpack *unpack)
{
	struct happening happening = { .event = { .path = "" } };

	event_unpack(unpack, &happening);
	if (!unpack_end(unpack))
		return false;
	listing_event(side->listing, &happening.event);
	return true;
}

static bool hear_progress(struct copy_far *side, struct unpack *unpack)
{
	struct vb_progress progress = { 0 };

	progress_unpack(unpack, &progress);
	if (!unpack_end(unpack))
		return false;
	pthread_mutex_lock(&side->far.lock);
	side->moved = true;
	pthread_mutex_unlock(&side->far.lock);
	listing_progress(side->listing, &progress);
	return true;
}

/* The other end of a tunnel may be here, or further on. */
static void hear_stream(struct copy_far *side, const struct frame *frame)
{
	if (side->partner)
		link_send(&side->partner->far.link, frame->kind, frame->payload, frame->len);
	else
		tunnel_slot_hear(&side->slot, frame);
}

static bool hear(void *arg, const struct frame *frame)
{
	struct unpack unpack = unpack_begin(frame->payload, frame->len);
	struct copy_far *side = arg;

	switch (frame->kind) {
	case FRAME_INVITATION:
		return hear_invitation(side, &unpack);
	case FRAME_GLIMPSE:
		return hear_glimpse(side, &unpack);
	case FRAME_EVENT:
		return hear_event(side, &unpack);
	case FRAME_PROGRESS:
		return hear_progress(side, &unpack);
	case FRAME_ENDING:
		return hear_ending(side, &unpack);
	case FRAME_OPEN:
	case FRAME_DATA:
	case FRAME_CREDIT:
	case FRAME_SHUT:
	case FRAME_ABORT:
		hear_stream(side, frame);
		return true;
	default:
		return false;
	}
}

static void gone(void *arg)
{
	struct copy_far *side = arg;

	tunnel_slot_cut(&side->slot);
}

/* ---- What the client wants ---- */

int copy_far_open(struct copy_far *side, const struct arguments *arguments, const char *host,
		  struct listing *listing, int news, struct vb_error *err, enum exit_code *code)
{
	static const struct far_ears ears = { .hear = hear, .gone = gone };

	*side = (struct copy_far){ .listing = listing };
	pthread_mutex_init(&side->slot.lock, NULL);
	return far_open(&side->far, arguments, host, news, &ears, side, err, code);
}

void copy_far_order(struct copy_far *side, const struct order *order)
{
	struct pack pack = { 0 };

	pthread_mutex_lock(&side->far.lock);
	side->invited = side->ended = side->looked = side->moved = false;
	pthread_mutex_unlock(&side->far.lock);
	order_pack(&pack, order);
	far_order(&side->far, &pack);
}

bool copy_far_has_moved(struct copy_far *side)
{
	bool moved;

	pthread_mutex_lock(&side->far.lock);
	moved = side->moved;
	pthread_mutex_unlock(&side->far.lock);
	return moved;
}

bool copy_far_has_invited(struct copy_far *side, struct invitation *invitation)
{
	bool invited;

	pthread_mutex_lock(&side->far.lock);
	invited = side->invited;
	if (invited)
		*invitation = side->invitation;
	pthread_mutex_unlock(&side->far.lock);
	return invited;
}

bool copy_far_has_looked(struct copy_far *side, struct glimpse *glimpse)
{
	bool looked;

	pthread_mutex_lock(&side->far.lock);
	looked = side->looked;
	if (looked)
		*glimpse = side->glimpse;
	pthread_mutex_unlock(&side->far.lock);
	return looked;
}

bool copy_far_has_ended(struct copy_far *side, struct ending *ending)
{
	bool ended;

	pthread_mutex_lock(&side->far.lock);
	ended = side->ended;
	if (ended)
		*ending = side->ending;
	pthread_mutex_unlock(&side->far.lock);
	return ended;
}

int copy_far_close(struct copy_far *side, bool at_once)
{
	int status = far_close(&side->far, at_once);

	explicit_bzero(&side->invitation, sizeof(side->invitation));
	return status;
}
