/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The far side of a copy: takes orders and carries them out, one after the other.
 */
#include "copy/copy_server.h"

#include <poll.h>
#include <unistd.h>

#include "common/event.h"
#include "common/exit_code.h"
#include "common/interrupt.h"
#include "copy/duty.h"
#include "copy/glance.h"
#include "remote/servant.h"

struct server {
	struct servant servant;
	struct tunnel_slot slot;
	struct glance glance;
	atomic_bool busy; /* with files: it must come to an end by itself */

	/* Under the servant's lock. */
	struct order next;
	bool has_next;

	const struct order *order; /* under way */
};

/* ---- What the client says; by the link's thread ---- */

static bool hear_order(struct server *server, const struct frame *frame)
{
	struct servant *servant = &server->servant;
	int whole = servant_hear_order(servant, frame, ORDER_MAX);
	bool good;

	if (whole <= 0)
		return whole == 0;
	/* A late word about the order before this one. */
	event_clear(servant->stop);
	pthread_mutex_lock(&servant->lock);
	good = !server->has_next;
	if (good && !order_unpack(&server->next, servant->coming.bytes, servant->coming.len)) {
		order_free(&server->next);
		good = false;
	}
	server->has_next |= good;
	pthread_mutex_unlock(&servant->lock);
	event_raise(servant->news);
	servant_forget_order(servant);
	return good;
}

static bool understand(struct server *server, const struct frame *frame)
{
	switch (frame->kind) {
	case FRAME_ORDER_PART:
	case FRAME_ORDER:
		return hear_order(server, frame);
	case FRAME_STOP:
		event_raise(server->servant.stop);
		return true;
	case FRAME_OPEN:
	case FRAME_DATA:
	case FRAME_CREDIT:
	case FRAME_SHUT:
	case FRAME_ABORT:
		tunnel_slot_hear(&server->slot, frame);
		return true;
	default:
		return false;
	}
}

static void heard(void *arg, const struct frame *frame)
{
	struct server *server = arg;

	/* A library that is being loaded need not be waited for. */
	if (frame->kind == FRAME_NONE && !atomic_load(&server->busy))
		_exit(EXIT_OK);
	if (frame->kind == FRAME_NONE)
		servant_end(&server->servant);
	else if (!understand(server, frame))
		servant_break(&server->servant);
}

/* ---- What it is told ---- */

static void invite(void *arg, const struct invitation *invitation)
{
	struct server *server = arg;
	struct pack pack = { 0 };

	invitation_pack(&pack, invitation);
	link_send_pack(&server->servant.link, FRAME_INVITATION, &pack);
}

/* Who connects tells of it; when that is not the client, it is us. */
static void say(void *arg, const char *text)
{
	struct server *server = arg;

	if (server->order->verbosity >= 1)
		servant_note(&server->servant, VB_LOG_INFO, text);
}

static void send_glimpse(void *arg, const struct glimpse *seen)
{
	struct server *server = arg;
	struct pack pack = { 0 };

	glimpse_pack(&pack, seen);
	link_send_pack(&server->servant.link, FRAME_GLIMPSE, &pack);
}

/* From now on the transfer will tell. */
static void begin_work(void *arg)
{
	struct server *server = arg;

	atomic_store(&server->busy, true);
	glance_end(&server->glance);
}

static void log_line(void *arg, enum vb_log_level level, const char *line)
{
	struct server *server = arg;

	servant_note(&server->servant, level, line);
}

static void send_event(void *arg, const struct vb_tree_event *event)
{
	struct server *server = arg;
	struct pack pack = { 0 };

	event_pack(&pack, event);
	link_send_pack(&server->servant.link, FRAME_EVENT, &pack);
}

static void tell_event(void *arg, const struct vb_tree_event *event)
{
	const struct server *server = arg;

	if (server->order->tells)
		send_event(arg, event);
}

static void tell_progress(void *arg, const struct vb_progress *progress)
{
	struct server *server = arg;
	struct pack pack = { 0 };

	if (!server->order->tells)
		return;
	progress_pack(&pack, progress);
	link_send_pack(&server->servant.link, FRAME_PROGRESS, &pack);
}

/* ---- Orders ---- */

static void carry_out(struct server *server, struct order *order)
{
	const struct duty duty = {
		.order = order,
		.stop_fd = server->servant.stop_fd,
		.fd = -1,
		.link = &server->servant.link,
		.slot = &server->slot,
		.arg = server,
		.invite = invite,
		.say = say,
		.begins = begin_work,
		.event = tell_event,
		.missing = send_event,
		.progress = tell_progress,
		.log = log_line,
	};
	struct pack pack = { 0 };
	struct ending ending;

	/* Those of a sender elsewhere mean its home, if any, not ours. */
	for (size_t i = 0; order->role != ROLE_RECEIVE && i < order->paths.count; i++)
		servant_expand_home(&order->paths.item[i]);
	servant_expand_home(&order->target);
	server->order = order;
	if (order->glances)
		glance_begin(&server->glance, order, send_glimpse, server);
	duty_run(&duty, &ending);
	glance_end(&server->glance);
	ending_pack(&pack, &ending);
	link_send_pack(&server->servant.link, FRAME_ENDING, &pack);
	atomic_store(&server->busy, false);
}

static bool take_order(struct server *server, struct order *order, bool *gone)
{
	bool found;

	pthread_mutex_lock(&server->servant.lock);
	*gone = server->servant.gone;
	found = server->has_next;
	if (found)
		*order = server->next;
	server->has_next = false;
	pthread_mutex_unlock(&server->servant.lock);
	return found;
}

/* Waits for the next one; false when there will be none. */
static bool next_order(struct server *server, struct order *order)
{
	struct pollfd fds[] = { { .fd = server->servant.news, .events = POLLIN },
				{ .fd = interrupt_fd(), .events = POLLIN } };
	bool gone = false;

	while (!interrupt_seen()) {
		event_clear(server->servant.news);
		if (take_order(server, order, &gone))
			return true;
		if (gone)
			break;
		poll(fds, 2, -1);
	}
	return false;
}

int copy_server_run(void)
{
	static struct server server = { .slot.lock = PTHREAD_MUTEX_INITIALIZER };
	int code = servant_open(&server.servant, RDCP);
	struct order order;

	if (code != EXIT_OK)
		return code;
	if (servant_listen(&server.servant, heard, &server) != 0)
		return EXIT_START;
	while (next_order(&server, &order)) {
		carry_out(&server, &order);
		order_free(&order);
	}
	/* Threads may still be in libraries that exit(3) would take down under them. */
	_exit(interrupt_seen() ? EXIT_INTERRUPTED : EXIT_OK);
}
