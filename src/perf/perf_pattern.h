/* SPDX-License-Identifier: Apache-2.0 */
/* What is in a message whose data are checked: made of its number, so that the receiver can make it, too. Pure. */
#ifndef VB_PERF_PATTERN_H
#define VB_PERF_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void vb__perf_pattern_fill(uint8_t *to, size_t len, uint64_t number);
bool vb__perf_pattern_is(const uint8_t *from, size_t len, uint64_t number);

/* The number that a message says it has, of as many low bits as there is room for. */
uint64_t vb__perf_pattern_number(const uint8_t *from, size_t len);

#endif
