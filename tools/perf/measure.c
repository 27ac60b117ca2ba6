/* SPDX-License-Identifier: Apache-2.0 */
/* Measuring, as the user sees it. How it is done is the library's part. */
#include "perf/measure.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <verbatim/verbatim.h>

#include "common/console.h"
#include "common/interrupt.h"
#include "common/json.h"
#include "common/quantity.h"
#include "perf/table.h"

struct run {
	const struct arguments *a;
	struct vb_perf *perf;
	struct series *series;
	struct vb_perf_cell cell; /* the one that is measured */
	bool bandwidth, latency;  /* are wanted */
	struct vb_error corrupt;  /* the first time that data were not as sent */
};

/* ---- What is said ---- */

static void show_progress(void *arg, const struct vb_perf_progress *now)
{
	const struct run *run = arg;
	char line[160], size[16], rate[QUANTITY_TEXT];
	uint64_t speed = quantity_speed(now->bytes, now->elapsed_ns);

	if (!console_has_status() || console_verbosity() < 0 || console_as_json())
		return;
	snprintf(line, sizeof(line), "%s %s, %s: %s, %.1f s", vb_perf_op_name(run->cell.op),
		 sizes_text(size, run->cell.bytes),
		 run->cell.kind == VB_PERF_LATENCY ? "latency" : "bandwidth",
		 quantity_rate(rate, speed), (double)now->elapsed_ns / 1e9);
	console_status(line);
}

/* libfabric's datagrams are another provider's than its connections. */
static const char *device_of(const struct run *run)
{
	if (run->cell.qp == VB_PERF_UD && strcmp(vb_perf_fabric(run->perf), "ofi") == 0)
		return "udp";
	return vb_perf_device(run->perf);
}

/* What tells this run from others. */
static void make_label(struct run *run)
{
	const struct vb_perf_cell *cell = &run->cell;
	char rails[32] = "";

	if (run->a->label) {
		snprintf(run->series->label, SERIES_LABEL, "%.*s", SERIES_LABEL - 1, run->a->label);
		return;
	}
	if (cell->rails > 1)
		snprintf(rails, sizeof(rails), ", %u rails", cell->rails);
	snprintf(run->series->label, SERIES_LABEL, "%s %s, %.24s %.24s, depth %u%s%s, %s",
		 vb_perf_op_name(cell->op), vb_perf_qp_name(cell->qp), vb_perf_fabric(run->perf),
		 device_of(run), cell->depth, rails, cell->both_ways ? ", both ways" : "",
		 cell->wait == VB_PERF_EVENT ? "events" : "polling");
}

static void print_line(char *line)
{
	if (line)
		fputs(line, stdout);
	free(line);
	fflush(stdout);
}

static void print_begin(const struct run *run)
{
	const struct vb_perf_cell *cell = &run->cell;
	struct json json;

	if (!run->a->json) {
		printf("%s\n", run->series->label);
		table_heading(stdout);
		fflush(stdout);
		return;
	}
	json_begin(&json);
	json_text(&json, "event", "run");
	json_text(&json, "label", run->series->label);
	json_text(&json, "op", vb_perf_op_name(cell->op));
	json_text(&json, "qp", vb_perf_qp_name(cell->qp));
	json_text(&json, "wait", cell->wait == VB_PERF_EVENT ? "event" : "poll");
	json_number(&json, "depth", cell->depth);
	json_number(&json, "rails", cell->rails);
	json_bool(&json, "both_ways", cell->both_ways);
	json_bool(&json, "checked", cell->check);
	json_text(&json, "fabric", vb_perf_fabric(run->perf));
	json_text(&json, "device", device_of(run));
	json_text(&json, "description", vb_perf_description(run->perf));
	json_text(&json, "version", vb_version());
	print_line(json_end(&json));
}

static void print_row(const struct run *run, const struct series_row *row)
{
	console_status_end(false);
	if (run->series->count == 1)
		print_begin(run);
	if (run->a->json) {
		print_line(series_row_json(row));
		return;
	}
	table_row(stdout, row);
	fflush(stdout);
}

/* ---- Measuring ---- */

static int measure_cell(struct run *run, enum vb_perf_kind kind, uint32_t size, bool *has,
			struct vb_perf_result *result, struct vb_error *err)
{
	int rc;

