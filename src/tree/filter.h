/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filters: which entries of a tree are taken, by rules as in rsync's filters.
 *
 * A rule is "- PATTERN" (leave it) or "+ PATTERN" (take it), the first that matches counts. Without a
 * slash inside, a pattern is for the last component; with one, or with `**`, for the end of the
 * path; with one at the start, for the whole path. A slash at the end makes it for directories
 * only; "dir" and a slash and three stars is for a directory and all that is in it. A backslash
 * takes the meaning from what follows.
 */
#ifndef VB_TREE_FILTER_H
#define VB_TREE_FILTER_H

#include <stdbool.h>

#include <verbatim/error.h>

/* Rules are NULL-terminated; NULL: none. VB_ERR_INVALID, with the rule, if one makes no sense. */
int vb__filter_check(const char *const *rules, struct vb_error *err);

/*
 * Is this one left? `path` is as it stands in the target, with no slash at its start. Directories
 * above it are not looked at: who is in one that is left is not asked for. Any number of threads.
 */
bool vb__filter_leaves(const char *const *rules, const char *path, bool directory);

#endif
