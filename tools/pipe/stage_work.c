/* SPDX-License-Identifier: Apache-2.0 */
/* The work of one stage. */
#include "pipe/stage_work.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/command.h"
#include "common/event.h"
#include "common/interrupt.h"
#include "common/preflight.h"
#include "common/setup.h"
#include "common/trouble.h"
#include "pipe/side.h"

struct work {
	const struct stage_order *order;
	const struct stage_client *client;
	struct stage_ending *ending;
	struct side input, output;
	struct command command; /* its pid is -1 unless it was started */
	int file;		/* that is appended to, or -1 */
	int news;

	atomic_bool fed;    /* its input has ended, well */
	atomic_bool enough; /* of the client's stdin: what is left of it does not matter */
	atomic_bool doomed; /* it is being ended, so its exit status is no longer its own */
};

#define EXITING_MS 200 /* from closing its input to its end, for a command that fails */

/* ---- Looking ahead ---- */

/*
 * bash, where there is one, for >(...) and for a failure in the middle of a | b. Without its
 * start-up file, which Debian's reads where it takes itself for started by ssh: what that prints would
 * be data.
 */
static void shell_words(const char *argv[7], const char *text)
{
	const char *const bash[] = { "bash", "--norc", "-o", "pipefail", "-c", text, NULL };
	const char *const sh[] = { "/bin/sh", "-c", text, NULL };
	struct vb_error err;

	if (command_check((char *const[]){ (char *)"bash", NULL }, &err) == 0)
		memcpy(argv, bash, sizeof(bash));
	else
		memcpy(argv, sh, sizeof(sh));
}

static int look_ahead(const struct stage_order *order, struct vb_error *err)
{
	switch (order->kind) {
	case STAGE_READ:
		return preflight_source(order->text, err);
	case STAGE_WRITE:
	case STAGE_APPEND:
		return preflight_target(order->text, err);
	default:
		return 0;
	}
}

/* ---- Meeting ---- */

static void prepare_side(struct work *w, struct side *side, bool sends, bool tells)
{
	const struct stage_order *order = w->order;
	struct vb_transfer_options *options = &side->options;

	side_init(side);
	side->sends = sends;
	side->news = w->news;
	side->stop_fds[0] = w->client->stop_fd;
	side->listener = (struct meeting_listener){ .say = w->client->say, .arg = w->client->arg };
	*options = order->transfer;
	options->progress = tells ? w->client->progress : NULL;
	options->progress_arg = w->client->arg;
	options->connection.log = w->client->log;
	options->connection.log_arg = w->client->arg;
	options->connection.log_level = setup_log_level(order->verbosity);
	options->connection.device = order->device && *order->device ? order->device : NULL;
}

/* The doors that it has to have, and then all connections begin to be made. */
static int open_up(struct work *w, struct vb_error *err)
{
	const struct stage_order *order = w->order;
	struct stage_doors doors = { 0 };
	int result = 0;

	w->ending->phase = PHASE_LISTEN;
	if (order->input != FLOW_NONE)
		result = side_open_door(&w->input, &doors.input, err);
	if (result == 0 && order->output == FLOW_CLIENT)
		result = side_open_door(&w->output, &doors.output, err);
	if (result == 0)
		w->client->invite(w->client->arg, &doors);
	explicit_bzero(&doors, sizeof(doors));
	if (result == 0 && order->input != FLOW_NONE)
		result = side_start(&w->input, err);
	if (result == 0 && order->output == FLOW_STAGE &&
	    !w->client->await_onward(w->client->arg, &w->output.invitation))
		result = trouble_say(err, VB_ERR_INTERRUPTED, "interrupted");
	if (result == 0 && order->output != FLOW_NONE)
		result = side_start(&w->output, err);
	return result;
}

static int meet(struct work *w, struct vb_error *err)
{
	struct pollfd fds[] = { { .fd = w->news, .events = POLLIN },
				{ .fd = w->client->stop_fd, .events = POLLIN },
				{ .fd = w->client->begin_fd, .events = POLLIN } };
	bool told = false;

	while (!fds[2].revents) {
		event_clear(w->news);
		if (fds[1].revents)
			return trouble_say(err, VB_ERR_INTERRUPTED, "interrupted");
		/* One that is over without having met has failed. */
		for (size_t i = 0; i < 2; i++) {
			struct side *side = i ? &w->output : &w->input;

			if (side->running && side_is_over(side)) {
				w->ending->phase = side->phase;
				*err = side->err;
				return err->code;
			}
		}
		if (!told && side_has_met(&w->input) && side_has_met(&w->output)) {
			told = true;
			w->client->ready(w->client->arg);
		}
		poll(fds, told ? 3 : 2, -1);
	}
	return 0;
}

/* ---- Ends of what flows ---- */

static int input_ended(void *arg, int cancel_fd, struct vb_error *err)
{
	struct work *w = arg;

	w->fed = true;
	return command_fed(&w->command, cancel_fd, err);
}

