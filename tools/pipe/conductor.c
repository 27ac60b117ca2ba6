/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conductors. Nothing starts before everybody is connected to whom it has to be, and the first
 * failure stops all.
 */
#include "pipe/conductor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <verbatim/verbatim.h>

#include "common/console.h"
#include "common/event.h"
#include "common/interrupt.h"
#include "common/preflight.h"
#include "common/setup.h"
#include "common/trouble.h"

#define AFTERWORD_MS 3000   /* for what the others say of a failure */
#define INTERRUPTED_MS 1000 /* likewise, when somebody waits at a terminal */

/* ---- What begins and ends here ---- */

/*
 * stdin is not read where nobody would think of it: from a terminal. That a command does not read all
 * of it is no failure, since it may be there for no other reason than that everything has one.
 */
static bool reads_stdin(const struct conductor *c)
{
	return !c->from && !c->arguments->no_stdin && c->stages[0].stage->kind != STAGE_READ &&
	       !isatty(STDIN_FILENO);
}

static bool is_target(const struct stage *stage)
{
	return stage->kind == STAGE_WRITE || stage->kind == STAGE_APPEND;
}

static void say_note(void *arg, const char *text)
{
	(void)arg;
	console_note("%s", text);
}

static void prepare_side(const struct conductor *c, struct side *side, bool sends)
{
	side_init(side);
	side->sends = sends;
	side->options = c->arguments->options;
	side->options.connection.log = console_log;
	side->options.connection.log_level = setup_log_level(c->arguments->verbosity);
	side->listener.say = say_note;
	side->stop_fds[0] = interrupt_fd();
	side->news = c->news;
}

static int look_ahead(const struct conductor *c, struct vb_error *err)
{
	int result = c->from ? preflight_source(c->from->text, err) : 0;

	return result == 0 && c->to ? preflight_target(c->to->text, err) : result;
}

static int share_out(struct conductor *c, const struct stages *stages)
{
	c->stages = calloc(stages->count, sizeof(*c->stages));
	if (!c->stages)
		return trouble_say(&c->err, VB_ERR_NOMEM, "out of memory");
	for (size_t i = 0; i < stages->count; i++) {
		const struct stage *stage = &stages->stage[i];

		if (!stage->host && stage->kind == STAGE_READ)
			c->from = stage;
		else if (!stage->host)
			c->to = stage;
		else
			c->stages[c->count++] =
				(struct far_stage){ .stage = stage, .number = i + 1 };
	}
	c->stages[c->count - 1].progress = &c->progress;
	return 0;
}

int conductor_open(struct conductor *c, const struct arguments *a, const struct stages *stages)
{
	char line[VB_ERROR_LINE_MAX];
	int result;

	*c = (struct conductor){ .arguments = a, .file = -1 };
	side_init(&c->input);
	side_init(&c->output);
	console_set(a->verbosity, a->json);
	c->news = event_open();
	result = c->news < 0 ? trouble_errno(&c->err, VB_ERR_SYSTEM, errno, "eventfd", "")
			     : interrupt_open(&c->err);
	if (result == 0)
		result = share_out(c, stages);
	if (result == 0)
		result = look_ahead(c, &c->err);
	if (result != 0) {
		console_error("%s", vb_error_format(&c->err, line, sizeof(line)));
		return (int)exit_code_of(c->err.code, PHASE_CHECK);
	}
	c->reads = c->from || reads_stdin(c);
	c->writes = !is_target(c->stages[c->count - 1].stage);
	if (!c->reads && is_target(c->stages[0].stage))
		return arguments_misused(a, "there is nothing to write: stdin is %s",
					 a->no_stdin ? "not read with -n" : "a terminal");
	return -1;
}

/* ---- Waiting ---- */

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool is_lost(struct far_stage *stage)
{
	return far_is_gone(&stage->far) || far_stage_has_ended(stage);
}

/* Here, later than the begin: what the first stage left unread is no failure, and else it will say. */
static bool has_failed(struct conductor *c)
{
	for (size_t i = 0; i < c->count; i++)
		if (far_stage_has_failed(&c->stages[i]))
			return true;
	if (!c->began && c->input.running && side_is_over(&c->input))
		return true;
	return c->output.running && side_is_over(&c->output) &&
	       (!c->began || c->output.err.code != VB_OK);
}

typedef bool (*reached_fn)(struct far_stage *stage);

static bool all_have(const struct conductor *c, reached_fn reached)
{
	for (size_t i = 0; i < c->count; i++)
		if (!reached(&c->stages[i]))
			return false;
	return true;
}

static void wait_for_news(const struct conductor *c, int timeout_ms)
{
	struct pollfd fds[] = { { .fd = c->news, .events = POLLIN },
				{ .fd = interrupt_fd(), .events = POLLIN } };

	poll(fds, interrupt_seen() ? 1 : 2, timeout_ms);
	event_clear(c->news);
}

/* Until all have; false if something has failed, or we are interrupted. */
static bool await(struct conductor *c, reached_fn reached)
{
	while (!interrupt_seen() && !has_failed(c)) {
		if (all_have(c, reached))
			return true;
		wait_for_news(c, -1);
	}
	return false;
}

