/* SPDX-License-Identifier: Apache-2.0 */
/* A stage at another host. */
#include "pipe/far_stage.h"

#include <string.h>

/* ---- What it says; by the link's thread ---- */

static bool hear_doors(struct far_stage *stage, const struct frame *frame)
{
	struct stage_doors doors;

	if (!stage_doors_unpack(&doors, frame->payload, frame->len))
		return false;
	pthread_mutex_lock(&stage->far.lock);
	stage->doors = doors;
	stage->invited = true;
	pthread_mutex_unlock(&stage->far.lock);
	return true;
}

static bool hear_ending(struct far_stage *stage, const struct frame *frame)
{
	struct stage_ending ending;

	if (!stage_ending_unpack(&ending, frame->payload, frame->len))
		return false;
	pthread_mutex_lock(&stage->far.lock);
	stage->ending = ending;
	stage->ended = true;
	pthread_mutex_unlock(&stage->far.lock);
	return true;
}

static bool hear_progress(struct far_stage *stage, const struct frame *frame)
{
	struct unpack unpack = unpack_begin(frame->payload, frame->len);
	struct vb_progress progress = { 0 };

	progress_unpack(&unpack, &progress);
	if (!unpack_end(&unpack))
		return false;
	progress_show(stage->progress, &progress);
	return true;
}

static bool hear_ready(struct far_stage *stage)
{
	pthread_mutex_lock(&stage->far.lock);
	stage->ready = true;
	pthread_mutex_unlock(&stage->far.lock);
	return true;
}

static bool hear(void *arg, const struct frame *frame)
{
	struct far_stage *stage = arg;
	bool good = false;

	if (frame->kind == FRAME_INVITATION)
		good = hear_doors(stage, frame);
	else if (frame->kind == FRAME_READY)
		good = hear_ready(stage);
	else if (frame->kind == FRAME_ENDING)
		good = hear_ending(stage, frame);
	else if (frame->kind == FRAME_PROGRESS && stage->progress)
		return hear_progress(stage, frame);
	if (good)
		far_tell(&stage->far);
	return good;
}

/* ---- What the client wants ---- */

int far_stage_open(struct far_stage *stage, const struct arguments *arguments, int news,
		   struct vb_error *err, enum exit_code *code)
{
	static const struct far_ears ears = { .hear = hear };

	return far_open(&stage->far, arguments, stage->stage->host, news, &ears, stage, err, code);
}

void far_stage_order(struct far_stage *stage, const struct stage_order *order)
{
	struct pack pack = { 0 };

	stage_order_pack(&pack, order);
	far_order(&stage->far, &pack);
}

void far_stage_send_onward(struct far_stage *stage, const struct invitation *invitation)
{
	struct pack pack = { 0 };

	invitation_pack(&pack, invitation);
	link_send_pack(&stage->far.link, FRAME_ONWARD, &pack);
}

void far_stage_begin(struct far_stage *stage)
{
	link_send(&stage->far.link, FRAME_BEGIN, NULL, 0);
}

/* ---- What is known ---- */

static bool ask(struct far_stage *stage, const bool *what)
{
	bool answer;

	pthread_mutex_lock(&stage->far.lock);
	answer = *what;
	pthread_mutex_unlock(&stage->far.lock);
	return answer;
}

bool far_stage_has_invited(struct far_stage *stage)
{
	return ask(stage, &stage->invited);
}

bool far_stage_is_ready(struct far_stage *stage)
{
	return ask(stage, &stage->ready);
}

bool far_stage_has_ended(struct far_stage *stage)
{
	return ask(stage, &stage->ended);
}

bool far_stage_has_failed(struct far_stage *stage)
{
	bool gone = far_is_gone(&stage->far);

	/* It goes when it has ended: so first, whether it has gone. */
	return far_stage_has_ended(stage) ? stage->ending.err.code != VB_OK : gone;
}

void far_stage_close(struct far_stage *stage, bool at_once)
{
	far_close(&stage->far, at_once);
	explicit_bzero(&stage->doors, sizeof(stage->doors));
}
