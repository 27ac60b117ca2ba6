/* SPDX-License-Identifier: Apache-2.0 */
/* The far side. It may be hostile: whatever it says is checked, and printed only escaped. */
#include "remote/far.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/console.h"
#include "common/event.h"
#include "common/trouble.h"
#include "remote/message.h"

#define LEAVING_MS 2000

void far_tell(const struct far *far)
{
	event_raise(far->news);
}

/* ---- What it says; by the link's thread ---- */

static bool hear_note(const struct far *far, const struct frame *frame)
{
	struct unpack unpack = unpack_begin(frame->payload, frame->len);
	struct note note;

	note_unpack(&unpack, &note);
	if (!unpack_end(&unpack))
		return false;
	if (note.level == VB_LOG_WARNING)
		console_warning("%s: %s", far->host, note.text);
	else
		console_note("%s: %s", far->host, note.text);
	return true;
}

static void heard(void *arg, const struct frame *frame)
{
	struct far *far = arg;
	bool wrong = frame->kind != FRAME_NONE || atomic_load(&far->link.senseless);

	if (frame->kind == FRAME_NOTE && hear_note(far, frame))
		return;
	if (frame->kind != FRAME_NONE && frame->kind != FRAME_NOTE &&
	    far->ears->hear(far->arg, frame))
		return;
	if (wrong)
		link_break(&far->link);
	pthread_mutex_lock(&far->lock);
	far->gone = true;
	far->wrong |= wrong;
	pthread_mutex_unlock(&far->lock);
	if (far->ears->gone)
		far->ears->gone(far->arg);
	far_tell(far);
}

/* ---- What the client wants ---- */

int far_open(struct far *far, const struct arguments *arguments, const char *host, int news,
	     const struct far_ears *ears, void *arg, struct vb_error *err, enum exit_code *code)
{
	int result;

	*far = (struct far){ .news = news, .ears = ears, .arg = arg };
	far->link.in = far->link.out = far->link.quit = -1;
	pthread_mutex_init(&far->lock, NULL);
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

void far_order(struct far *far, struct pack *pack)
{
	size_t sent = 0;

	while (!pack->failed && pack->len - sent > FRAME_MAX) {
		link_send(&far->link, FRAME_ORDER_PART, pack->bytes + sent, FRAME_MAX);
		sent += FRAME_MAX;
	}
	if (!pack->failed)
		link_send(&far->link, FRAME_ORDER, pack->bytes + sent, pack->len - sent);
	else
		link_break(&far->link);
	if (pack->bytes)
		explicit_bzero(pack->bytes, pack->len);
	free(pack->bytes);
	*pack = (struct pack){ 0 };
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
	far->host = NULL;
	return status;
}
