/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filters: which entries of a tree are taken, by a list of rules of which the first that matches
 * counts. What none matches is taken. A hundred thousand rules that each spell out one path (a list
 * of files) are as quick as a few.
 */
#ifndef VB_TREE_FILTER_H
#define VB_TREE_FILTER_H

#include <stdbool.h>

#include <verbatim/error.h>

struct vb__filter;

/*
 * Rules are as in rule.h, NULL-terminated, and stay the caller's, for as long as the filter lives;
 * none at all (NULL) make a filter that is NULL and takes everything. VB_ERR_INVALID, with the rule, if
 * one makes no sense; VB_ERR_NOMEM.
 */
int vb__filter_create(const char *const *rules, struct vb__filter **filter, struct vb_error *err);
void vb__filter_destroy(struct vb__filter *filter);

/*
 * Is this one left? `path` is as it stands in the target, with no slash at its start. Directories
 * above it are not looked at: who is in one that is left is not asked for. Any number of threads.
 */
bool vb__filter_leaves(const struct vb__filter *filter, const char *path, bool directory);

#endif
