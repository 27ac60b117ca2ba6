/* SPDX-License-Identifier: Apache-2.0 */
/* The answering side. It serves anybody, keeps nothing, and waits for nobody: who does not take an answer is let go. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <verbatim/server.h>

#include "common/console.h"
#include "common/interrupt.h"
#include "common/json.h"
#include "common/outcome.h"
#include "info/trial.h"

#define CLIENTS_MAX 64
#define RECEIVES 12 /* of TRIAL_LARGEST bytes: pinned, so few */
#define PEER_TIMEOUT_MS 4000u
#define EVENTS_A_TURN 64

static int answer(const struct vb_server_event *event)
{
	static uint8_t zeros[TRIAL_LARGEST];
	uint32_t kind, number;
	size_t len = TRIAL_HEAD;

	if (event->len < TRIAL_HEAD)
		return VB_ERR_PROTOCOL;
	trial_head_get(event->message, &kind, &number);
	if (kind == TRIAL_SWALLOW)
		return 0;
	if (kind == TRIAL_GIVE)
		len = number;
	else if (kind != TRIAL_ASK)
		return VB_ERR_PROTOCOL;
	if (len > sizeof(zeros) || len > vb_channel_max_message(event->client))
		return VB_ERR_PROTOCOL;
	return vb_channel_try_send(event->client, kind == TRIAL_ASK ? event->message : zeros, len,
				   NULL);
}

/* A turn, after which it is the other fabric's. True: there may be more. */
static bool serve_some(struct vb_server *server)
{
	struct vb_server_event event;
	struct vb_error err;
	int rc = 0;

	for (unsigned i = 0; i < EVENTS_A_TURN; i++) {
		rc = vb_server_wait(server, 0, &event, &err);
		if (rc)
			break;
		if (event.kind == VB_CLIENT_JOINED)
			console_note("%s joined over %s", vb_channel_peer(event.client),
				     vb_channel_fabric(event.client));
		if (event.kind == VB_CLIENT_MESSAGE && answer(&event) != 0)
			vb_server_close_client(server, event.client, NULL);
	}
	if (rc && rc != VB_ERR_AGAIN)
		console_warning("%s", err.cause);
	return rc == 0;
}

static struct vb_server *open_server(enum vb_fabric fabric, const char *bind, const char *port,
				     const struct vb_options *options, struct vb_error *err)
{
	struct vb_server_options own = {
		.connection = *options,
		.max_clients = CLIENTS_MAX,
		.shared_receives = RECEIVES,
	};
	struct vb_server *server = NULL;

	own.connection.fabric = fabric;
	own.connection.log = console_log;
	own.connection.max_message_bytes = TRIAL_LARGEST;
	own.connection.peer_timeout_ms = PEER_TIMEOUT_MS;
	return vb_server_open(bind, port, &own, &server, err) == 0 ? server : NULL;
}

static void tell_json(const struct vb_server *server, const char *fabric)
{
	struct json json;
	char *line;

	json_begin(&json);
	json_text(&json, "event", "listening");
	json_text(&json, "fabric", fabric);
	json_number(&json, "port", (uint64_t)vb_server_port(server));
	json_text(&json, "description", vb_server_description(server));
	line = json_end(&json);
	if (line)
		console_write(line);
	free(line);
}

static void tell(const struct vb_server *server, const char *fabric, const struct vb_error *err,
		 bool as_json)
{
	char line[VB_ERROR_LINE_MAX + 64];

	if (!server) {
		console_warning("%s is not served: %s", fabric, err->cause);
		return;
	}
	if (as_json) {
		tell_json(server, fabric);
		return;
	}
	snprintf(line, sizeof(line), "rdinfo: listening on port %d for %s: %.300s\n",
		 vb_server_port(server), fabric, vb_server_description(server));
	console_write(line);
}

static void serve_until_interrupted(struct vb_server *servers[2])
{
	while (!interrupt_seen()) {
		struct pollfd fds[3] = { { .fd = interrupt_fd(), .events = POLLIN } };
		bool more = false;

		for (unsigned i = 0; i < 2; i++) {
			if (servers[i])
				more |= serve_some(servers[i]);
			fds[1 + i] = (struct pollfd){
				.fd = servers[i] ? vb_server_fd(servers[i]) : -1,
				.events = POLLIN,
			};
		}
		poll(fds, 3, more ? 0 : -1);
	}
}

int trial_serve(const char *bind, const char *port, const struct vb_options *options, bool as_json)
{
	static const char *const names[] = { "verbs", "ofi" };
	static const enum vb_fabric ids[] = { VB_FABRIC_VERBS, VB_FABRIC_OFI };
	struct vb_server *servers[2] = { NULL };
	struct vb_error err[2] = { { .code = VB_OK } };
	char line[VB_ERROR_LINE_MAX], next[8];

	if (trial_next_port(port, next) != 0 || interrupt_open(&err[0]) != 0) {
		console_error("cannot serve at port %s: %s", port, err[0].cause);
		return -1;
	}
	for (unsigned i = 0; i < 2; i++) {
		if (options->fabric && options->fabric != ids[i])
			continue;
		servers[i] = open_server(ids[i], bind, i ? next : port, options, &err[i]);
		tell(servers[i], names[i], &err[i], as_json);
	}
	if (!servers[0] && !servers[1]) {
		console_error("%s", outcome_error_line(&err[err[1].code ? 1 : 0], line));
		return -1;
	}
	serve_until_interrupted(servers);
	for (unsigned i = 0; i < 2; i++)
		vb_server_close(servers[i]);
	return 0;
}
