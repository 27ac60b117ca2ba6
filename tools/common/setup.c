/* SPDX-License-Identifier: Apache-2.0 */
/* Setting up. Nothing here knows the peer. */
#include "common/setup.h"

#include <string.h>

#include "common/command.h"
#include "common/console.h"
#include "common/interrupt.h"
#include "common/preflight.h"

static int look_ahead(const struct arguments *a, struct vb_error *err)
{
	if (a->command)
		return command_check(a->command, err);
	if (!a->file)
		return 0;
	return a->tool == RDSEND ? preflight_source(a->file, err) : preflight_target(a->file, err);
}

/* One from VB_KEY is there already, unless -k is given, which goes first. */
static int get_key(const struct arguments *a, struct key *key, struct vb_error *err)
{
	if (a->key_file && strcmp(a->key_file, "-") == 0)
		return key_from_stdin(key, err);
	if (a->key_file)
		return key_from_file(key, a->key_file, err);
	if (a->key && strcmp(a->key, "-") == 0)
		return key_from_terminal(key, err);
	if (a->key)
		return key_from_argument(key, a->key, err);
	return key_check(key, err);
}

enum vb_log_level setup_log_level(int verbosity)
{
	return verbosity > 2 ? VB_LOG_DEBUG : verbosity == 2 ? VB_LOG_INFO : VB_LOG_WARNING;
}

int setup(struct arguments *a, struct key *key, struct progress *progress, struct outcome *outcome)
{
	struct vb_transfer_options *options = &a->options;
	int result;

	outcome->phase = PHASE_KEY;
	console_set(a->verbosity, a->json);
	result = interrupt_open(&outcome->err);
	/* What is typed on the command line is hidden before anything can take time. */
	if (result == 0 && a->key && strcmp(a->key, "-") != 0)
		result = get_key(a, key, &outcome->err);
	if (result == 0) {
		outcome->phase = PHASE_CHECK;
		result = look_ahead(a, &outcome->err);
	}
	if (result == 0 && !(a->key && key->len)) {
		outcome->phase = PHASE_KEY;
		result = get_key(a, key, &outcome->err);
	}
	options->key = key->bytes;
	options->key_bytes = key->len;
	options->stop_fd = interrupt_fd();
	options->progress = progress_show;
	options->progress_arg = progress;
	options->connection.log = console_log;
	options->connection.log_level = setup_log_level(a->verbosity);
	return result;
}
