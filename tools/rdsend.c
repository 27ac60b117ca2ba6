/* SPDX-License-Identifier: Apache-2.0 */
/* rdsend: sends stdin, a file or a command's output to rdrecv. */
#include <unistd.h>
#include <verbatim/transfer.h>

#include "common/command.h"
#include "common/console.h"
#include "common/interrupt.h"
#include "common/setup.h"

static int send_command(struct vb_session *session, char *const *argv, struct outcome *outcome)
{
	struct command command;
	struct vb_error start_err = { .code = VB_OK };
	struct vb_input input = { .at_end = command_drained,
				  .at_end_arg = &command,
				  .failure = &start_err };
	int result;

	command_start(&command, argv, COMMAND_READ, NULL, &start_err);
	input.fd = command.from;
	result = vb_session_send(session, &input, &outcome->report, &outcome->err);
	command_finish(&command, result, &outcome->err);
	return result;
}

static int send_data(struct vb_session *session, const struct arguments *a, struct outcome *outcome)
{
	struct vb_input input = { .path = a->file, .fd = STDIN_FILENO };

	if (a->command)
		return send_command(session, a->command, outcome);
	return vb_session_send(session, &input, &outcome->report, &outcome->err);
}

static void transfer(const struct arguments *a, struct key *key, struct progress *progress,
		     struct outcome *outcome)
{
	struct vb_session *session = NULL;
	int result;

	outcome->phase = PHASE_CONNECT;
	result = vb_session_connect(a->host, a->port, &a->options, &session, &outcome->err);
	key_wipe(key);
	if (result != 0)
		return;
	outcome->phase = PHASE_TRANSFER;
	outcome_describe(outcome, session);
	progress_begin(progress, a->file || a->command ? -1 : STDIN_FILENO);
	result = send_data(session, a, outcome);
	progress_end(progress, result == 0 ? &outcome->report : NULL);
	outcome_describe(outcome, session);
	vb_session_close(session);
}

int main(int argc, char **argv)
{
	static struct key key;
	static struct progress progress;
	struct outcome outcome = { .phase = PHASE_CHECK };
	struct arguments arguments;
	int code;

	console_open("rdsend");
	code = arguments_parse(&arguments, RDSEND, key_from_environment(&key), argc, argv);
	if (code < 0) {
		if (setup(&arguments, &key, &progress, &outcome) == 0)
			transfer(&arguments, &key, &progress, &outcome);
		code = (int)outcome_tell(&outcome);
	}
	key_wipe(&key);
	interrupt_leave(code);
	return code;
}