/* ---- The steps ---- */

static bool start(struct conductor *c)
{
	vb_prepare(); /* while ssh finds its way */
	for (size_t i = 0; i < c->count; i++)
		if (far_stage_open(&c->stages[i], c->arguments, c->news, &c->err, &c->start_code) !=
		    0)
			return false;
	return true;
}

static void order(const struct conductor *c, size_t i)
{
	const struct arguments *a = c->arguments;
	const struct stage *stage = c->stages[i].stage;
	bool first = i == 0, last = i + 1 == c->count;
	const struct stage_order order = {
		.kind = stage->kind,
		.text = stage->text,
		.input = !first	    ? FLOW_STAGE
			 : c->reads ? FLOW_CLIENT
				    : FLOW_NONE,
		.output = !last	      ? FLOW_STAGE
			  : c->writes ? FLOW_CLIENT
				      : FLOW_NONE,
		.tells = last,
		.verbosity = a->verbosity > 5 ? 5 : a->verbosity,
		.device = (char *)a->options.connection.device,
		.transfer = a->options,
	};

	far_stage_order(&c->stages[i], &order);
}

static int begin_here(struct conductor *c)
{
	c->input.input =
		(struct vb_input){ .path = c->from ? c->from->text : NULL, .fd = STDIN_FILENO };
	c->output.output =
		(struct vb_output){ .path = c->to ? c->to->text : NULL, .fd = STDOUT_FILENO };
	if (c->to && c->to->kind == STAGE_APPEND) {
		c->file = side_append_to(c->to->text, &c->err);
		c->output.output = (struct vb_output){ .fd = c->file };
		if (c->file < 0)
			return c->err.code;
	}
	return 0;
}

static bool meet(struct conductor *c)
{
	prepare_side(c, &c->input, true);
	prepare_side(c, &c->output, false);
	c->phase = PHASE_CONNECT;
	for (size_t i = 0; i + 1 < c->count; i++)
		far_stage_send_onward(&c->stages[i], &c->stages[i + 1].doors.input);
	if (c->reads) {
		c->input.invitation = c->stages[0].doors.input;
		if (side_start(&c->input, &c->err) != 0)
			return false;
	}
	if (c->writes) {
		c->output.invitation = c->stages[c->count - 1].doors.output;
		if (side_start(&c->output, &c->err) != 0)
			return false;
	}
	return await(c, far_stage_is_ready);
}

static bool flow(struct conductor *c)
{
	c->phase = PHASE_TRANSFER;
	if (begin_here(c) != 0)
		return false;
	progress_begin(&c->progress, c->writes && !c->to ? STDOUT_FILENO : -1);
	c->began = true;
	for (size_t i = 0; i < c->count; i++)
		far_stage_begin(&c->stages[i]);
	side_begin(&c->input);
	side_begin(&c->output);
	if (!await(c, far_stage_has_ended))
		return false;
	/* All have it: what is left here is to notice. */
	side_quit(&c->input);
	while (!side_is_over(&c->output) && !interrupt_seen())
		wait_for_news(c, -1);
	return c->output.err.code == VB_OK;
}

/* Somebody has failed: the others are told, and heard. */
static void stop_all(struct conductor *c)
{
	int64_t until = now_ms() + (interrupt_seen() ? INTERRUPTED_MS : AFTERWORD_MS);

	for (size_t i = 0; i < c->count; i++)
		if (c->stages[i].far.host && !is_lost(&c->stages[i]))
			far_stop(&c->stages[i].far);
	side_quit(&c->input);
	side_quit(&c->output);
	while (now_ms() < until &&
	       !(all_have(c, is_lost) && side_is_over(&c->input) && side_is_over(&c->output)))
		wait_for_news(c, (int)(until - now_ms()));
}

void conductor_run(struct conductor *c)
{
	bool good, started = start(c);

	if (!started)
		return;
	for (size_t i = 0; i < c->count; i++)
		order(c, i);
	good = await(c, far_stage_has_invited) && meet(c) && flow(c);
	if (!good)
		stop_all(c);
}

void conductor_end(struct conductor *c)
{
	bool at_once = interrupt_seen();

	for (size_t i = 0; i < c->count; i++) {
		struct far_stage *stage = &c->stages[i];

		at_once = at_once || !stage->far.host || far_stage_has_failed(stage);
	}
	/* All at the same time, and then each is waited for. */
	for (size_t i = 0; i < c->count; i++)
		if (c->stages[i].far.host && c->stages[i].far.link.quit >= 0)
			link_hang_up(&c->stages[i].far.link);
	for (size_t i = 0; i < c->count; i++)
		far_stage_close(&c->stages[i], at_once && !far_stage_has_ended(&c->stages[i]));
	side_end(&c->input);
	side_end(&c->output);
	if (c->file >= 0)
		close(c->file);
	if (c->news >= 0)
		close(c->news);
	free(c->stages);
	c->stages = NULL;
	c->count = 0;
}
