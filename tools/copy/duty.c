/* SPDX-License-Identifier: Apache-2.0 */
/* Duties. Here and at the far side the same: only who is told differs. */
#include "copy/duty.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/setup.h"
#include "common/trouble.h"
#include "copy/listed.h"
#include "remote/meeting.h"

static struct vb_transfer_options options_of(const struct duty *duty)
{
	const struct order *order = duty->order;
	struct vb_transfer_options options = order->transfer;

	options.stop_fd = duty->stop_fd;
	options.progress = duty->progress;
	options.progress_arg = duty->arg;
	options.connection.log = duty->log;
	options.connection.log_arg = duty->arg;
	options.connection.log_level = setup_log_level(order->verbosity);
	options.connection.device = order->device && *order->device ? order->device : NULL;
	if (order->tunnelled) {
		options.connection.fabric = VB_FABRIC_OFI;
		options.connection.device = NULL;
		options.connection.family = 0;
		options.rails = 1;
	}
	return options;
}

/* ---- The transfer ---- */

/* What a file's transfer tells, as a tree's. */
static void report_stream(struct vb_tree_report *to, const struct vb_report *from)
{
	*to = (struct vb_tree_report){ .files = 1,
				       .bytes = from->bytes,
				       .sent_bytes = from->bytes - from->hole_bytes,
				       .elapsed_ns = from->elapsed_ns,
				       .moved_bytes = from->bytes - from->hole_bytes,
				       .wire_bytes = from->wire_bytes,
				       .pack_ns = from->pack_ns };
}

static void move_stream(const struct duty *duty, struct vb_session *session, struct ending *ending)
{
	const struct order *order = duty->order;
	bool sends = order->role == ROLE_SEND;
	const char *path = duty->fd >= 0 ? NULL : sends ? order->paths.item[0] : order->target;
	struct vb_input input = { .path = path, .fd = duty->fd };
	struct vb_output output = { .path = path, .fd = duty->fd };
	struct vb_report report = { 0 };

	if (sends)
		vb_session_send(session, &input, &report, &ending->err);
	else
		vb_session_receive(session, &output, &report, &ending->err);
	report_stream(&ending->report, &report);
}

/* A path that was asked for and is not there is a failure like others. */
static uint64_t count_missing(const struct duty *duty)
{
	const struct order *order = duty->order;
	uint64_t missing = 0;
	int dir;

	if (!order->listed.count)
		return 0;
	dir = open(order->paths.item[0], O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; dir >= 0 && i < order->listed.count; i++) {
		const char *path = order->listed.item[i];
		struct vb_error err = { .code = VB_OK };
		struct vb_tree_event event = { .happening = VB_TREE_FAILED,
					       .path = path,
					       .failure = &err };
		struct stat st;

		if (fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0)
			continue;
		trouble_errno(&err, VB_ERR_IO, errno, "open", path);
		if (duty->missing)
			duty->missing(duty->arg, &event);
		missing++;
	}
	if (dir >= 0)
		close(dir);
	return missing;
}

static void move_tree(const struct duty *duty, struct vb_session *session, struct ending *ending)
{
	const struct order *order = duty->order;
	struct vb_tree_options tree = order->tree;
	struct vb_transfer_options options = options_of(duty);
	struct list rules = { 0 };

	for (size_t i = 0; i < order->rules.count; i++)
		if (list_add(&rules, order->rules.item[i]) != 0)
			goto no_memory;
	if (order->listed.count && listed_rules(&rules, &order->listed) != 0)
		goto no_memory;
	tree.rules = list_texts(&rules);
	if (order->role == ROLE_RECEIVE)
		tree.asked = list_texts(&order->paths);
	tree.event = duty->event;
	tree.event_arg = duty->arg;
	if (order->role != ROLE_RECEIVE)
		ending->missing = count_missing(duty);
	if (order->role == ROLE_SEND)
		vb_session_send_tree(session, list_texts(&order->paths), order->paths.count, &tree,
				     &ending->report, &ending->err);
	else if (order->role == ROLE_RECEIVE)
		vb_session_receive_tree(session, order->target, &tree, &ending->report,
					&ending->err);
	else
		vb_tree_copy(list_texts(&order->paths), order->paths.count, order->target, &tree,
			     &options, &ending->report, &ending->err);
	list_free(&rules);
	return;
no_memory:
	list_free(&rules);
	trouble_say(&ending->err, VB_ERR_NOMEM, "out of memory");
}

