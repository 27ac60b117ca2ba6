/* SPDX-License-Identifier: Apache-2.0 */
/* Little-endian integers in byte arrays, whatever the machine's order and alignment. */
#ifndef VB_WIRE_BYTES_H
#define VB_WIRE_BYTES_H

#include <stdint.h>

static inline void vb__put16(uint8_t *to, uint16_t v)
{
	to[0] = (uint8_t)v;
	to[1] = (uint8_t)(v >> 8);
}

static inline void vb__put32(uint8_t *to, uint32_t v)
{
	vb__put16(to, (uint16_t)v);
	vb__put16(to + 2, (uint16_t)(v >> 16));
}

static inline void vb__put64(uint8_t *to, uint64_t v)
{
	vb__put32(to, (uint32_t)v);
	vb__put32(to + 4, (uint32_t)(v >> 32));
}

static inline uint16_t vb__get16(const uint8_t *from)
{
	return (uint16_t)(from[0] | from[1] << 8);
}

static inline uint32_t vb__get32(const uint8_t *from)
{
	return vb__get16(from) | (uint32_t)vb__get16(from + 2) << 16;
}

static inline uint64_t vb__get64(const uint8_t *from)
{
	return vb__get32(from) | (uint64_t)vb__get32(from + 4) << 32;
}

#endif
