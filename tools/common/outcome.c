/* SPDX-License-Identifier: Apache-2.0 */
/* Outcomes. */
#include "common/outcome.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/console.h"
#include "common/interrupt.h"
#include "common/json.h"
#include "common/quantity.h"

/* What has come behind `before`, or all of it if it is another one. */
static const char *news(const char *text, const char *before)
{
	size_t len = strlen(before);

	if (!len || strncmp(text, before, len) != 0)
		return text;
	return text + len + strspn(text + len, "; ");
}

void outcome_describe(struct outcome *outcome, const struct vb_session *session)
{
	char before[sizeof(outcome->description)];

	memcpy(before, outcome->description, sizeof(before));
	snprintf(outcome->description, sizeof(outcome->description), "%s",
		 vb_session_description(session));
	snprintf(outcome->peer, sizeof(outcome->peer), "%s", vb_session_peer(session));
	outcome->cipher = vb_session_cipher(session);
	if (strcmp(before, outcome->description) != 0)
		console_note("%s", news(outcome->description, before));
}

const char *outcome_error_line(const struct vb_error *err, char line[VB_ERROR_LINE_MAX])
{
	/* Our own signal needs no story; that of the peer is told by the library. */
	if (err->code == VB_ERR_INTERRUPTED && interrupt_seen())
		return "interrupted";
	return vb_error_format(err, line, VB_ERROR_LINE_MAX);
}

void outcome_add_error(struct json *json, const struct vb_error *err)
{
	char line[VB_ERROR_LINE_MAX];

	if (err->code == VB_OK)
		return;
	json_open(json, "error");
	json_text(json, "code", vb_err_name(err->code));
	json_text(json, "text", outcome_error_line(err, line));
	json_text(json, "operation", err->operation);
	json_text(json, "object", err->object);
	json_text(json, "cause", err->cause);
	json_text(json, "hint", err->hint);
	if (err->native_kind == VB_NATIVE_ERRNO)
		json_number(json, "errno", (uint64_t)err->native);
	json_close(json);
}

static double ratio(uint64_t bytes, uint64_t wire_bytes)
{
	return wire_bytes ? (double)bytes / (double)wire_bytes : 1;
}

void outcome_tell_packing(uint64_t bytes, uint64_t wire_bytes, uint64_t pack_ns)
{
	if (pack_ns)
		console_note("sent as %" PRIu64 " bytes, compressed %.2f times, in %.3f s of all "
			     "workers' time",
			     wire_bytes, ratio(bytes, wire_bytes), (double)pack_ns / 1e9);
}

void outcome_add_packing(struct json *json, uint64_t bytes, uint64_t wire_bytes, uint64_t pack_ns)
{
	json_number(json, "wire_bytes", wire_bytes);
	json_real(json, "compression_ratio", ratio(bytes, wire_bytes));
	json_real(json, "compression_s", (double)pack_ns / 1e9);
}

static void tell_json(const struct outcome *outcome, enum exit_code code)
{
	const struct vb_report *report = &outcome->report;
	struct json json;
	char digest[20];
	char *line;

	snprintf(digest, sizeof(digest), "%016" PRIx64, report->digest);
	json_begin(&json);
	json_text(&json, "event", "summary");
	json_number(&json, "exit", code);
	outcome_add_error(&json, &outcome->err);
	json_number(&json, "bytes", report->bytes);
	json_number(&json, "hole_bytes", report->hole_bytes);
	json_number(&json, "blocks", report->blocks);
	json_real(&json, "elapsed_s", (double)report->elapsed_ns / 1e9);
	json_number(&json, "bytes_per_s", quantity_speed(report->bytes, report->elapsed_ns));
	outcome_add_packing(&json, report->bytes - report->hole_bytes, report->wire_bytes,
			    report->pack_ns);
	json_text(&json, "digest", code == EXIT_OK ? digest : NULL);
	json_text(&json, "peer", outcome->peer[0] ? outcome->peer : NULL);
	json_text(&json, "description", outcome->description[0] ? outcome->description : NULL);
	json_text(&json, "cipher", outcome->cipher);
	line = json_end(&json);
	if (line)
		console_write(line);
	free(line);
}

void outcome_tell_bandwidth(uint64_t bytes_per_second)
{
	char line[64];

	/* Of a few small files it would else be 0. */
	snprintf(line, sizeof(line), "Bandwidth %.*f GB/s\n", bytes_per_second < 100000000 ? 6 : 3,
		 (double)bytes_per_second / 1e9);
	console_write(line);
}

/* The digest is the same at both ends, for whoever wants to compare. */
static void tell_report(const struct vb_report *report)
{
	char holes[64] = "";

	if (report->hole_bytes)
		snprintf(holes, sizeof(holes), ", %" PRIu64 " of the bytes in holes",
			 report->hole_bytes);
	console_note("%" PRIu64 " bytes in %" PRIu64 " block%s%s, digest %016" PRIx64
		     ": checked and stored by the receiver",
		     report->bytes, report->blocks, report->blocks == 1 ? "" : "s", holes,
		     report->digest);
	outcome_tell_packing(report->bytes - report->hole_bytes, report->wire_bytes,
			     report->pack_ns);
	outcome_tell_bandwidth(quantity_speed(report->bytes, report->elapsed_ns));
}

enum exit_code outcome_tell(const struct outcome *outcome)
{
	enum exit_code code = exit_code_of(outcome->err.code, outcome->phase);
	char line[VB_ERROR_LINE_MAX];

	if (console_as_json())
		tell_json(outcome, code);
	else if (code != EXIT_OK)
		console_error("%s", outcome_error_line(&outcome->err, line));
	else if (console_verbosity() >= 1)
		tell_report(&outcome->report);
	return code;
}
