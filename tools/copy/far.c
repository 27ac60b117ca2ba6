/* SPDX-License-Identifier: Apache-2.0 */
/* The far side. It may be hostile: whatever it says is checked, and printed only escaped. */
#include "copy/far.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/console.h"
#include "common/trouble.h"

#define LEAVING_MS 2000

static void tell(const struct far *far)
{
	const uint64_t one = 1;
	ssize_t n = write(far->news, &one, sizeof(one));

	(void)n; /* it cannot be full */
}

/* ---- What it says; by the link's thread ---- */

static bool hear_invitation(struct far *far, struct unpack *unpack)
{
	struct invitation invitation;

	invitation_unpack(unpack, &invitation);
	if (!unpack_end(unpack))
		return false;
	pthread_mutex_lock(&far->lock);
	far->invitation = invitation;
	far->invited = true;
	pthread_mutex_unlock(&far->lock);
	tell(far);
	return true;
}

static bool hear_ending(struct far *far, struct unpack *unpack)
{
	struct ending ending = { .phase = PHASE_CHECK };

	ending_unpack(unpack, &ending);
	if (!unpack_end(unpack))
		return false;
	pthread_mutex_lock(&far->lock);
	far->ending = ending;
	far->ended = true;
	pthread_mutex_unlock(&far->lock);
	tell(far);
	return true;
}

static bool hear_note(struct far *far, struct unpack *unpack)
{
	struct note note;

	note_unpack(unpack, &note);
	if (!unpack_end(unpack))
		return false;
	if (note.level == VB_LOG_WARNING)
		console_warning("%s: %s", far->host, note.text);
	else
		console_note("%s: %s", far->host, note.text);
	return true;
}

static bool hear_event(struct far *far, struct unpack *unpack)
{
	struct happening happening = { .event = { .path = "" } };

	event_unpack(unpack, &happening);
	if (!unpack_end(unpack))
		return false;
	listing_event(far->listing, &happening.event);
	return true;
}

static bool hear_progress(struct far *far, struct unpack *unpack)
{
	struct vb_progress progress = { 0 };

	progress_unpack(unpack, &progress);
	if (!unpack_end(unpack))
		return false;
	pthread_mutex_lock(&far->lock);
	far->moved = true;
	pthread_mutex_unlock(&far->lock);
	listing_progress(far->listing, &progress);
	return true;
}

/* The other end of a tunnel may be here, or further on. */
static void hear_stream(struct far *far, const struct frame *frame)
{
	if (far->partner)
		link_send(&far->partner->link, frame->kind, frame->payload, frame->len);
	else
		tunnel_slot_hear(&far->slot, frame);
}

static bool understand(struct far *far, const struct frame *frame)
{
	struct unpack unpack = unpack_begin(frame->payload, frame->len);

	switch (frame->kind) {
	case FRAME_INVITATION:
		return hear_invitation(far, &unpack);
	case FRAME_NOTE:
		return hear_note(far, &unpack);
	case FRAME_EVENT:
		return hear_event(far, &unpack);
	case FRAME_PROGRESS:
		return hear_progress(far, &unpack);
	case FRAME_ENDING:
		return hear_ending(far, &unpack);
	case FRAME_OPEN:
	case FRAME_DATA:
	case FRAME_CREDIT:
	case FRAME_SHUT:
	case FRAME_ABORT:
		hear_stream(far, frame);
		return true;
	default:
		return false;
	}
}

static void heard(void *arg, const struct frame *frame)
{
	struct far *far = arg;

	bool wrong = frame->kind != FRAME_NONE || atomic_load(&far->link.senseless);

	if (frame->kind != FRAME_NONE && understand(far, frame))
		return;
	if (wrong)
		link_break(&far->link);
	pthread_mutex_lock(&far->lock);
	far->gone = true;
	far->wrong |= wrong;
	pthread_mutex_unlock(&far->lock);
	tunnel_slot_cut(&far->slot);
	tell(far);
}

/* ---- What the client wants ---- */

int far_open(struct far *far, const struct arguments *arguments, const char *host,
	     struct listing *listing, int news, struct vb_error *err, enum exit_code *code)
{
	int result;

	*far = (struct far){ .listing = listing, .news = news };
	far->link.in = far->link.out = far->link.quit = -1;
	pthread_mutex_init(&far->lock, NULL);
	pthread_mutex_init(&far->slot.lock, NULL);
	far->host = strdup(host);
	if (!far->host)
		return trouble_say(err, VB_ERR_NOMEM, "out of memory");
	result = launch_start(&far->launch, arguments, host, err, code);
	if (result != 0)
		return result;
	result = link_open(&far->link, far->launch.in, far->launch.out);
	far->launch.in = far->launch.out = -1;
	if (result != 0 || link_listen(&far->link, heard, far) != 0) {
		*code = EXIT_START;
		return trouble_errno(err, VB_ERR_SYSTEM, errno, "start a thread for", host);
	}
	return 0;
}

void far_order(struct far *far, const struct order *order)
{
	struct pack pack = { 0 };
	size_t sent = 0;

	pthread_mutex_lock(&far->lock);
	far->invited = far->ended = far->moved = false;
	pthread_mutex_unlock(&far->lock);
	order_pack(&pack, order);
	while (!pack.failed && pack.len - sent > FRAME_MAX) {
		link_send(&far->link, FRAME_ORDER_PART, pack.bytes + sent, FRAME_MAX);
		sent += FRAME_MAX;
	}
	if (!pack.failed)
		link_send(&far->link, FRAME_ORDER, pack.bytes + sent, pack.len - sent);
	else
		link_break(&far->link);
	if (pack.bytes)
		explicit_bzero(pack.bytes, pack.len);
	free(pack.bytes);
}

void far_stop(struct far *far)
{
	link_send(&far->link, FRAME_STOP, NULL, 0);
}

bool far_is_gone(struct far *far)
{
	bool gone;

	pthread_mutex_lock(&far->lock);
	gone = far->gone;
	pthread_mutex_unlock(&far->lock);
	return gone;
}

bool far_is_wrong(struct far *far)
{
	bool wrong;

	pthread_mutex_lock(&far->lock);
	wrong = far->wrong;
	pthread_mutex_unlock(&far->lock);
	return wrong;
}

bool far_has_moved(struct far *far)
{
	bool moved;

	pthread_mutex_lock(&far->lock);
	moved = far->moved;
	pthread_mutex_unlock(&far->lock);
	return moved;
}

bool far_has_invited(struct far *far, struct invitation *invitation)
{
	bool invited;

	pthread_mutex_lock(&far->lock);
	invited = far->invited;
	if (invited)
		*invitation = far->invitation;
	pthread_mutex_unlock(&far->lock);
	return invited;
}

bool far_has_ended(struct far *far, struct ending *ending)
{
	bool ended;

	pthread_mutex_lock(&far->lock);
	ended = far->ended;
	if (ended)
		*ending = far->ending;
	pthread_mutex_unlock(&far->lock);
	return ended;
}

int far_close(struct far *far, bool at_once)
{
	int status;

	if (!far->host)
		return -1;
	if (at_once)
		link_break(&far->link);
	if (far->link.quit >= 0)
		link_hang_up(&far->link);
	/* Its output is read until it has ended: it might wait for us otherwise. */
	status = launch_end(&far->launch, at_once ? 0 : LEAVING_MS);
	if (far->link.quit >= 0)
		link_close(&far->link);
	free(far->host);
	explicit_bzero(&far->invitation, sizeof(far->invitation));
	far->host = NULL;
	return status;
}
