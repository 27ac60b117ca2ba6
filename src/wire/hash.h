/* SPDX-License-Identifier: Apache-2.0 */
/*
 * XXH3 of much data, by whichever of libxxhash's ways is the fastest here. That is found out by trying: a CPU that is
 * emulated has vector instructions, but they take longer than to do without.
 */
#ifndef VB_WIRE_HASH_H
#define VB_WIRE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* 64 bits of it. Any thread. */
uint64_t vb__hash(const void *data, size_t len, uint64_t seed);

/* The same, the ways themselves: as libxxhash chooses by what the CPU says it has, and without vector instructions. */
uint64_t vb__hash_by_vectors(const void *data, size_t len, uint64_t seed);
uint64_t vb__hash_plainly(const void *data, size_t len, uint64_t seed);

#endif
