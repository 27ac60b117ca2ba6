/* SPDX-License-Identifier: Apache-2.0 */
/* rdrecv: waits for rdsend and writes what comes to stdout, a file or a command's input. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <verbatim/transfer.h>

#include "common/command.h"
#include "common/console.h"
#include "common/descriptors.h"
#include "common/interrupt.h"
#include "common/json.h"
#include "common/setup.h"

static int feed_command(struct vb_session *session, char *const *argv, struct outcome *outcome)
{
	struct command command;
	char name[sizeof(command.name) + 20];
	struct vb_error start_err = { .code = VB_OK };
	struct vb_output output = {
		.at_end = command_fed, .at_end_arg = &command, .name = name, .failure = &start_err
	};
	int result;

	command_bury_orphans(); /* of the transfer before */
	command_start(&command, argv, COMMAND_FEED, NULL, &start_err);
	output.fd = command.to;
	snprintf(name, sizeof(name), "the input of \"%s\"", command.name);
	result = vb_session_receive(session, &output, &outcome->report, &outcome->err);
	command_finish(&command, result, &outcome->err);
	return result;
}

static int receive_data(struct vb_session *session, const struct arguments *a,
			struct outcome *outcome)
{
	struct vb_output output = { .path = a->file, .fd = STDOUT_FILENO };

	if (a->command)
		return feed_command(session, a->command, outcome);
	return vb_session_receive(session, &output, &outcome->report, &outcome->err);
}

static void transfer(struct vb_door *door, const struct arguments *a, struct progress *progress,
		     struct outcome *outcome)
{
	struct vb_session *session = NULL;
	int result;

	*outcome = (struct outcome){ .phase = PHASE_WAIT };
	if (vb_door_wait(door, &session, &outcome->err) != 0)
		return;
	outcome->phase = PHASE_TRANSFER;
	outcome_describe(outcome, session);
	progress_begin(progress, a->file || a->command ? -1 : STDOUT_FILENO);
	result = receive_data(session, a, outcome);
	progress_end(progress, result == 0 ? &outcome->report : NULL);
	outcome_describe(outcome, session);
	vb_session_close(session);
}

static void say_json(const struct vb_door *door)
{
	struct json json;
	char *line;

	json_begin(&json);
	json_text(&json, "event", "listening");
	json_number(&json, "port", (uint64_t)vb_door_port(door));
	json_text(&json, "description", vb_door_description(door));
	line = json_end(&json);
	if (line)
		console_write(line);
	free(line);
}

/* A port that was picked for the user is told in any case: it cannot be known otherwise. */
static void say_where(const struct vb_door *door, const struct arguments *a)
{
	char line[64];

	if (console_as_json()) {
		say_json(door);
	} else if (console_verbosity() >= 1) {
		console_note("listening on port %d: %s", vb_door_port(door),
			     vb_door_description(door));
	} else if (strspn(a->port, "0") == strlen(a->port)) {
		snprintf(line, sizeof(line), "rdrecv: listening on port %d\n", vb_door_port(door));
		console_write(line);
	}
}

/*
 * Can another transfer do any better? Not after the wait has failed or an interrupt was told, or on a pipe
 * that nobody reads. But an interrupt that came right behind a transfer ends the next wait at once: that tells it.
 */
static bool can_go_on(const struct arguments *a, const struct outcome *outcome)
{
	struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };

	if (!a->keep_listening || outcome->phase == PHASE_WAIT ||
	    (outcome->err.code == VB_ERR_INTERRUPTED && interrupt_seen()))
		return false;
	return interrupt_seen() || a->file || a->command || poll(&out, 1, 0) <= 0 ||
	       !(out.revents & POLLERR);
}

static int serve(const struct arguments *a, struct key *key, struct progress *progress,
		 struct outcome *outcome)
{
	struct vb_door *door = NULL;
	int code;

	outcome->phase = PHASE_LISTEN;
	code = vb_door_open(a->bind, a->port, &a->options, &door, &outcome->err);
	key_wipe(key);
	if (code != 0)
		return (int)outcome_tell(outcome);
	say_where(door, a);
	do {
		transfer(door, a, progress, outcome);
		code = (int)outcome_tell(outcome);
	} while (can_go_on(a, outcome));
	vb_door_close(door);
	return code;
}

int main(int argc, char **argv)
{
	static struct key key;
	static struct progress progress;
	struct outcome outcome = { .phase = PHASE_CHECK };
	struct arguments arguments;
	int code;

	console_open("rdrecv");
	descriptors_raise();
	code = arguments_parse(&arguments, RDRECV, key_from_environment(&key), argc, argv);
	if (code < 0)
		code = setup(&arguments, &key, &progress, &outcome) == 0
			       ? serve(&arguments, &key, &progress, &outcome)
			       : (int)outcome_tell(&outcome);
	key_wipe(&key);
	interrupt_leave(code);
	return code;
}
