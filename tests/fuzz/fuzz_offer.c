/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes what two ends of a tree send each other: offers, answers and parcels. */
#include <string.h>
#include <sys/stat.h>

#include "fuzz_target.h"
#include "wire/offer.h"

/* It lies within the input, and a sanitizer may see that all of it does. */
static void check_slice(struct vb__slice s, const uint8_t *data, size_t size)
{
	unsigned sum = 0;

	HOLDS(!s.len || (s.data >= data && s.len <= size && s.data + s.len <= data + size));
	for (size_t i = 0; i < s.len; i++)
		sum += s.data[i];
	HOLDS(sum <= 255 * s.len);
}

static void check_offer(const struct vb__offer *o, const uint8_t *data, size_t size)
{
	check_slice(o->name, data, size);
	check_slice(o->user, data, size);
	check_slice(o->group, data, size);
	check_slice(o->target, data, size);
	check_slice(o->xattrs, data, size);
	HOLDS(o->kind >= VB__OFFER_FILE && o->kind <= VB__OFFER_MISSED);
	HOLDS(!o->name.len || (!memchr(o->name.data, '/', o->name.len) &&
			       !memchr(o->name.data, '\0', o->name.len)));
	HOLDS(o->name.len != 1 || o->name.data[0] != '.');
	HOLDS(o->name.len != 2 || memcmp(o->name.data, "..", 2) != 0);
	HOLDS(o->name.len || o->parent == 0);
	HOLDS(o->mtime_ns < 1000000000 && o->size <= INT64_MAX);
	HOLDS(o->kind != VB__OFFER_FILE || S_ISREG(o->mode));
	HOLDS(o->kind != VB__OFFER_HARDLINK || (o->first && o->first < o->number));
}

static bool take_offer(const uint8_t *data, size_t size, size_t *at)
{
	static uint8_t again[1u << 20];
	struct vb__offer offer;
	size_t from = *at;

	if (!vb__offer_decode(&offer, data, size, at)) {
		HOLDS(*at == from);
		return false;
	}
	HOLDS(*at > from && *at <= size);
	check_offer(&offer, data, size);
	/* Every byte has its meaning. */
	HOLDS(vb__offer_encode(again, sizeof(again), &offer) == *at - from);
	HOLDS(memcmp(again, data + from, *at - from) == 0);
	return true;
}

static bool take_answer(const uint8_t *data, size_t size, size_t *at)
{
	uint8_t again[VB__ANSWER_MAX];
	struct vb__answer a;
	size_t from = *at;

	if (!vb__answer_decode(&a, data, size, at)) {
		HOLDS(*at == from);
		return false;
	}
	HOLDS(*at > from && *at <= size);
	check_slice(a.path, data, size);
	check_slice(a.cause, data, size);
	HOLDS(a.kind == VB__ANSWER_HAPPENED || a.number);
	HOLDS(a.kind != VB__ANSWER_WANT || (a.count && a.number + (a.count - 1) >= a.number));
	HOLDS(a.kind != VB__ANSWER_PART || (a.length && a.offset + a.length <= INT64_MAX));
	HOLDS(vb__answer_encode(again, sizeof(again), &a) == *at - from);
	HOLDS(memcmp(again, data + from, *at - from) == 0);
	return true;
}

static bool take_parcel(const uint8_t *data, size_t size, size_t *at)
{
	uint8_t again[VB__PARCEL_HEADER];
	struct vb__parcel parcel;
	size_t from = *at;

	if (!vb__parcel_decode(&parcel, data, size, at)) {
		HOLDS(*at == from);
		return false;
	}
	HOLDS(*at >= from + VB__PARCEL_HEADER && *at <= size);
	check_slice(parcel.data, data, size);
	HOLDS(parcel.number && parcel.size <= INT64_MAX && parcel.mtime_ns < 1000000000);
	HOLDS(parcel.kind != VB__PARCEL_WHOLE || parcel.data.len == parcel.size);
	vb__parcel_encode(again, &parcel);
	HOLDS(memcmp(again, data + from, sizeof(again)) == 0);
	return true;
}

static bool take_xattr(const uint8_t *data, size_t size, size_t *at)
{
	static uint8_t again[1u << 20];
	struct vb__xattr xattr;
	size_t from = *at;

	if (!vb__xattr_decode(&xattr, data, size, at)) {
		HOLDS(*at == from);
		return false;
	}
	check_slice(xattr.value, data, size);
	HOLDS(xattr.name[0] && memchr(xattr.name, '\0', sizeof(xattr.name)));
	HOLDS(vb__xattr_encode(again, sizeof(again), &xattr) == *at - from);
	HOLDS(memcmp(again, data + from, *at - from) == 0);
	return true;
}

