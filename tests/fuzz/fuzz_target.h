/* SPDX-License-Identifier: Apache-2.0 */
/* What a fuzz target is to libFuzzer and to fuzz_driver.c. */
#ifndef VB_FUZZ_TARGET_H
#define VB_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* One good input for the driver to start from, of at most `room` bytes; `seed` picks which. */
size_t fuzz_sample(uint8_t *to, size_t room, uint64_t seed);

/* An invariant, in release builds too. */
#define HOLDS(condition)          \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

#endif
