/* SPDX-License-Identifier: Apache-2.0 */
/* How many CPUs this process may use. */
#ifndef VB_CORE_CPUS_H
#define VB_CORE_CPUS_H

#include <sched.h>

/* One at least. */
static inline unsigned vb__cpus(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) != 0 || CPU_COUNT(&set) < 1)
		return 1;
	return (unsigned)CPU_COUNT(&set);
}

#endif