	run->cell.kind = kind;
	run->cell.bytes = size;
	rc = vb_perf_run(run->perf, &run->cell, result, err);
	*has = rc == 0 || rc == VB_ERR_CORRUPT;
	if (rc == VB_ERR_CORRUPT && run->corrupt.code == VB_OK)
		run->corrupt = *err;
	if (*has && result->lost)
		console_warning("%u bytes: %" PRIu64 " of %" PRIu64 " messages were lost", size,
				result->lost, result->lost + result->messages);
	return *has ? 0 : rc;
}

/* Where bandwidth was measured, no latency is a pity and no failure. */
static int measure_latency(struct run *run, struct series_row *row, struct vb_error *err)
{
	int rc = measure_cell(run, VB_PERF_LATENCY, row->size, &row->has_latency, &row->latency,
			      err);
	char line[VB_ERROR_LINE_MAX];

	if (rc != VB_ERR_UNSUPPORTED || !run->bandwidth)
		return rc;
	console_warning("no latency: %s", vb_error_format(err, line, sizeof(line)));
	run->latency = false;
	*err = (struct vb_error){ .code = VB_OK };
	return 0;
}

static int measure_size(struct run *run, uint32_t size, struct vb_error *err)
{
	struct series_row row = { .size = size };
	int rc = 0;

	if (run->bandwidth)
		rc = measure_cell(run, VB_PERF_BANDWIDTH, size, &row.has_bandwidth, &row.bandwidth,
				  err);
	if (rc == 0 && run->latency)
		rc = measure_latency(run, &row, err);
	if (row.has_bandwidth || row.has_latency) {
		run->series->row[run->series->count++] = row;
		print_row(run, &row);
	}
	return rc;
}

/* A range that goes beyond what a device can do ends there, and what was measured counts. */
static int measure_all(struct run *run, const struct sizes *sizes, struct vb_error *err)
{
	char line[VB_ERROR_LINE_MAX], size[16];
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < sizes->count; i++) {
		rc = measure_size(run, sizes->bytes[i], err);
		if (rc != VB_ERR_TOO_BIG || !run->series->count)
			continue;
		console_warning("not measured from %s on: %s", sizes_text(size, sizes->bytes[i]),
				vb_error_format(err, line, sizeof(line)));
		*err = (struct vb_error){ .code = VB_OK };
		return 0;
	}
	return rc;
}

/* Defaults that are worth being told. */
static void settle(struct run *run)
{
	run->cell = run->a->cell;
	run->cell.depth = run->cell.depth ? run->cell.depth : 16;
	run->cell.rails = run->cell.rails ? run->cell.rails : 1;
	run->bandwidth = !run->a->only_latency;
	run->latency = !run->a->only_bandwidth;
	run->cell.kind = run->bandwidth ? VB_PERF_BANDWIDTH : VB_PERF_LATENCY;
}

int measure(const struct arguments *a, const struct sizes *sizes, struct series *series,
	    enum phase *phase, struct vb_error *err)
{
	struct run run = { .a = a, .series = series };
	struct vb_perf_options options = {
		.connection = a->options.connection,
		.stop_fd = interrupt_fd(),
		.progress = show_progress,
		.progress_arg = &run,
	};
	int rc;

	settle(&run);
	run.cell.bytes = sizes->bytes[0];
	*phase = PHASE_CHECK;
	rc = vb_perf_check(&run.cell, err);
	if (rc)
		return rc == VB_ERR_UNSUPPORTED ? (int)(err->code = VB_ERR_INVALID) : rc;
	*phase = PHASE_CONNECT;
	rc = vb_perf_connect(a->host, a->port, &options, &run.perf, err);
	if (rc)
		return rc;
	make_label(&run);
	console_note("%s", vb_perf_description(run.perf));
	rc = measure_all(&run, sizes, err);
	*phase = rc == VB_ERR_UNSUPPORTED || rc == VB_ERR_NO_DEVICE || rc == VB_ERR_TOO_BIG
			 ? PHASE_CHECK
			 : PHASE_TRANSFER;
	console_status_end(false);
	vb_perf_close(run.perf);
	if (rc == 0 && run.corrupt.code) {
		*err = run.corrupt;
		return err->code;
	}
	return rc;
}
