/* SPDX-License-Identifier: Apache-2.0 */
/* The names of extended attributes of what stands in a directory, which need not be opened for it. */
#ifndef VB_TREE_XATTR_LIST_H
#define VB_TREE_XATTR_LIST_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * As llistxattr(2), or if `follow` listxattr(2), of `name` in the directory. Before Linux 6.13, or where
 * a filter does not let the call through, this takes /proc: where there is none, ENOENT.
 */
ssize_t vb__xattr_list_at(int dir_fd, const char *name, bool follow, char *list, size_t room);

#endif
