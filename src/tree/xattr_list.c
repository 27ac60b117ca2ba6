/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes' names: by listxattrat(2), or where that is not known, by a path through /proc, in thrice the time. */
#include "tree/xattr_list.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "wire/offer.h"

/* The C library's headers may be older than the kernel. */
#if !defined(SYS_listxattrat) && !defined(__ILP32__) && \
	(defined(__x86_64__) || defined(__aarch64__))
#define SYS_listxattrat 465
#endif

#ifdef SYS_listxattrat
static ssize_t list_at(int dir_fd, const char *name, bool follow, char *list, size_t room)
{
	return syscall(SYS_listxattrat, dir_fd, name, follow ? 0 : AT_SYMLINK_NOFOLLOW, list, room);
}
#else
static ssize_t list_at(int dir_fd, const char *name, bool follow, char *list, size_t room)
{
	(void)dir_fd, (void)name, (void)follow, (void)list, (void)room;
	errno = ENOSYS;
	return -1;
}
#endif

static ssize_t list_by_path(int dir_fd, const char *name, bool follow, char *list, size_t room)
{
	char path[VB__NAME_MAX + 48];

	if (snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", dir_fd, name) >=
	    (int)sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return follow ? listxattr(path, list, room) : llistxattr(path, list, room);
}

ssize_t vb__xattr_list_at(int dir_fd, const char *name, bool follow, char *list, size_t room)
{
	static atomic_bool unknown;
	ssize_t n;

	if (!atomic_load_explicit(&unknown, memory_order_relaxed)) {
		n = list_at(dir_fd, name, follow, list, room);
		/* Container runtimes forbid what they do not know. */
		if (n >= 0 || (errno != ENOSYS && errno != EPERM))
			return n;
		atomic_store_explicit(&unknown, true, memory_order_relaxed);
	}
	return list_by_path(dir_fd, name, follow, list, room);
}
