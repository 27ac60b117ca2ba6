/* SPDX-License-Identifier: Apache-2.0 */
/* Progress. The clock is the transfer's own, so nothing here asks for the time. */
#include "common/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/console.h"
#include "common/json.h"
#include "common/printable.h"
#include "common/quantity.h"

#define SECOND_NS UINT64_C(1000000000)
#define LINE_EVERY_NS (SECOND_NS / 10)
#define WIDEST 1024   /* bytes: wide characters have more of them than columns */
#define NAME_LEAST 8u /* a shorter piece of a name tells nothing */

void progress_begin(struct progress *progress, int data_fd)
{
	*progress = (struct progress){
		.line = console_verbosity() >= 0 && !console_as_json() &&
			!(data_fd >= 0 && isatty(data_fd)),
		.next_json_ns = SECOND_NS,
	};
}

uint64_t progress_rate(struct progress *progress, const struct vb_progress *now)
{
	size_t oldest = progress->count < PROGRESS_SAMPLES ? 0 : progress->count % PROGRESS_SAMPLES;
	struct progress_sample from = progress->count ? progress->samples[oldest]
						      : (struct progress_sample){ 0 };

	progress->samples[progress->count++ % PROGRESS_SAMPLES] = (struct progress_sample){
		.bytes = now->bytes,
		.elapsed_ns = now->elapsed_ns,
	};
	if (now->bytes < from.bytes || now->elapsed_ns <= from.elapsed_ns)
		return 0;
	return quantity_speed(now->bytes - from.bytes, now->elapsed_ns - from.elapsed_ns);
}

uint64_t progress_eta(const struct vb_progress *now)
{
	uint64_t average = quantity_speed(now->bytes, now->elapsed_ns);

	if (now->total_bytes == UINT64_MAX || now->total_bytes < now->bytes || !average ||
	    now->counting)
		return UINT64_MAX;
	return (now->total_bytes - now->bytes) / average;
}

static void percent_and_eta(char *to, size_t size, const struct vb_progress *now)
{
	uint64_t eta = progress_eta(now);
	char text[QUANTITY_TEXT];

	to[0] = '\0';
	if (now->total_bytes == UINT64_MAX || now->total_bytes < now->bytes || now->counting)
		return;
	snprintf(to, size, "%3.0f%%  ETA %s",
		 now->total_bytes ? 100.0 * (double)now->bytes / (double)now->total_bytes : 100.0,
		 eta == UINT64_MAX ? "-:--" : quantity_duration(text, eta));
}

#define PARTS 6

/* The parts of the line, the most important first. */
static void make_parts(char parts[PARTS][64], const struct vb_progress *now, uint64_t rate)
{
	char text[QUANTITY_TEXT];
	size_t i = 0;

	if (now->total_files)
		snprintf(parts[i++], sizeof(parts[0]), "%" PRIu64 "/%" PRIu64 "%s files",
			 now->files, now->total_files, now->counting ? "+" : "");
	snprintf(parts[i++], sizeof(parts[0]), "%s", quantity_bytes(text, now->bytes));
	snprintf(parts[i++], sizeof(parts[0]), "%9s", quantity_rate(text, rate));
	percent_and_eta(parts[i++], sizeof(parts[0]), now);
	if (now->total_files)
		return;
	quantity_rate(text, quantity_speed(now->bytes, now->elapsed_ns));
	snprintf(parts[i++], sizeof(parts[0]), "average %s", text);
	snprintf(parts[i], sizeof(parts[0]), "buffers here %3u%%, there %3u%%", now->filled_here,
		 now->filled_there);
}

