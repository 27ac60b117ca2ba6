/* SPDX-License-Identifier: Apache-2.0 */
/* Answers and parcels on the wire, see offer.c. */
#include <verbatim/tree.h>

#include "wire/record.h"

#define HAPPENED_BYTES 30u
#define CAUSE_MAX (sizeof(((struct vb_error *)0)->cause) - 1)
#define PATH_CUT (VB__ANSWER_MAX - HAPPENED_BYTES - CAUSE_MAX)
#define NS_PER_S 1000000000u

_Static_assert(PATH_CUT > 512, "there must be room for a path");

/* The end of a path says more than its start. */
static struct vb__slice end_of(struct vb__slice path)
{
	size_t cut = path.len > PATH_CUT ? path.len - PATH_CUT : 0;

	return (struct vb__slice){ .data = path.data + cut, .len = path.len - cut };
}

static void encode_happened(struct vb__writer *w, const struct vb__answer *a)
{
	struct vb__slice path = a->path.len ? end_of(a->path) : a->path;
	size_t cause = a->cause.len < CAUSE_MAX ? a->cause.len : CAUSE_MAX;

	vb__write8(w, a->happening);
	vb__write32(w, a->mode);
	vb__write64(w, a->bytes);
	vb__write32(w, (uint32_t)a->error);
	vb__write32(w, (uint32_t)a->native);
	vb__write16(w, (uint16_t)path.len);
	vb__write16(w, (uint16_t)cause);
	vb__write_bytes(w, path.data, path.len);
	vb__write_text(w, a->cause.data, cause);
}

size_t vb__answer_encode(uint8_t *to, size_t room, const struct vb__answer *a)
{
	struct vb__writer w = { .to = to, .room = room };

	vb__write8(&w, (uint8_t)(VB__RECORD_VERSION << 4 | a->kind));
	vb__write32(&w, a->number);
	switch (a->kind) {
	case VB__ANSWER_WANT:
		vb__write32(&w, a->count);
		break;
	case VB__ANSWER_PART:
		vb__write64(&w, a->offset);
		vb__write64(&w, a->length);
		break;
	case VB__ANSWER_HAPPENED:
		encode_happened(&w, a);
		break;
	case VB__ANSWER_SETTLED:
		break;
	}
	return vb__written(&w);
}

static void decode_happened(struct vb__reader *r, struct vb__answer *a)
{
	size_t path, cause;

	a->happening = vb__read8(r);
	a->mode = vb__read32(r);
	a->bytes = vb__read64(r);
	a->error = (int32_t)vb__read32(r);
	a->native = (int32_t)vb__read32(r);
	path = vb__read16(r);
	cause = vb__read16(r);
	a->path = vb__read_slice(r, path);
	a->cause = vb__read_slice(r, cause);
}

static bool happening_is_right(const struct vb__answer *a)
{
	bool failure = a->happening == VB_TREE_FAILED || a->happening == VB_TREE_VANISHED;

	if (a->happening < VB_TREE_COPIED || a->happening > VB_TREE_VANISHED ||
	    a->path.len > PATH_CUT || a->cause.len > CAUSE_MAX || !vb__has_no_nul(a->path) ||
	    !vb__is_text(a->cause))
		return false;
	return failure ? vb__is_failure(a->error, a->native)
		       : !a->error && !a->native && !a->cause.len;
}

bool vb__answer_decode(struct vb__answer *answer, const uint8_t *from, size_t len, size_t *at)
{
	struct vb__reader r = vb__reader(from, len, *at);
	unsigned first = vb__read8(&r);
	struct vb__answer *a = answer;
	bool right = false;

	*a = (struct vb__answer){ .kind = first & 15, .number = vb__read32(&r) };
	if (first >> 4 != VB__RECORD_VERSION)
		return false;
	switch (first & 15) {
	case VB__ANSWER_WANT:
		a->count = vb__read32(&r);
		right = a->number && a->count && a->count - 1 <= UINT32_MAX - a->number;
		break;
	case VB__ANSWER_PART:
		a->offset = vb__read64(&r);
		a->length = vb__read64(&r);
		right = a->number && a->length && a->offset <= INT64_MAX &&
			a->length <= INT64_MAX - a->offset;
		break;
	case VB__ANSWER_SETTLED:
		right = a->number;
		break;
	case VB__ANSWER_HAPPENED:
		decode_happened(&r, a);
		right = happening_is_right(a);
		break;
	}
	return right && vb__read_all(&r, from, at);
}

void vb__parcel_encode(uint8_t to[VB__PARCEL_HEADER], const struct vb__parcel *p)
{
	to[0] = (uint8_t)(VB__RECORD_VERSION << 4 | p->kind);
	to[1] = p->vanished;
	vb__put16(to + 2, 0);
	vb__put32(to + 4, p->number);
	vb__put64(to + 8, p->size);
	vb__put64(to + 16, (uint64_t)p->mtime_s);
	vb__put32(to + 24, p->mtime_ns);
	vb__put32(to + 28, 0);
	vb__put64(to + 32, p->identity);
	vb__put32(to + 40, (uint32_t)p->error);
	vb__put32(to + 44, (uint32_t)p->native);
	vb__put64(to + 48, p->data.len);
}

static bool parcel_is_right(const struct vb__parcel *p)
{
	if (!p->number || p->size > INT64_MAX || p->mtime_ns >= NS_PER_S)
		return false;
	switch (p->kind) {
	case VB__PARCEL_WHOLE:
		return !p->vanished && !p->error && !p->native && p->data.len == p->size;
	case VB__PARCEL_END:
		return !p->vanished && !p->error && !p->native && !p->data.len;
	case VB__PARCEL_MISSED:
		return vb__is_failure(p->error, p->native) && p->data.len <= CAUSE_MAX &&
		       vb__is_text(p->data) && !p->size && !p->identity;
	default:
		return false;
	}
}

bool vb__parcel_decode(struct vb__parcel *parcel, const uint8_t *from, size_t len, size_t *at)
{
	struct vb__reader r = vb__reader(from, len, *at);
	const uint8_t *head = vb__take(&r, VB__PARCEL_HEADER);

	if (!head || head[0] >> 4 != VB__RECORD_VERSION || head[1] > 1 || vb__get16(head + 2) ||
	    vb__get32(head + 28))
		return false;
	*parcel = (struct vb__parcel){
		.kind = head[0] & 15,
		.vanished = head[1],
		.number = vb__get32(head + 4),
		.size = vb__get64(head + 8),
		.mtime_s = (int64_t)vb__get64(head + 16),
		.mtime_ns = vb__get32(head + 24),
		.identity = vb__get64(head + 32),
		.error = (int32_t)vb__get32(head + 40),
		.native = (int32_t)vb__get32(head + 44),
		.data = vb__read_slice(&r, vb__get64(head + 48)),
	};
	return !r.broken && parcel_is_right(parcel) && vb__read_all(&r, from, at);
}
