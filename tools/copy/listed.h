/* SPDX-License-Identifier: Apache-2.0 */
/* --files-from: a list of paths below one source. */
#ifndef TOOLS_LISTED_H
#define TOOLS_LISTED_H

#include <stdbool.h>
#include <verbatim/error.h>

#include "common/list.h"

/* Reads the list from a file ("-": stdin). Empty lines do not count. */
int listed_read(struct list *listed, const char *path, bool from0, struct vb_error *err);

/*
 * Pure: splits `len` bytes at `end`, and appends each path without slashes at its start and end
 * and without "." in it. NULL, or what is wrong with one, which may not leave the source.
 */
const char *listed_parse(struct list *listed, const char *bytes, size_t len, char end);

/* Pure: appends the rules that take just these, with all that is in them. -1: no memory. */
int listed_rules(struct list *rules, const struct list *listed);

#endif
