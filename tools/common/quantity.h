/* SPDX-License-Identifier: Apache-2.0 */
/* Amounts as people write them: sizes, counts and times, both ways. */
#ifndef TOOLS_QUANTITY_H
#define TOOLS_QUANTITY_H

#include <stdint.h>

/*
 * These return 0, or -1 if the text is not wholly such an amount, does not fit, or is less than 1 but not 0.
 * Sizes: "4096", "64K", "1.5M", "2GiB" are powers of 1024, "64KB" of 1000.
 */
int quantity_size(const char *text, uint64_t *bytes);

/* "10", "0.5", "500ms", "2m", "1h". */
int quantity_time(const char *text, uint64_t *ms);

/* Decimal digits only. */
int quantity_count(const char *text, uint64_t *count);

#define QUANTITY_TEXT 32

/* "1.23 GB", by powers of 1000. All return `to`. */
char *quantity_bytes(char to[QUANTITY_TEXT], uint64_t bytes);

/* "5.10 GB/s". */
char *quantity_rate(char to[QUANTITY_TEXT], uint64_t bytes_per_second);

/* "0:07", "1:02:03". */
char *quantity_duration(char to[QUANTITY_TEXT], uint64_t seconds);

/* Bytes a second, without overflow; 0 if no time has passed. */
uint64_t quantity_speed(uint64_t bytes, uint64_t elapsed_ns);

#endif
