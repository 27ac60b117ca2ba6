/* SPDX-License-Identifier: Apache-2.0 */
/* A list of texts that grows. */
#ifndef TOOLS_LIST_H
#define TOOLS_LIST_H

#include <stddef.h>

/* Zeroed it is empty. */
struct list {
	char **item; /* ends with NULL, if there is any */
	size_t count, room;
};

/* Appends a copy. -1 if there is no memory. */
int list_add(struct list *list, const char *text);

/* The same with the first `len` bytes of the text. */
int list_add_part(struct list *list, const char *text, size_t len);

/* As an array that ends with NULL also if it is empty. */
const char *const *list_texts(const struct list *list);

/* Empties it. */
void list_free(struct list *list);

#endif
