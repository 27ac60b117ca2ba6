/* SPDX-License-Identifier: Apache-2.0 */
/* The table. */
#include "perf/table.h"

#include "common/quantity.h"

char *table_number(char to[TABLE_NUMBER], double value)
{
	static const char *const units[] = { "", "k", "M", "G", "T" };
	unsigned i = 0;

	/* 999.5 would be printed as 1000. */
	for (; value >= 999.5 && i < 4; i++)
		value /= 1000;
	snprintf(to, TABLE_NUMBER, "%.*f%s",
		 value < 9.995	 ? 2
		 : value < 99.95 ? 1
				 : 0,
		 value, units[i]);
	return to;
}

/* Of times, which are all in one unit: that makes them easy to compare. */
static char *micros(char to[TABLE_NUMBER], bool known, uint64_t ns)
{
	double us = (double)ns / 1000;

	if (known)
		snprintf(to, TABLE_NUMBER, "%.*f", us < 99.995 ? 2 : us < 9999.95 ? 1 : 0, us);
	else
		snprintf(to, TABLE_NUMBER, "-");
	return to;
}

void table_heading(FILE *out)
{
	fprintf(out,
		"        | bandwidth messages |            latency in us            |   CPU %%\n"
		"   size |           a second |      min   median      p99    p99.9 | here there\n");
}

void table_row(FILE *out, const struct series_row *row)
{
	const struct vb_perf_result *cpu = row->has_bandwidth ? &row->bandwidth : &row->latency;
	char size[16], rate[QUANTITY_TEXT] = "-", count[TABLE_NUMBER] = "-";
	char times[4][TABLE_NUMBER];
	bool known = row->has_latency;

	if (row->has_bandwidth) {
		quantity_rate(rate, (uint64_t)row->bandwidth.bytes_per_second);
		table_number(count, row->bandwidth.messages_per_second);
	}
	fprintf(out, "%7s | %9s %8s | %8s %8s %8s %8s | %4.0f %5.0f\n", sizes_text(size, row->size),
		rate, count, micros(times[0], known, row->latency.min_ns),
		micros(times[1], known, row->latency.median_ns),
		micros(times[2], known, row->latency.p99_ns),
		micros(times[3], known, row->latency.p999_ns), 100 * cpu->cpu_here,
		100 * cpu->cpu_there);
}
