/* SPDX-License-Identifier: Apache-2.0 */
/* The table on stdout: a heading, and a line for each size. Pure, but for where it is written. */
#ifndef TOOLS_PERF_TABLE_H
#define TOOLS_PERF_TABLE_H

#include <stdio.h>

#include "perf/series.h"

/* Within 80 columns. */
void table_heading(FILE *out);
void table_row(FILE *out, const struct series_row *row);

#define TABLE_NUMBER 16

/* Three digits that count: "1.02", "34.5", "678", "12.3k", "4.56M". Returns `to`. */
char *table_number(char to[TABLE_NUMBER], double value);

#endif
