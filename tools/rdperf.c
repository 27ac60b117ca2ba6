/* SPDX-License-Identifier: Apache-2.0 */
/* rdperf: how fast is it from here to there, over which operation, at which size? */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/console.h"
#include "common/descriptors.h"
#include "common/interrupt.h"
#include "common/json.h"
#include "common/outcome.h"
#include "perf/chart.h"
#include "perf/measure.h"

#define ATOMIC_BYTES "8"
#define ALL_SIZES "2:8M"

static int fail(enum phase phase, const struct vb_error *err)
{
	char line[VB_ERROR_LINE_MAX];

	console_error("%s", outcome_error_line(err, line));
	return (int)exit_code_of(err->code, phase);
}

/* ---- Serving ---- */

static void say_where(const struct vb_perf_server *server, const struct arguments *a)
{
	char line[512];
	struct json json;
	char *text;

	if (!a->json) {
		snprintf(line, sizeof(line), "rdperf: listening on port %d: %s\n",
			 vb_perf_server_port(server), vb_perf_server_description(server));
		/* With -v the library says it. */
		if (console_verbosity() == 0)
			console_write(line);
		return;
	}
	json_begin(&json);
	json_text(&json, "event", "listening");
	json_number(&json, "port", (uint64_t)vb_perf_server_port(server));
	json_text(&json, "description", vb_perf_server_description(server));
	text = json_end(&json);
	if (text)
		console_write(text);
	free(text);
}

static int serve(const struct arguments *a)
{
	struct vb_perf_options options = { .connection = a->options.connection,
					   .stop_fd = interrupt_fd() };
	struct vb_perf_server *server;
	struct vb_error err;
	int rc = vb_perf_server_open(a->bind, a->port, &options, &server, &err);

	if (rc)
		return fail(PHASE_LISTEN, &err);
	say_where(server, a);
	while (rc == 0)
		rc = vb_perf_server_next(server, &err);
	vb_perf_server_close(server);
	return fail(PHASE_WAIT, &err);
}

/* ---- Asking ---- */

/* What was measured now, and what earlier runs have left. */
static int draw(const struct arguments *a, const struct series *own, struct vb_error *err)
{
	struct series *all = calloc(CHART_SERIES, sizeof(*all));
	size_t count = 0;
	int rc = 0;

	if (!all) {
		err->code = VB_ERR_NOMEM;
		return VB_ERR_NOMEM;
	}
	if (own->count)
		all[count++] = *own;
	for (size_t i = 0; rc == 0 && i < a->runs.count; i++)
		rc = series_read_file(&all[count++], a->runs.item[i], err);
	if (rc == 0)
		rc = chart_save(a->svg, "rdperf: bandwidth and latency by message size", all, count,
				err);
	free(all);
	return rc;
}

static int ask(const struct arguments *a)
{
	static struct series series;
	struct vb_error err = { .code = VB_OK };
	enum phase phase = PHASE_CHECK;
	const char *text = a->size ? a->size : ALL_SIZES;
	struct sizes sizes;
	int rc = 0;

	if (!a->size && (a->cell.op == VB_PERF_FETCH_ADD || a->cell.op == VB_PERF_CAS))
		text = ATOMIC_BYTES;
	if (sizes_parse(&sizes, text) != 0)
		return arguments_misused(
			a,
			"--size: '%.200s' is not sizes from 1 to 1G, such as 64K, 2:8M or 2,64,1M",
			text);
	if (a->runs.count > CHART_SERIES - 1)
		return arguments_misused(a, "--add: at most %u fit into a chart", CHART_SERIES - 1);
	if (a->host)
		rc = measure(a, &sizes, &series, &phase, &err);
	if (rc)
		return fail(phase, &err);
	if (a->svg && draw(a, &series, &err) != 0)
		return fail(PHASE_TRANSFER, &err);
	if (fflush(stdout) == 0 && !ferror(stdout))
		return EXIT_OK;
	console_error("cannot write to stdout");
	return EXIT_FILE;
}

static enum vb_log_level log_level(int verbosity)
{
	return verbosity > 2 ? VB_LOG_DEBUG : verbosity > 0 ? VB_LOG_INFO : VB_LOG_WARNING;
}

int main(int argc, char **argv)
{
	struct vb_error err = { .code = VB_OK };
	struct arguments a;
	int code;

	console_open("rdperf");
	descriptors_raise();
	code = arguments_parse(&a, RDPERF, true, argc, argv);
	if (code < 0) {
		console_set(a.verbosity, a.json);
		a.options.connection.log = console_log;
		a.options.connection.log_level = log_level(a.verbosity);
		if (interrupt_open(&err) != 0)
			code = fail(PHASE_CHECK, &err);
		else
			code = a.serve ? serve(&a) : ask(&a);
	}
	interrupt_leave(code);
	arguments_free(&a);
	return code;
}