/* The end of the name, as much as fits and makes sense, harmless. */
static void add_name(char *to, size_t size, size_t used, unsigned width, const char *name)
{
	char clean[4 * sizeof(((struct vb_progress *)0)->name)];
	const char *from = printable(clean, sizeof(clean), name);
	size_t space = width > used + 3 ? width - used - 3 : 0;
	bool cut;

	if (!*from || space < NAME_LEAST)
		return;
	cut = printable_columns(from) > space;
	while (cut && (printable_columns(from) > space - 3 || (*from & 0xc0) == 0x80))
		from++; /* never into the middle of a character */
	snprintf(to + used, size - used, "  %s%s", cut ? "..." : "", from);
}

char *progress_line(char *to, size_t size, unsigned width, const struct vb_progress *now,
		    uint64_t rate)
{
	char parts[PARTS][64] = { "" };
	size_t used = 0, room = width < size ? width : size;

	make_parts(parts, now, rate);
	to[0] = '\0';
	for (size_t i = 0; i < PARTS && room; i++) {
		size_t gap = used ? 2 : 0;

		if (!parts[i][0])
			continue;
		if (used && used + gap + strlen(parts[i]) >= room)
			return to;
		snprintf(to + used, room - used, "%*s%s", (int)gap, "", parts[i]);
		used += strlen(to + used);
	}
	add_name(to, size, used, width, now->name);
	return to;
}

static void say_json(const struct vb_progress *now, uint64_t rate)
{
	uint64_t eta = progress_eta(now);
	struct json json;
	char *line;

	json_begin(&json);
	json_text(&json, "event", "progress");
	json_number(&json, "bytes", now->bytes);
	if (now->total_bytes == UINT64_MAX)
		json_null(&json, "total_bytes");
	else
		json_number(&json, "total_bytes", now->total_bytes);
	json_real(&json, "elapsed_s", (double)now->elapsed_ns / 1e9);
	json_number(&json, "bytes_per_s", rate);
	json_number(&json, "average_bytes_per_s", quantity_speed(now->bytes, now->elapsed_ns));
	if (eta == UINT64_MAX)
		json_null(&json, "eta_s");
	else
		json_number(&json, "eta_s", eta);
	json_number(&json, "filled_here_percent", now->filled_here);
	json_number(&json, "filled_there_percent", now->filled_there);
	if (now->total_files) {
		json_number(&json, "files", now->files);
		json_number(&json, "total_files", now->total_files);
		json_bool(&json, "counting", now->counting);
		json_text(&json, "name", now->name);
	}
	line = json_end(&json);
	if (line)
		console_write_if_room(line);
	free(line);
}

void progress_show(void *arg, const struct vb_progress *now)
{
	struct progress *progress = arg;
	char line[WIDEST];
	uint64_t rate;

	if (now->elapsed_ns < progress->next_line_ns)
		return;
	progress->next_line_ns = now->elapsed_ns + LINE_EVERY_NS;
	rate = progress_rate(progress, now);
	if (console_as_json() && now->elapsed_ns >= progress->next_json_ns) {
		/* By the second, without drifting; one that was missed is not made up for. */
		progress->next_json_ns = (now->elapsed_ns / SECOND_NS + 1) * SECOND_NS;
		say_json(now, rate);
	}
	if (!progress->line || !console_has_status())
		return;
	console_status(progress_line(line, sizeof(line), console_width(), now, rate));
	progress->shown = true;
}

void progress_end(struct progress *progress, const struct vb_report *report)
{
	char line[WIDEST], bytes[QUANTITY_TEXT], took[QUANTITY_TEXT], rate[QUANTITY_TEXT];

	if (!progress->shown)
		return;
	if (report && console_has_status()) {
		snprintf(line, sizeof(line), "%s in %s, %s", quantity_bytes(bytes, report->bytes),
			 quantity_duration(took, report->elapsed_ns / SECOND_NS),
			 quantity_rate(rate, quantity_speed(report->bytes, report->elapsed_ns)));
		line[console_width() < sizeof(line) ? console_width() - 1 : sizeof(line) - 1] =
			'\0';
		console_status(line);
	}
	console_status_end(report != NULL);
	progress->shown = false;
}
