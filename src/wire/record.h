/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of variable length: writing that only counts once the room is used up, and reading that
 * gives zeros once the bytes are. So both are checked once, at the end.
 */
#ifndef VB_WIRE_RECORD_H
#define VB_WIRE_RECORD_H

#include <stdbool.h>
#include <string.h>

#include "wire/bytes.h"
#include "wire/offer.h"

/* The first byte of every record: the version above, the kind below. */
#define VB__RECORD_VERSION 1u

struct vb__writer {
	uint8_t *to;
	size_t room, len; /* len > room: it did not fit */
};

static inline uint8_t *vb__claim(struct vb__writer *w, size_t len)
{
	uint8_t *at = w->len <= w->room && len <= w->room - w->len ? w->to + w->len : NULL;

	w->len = at ? w->len + len : w->room + 1;
	return at;
}

static inline void vb__write8(struct vb__writer *w, uint8_t v)
{
	uint8_t *at = vb__claim(w, 1);

	if (at)
		*at = v;
}

static inline void vb__write16(struct vb__writer *w, uint16_t v)
{
	uint8_t *at = vb__claim(w, 2);

	if (at)
		vb__put16(at, v);
}

static inline void vb__write32(struct vb__writer *w, uint32_t v)
{
	uint8_t *at = vb__claim(w, 4);

	if (at)
		vb__put32(at, v);
}

static inline void vb__write64(struct vb__writer *w, uint64_t v)
{
	uint8_t *at = vb__claim(w, 8);

	if (at)
		vb__put64(at, v);
}

static inline void vb__write_bytes(struct vb__writer *w, const void *data, size_t len)
{
	uint8_t *at = vb__claim(w, len);

	if (at && len)
		memcpy(at, data, len);
}

/* What could disturb a terminal becomes a question mark. */
static inline void vb__write_text(struct vb__writer *w, const uint8_t *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		vb__write8(w, text[i] < 0x20 || text[i] == 0x7f ? '?' : text[i]);
}

static inline size_t vb__written(const struct vb__writer *w)
{
	return w->len <= w->room ? w->len : 0;
}

struct vb__reader {
	const uint8_t *at;
	size_t left;
	bool broken; /* something was missing */
};

static inline struct vb__reader vb__reader(const uint8_t *from, size_t len, size_t at)
{
	return (struct vb__reader){ .at = from + (at < len ? at : len),
				    .left = at < len ? len - at : 0 };
}

/* The next bytes, or NULL. */
static inline const uint8_t *vb__take(struct vb__reader *r, size_t len)
{
	const uint8_t *at = r->at;

	if (r->broken || len > r->left) {
		r->broken = true;
		return NULL;
	}
	r->at += len;
	r->left -= len;
	return at;
}

static inline uint8_t vb__read8(struct vb__reader *r)
{
	const uint8_t *at = vb__take(r, 1);

	return at ? *at : 0;
}

static inline uint16_t vb__read16(struct vb__reader *r)
{
	const uint8_t *at = vb__take(r, 2);

	return at ? vb__get16(at) : 0;
}

static inline uint32_t vb__read32(struct vb__reader *r)
{
	const uint8_t *at = vb__take(r, 4);

	return at ? vb__get32(at) : 0;
}

static inline uint64_t vb__read64(struct vb__reader *r)
{
	const uint8_t *at = vb__take(r, 8);

	return at ? vb__get64(at) : 0;
}

static inline struct vb__slice vb__read_slice(struct vb__reader *r, size_t len)
{
	const uint8_t *at = vb__take(r, len);

	return (struct vb__slice){ .data = at, .len = at ? len : 0 };
}

/* The record is read: moves `*at` behind it, unless something was missing. */
static inline bool vb__read_all(const struct vb__reader *r, const uint8_t *from, size_t *at)
{
	if (!r->broken)
		*at = (size_t)(r->at - from);
	return !r->broken;
}

static inline bool vb__has_no_nul(struct vb__slice s)
{
	return !s.len || !memchr(s.data, '\0', s.len);
}

/* Nothing in it could disturb a terminal. */
static inline bool vb__is_text(struct vb__slice s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.data[i] < 0x20 || s.data[i] == 0x7f)
			return false;
	return true;
}

/* An enum vb_err that is a failure, though maybe one of a newer version, and an errno or 0. */
static inline bool vb__is_failure(int32_t error, int32_t native)
{
	return error < 0 && error > -1000 && native >= 0;
}

#endif
