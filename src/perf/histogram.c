/* SPDX-License-Identifier: Apache-2.0 */
/* Cells of equal width in each power of two, so that the error is a share of the value. */
#include "perf/histogram.h"

#define FINE_BITS 7u

static unsigned cell_of(uint64_t value)
{
	unsigned shift;

	if (value < 2 * VB__HISTOGRAM_FINE)
		return (unsigned)value;
	shift = 63u - (unsigned)__builtin_clzll(value) - FINE_BITS;
	return (shift << FINE_BITS) + (unsigned)(value >> shift);
}

/* The middle of a cell. */
static uint64_t value_of(unsigned cell)
{
	unsigned shift;

	if (cell < 2 * VB__HISTOGRAM_FINE)
		return cell;
	shift = (cell >> FINE_BITS) - 1;
	return ((uint64_t)(cell - (shift << FINE_BITS)) << shift) + (UINT64_C(1) << (shift - 1));
}

void vb__histogram_add(struct vb__histogram *h, uint64_t value)
{
	h->cells[cell_of(value)]++;
	if (!h->count || value < h->least)
		h->least = value;
	if (value > h->most)
		h->most = value;
	h->count++;
	h->sum += value;
}

uint64_t vb__histogram_share(const struct vb__histogram *h, uint32_t millionths)
{
	/* The smallest whole number that is at least this share. */
	__uint128_t wanted = ((__uint128_t)h->count * millionths + 999999u) / 1000000u;
	uint64_t seen = 0, value = 0;
	unsigned cell = 0;

	if (!h->count)
		return 0;
	wanted = wanted ? wanted : 1;
	for (; cell < VB__HISTOGRAM_CELLS && seen < wanted; cell++)
		seen += h->cells[cell];
	value = value_of(cell - 1);
	if (value < h->least)
		return h->least;
	return value > h->most ? h->most : value;
}
