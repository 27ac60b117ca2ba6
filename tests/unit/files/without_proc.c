/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linked by --wrap: the tests run as if what is open could not be opened anew, be it that another
 * user opened it or that there is no /proc, and as if the file system knew no nameless files.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/types.h>

/* Which names the compiler makes of them depends on how large off_t is by default. */
int __real_open(const char *path, int flags, ...);
int __real_openat(int dir, const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, mode_t mode);
int __wrap_openat(int dir, const char *path, int flags, mode_t mode);
int __wrap_open64(const char *path, int flags, mode_t mode);
int __wrap_openat64(int dir, const char *path, int flags, mode_t mode);

/* The mode is anything where none was given; the kernel does not look at it then. */
int __wrap_open(const char *path, int flags, mode_t mode)
{
	if (strncmp(path, "/proc/self/fd/", 14) == 0) {
		errno = EACCES;
		return -1;
	}
	return __real_open(path, flags | O_LARGEFILE, mode);
}

int __wrap_openat(int dir, const char *path, int flags, mode_t mode)
{
	if ((flags & O_TMPFILE) == O_TMPFILE) {
		errno = EOPNOTSUPP;
		return -1;
	}
	return __real_openat(dir, path, flags | O_LARGEFILE, mode);
}

int __wrap_open64(const char *path, int flags, mode_t mode)
{
	return __wrap_open(path, flags, mode);
}

int __wrap_openat64(int dir, const char *path, int flags, mode_t mode)
{
	return __wrap_openat(dir, path, flags, mode);
}
