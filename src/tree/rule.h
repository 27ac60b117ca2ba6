/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules: one that says which entries of a tree are taken or left, as in rsync's filters.
 *
 * "- PATTERN" leaves, "+ PATTERN" takes. Without a slash inside, a pattern is for the last
 * component; with one, or with `**`, for the end of the path; with one at the start, for the whole
 * path. A slash at the end makes it for directories only; "dir" and a slash and three stars is for
 * a directory and all that is in it. A backslash takes the meaning from what follows. Pure.
 */
#ifndef VB_TREE_RULE_H
#define VB_TREE_RULE_H

#include <stdbool.h>
#include <stddef.h>

/* A rule taken apart, in the text that it was made of; `pattern` is not terminated. */
struct vb__rule {
	const char *pattern, *end;
	bool takes;
	bool whole; /* it must match from the start of the path */
	bool last;  /* it is for the last component */
	bool directories;
	bool with_contents; /* "/" and three stars at its end, which are taken off */
};

/* NULL, or what is wrong with it, in words. */
const char *vb__rule_check(const char *text);

/* Of one that makes sense. */
struct vb__rule vb__rule_take_apart(const char *text);

/* `path` is as it stands in the target, with no slash at its start. */
bool vb__rule_matches(const struct vb__rule *rule, const char *path, bool directory);

/*
 * Does the rule match nothing but one path that it spells out, and maybe what is below that? Then
 * `anchor` gets the path; it has room for the rule's text.
 */
bool vb__rule_anchor(const struct vb__rule *rule, char *anchor);

#endif
