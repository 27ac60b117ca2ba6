/* SPDX-License-Identifier: Apache-2.0 */
/* Text from users and peers, made harmless for a terminal. */
#ifndef TOOLS_PRINTABLE_H
#define TOOLS_PRINTABLE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Copies `from` to `to`, at most `size` bytes with the terminator, and returns `to`. Control
 * characters, what is no UTF-8 and what changes the direction of writing become \n, \x1b and such.
 */
char *printable(char *to, size_t size, const char *from);

/* The length of the well-formed UTF-8 character at `text`, 0 if there is none, and its code. */
size_t printable_character(const char *text, uint32_t *code);

/* How many columns of a terminal it takes. What is no UTF-8 counts as one for each byte. */
size_t printable_columns(const char *text);

#endif
