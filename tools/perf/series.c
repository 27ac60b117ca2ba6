/* SPDX-License-Identifier: Apache-2.0 */
/* Series as JSON: names and places of what is in a row, once for both ways. */
#include "perf/series.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/trouble.h"
#include "perf/flat.h"

enum unit {
	PLAIN,	/* a double as it is */
	COUNT,	/* of a uint64_t */
	MICROS, /* of a uint64_t in ns */
};

#define AT(of, field) (offsetof(struct series_row, of) + offsetof(struct vb_perf_result, field))

static const struct {
	const char *name;
	size_t offset;
	enum unit unit;
	bool of_latency;
} members[] = {
	{ "bytes_per_s", AT(bandwidth, bytes_per_second), PLAIN, false },
	{ "messages_per_s", AT(bandwidth, messages_per_second), PLAIN, false },
	{ "messages", AT(bandwidth, messages), COUNT, false },
	{ "lost", AT(bandwidth, lost), COUNT, false },
	{ "corrupt", AT(bandwidth, corrupt), COUNT, false },
	{ "cpu_here", AT(bandwidth, cpu_here), PLAIN, false },
	{ "cpu_there", AT(bandwidth, cpu_there), PLAIN, false },
	{ "latency_min_us", AT(latency, min_ns), MICROS, true },
	{ "latency_median_us", AT(latency, median_ns), MICROS, true },
	{ "latency_p99_us", AT(latency, p99_ns), MICROS, true },
	{ "latency_p999_us", AT(latency, p999_ns), MICROS, true },
	{ "latency_max_us", AT(latency, max_ns), MICROS, true },
	{ "latency_mean_us", AT(latency, mean_ns), MICROS, true },
	{ "latency_messages", AT(latency, messages), COUNT, true },
	{ "latency_lost", AT(latency, lost), COUNT, true },
	{ "latency_corrupt", AT(latency, corrupt), COUNT, true },
	{ "latency_cpu_here", AT(latency, cpu_here), PLAIN, true },
	{ "latency_cpu_there", AT(latency, cpu_there), PLAIN, true },
};

#define MEMBERS (sizeof(members) / sizeof(members[0]))

static void write_member(struct json *json, const struct series_row *row, size_t i)
{
	const char *place = (const char *)row + members[i].offset;
	uint64_t number;
	double real;

	memcpy(&number, place, sizeof(number));
	memcpy(&real, place, sizeof(real));
	if (members[i].unit == PLAIN)
		json_real(json, members[i].name, real);
	else if (members[i].unit == COUNT)
		json_number(json, members[i].name, number);
	else
		json_real(json, members[i].name, (double)number / 1000);
}

char *series_row_json(const struct series_row *row)
{
	struct json json;

	json_begin(&json);
	json_text(&json, "event", "row");
	json_number(&json, "size", row->size);
	for (size_t i = 0; i < MEMBERS; i++)
		if (members[i].of_latency ? row->has_latency : row->has_bandwidth)
			write_member(&json, row, i);
	return json_end(&json);
}

static void read_member(struct series_row *row, double value, size_t i)
{
	char *place = (char *)row + members[i].offset;
	double scaled = value * (members[i].unit == MICROS ? 1000 : 1);
	/* What does not fit is nothing that was measured. */
	uint64_t number = scaled >= 0 && scaled < 1e19 ? (uint64_t)(scaled + 0.5) : 0;

	if (members[i].unit == PLAIN)
		memcpy(place, &value, sizeof(value));
	else
		memcpy(place, &number, sizeof(number));
	if (members[i].of_latency)
		row->has_latency = true;
	else
		row->has_bandwidth = true;
}

static void take_number(struct series_row *row, const struct flat *flat)
{
	if (!isfinite(flat->number))
		return;
	if (strcmp(flat->name, "size") == 0 && flat->number >= 1 &&
	    flat->number <= VB_PERF_BYTES_MAX)
		row->size = (uint32_t)flat->number;
	for (size_t i = 0; i < MEMBERS; i++)
		if (strcmp(flat->name, members[i].name) == 0)
			read_member(row, flat->number, i);
}

int series_read_line(struct series *series, const char *line)
{
	struct series_row row = { .size = 0 };
	char label[SERIES_LABEL] = "";
	bool is_row = false;
	struct flat flat;
	int more;

	if (!flat_begin(&flat, line))
		return -1;
	while ((more = flat_next(&flat)) > 0) {
		if (flat.is_text && strcmp(flat.name, "event") == 0)
			is_row = strcmp(flat.text, "row") == 0;
		else if (flat.is_text && strcmp(flat.name, "label") == 0)
			snprintf(label, sizeof(label), "%.*s", SERIES_LABEL - 1, flat.text);
		else if (flat.is_number)
			take_number(&row, &flat);
	}
	if (more < 0)
		return -1;
	if (label[0])
		memcpy(series->label, label, sizeof(label));
	if (!is_row)
		return 0;
	if (!row.size || series->count == SIZES_MAX)
		return -1;
	series->row[series->count++] = row;
	return 0;
}

int series_read_file(struct series *series, const char *path, struct vb_error *err)
{
	FILE *file = fopen(path, "re");
	size_t size = 0, number = 0;
	char *line = NULL;
	int result = 0;

	*series = (struct series){ .count = 0 };
	snprintf(series->label, sizeof(series->label), "%.*s", SERIES_LABEL - 1, path);
	if (!file)
		return trouble_errno(err, VB_ERR_IO, errno, "read", path);
	while (result == 0 && ++number && getline(&line, &size, file) >= 0)
		result = series_read_line(series, line);
	if (result != 0)
		result = trouble_say(err, VB_ERR_IO,
				     "%s: line %zu is nothing that rdperf --json has written", path,
				     number);
	else if (ferror(file))
		result = trouble_errno(err, VB_ERR_IO, errno, "read", path);
	else if (!series->count)
		result = trouble_say(err, VB_ERR_IO, "%s: there are no results of rdperf in it",
				     path);
	free(line);
	fclose(file);
	return result;
}