/* It might have exited with 0 on being killed, because of what was before it. */
static int output_ended(void *arg, int cancel_fd, struct vb_error *err)
{
	struct work *w = arg;
	struct pollfd fds[] = { { .fd = w->input.over_fd, .events = POLLIN },
				{ .fd = cancel_fd, .events = POLLIN } };
	int result = command_drained(&w->command, cancel_fd, err);

	if (result != 0 || (!w->input.running && !w->doomed))
		return result;
	while (!side_is_over(&w->input) && !fds[1].revents)
		poll(fds, 2, -1);
	if (!w->doomed && side_is_over(&w->input) && (w->input.err.code == VB_OK || w->enough))
		return 0;
	return trouble_say(err, VB_ERR_INTERRUPTED, "what came before it has failed");
}

static volatile sig_atomic_t victim; /* the command's group, as long as it may run */

/* The servant's watchdog: not even by that a command may come to see an end of its input. */
static void end_both(int number)
{
	(void)number;
	if (victim)
		kill(-victim, SIGKILL);
	_exit(EXIT_INTERRUPTED);
}

static int start_command(struct work *w, struct vb_error *err)
{
	unsigned roles = COMMAND_APART | COMMAND_READ | (w->input.running ? COMMAND_FEED : 0u);
	const struct sigaction watchdog = { .sa_handler = end_both };
	const char *argv[7];
	int result;

	shell_words(argv, w->order->text);
	result = command_start(&w->command, (char *const *)argv, roles, w->order->text, err);
	if (result != 0)
		return result;
	victim = w->command.pid;
	sigaction(SIGALRM, &watchdog, NULL);
	w->output.input =
		(struct vb_input){ .fd = w->command.from, .at_end = output_ended, .at_end_arg = w };
	w->input.output =
		(struct vb_output){ .fd = w->command.to, .at_end = input_ended, .at_end_arg = w };
	return 0;
}

/* Gives the sides their other ends, and lets them go. */
static int begin(struct work *w, struct vb_error *err)
{
	int result = 0;

	w->ending->phase = PHASE_TRANSFER;
	switch (w->order->kind) {
	case STAGE_COMMAND:
		result = start_command(w, err);
		break;
	case STAGE_READ:
		w->output.input = (struct vb_input){ .path = w->order->text };
		break;
	case STAGE_WRITE:
		w->input.output = (struct vb_output){ .path = w->order->text };
		break;
	case STAGE_APPEND:
		w->file = side_append_to(w->order->text, err);
		w->input.output = (struct vb_output){ .fd = w->file };
		result = w->file < 0 ? err->code : 0;
		break;
	}
	if (result != 0) {
		w->ending->own = true;
		return result;
	}
	side_begin(&w->input);
	side_begin(&w->output);
	return 0;
}

/* ---- While it flows ---- */

static bool has_failed(struct work *w, struct side *side)
{
	if (!side->running || !side_is_over(side) || side->err.code == VB_OK)
		return false;
	return side != &w->input || !w->enough;
}

/* The command has ended: badly, or without wanting more of what the client reads. False: badly. */
static bool command_is_well(struct work *w, int status, struct vb_error *err)
{
	if (command_judge(&w->command, status, err) != 0)
		return false;
	if (w->order->input == FLOW_CLIENT && !w->fed && !w->enough) {
		w->enough = true;
		side_quit(&w->input);
	}
	return true;
}

static bool is_broken_pipe(const struct vb_error *err)
{
	return err->code == VB_ERR_IO && err->native_kind == VB_NATIVE_ERRNO &&
	       err->native == EPIPE && !side_is_told(err);
}

/* A command that fails first closes its pipe: is that what a side has seen of it? */
static void settle(struct work *w, struct vb_error *err)
{
	struct pollfd fd = { .fd = w->command.watch, .events = POLLIN };
	int status;

	if (w->command.pid < 0 || !is_broken_pipe(err))
		return;
	poll(&fd, 1, EXITING_MS);
	if (!command_has_ended(&w->command, &status)) {
		/* Now, as soon it will have been ended by us. */
		trouble_say(err, VB_ERR_IO,
			    "command \"%s\" closed its input before it had read everything",
			    w->command.name);
		w->ending->own = true;
	} else if (command_judge(&w->command, status, err) != 0) {
		w->ending->own = true;
	}
}

/*
 * The output ends also because of what the input has told the stage before: then the input is about to be
 * over, and knows better.
 */
static void hear_input(struct work *w, struct vb_error *err)
{
	struct pollfd fd = { .fd = w->news, .events = POLLIN };

	for (int ms = 0; w->input.running && !side_is_over(&w->input) && ms < EXITING_MS;
	     ms += EXITING_MS / 10) {
		event_clear(w->news);
		poll(&fd, 1, EXITING_MS / 10);
	}
	if (has_failed(w, &w->input) && is_broken_pipe(&w->input.err))
		*err = w->input.err;
}

