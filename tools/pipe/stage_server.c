/* SPDX-License-Identifier: Apache-2.0 */
/* The server of a stage: between the client's frames and the work. */
#include "pipe/stage_server.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "common/event.h"
#include "common/exit_code.h"
#include "common/interrupt.h"
#include "pipe/stage_work.h"
#include "remote/servant.h"

struct stage_server {
	struct servant servant;
	int begin; /* an event */

	/* Under the servant's lock. */
	struct stage_order order;
	struct invitation onward;
	bool ordered, has_onward;
};

/* ---- What the client says; by the link's thread ---- */

static bool hear_order(struct stage_server *server, const struct frame *frame)
{
	struct servant *servant = &server->servant;
	int whole = servant_hear_order(servant, frame, STAGE_ORDER_MAX);
	struct stage_order order = { .kind = STAGE_COMMAND };
	bool good;

	if (whole <= 0)
		return whole == 0;
	good = !server->ordered &&
	       stage_order_unpack(&order, servant->coming.bytes, servant->coming.len);
	servant_forget_order(servant);
	if (!good) {
		stage_order_free(&order);
		return false;
	}
	pthread_mutex_lock(&servant->lock);
	server->order = order;
	server->ordered = true;
	pthread_mutex_unlock(&servant->lock);
	event_raise(servant->news);
	return true;
}

static bool hear_onward(struct stage_server *server, const struct frame *frame)
{
	struct unpack unpack = unpack_begin(frame->payload, frame->len);
	struct invitation invitation;

	invitation_unpack(&unpack, &invitation);
	if (!unpack_end(&unpack))
		return false;
	pthread_mutex_lock(&server->servant.lock);
	server->onward = invitation;
	server->has_onward = true;
	pthread_mutex_unlock(&server->servant.lock);
	event_raise(server->servant.news);
	return true;
}

static bool understand(struct stage_server *server, const struct frame *frame)
{
	switch (frame->kind) {
	case FRAME_ORDER_PART:
	case FRAME_ORDER:
		return hear_order(server, frame);
	case FRAME_ONWARD:
		return hear_onward(server, frame);
	case FRAME_BEGIN:
		event_raise(server->begin);
		return true;
	case FRAME_STOP:
		event_raise(server->servant.stop);
		return true;
	default:
		return false;
	}
}

static void heard(void *arg, const struct frame *frame)
{
	struct stage_server *server = arg;

	if (frame->kind == FRAME_NONE)
		servant_end(&server->servant);
	else if (!understand(server, frame))
		servant_break(&server->servant);
}

/* ---- What it is told ---- */

static void invite(void *arg, const struct stage_doors *doors)
{
	struct stage_server *server = arg;
	struct pack pack = { 0 };

	stage_doors_pack(&pack, doors);
	link_send_pack(&server->servant.link, FRAME_INVITATION, &pack);
}

static void ready(void *arg)
{
	struct stage_server *server = arg;

	link_send(&server->servant.link, FRAME_READY, NULL, 0);
}

static void say(void *arg, const char *text)
{
	struct stage_server *server = arg;

	if (server->order.verbosity >= 1)
		servant_note(&server->servant, VB_LOG_INFO, text);
}

static void log_line(void *arg, enum vb_log_level level, const char *line)
{
	struct stage_server *server = arg;

	servant_note(&server->servant, level, line);
}

static void tell_progress(void *arg, const struct vb_progress *progress)
{
	struct stage_server *server = arg;
	struct pack pack = { 0 };

	progress_pack(&pack, progress);
	link_send_pack(&server->servant.link, FRAME_PROGRESS, &pack);
}

/* ---- Waiting ---- */

/* Until the client has said it, which `said` is for; false if it shall stop. */
static bool await(struct stage_server *server, const bool *said)
{
	struct servant *servant = &server->servant;
	struct pollfd fds[] = { { .fd = servant->news, .events = POLLIN },
				{ .fd = servant->stop_fd, .events = POLLIN } };

	for (;;) {
		bool there;

		event_clear(servant->news);
		pthread_mutex_lock(&servant->lock);
		there = *said;
		pthread_mutex_unlock(&servant->lock);
		if (there || fds[1].revents)
			return there;
		poll(fds, 2, -1);
	}
}

static bool await_onward(void *arg, struct invitation *invitation)
{
	struct stage_server *server = arg;

	if (!await(server, &server->has_onward))
		return false;
	*invitation = server->onward;
	explicit_bzero(&server->onward, sizeof(server->onward));
	return true;
}

/* ---- All of it ---- */

static void carry_out(struct stage_server *server)
{
	const struct stage_client client = {
		.arg = server,
		.invite = invite,
		.await_onward = await_onward,
		.ready = ready,
		.say = say,
		.progress = tell_progress,
		.log = log_line,
		.stop_fd = server->servant.stop_fd,
		.begin_fd = server->begin,
	};
	struct stage_ending ending;
	struct pack pack = { 0 };

	/* A command's ~ is the shell's. */
	if (server->order.kind != STAGE_COMMAND)
		servant_expand_home(&server->order.text);
	stage_work(&server->order, &client, &ending);
	stage_ending_pack(&pack, &ending);
	link_send_pack(&server->servant.link, FRAME_ENDING, &pack);
}

int stage_server_run(void)
{
	static struct stage_server server;
	int code;

	interrupt_only_once(); /* a command must be ended first */
	code = servant_open(&server.servant, RDPIPE);
	if (code != EXIT_OK)
		return code;
	server.begin = event_open();
	if (server.begin < 0 || servant_listen(&server.servant, heard, &server) != 0)
		return EXIT_START;
	if (await(&server, &server.ordered))
		carry_out(&server);
	/* Threads may still be in libraries that exit(3) would take down under them. */
	_exit(interrupt_seen() ? EXIT_INTERRUPTED : EXIT_OK);
}
