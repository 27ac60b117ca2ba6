/* SPDX-License-Identifier: Apache-2.0 */
/* The memlock limit, and what lifts it. */
#include "core/memlock.h"

#include <linux/capability.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel's own user namespace has had this number since there are such files. */
#define INITIAL_USER_NAMESPACE 0xEFFFFFFDu

static bool in_initial_user_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/user", &st) != 0 || st.st_ino == INITIAL_USER_NAMESPACE;
}

/*
 * CAP_IPC_LOCK in the effective set lifts the limit; in the bounding set it does nothing, nor does one that a rootless
 * container has over its own user namespace.
 */
static bool may_lock_without_limit(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { 0 } };

	return syscall(SYS_capget, &header, data) == 0 &&
	       (data[0].effective & (1u << CAP_IPC_LOCK)) && in_initial_user_namespace();
}

uint64_t vb__memlock_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
	    may_lock_without_limit())
		return UINT64_MAX;
	return limit.rlim_cur;
}
