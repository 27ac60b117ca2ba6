/* SPDX-License-Identifier: Apache-2.0 */
/* One JSON object, written member by member on one line. */
#ifndef TOOLS_JSON_H
#define TOOLS_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct json {
	FILE *out;
	char *text;
	size_t size;
	bool empty; /* the innermost open object or list has no member yet */
};

/* Begins. Without memory the calls below do nothing. */
void json_begin(struct json *json);

/* Members. What is no UTF-8 in a text becomes U+FFFD. A NULL text becomes null. */
void json_text(struct json *json, const char *name, const char *text);
void json_number(struct json *json, const char *name, uint64_t number);
void json_real(struct json *json, const char *name, double number);
void json_bool(struct json *json, const char *name, bool value);
void json_null(struct json *json, const char *name);

/* The members until json_close belong to the object `name`. */
void json_open(struct json *json, const char *name);
void json_close(struct json *json);

/* The members until json_list_end, whose names are NULL, are the items of the list `name`. */
void json_list(struct json *json, const char *name);
void json_list_end(struct json *json);

/* The whole, with a newline; the caller frees it. NULL if memory was short. */
char *json_end(struct json *json);

#endif
