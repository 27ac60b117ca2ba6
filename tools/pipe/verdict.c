/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts. One failure makes all fail: those that began one are told, or else who knows most. */
#include "pipe/verdict.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/console.h"
#include "common/interrupt.h"
#include "common/json.h"
#include "common/outcome.h"
#include "common/quantity.h"
#include "common/trouble.h"

/* What is known of one failure. */
struct finding {
	const struct far_stage *stage; /* NULL: here */
	struct vb_error err;
	enum phase phase;
	enum exit_code code; /* if that is decided; else by the error */
	int weight;	     /* 0: nothing was found */
};

#define OWN 6

int verdict_weight(const struct vb_error *err, bool own)
{
	if (own)
		return OWN;
	switch (err->code) {
	case VB_OK:
		return 0;
	case VB_ERR_INTERRUPTED:
		return 1;
	case VB_ERR_CLOSED:
	case VB_ERR_EOF:
	case VB_ERR_FLUSHED:
		return 2;
	case VB_ERR_LOST:
	case VB_ERR_TIMEOUT:
		return 3;
	default:
		return 5;
	}
}

/* ---- Finding ---- */

static struct finding of_stage(struct far_stage *stage)
{
	struct finding finding = { .stage = stage, .phase = PHASE_TRANSFER };

	/* Not started, and that is told elsewhere. */
	if (!stage->far.host)
		return finding;
	if (far_stage_has_ended(stage)) {
		finding.err = stage->ending.err;
		finding.phase = stage->ending.phase;
		if (finding.err.code != VB_OK)
			finding.weight = verdict_weight(&finding.err, stage->ending.own);
	} else if (far_is_wrong(&stage->far)) {
		trouble_say(&finding.err, VB_ERR_PROTOCOL, "rdpipe there breaks the protocol");
		finding.weight = OWN;
	} else if (far_is_gone(&stage->far)) {
		trouble_say(&finding.err, VB_ERR_LOST, "the far side has gone");
		finding.weight = 4;
	}
	return finding;
}

static struct finding of_side(struct side *side)
{
	struct finding finding = { .err = side->err, .phase = side->phase };
	bool own = side->err.code == VB_ERR_IO && !side_is_told(&side->err);

	if (side->running && side_is_over(side) && side->err.code != VB_OK)
		finding.weight = verdict_weight(&side->err, own);
	return finding;
}

static void prefer(struct finding *best, const struct finding *other)
{
	if (other->weight > best->weight)
		*best = *other;
}

/* What the first stage did not read of stdin does not count, if it has ended well. */
static bool input_counts(struct conductor *c)
{
	return far_stage_has_failed(&c->stages[0]) || !far_stage_has_ended(&c->stages[0]);
}

static struct finding find(struct conductor *c)
{
	struct finding best = { .weight = 0 }, other;

	if (c->err.code != VB_OK) {
		best = (struct finding){
			.err = c->err, .phase = c->phase, .code = c->start_code, .weight = OWN
		};
		return best;
	}
	for (size_t i = 0; i < c->count; i++) {
		other = of_stage(&c->stages[i]);
		prefer(&best, &other);
	}
	if (input_counts(c)) {
		other = of_side(&c->input);
		prefer(&best, &other);
	}
	other = of_side(&c->output);
	prefer(&best, &other);
	return best;
}

/* ---- Telling ---- */

static void say(const struct finding *finding)
{
	char line[VB_ERROR_LINE_MAX];

	vb_error_format(&finding->err, line, sizeof(line));
	if (finding->stage)
		console_error("stage %zu at %s: %s", finding->stage->number,
			      finding->stage->stage->host, line);
	else
		console_error("%s", line);
}

static void say_failures(struct conductor *c, const struct finding *best)
{
	bool said = false;

	if (interrupt_seen()) {
		console_error("interrupted");
		return;
	}
	for (size_t i = 0; best->weight == OWN && best->stage && i < c->count; i++) {
		struct finding finding = of_stage(&c->stages[i]);

		if (finding.weight == OWN)
			say(&finding);
		said = said || finding.weight == OWN;
	}
	if (!said)
		say(best);
}

