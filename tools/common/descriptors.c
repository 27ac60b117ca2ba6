/* SPDX-License-Identifier: Apache-2.0 */
/* The limit of descriptors, up and down. What they are used for is not known here. */
#include "common/descriptors.h"

#include <sys/resource.h>

/* Containers allow a billion, and there are programs that look at each. */
#define ENOUGH 65536u

static rlim_t former;
static bool raised;

static void set(rlim_t soft)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = soft < limit.rlim_max ? soft : limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

void descriptors_raise(void)
{
	struct rlimit limit;

	if (!raised && getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		former = limit.rlim_cur;
		raised = former < ENOUGH;
	}
	if (raised)
		set(ENOUGH);
}

bool descriptors_lower(void)
{
	if (raised)
		set(former);
	return raised;
}
