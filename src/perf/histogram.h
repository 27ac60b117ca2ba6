/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A histogram of times, of a fixed size however many there are: exact below
 * 256, and above to less than 1 %.
 */
#ifndef VB_PERF_HISTOGRAM_H
#define VB_PERF_HISTOGRAM_H

#include <stdint.h>

#define VB__HISTOGRAM_FINE 128u /* steps in each power of two */
#define VB__HISTOGRAM_CELLS (VB__HISTOGRAM_FINE * 58u)

struct vb__histogram {
	uint64_t count, sum, least, most;
	uint64_t cells[VB__HISTOGRAM_CELLS];
};

/* Zeroed it is empty. */
void vb__histogram_add(struct vb__histogram *histogram, uint64_t value);

/*
 * The value that a share of `millionths` of all are not above, within what there
 * were; 0 if there are none.
 */
uint64_t vb__histogram_share(const struct vb__histogram *histogram, uint32_t millionths);

#endif
