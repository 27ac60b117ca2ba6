/* SPDX-License-Identifier: Apache-2.0 */
/* A command in one text, split into words with the shell's quotes but without a shell. Pure. */
#ifndef TOOLS_SPLIT_H
#define TOOLS_SPLIT_H

#include "common/list.h"

/* Appends the words of `text`. NULL, or what is wrong with it. */
const char *split_words(struct list *words, const char *text);

#endif
