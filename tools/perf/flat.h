/* SPDX-License-Identifier: Apache-2.0 */
/* A JSON object read member by member; objects and arrays in it are passed over. Pure. */
#ifndef TOOLS_PERF_FLAT_H
#define TOOLS_PERF_FLAT_H

#include <stdbool.h>

#define FLAT_NAME 40
#define FLAT_TEXT 200

struct flat {
	const char *at;
	char name[FLAT_NAME];
	char text[FLAT_TEXT]; /* of a string, cut if it is longer */
	bool is_text, is_number;
	double number;
};

/* False: it does not begin like an object. */
bool flat_begin(struct flat *flat, const char *object);

/* 1 and a member, 0 at the object's end, -1 if it is not well-formed. */
int flat_next(struct flat *flat);

#endif
