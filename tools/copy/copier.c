/* SPDX-License-Identifier: Apache-2.0 */
/* Copiers: starts far sides, tries, and tries again where that may help. */
#include "copy/copier.h"

#include <poll.h>
#include <stdio.h>
#include <unistd.h>
#include <verbatim/verbatim.h>

#include "common/console.h"
#include "common/event.h"
#include "common/interrupt.h"
#include "common/outcome.h"
#include "common/trouble.h"
#include "copy/exchange.h"

#define WAIT_MOST_S 30u

/* ---- The far sides ---- */

static void close_fars(struct copier *c, bool at_once)
{
	/* Either may be in the middle of passing something on to the other. */
	if (at_once && c->source.far.host)
		link_break(&c->source.far.link);
	if (at_once && c->target.far.host)
		link_break(&c->target.far.link);
	copy_far_close(&c->source, at_once);
	copy_far_close(&c->target, at_once);
}

static int open_far(struct copier *c, struct copy_far *far, const struct operand *operand,
		    struct vb_error *err)
{
	if (operand->kind != OPERAND_REMOTE || far->far.host)
		return 0;
	return copy_far_open(far, c->arguments, operand->host, c->listing, c->news, err,
			     &c->start_code);
}

static int open_fars(struct copier *c, struct vb_error *err)
{
	int result = 0;

	/* All at one host is one far side's work. */
	if (!operand_same_host(c->job->from, &c->jobs->target))
		result = open_far(c, &c->source, c->job->from, err);
	if (result == 0)
		result = open_far(c, &c->target, &c->jobs->target, err);
	if (result != 0)
		close_fars(c, true);
	return result;
}

/* ---- Tries ---- */

static bool is_stream(const struct copier *c)
{
	return c->job->from->kind == OPERAND_STDIO || c->jobs->target.kind == OPERAND_STDIO;
}

static bool is_remote(const struct copier *c)
{
	return c->job->from->kind == OPERAND_REMOTE || c->jobs->target.kind == OPERAND_REMOTE;
}

static bool between_others(const struct copier *c)
{
	return c->job->from->kind == OPERAND_REMOTE && c->jobs->target.kind == OPERAND_REMOTE;
}

/* Could no data connection be made, though the far sides are there? */
static bool not_connected(const struct ending *ending)
{
	return ending->phase == PHASE_CONNECT && ending->err.code != VB_OK &&
	       ending->err.code != VB_ERR_INTERRUPTED;
}

static void say_fallback(const struct copier *c, const struct ending *ending)
{
	char line[VB_ERROR_LINE_MAX];

	console_warning("no data connection, so the data goes through %s: %s",
			c->arguments->rsh ? c->arguments->rsh : "ssh, which encrypts it",
			outcome_error_line(&ending->err, line));
}

static void try_once(struct copier *c, struct ending *ending)
{
	bool usable;

	*ending = (struct ending){ .phase = PHASE_CHECK };
	c->start_code = EXIT_OK;
	if (open_fars(c, &ending->err) != 0)
		return;
	usable = exchange(c, false, ending);
	if (usable && not_connected(ending) && !c->arguments->no_fallback && !interrupt_seen()) {
		say_fallback(c, ending);
		usable = exchange(c, true, ending);
	}
	c->was_up |= ending->phase == PHASE_TRANSFER;
	if (!usable)
		close_fars(c, true);
}

/* ---- Trying again ---- */

static bool is_lost(enum vb_err code)
{
	return code == VB_ERR_LOST || code == VB_ERR_TIMEOUT || code == VB_ERR_UNREACHABLE ||
	       code == VB_ERR_CLOSED || code == VB_ERR_FLUSHED || code == VB_ERR_REFUSED;
}

/* What could never be done will not be done by doing it again, nor can a pipe be read twice. */
static bool may_help(const struct copier *c, const struct ending *ending)
{
	return !interrupt_seen() && c->was_up && is_remote(c) && !is_stream(c) &&
	       is_lost(ending->err.code);
}

/* False if it is interrupted. */
static bool pause_s(unsigned seconds)
{
	struct pollfd fd = { .fd = interrupt_fd(), .events = POLLIN };

	poll(&fd, 1, (int)seconds * 1000);
	return !interrupt_seen();
}

static bool try_again(const struct copier *c, uint32_t tries, const struct ending *ending)
{
	unsigned wait = tries < 5 ? 1u << tries : WAIT_MOST_S;
	char line[VB_ERROR_LINE_MAX];

	if (ending->err.code == VB_OK || tries >= c->arguments->retries || !may_help(c, ending))
		return false;
	console_warning("%s; trying again in %u s (%u of %u)",
			outcome_error_line(&ending->err, line), wait, tries + 1,
			c->arguments->retries);
	return pause_s(wait);
}

static enum exit_code code_of(const struct copier *c, const struct ending *ending)
{
	if (interrupt_seen())
		return EXIT_INTERRUPTED;
	if (ending->err.code != VB_OK && c->start_code != EXIT_OK)
		return c->start_code;
	if (ending->err.code != VB_OK)
		return exit_code_of(ending->err.code, ending->phase);
	if (ending->report.failed)
		return EXIT_PARTIAL;
	return ending->report.vanished ? EXIT_VANISHED : EXIT_OK;
}

enum exit_code copier_run(struct copier *c, struct ending *ending)
{
	char line[VB_ERROR_LINE_MAX];
	enum exit_code code;
	uint32_t tries = 0;

	if (is_remote(c) && !between_others(c))
		vb_prepare(); /* while ssh finds its way */
	c->news = event_open();
	do
		try_once(c, ending);
	while (try_again(c, tries++, ending));
	close_fars(c, interrupt_seen());
	close(c->news);
	ending->report.failed += ending->missing;
	code = code_of(c, ending);
	if (interrupt_seen())
		trouble_say(&ending->err, VB_ERR_INTERRUPTED, "interrupted");
	if (ending->err.code != VB_OK && !console_as_json())
		console_error("%s", outcome_error_line(&ending->err, line));
	return code;
}
