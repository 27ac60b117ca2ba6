/* SPDX-License-Identifier: Apache-2.0 */
/* Packing and unpacking. What the fields mean is not known here. */
#include "remote/pack.h"

#include <stdlib.h>
#include <string.h>

/* ---- Packing ---- */

static uint8_t *reserve(struct pack *pack, size_t len)
{
	uint8_t *at;

	if (pack->failed)
		return NULL;
	if (pack->len + len > pack->room) {
		size_t room = 2 * (pack->len + len) + 64;
		uint8_t *more = realloc(pack->bytes, room);

		if (!more) {
			pack->failed = true;
			return NULL;
		}
		pack->bytes = more;
		pack->room = room;
	}
	at = pack->bytes + pack->len;
	pack->len += len;
	return at;
}

void pack_number(struct pack *pack, uint64_t value, size_t bytes)
{
	uint8_t *at = reserve(pack, bytes);

	for (size_t i = 0; at && i < bytes; i++)
		at[i] = (uint8_t)(value >> 8 * i);
}

void pack_data(struct pack *pack, const void *data, size_t len)
{
	uint8_t *at = reserve(pack, len);

	if (at && len)
		memcpy(at, data, len);
}

void pack_text(struct pack *pack, const char *text)
{
	size_t len = text ? strlen(text) : 0;

	pack_number(pack, len, 4);
	pack_data(pack, text, len);
}

void pack_list(struct pack *pack, const struct list *list)
{
	pack_number(pack, list->count, 4);
	for (size_t i = 0; i < list->count; i++)
		pack_text(pack, list->item[i]);
}

/* ---- Unpacking ---- */

struct unpack unpack_begin(const void *bytes, size_t len)
{
	return (struct unpack){ .at = bytes, .end = (const uint8_t *)bytes + len };
}

static const uint8_t *take(struct unpack *unpack, size_t len)
{
	const uint8_t *at = unpack->at;

	if (unpack->failed || len > (size_t)(unpack->end - at)) {
		unpack->failed = true;
		return NULL;
	}
	unpack->at += len;
	return at;
}

uint64_t unpack_number(struct unpack *unpack, size_t bytes)
{
	const uint8_t *at = take(unpack, bytes);
	uint64_t value = 0;

	for (size_t i = 0; at && i < bytes; i++)
		value |= (uint64_t)at[i] << 8 * i;
	return value;
}

uint64_t unpack_upto(struct unpack *unpack, size_t bytes, uint64_t most)
{
	uint64_t value = unpack_number(unpack, bytes);

	if (value <= most)
		return value;
	unpack->failed = true;
	return 0;
}

bool unpack_bool(struct unpack *unpack)
{
	return unpack_upto(unpack, 1, 1) != 0;
}

void unpack_data(struct unpack *unpack, void *to, size_t len)
{
	const uint8_t *at = take(unpack, len);

	if (at)
		memcpy(to, at, len);
	else
		memset(to, 0, len);
}

/* The text's bytes, and their number in `len`. */
static const uint8_t *take_text(struct unpack *unpack, size_t *len)
{
	const uint8_t *at;

	*len = unpack_number(unpack, 4);
	at = take(unpack, *len);
	if (at && memchr(at, '\0', *len)) {
		unpack->failed = true;
		at = NULL;
	}
	return at;
}

void unpack_text(struct unpack *unpack, char *to, size_t size)
{
	size_t len;
	const uint8_t *at = take_text(unpack, &len);

	if (len >= size)
		len = size - 1;
	if (at)
		memcpy(to, at, len);
	to[at ? len : 0] = '\0';
}

char *unpack_new_text(struct unpack *unpack)
{
	size_t len;
	const uint8_t *at = take_text(unpack, &len);
	char *text = at ? malloc(len + 1) : NULL;

	if (!text) {
		unpack->failed = true;
		return NULL;
	}
	memcpy(text, at, len);
	text[len] = '\0';
	return text;
}

void unpack_list(struct unpack *unpack, struct list *list)
{
	uint64_t count = unpack_number(unpack, 4);

	/* Each takes four bytes at least, so there is an end to this. */
	while (count-- && !unpack->failed) {
		size_t len;
		const uint8_t *at = take_text(unpack, &len);

		if (at && list_add_part(list, (const char *)at, len) != 0)
			unpack->failed = true;
	}
}

bool unpack_end(const struct unpack *unpack)
{
	return !unpack->failed && unpack->at == unpack->end;
}
