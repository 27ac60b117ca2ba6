/* SPDX-License-Identifier: Apache-2.0 */
/* Small things from /sys and /proc. */
#ifndef TOOLS_SYSFS_H
#define TOOLS_SYSFS_H

#include <stdbool.h>
#include <stddef.h>

/* The first line of a file; false, and "", if it cannot be read. */
bool sysfs_line(char *to, size_t size, const char *path);

/* The number at the beginning of a file whose path has one %s; 0 if there is none. */
double sysfs_number(const char *pattern, const char *name);

/* The version in the file name of a library that this process has loaded: "1.14.44.0"; empty: it has not. */
void sysfs_library_version(const char *prefix, char *to, size_t size);

#endif