/* Has a side failed? Then `err` tells how. */
static bool side_failed(struct work *w, struct vb_error *err)
{
	if (has_failed(w, &w->input) && w->order->input == FLOW_CLIENT &&
	    is_broken_pipe(&w->input.err))
		w->enough = true;
	if (has_failed(w, &w->input))
		*err = w->input.err;
	else if (has_failed(w, &w->output))
		*err = w->output.err;
	else
		return false;
	if (side_is_told(err) || err->code == VB_ERR_INTERRUPTED)
		hear_input(w, err);
	settle(w, err);
	return true;
}

/* Until both sides are over, or something has failed: then `err` tells what, and true is returned. */
static bool look_on(struct work *w, struct vb_error *err)
{
	bool runs = w->command.pid >= 0;
	struct pollfd fds[] = { { .fd = w->news, .events = POLLIN },
				{ .fd = runs ? w->command.watch : -1, .events = POLLIN } };

	for (;;) {
		int status;

		event_clear(w->news);
		if (runs && command_has_ended(&w->command, &status)) {
			runs = false;
			fds[1].fd = -1;
			if (!command_is_well(w, status, err)) {
				w->ending->own = true;
				return true;
			}
		}
		if (side_failed(w, err))
			return true;
		if (side_is_over(&w->input) && side_is_over(&w->output))
			return false;
		/* Where the kernel cannot tell of its end, look now and then. */
		poll(fds, 2, runs && w->command.watch < 0 ? EXITING_MS : -1);
	}
}

/* ---- What came of it ---- */

/* Of two, the one that tells more than that the other has ended. */
static void hear_both(struct work *w, struct vb_error *err)
{
	if (err->code == VB_ERR_INTERRUPTED && has_failed(w, &w->output) &&
	    w->output.err.code != VB_ERR_INTERRUPTED)
		*err = w->output.err;
}

static void tell_exit(struct work *w)
{
	int status;

	if (w->command.pid < 0 || !command_has_ended(&w->command, &status))
		return;
	w->ending->how = WIFEXITED(status) ? ENDED_STATUS : ENDED_SIGNAL;
	w->ending->number = (unsigned)(WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

/* When it has failed the command is ended first, and only then its input. */
static void wind_up(struct work *w, bool failed, struct vb_error *err)
{
	struct pollfd fd = { .fd = w->news, .events = POLLIN };
	struct vb_error before;

	if (!failed || w->ending->own)
		tell_exit(w);
	w->doomed = failed;
	side_quit(&w->input);
	side_quit(&w->output);
	if (failed && w->command.pid >= 0)
		command_signal(&w->command, SIGTERM);
	while (!side_is_over(&w->input) || !side_is_over(&w->output)) {
		poll(&fd, 1, -1);
		event_clear(w->news);
	}
	if (failed && !w->ending->own)
		hear_both(w, err);
	before = *err;
	command_finish(&w->command, failed ? VB_ERR_IO : 0, err);
	victim = 0;
	if (failed && !w->ending->own)
		w->ending->own = strcmp(before.cause, err->cause) != 0 ||
				 (err->code == VB_ERR_IO && !side_is_told(err));
}

static void tell_sums(const struct work *w)
{
	struct stage_ending *ending = w->ending;
	bool input = w->order->input != FLOW_NONE, output = w->order->output != FLOW_NONE;

	ending->bytes_in = w->input.report.bytes;
	ending->bytes_out = w->output.report.bytes;
	ending->elapsed_ns = input ? w->input.report.elapsed_ns : w->output.report.elapsed_ns;
	if ((!input || *w->input.cipher) && (!output || *w->output.cipher))
		memcpy(ending->cipher, input ? w->input.cipher : w->output.cipher,
		       sizeof(ending->cipher));
}

static void run(struct work *w)
{
	struct vb_error *err = &w->ending->err;
	bool failed = true;

	if (look_ahead(w->order, err) != 0)
		w->ending->own = true;
	else if (open_up(w, err) == 0 && meet(w, err) == 0 && begin(w, err) == 0)
		failed = look_on(w, err);
	wind_up(w, failed, err);
	/* A signal to this process is nobody else's doing. */
	if (failed && interrupt_seen()) {
		trouble_say(err, VB_ERR_INTERRUPTED, "interrupted there");
		w->ending->own = true;
	}
	tell_sums(w);
}

void stage_work(const struct stage_order *order, const struct stage_client *client,
		struct stage_ending *ending)
{
	struct work w = { .order = order, .client = client, .ending = ending, .file = -1 };

	*ending = (struct stage_ending){ .phase = PHASE_CHECK };
	w.command.pid = -1;
	w.news = event_open();
	/* What comes to the last stage is what is told of, or if nothing does, what it makes. */
	prepare_side(&w, &w.input, false, order->tells);
	prepare_side(&w, &w.output, true, order->tells && order->input == FLOW_NONE);
	if (w.news < 0)
		trouble_errno(&ending->err, VB_ERR_SYSTEM, errno, "eventfd", "");
	else
		run(&w);
	side_end(&w.input);
	side_end(&w.output);
	if (w.file >= 0)
		close(w.file);
	if (w.news >= 0)
		close(w.news);
}