static void begin(const struct duty *duty, struct ending *ending)
{
	ending->phase = PHASE_TRANSFER;
	if (duty->begins)
		duty->begins(duty->arg);
}

static void move(const struct duty *duty, struct vb_session *session, struct ending *ending)
{
	const char *cipher;

	begin(duty, ending);
	snprintf(ending->peer, sizeof(ending->peer), "%s", vb_session_peer(session));
	if (duty->order->stream)
		move_stream(duty, session, ending);
	else
		move_tree(duty, session, ending);
	snprintf(ending->description, sizeof(ending->description), "%s",
		 vb_session_description(session));
	cipher = vb_session_cipher(session);
	snprintf(ending->cipher, sizeof(ending->cipher), "%s", cipher ? cipher : "");
	vb_session_close(session);
}

/* ---- The side that waits ---- */

static void wait_and_move(const struct duty *duty, struct vb_door *door, struct ending *ending)
{
	struct vb_session *session = NULL;

	ending->phase = PHASE_WAIT;
	if (vb_door_wait(door, &session, &ending->err) == 0)
		move(duty, session, ending);
}

static void behind_door(const struct duty *duty, struct ending *ending)
{
	struct vb_transfer_options options = options_of(duty);
	struct invitation invitation = { 0 };
	struct tunnel *tunnel = NULL;
	struct vb_door *door = NULL;

	ending->phase = PHASE_LISTEN;
	if (meeting_open(&options, duty->order->tunnelled ? "127.0.0.1" : NULL, &door, &invitation,
			 &ending->err) == 0) {
		if (duty->order->tunnelled &&
		    tunnel_to(duty->link, invitation.port, &tunnel, &ending->err) == 0)
			tunnel_slot_set(duty->slot, tunnel);
		if (ending->err.code == VB_OK) {
			duty->invite(duty->arg, &invitation);
			wait_and_move(duty, door, ending);
		}
	}
	explicit_bzero(&invitation, sizeof(invitation));
	vb_door_close(door);
	if (tunnel)
		tunnel_slot_set(duty->slot, NULL);
	tunnel_close(tunnel);
}

/* ---- The side that connects ---- */

static void connect_by_tunnel(const struct duty *duty, uint16_t port, struct vb_session **session,
			      struct vb_error *err)
{
	struct vb_transfer_options options = options_of(duty);
	char text[8];

	snprintf(text, sizeof(text), "%u", port);
	options.key = duty->order->invitation.secret;
	options.key_bytes = SECRET_BYTES;
	options.key_is_random = true;
	vb_session_connect("127.0.0.1", text, &options, session, err);
}

static void to_door(const struct duty *duty, struct ending *ending)
{
	const struct meeting_listener listener = { .say = duty->say, .arg = duty->arg };
	struct vb_transfer_options options = options_of(duty);
	struct vb_session *session = NULL;
	struct tunnel *tunnel = NULL;
	uint16_t port = 0;

	ending->phase = PHASE_CONNECT;
	if (!duty->order->tunnelled) {
		meeting_connect(&options, &duty->order->invitation, &listener, &session,
				&ending->err);
	} else if (tunnel_listen(duty->link, &tunnel, &port, &ending->err) == 0) {
		tunnel_slot_set(duty->slot, tunnel);
		connect_by_tunnel(duty, port, &session, &ending->err);
	}
	if (session)
		move(duty, session, ending);
	if (tunnel)
		tunnel_slot_set(duty->slot, NULL);
	tunnel_close(tunnel);
}

void duty_run(const struct duty *duty, struct ending *ending)
{
	*ending = (struct ending){ .phase = PHASE_CHECK };
	if (duty->order->role == ROLE_COPY) {
		begin(duty, ending);
		move_tree(duty, NULL, ending);
	} else if (duty->order->connects) {
		to_door(duty, ending);
	} else {
		behind_door(duty, ending);
	}
}