/* What the progress is about: what came to the last stage, or if nothing did, what it made. */
static struct vb_report told_report(struct conductor *c)
{
	const struct stage_ending *last = &c->stages[c->count - 1].ending;
	bool input = c->count > 1 || c->reads;

	return (struct vb_report){ .bytes = input ? last->bytes_in : last->bytes_out,
				   .elapsed_ns = last->elapsed_ns };
}

static void say_stages(struct conductor *c)
{
	struct vb_report report = told_report(c);

	for (size_t i = 0; i < c->count; i++) {
		const struct far_stage *stage = &c->stages[i];

		console_note("stage %zu at %s: %" PRIu64 " bytes in, %" PRIu64 " bytes out",
			     stage->number, stage->stage->host, stage->ending.bytes_in,
			     stage->ending.bytes_out);
	}
	outcome_tell_bandwidth(quantity_speed(report.bytes, report.elapsed_ns));
}

/* ---- In JSON ---- */

static void add_stage(struct json *json, struct far_stage *stage)
{
	static const char *const kinds[] = { [STAGE_COMMAND] = "command",
					     [STAGE_READ] = "read",
					     [STAGE_WRITE] = "write",
					     [STAGE_APPEND] = "append" };
	const struct stage_ending *ending = &stage->ending;
	bool ended = stage->far.host && far_stage_has_ended(stage);

	json_open(json, NULL);
	json_number(json, "number", stage->number);
	json_text(json, "host", stage->stage->host);
	json_text(json, kinds[stage->stage->kind], stage->stage->text);
	if (ended && ending->how == ENDED_STATUS)
		json_number(json, "exit_status", ending->number);
	else
		json_null(json, "exit_status");
	if (ended && ending->how == ENDED_SIGNAL)
		json_number(json, "signal", ending->number);
	json_bool(json, "failed_first", ended && ending->own);
	json_number(json, "bytes_in", ended ? ending->bytes_in : 0);
	json_number(json, "bytes_out", ended ? ending->bytes_out : 0);
	json_close(json);
}

/* Once something was not encrypted, all of it was not. */
static const char *cipher_of(struct conductor *c)
{
	for (size_t i = 0; i < c->count; i++)
		if (!*c->stages[i].ending.cipher)
			return NULL;
	return c->stages[0].ending.cipher;
}

static void tell_json(struct conductor *c, const struct finding *best, enum exit_code code)
{
	struct vb_report report = told_report(c);
	struct json json;
	char *line;

	json_begin(&json);
	json_text(&json, "event", "summary");
	json_number(&json, "exit", code);
	outcome_add_error(&json, &best->err);
	if (best->stage) {
		json_number(&json, "failed_stage", best->stage->number);
		json_text(&json, "failed_host", best->stage->stage->host);
	}
	json_number(&json, "bytes", report.bytes);
	json_real(&json, "elapsed_s", (double)report.elapsed_ns / 1e9);
	json_number(&json, "bytes_per_s", quantity_speed(report.bytes, report.elapsed_ns));
	json_text(&json, "cipher", cipher_of(c));
	json_list(&json, "stages");
	for (size_t i = 0; i < c->count; i++)
		add_stage(&json, &c->stages[i]);
	json_list_end(&json);
	line = json_end(&json);
	if (line)
		console_write(line);
	free(line);
}

static enum exit_code code_of(const struct finding *best)
{
	if (interrupt_seen())
		return EXIT_INTERRUPTED;
	if (!best->weight)
		return EXIT_OK;
	return best->code ? best->code : exit_code_of(best->err.code, best->phase);
}

enum exit_code verdict_tell(struct conductor *c)
{
	struct finding best = find(c);
	enum exit_code code;
	struct vb_report report;

	if (interrupt_seen())
		best = (struct finding){ .err = { .code = VB_ERR_INTERRUPTED }, .weight = OWN };
	code = code_of(&best);
	report = told_report(c);
	progress_end(&c->progress, code == EXIT_OK ? &report : NULL);
	if (console_as_json())
		tell_json(c, &best, code);
	else if (code != EXIT_OK)
		say_failures(c, &best);
	else if (console_verbosity() >= 1)
		say_stages(c);
	return code;
}