/* The last byte says what the rest is. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool (*const take[])(const uint8_t *data, size_t size,
				    size_t *at) = { take_offer, take_answer, take_parcel,
						    take_xattr };
	size_t at = 0;

	if (!size--)
		return 0;
	while (at < size && take[data[size] % 4](data, size, &at))
		;
	return 0;
}

static struct vb__slice text_of(uint64_t seed, size_t max)
{
	static const uint8_t text[] = "some name of some length, and more of it, until its end";

	return (struct vb__slice){ .data = text, .len = 1 + seed % max };
}

static size_t sample_offer(uint8_t *to, size_t room, uint64_t seed)
{
	static const uint32_t types[] = { 0, S_IFREG, S_IFDIR, S_IFLNK, S_IFCHR, 0, 0, 0 };
	enum vb__offer_kind kind = VB__OFFER_FILE + (unsigned)(seed % 7);
	struct vb__xattr xattr = { .name = "user.some", .value = text_of(seed / 11, 40) };
	struct vb__offer offer = {
		.kind = kind,
		.number = kind == VB__OFFER_MISSED ? 0 : 2 + (uint32_t)(seed / 7 % 1000),
		.first = 1,
		.mode = types[kind] | (seed / 7 % 010000),
		.size = seed / 2,
		.mtime_ns = seed / 5 % 1000000000,
		.flags = kind == VB__OFFER_FILE ? seed / 3 % 2 * VB__OFFER_HASHED : 0,
		.target = text_of(seed / 13, 50),
		.user = text_of(seed / 17, 10),
		.error = VB_ERR_IO,
	};
	uint8_t xattrs[100];

	if (kind != VB__OFFER_LISTED)
		offer.name = text_of(seed / 19, 50);
	if (seed / 23 % 2)
		offer.xattrs = (struct vb__slice){
			.data = xattrs, .len = vb__xattr_encode(xattrs, sizeof(xattrs), &xattr)
		};
	return vb__offer_encode(to, room, &offer);
}

static size_t sample_answer(uint8_t *to, size_t room, uint64_t seed)
{
	struct vb__answer answer = {
		.kind = VB__ANSWER_WANT + (unsigned)(seed % 4),
		.number = 1 + seed / 4 % 1000,
		.count = 1 + seed / 8 % 100,
		.offset = seed / 16 % 10000,
		.length = 1 + seed / 32 % 10000,
		.happening = 4,
		.error = VB_ERR_IO,
		.path = text_of(seed / 64, 50),
		.cause = text_of(seed / 128, 50),
	};

	return vb__answer_encode(to, room, &answer);
}

static size_t sample_parcel(uint8_t *to, uint64_t seed)
{
	struct vb__parcel parcel = {
		.kind = VB__PARCEL_WHOLE + (unsigned)(seed % 3),
		.number = 1 + seed / 3 % 1000,
		.mtime_s = (int64_t)seed,
	};

	if (parcel.kind != VB__PARCEL_END)
		parcel.data = text_of(seed / 5, 50);
	if (parcel.kind == VB__PARCEL_MISSED)
		parcel.error = VB_ERR_IO;
	else
		parcel.size = parcel.data.len;
	vb__parcel_encode(to, &parcel);
	if (parcel.data.len)
		memcpy(to + VB__PARCEL_HEADER, parcel.data.data, parcel.data.len);
	return VB__PARCEL_HEADER + parcel.data.len;
}

static size_t sample_xattr(uint8_t *to, size_t room, uint64_t seed)
{
	struct vb__xattr xattr = { .name = "user.other", .value = text_of(seed, 50) };

	return vb__xattr_encode(to, room, &xattr);
}

size_t fuzz_sample(uint8_t *to, size_t room, uint64_t seed)
{
	uint8_t what = seed % 4;
	size_t len = 0;

	seed /= 4;
	for (unsigned i = 0; i < 2; i++) {
		uint64_t one = seed >> 8 * i;

		if (what == 0)
			len += sample_offer(to + len, room - 1 - len, one);
		else if (what == 1)
			len += sample_answer(to + len, room - 1 - len, one);
		else if (what == 2)
			len += sample_parcel(to + len, one);
		else
			len += sample_xattr(to + len, room - 1 - len, one);
	}
	HOLDS(len && len < room);
	to[len] = what;
	return len + 1;
}
