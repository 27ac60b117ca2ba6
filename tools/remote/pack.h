/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fields in bytes, little-endian, one after the other. Pure, and safe with any
 * bytes: after the first field that is not there all are zero or empty, and the
 * one that asks at the end is told.
 */
#ifndef TOOLS_PACK_H
#define TOOLS_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/list.h"

struct pack {
	uint8_t *bytes; /* the caller frees them */
	size_t len, room;
	bool failed; /* there was no memory */
};

void pack_number(struct pack *pack, uint64_t value, size_t bytes);
void pack_data(struct pack *pack, const void *data, size_t len);
void pack_text(struct pack *pack, const char *text); /* NULL: as an empty one */
void pack_list(struct pack *pack, const struct list *list);

struct unpack {
	const uint8_t *at, *end;
	bool failed;
};

struct unpack unpack_begin(const void *bytes, size_t len);
uint64_t unpack_number(struct unpack *unpack, size_t bytes);

/* A number from 0 to `most`. */
uint64_t unpack_upto(struct unpack *unpack, size_t bytes, uint64_t most);
bool unpack_bool(struct unpack *unpack);
void unpack_data(struct unpack *unpack, void *to, size_t len);

/* Without a NUL within. The first is cut to fit, the second must be freed. */
void unpack_text(struct unpack *unpack, char *to, size_t size);
char *unpack_new_text(struct unpack *unpack);
void unpack_list(struct unpack *unpack, struct list *list);

/* Was everything there, and nothing else? */
bool unpack_end(const struct unpack *unpack);

#endif
