/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Offers on the wire: a head that all have, then what the kind needs, texts with their lengths
 * before them. Every byte has its meaning: what is decoded encodes to the same bytes.
 */
#include "wire/offer.h"

#include <sys/stat.h>

#include "wire/record.h"

/* What follows at the end, if there is any. */
#define HAS_USER 1u
#define HAS_GROUP 2u
#define HAS_XATTRS 4u

#define WHY_MAX (sizeof(((struct vb_error *)0)->cause) - 1)
#define XATTR_VALUE_MAX (64u << 10) /* the kernel's own limit */
#define NS_PER_S 1000000000u

/* Kinds that are made at the receiver, and so have attributes. */
static bool is_made(enum vb__offer_kind kind)
{
	return kind >= VB__OFFER_FILE && kind <= VB__OFFER_SPECIAL;
}

static void encode_attributes(struct vb__writer *w, const struct vb__offer *o)
{
	vb__write32(w, o->mode);
	vb__write32(w, o->uid);
	vb__write32(w, o->gid);
	vb__write64(w, (uint64_t)o->mtime_s);
	vb__write32(w, o->mtime_ns);
}

static void encode_kind(struct vb__writer *w, const struct vb__offer *o)
{
	size_t why = o->target.len < WHY_MAX ? o->target.len : WHY_MAX;

	switch (o->kind) {
	case VB__OFFER_FILE:
		vb__write64(w, o->size);
		vb__write64(w, o->identity);
		if (o->flags & VB__OFFER_HASHED)
			vb__write_bytes(w, o->content, sizeof(o->content));
		break;
	case VB__OFFER_SYMLINK:
		vb__write16(w, (uint16_t)o->target.len);
		vb__write_bytes(w, o->target.data, o->target.len);
		break;
	case VB__OFFER_SPECIAL:
		vb__write32(w, o->device_major);
		vb__write32(w, o->device_minor);
		break;
	case VB__OFFER_HARDLINK:
		vb__write32(w, o->first);
		break;
	case VB__OFFER_MISSED:
		vb__write32(w, (uint32_t)o->error);
		vb__write32(w, (uint32_t)o->native);
		vb__write16(w, (uint16_t)why);
		vb__write_text(w, o->target.data, why);
		break;
	case VB__OFFER_DIRECTORY:
	case VB__OFFER_LISTED:
		break;
	}
}

static void encode_rest(struct vb__writer *w, const struct vb__offer *o)
{
	if (o->user.len) {
		vb__write8(w, (uint8_t)o->user.len);
		vb__write_text(w, o->user.data, o->user.len);
	}
	if (o->group.len) {
		vb__write8(w, (uint8_t)o->group.len);
		vb__write_text(w, o->group.data, o->group.len);
	}
	if (o->xattrs.len) {
		vb__write32(w, (uint32_t)o->xattrs.len);
		vb__write_bytes(w, o->xattrs.data, o->xattrs.len);
	}
}

static bool lengths_are_right(const struct vb__offer *o)
{
	return o->name.len <= VB__NAME_MAX && o->user.len <= VB__OWNER_MAX &&
	       o->group.len <= VB__OWNER_MAX &&
	       (o->kind == VB__OFFER_MISSED || o->target.len <= VB__LINK_MAX);
}

size_t vb__offer_encode(uint8_t *to, size_t room, const struct vb__offer *o)
{
	struct vb__writer w = { .to = to, .room = room };

	if (!lengths_are_right(o))
		return 0;
	vb__write8(&w, (uint8_t)(VB__RECORD_VERSION << 4 | o->kind));
	vb__write8(&w, (uint8_t)o->flags);
	vb__write8(&w, (uint8_t)((is_made(o->kind) && o->user.len ? HAS_USER : 0) |
				 (is_made(o->kind) && o->group.len ? HAS_GROUP : 0) |
				 (is_made(o->kind) && o->xattrs.len ? HAS_XATTRS : 0)));
	vb__write8(&w, (uint8_t)o->name.len);
	vb__write32(&w, o->number);
	vb__write32(&w, o->parent);
	vb__write_bytes(&w, o->name.data, o->name.len);
	if (is_made(o->kind))
		encode_attributes(&w, o);
	encode_kind(&w, o);
	if (is_made(o->kind))
		encode_rest(&w, o);
	return vb__written(&w);
}

static void decode_attributes(struct vb__reader *r, struct vb__offer *o)
{
	o->mode = vb__read32(r);
	o->uid = vb__read32(r);
	o->gid = vb__read32(r);
	o->mtime_s = (int64_t)vb__read64(r);
	o->mtime_ns = vb__read32(r);
}

static void decode_content(struct vb__reader *r, struct vb__offer *o)
{
	const uint8_t *content = vb__take(r, sizeof(o->content));

	if (content)
		memcpy(o->content, content, sizeof(o->content));
}

static void decode_kind(struct vb__reader *r, struct vb__offer *o)
{
	switch (o->kind) {
	case VB__OFFER_FILE:
		o->size = vb__read64(r);
		o->identity = vb__read64(r);
		if (o->flags & VB__OFFER_HASHED)
			decode_content(r, o);
		break;
	case VB__OFFER_SYMLINK:
		o->target = vb__read_slice(r, vb__read16(r));
		break;
	case VB__OFFER_SPECIAL:
		o->device_major = vb__read32(r);
		o->device_minor = vb__read32(r);
		break;
	case VB__OFFER_HARDLINK:
		o->first = vb__read32(r);
		break;
	case VB__OFFER_MISSED:
		o->error = (int32_t)vb__read32(r);
		o->native = (int32_t)vb__read32(r);
		o->target = vb__read_slice(r, vb__read16(r));
		break;
	case VB__OFFER_DIRECTORY:
	case VB__OFFER_LISTED:
		break;
	}
}

/* What is said to be there must not be empty. */
static bool decode_rest(struct vb__reader *r, struct vb__offer *o, unsigned has)
{
	if (has & HAS_USER)
		o->user = vb__read_slice(r, vb__read8(r));
	if (has & HAS_GROUP)
		o->group = vb__read_slice(r, vb__read8(r));
	if (has & HAS_XATTRS)
		o->xattrs = vb__read_slice(r, vb__read32(r));
	return !(has & HAS_USER) == !o->user.len && !(has & HAS_GROUP) == !o->group.len &&
	       !(has & HAS_XATTRS) == !o->xattrs.len;
}

static bool name_is_right(const struct vb__offer *o)
{
	const struct vb__slice *name = &o->name;

	if (o->kind == VB__OFFER_LISTED)
		return !name->len;
	if (!name->len) /* the target itself */
		return o->parent == 0 &&
		       (o->kind == VB__OFFER_DIRECTORY || o->kind == VB__OFFER_MISSED);
	if (name->data[0] == '.' && (name->len == 1 || (name->len == 2 && name->data[1] == '.')))
		return false;
	return vb__has_no_nul(*name) && !memchr(name->data, '/', name->len);
}

/* Who is made comes after the directory that it is in, and a further name after the first. */
static bool numbers_are_right(const struct vb__offer *o)
{
	if (o->kind == VB__OFFER_MISSED)
		return o->number == 0;
	if (o->kind == VB__OFFER_LISTED)
		return o->number && o->parent == 0;
	if (o->kind == VB__OFFER_HARDLINK && (!o->first || o->first >= o->number))
		return false;
	return o->number && o->parent < o->number;
}

static bool flags_are_right(const struct vb__offer *o)
{
	unsigned allowed = 0;

	if (o->kind == VB__OFFER_FILE)
		allowed = VB__OFFER_LINKED | VB__OFFER_SPARSE | VB__OFFER_HASHED;
	else if (o->kind == VB__OFFER_LISTED)
		allowed = VB__OFFER_INCOMPLETE;
	else if (o->kind == VB__OFFER_MISSED)
		allowed = VB__OFFER_VANISHED;
	return !(o->flags & ~allowed);
}

static bool type_is_right(const struct vb__offer *o)
{
	bool device = S_ISCHR(o->mode) || S_ISBLK(o->mode);

	switch (o->kind) {
	case VB__OFFER_FILE:
		return S_ISREG(o->mode);
	case VB__OFFER_DIRECTORY:
		return S_ISDIR(o->mode);
	case VB__OFFER_SYMLINK:
		return S_ISLNK(o->mode);
	default:
		return device || ((S_ISFIFO(o->mode) || S_ISSOCK(o->mode)) && !o->device_major &&
				  !o->device_minor);
	}
}

static bool xattrs_are_right(struct vb__slice run)
{
	struct vb__xattr xattr;
	size_t at = 0;

	while (at < run.len)
		if (!vb__xattr_decode(&xattr, run.data, run.len, &at))
			return false;
	return true;
}

static bool attributes_are_right(const struct vb__offer *o)
{
	return type_is_right(o) && !(o->mode & ~(uint32_t)(S_IFMT | 07777)) &&
	       o->mtime_ns < NS_PER_S && o->size <= INT64_MAX && vb__is_text(o->user) &&
	       vb__is_text(o->group) && xattrs_are_right(o->xattrs);
}

static bool is_right(const struct vb__offer *o)
{
	if (!name_is_right(o) || !numbers_are_right(o) || !flags_are_right(o))
		return false;
	if (o->kind == VB__OFFER_SYMLINK &&
	    (!o->target.len || o->target.len > VB__LINK_MAX || !vb__has_no_nul(o->target)))
		return false;
	if (o->kind == VB__OFFER_MISSED)
		return vb__is_failure(o->error, o->native) && o->target.len <= WHY_MAX &&
		       vb__is_text(o->target);
	return !is_made(o->kind) || attributes_are_right(o);
}

bool vb__offer_decode(struct vb__offer *offer, const uint8_t *from, size_t len, size_t *at)
{
	struct vb__reader r = vb__reader(from, len, *at);
	unsigned first = vb__read8(&r), has, name;

	*offer = (struct vb__offer){ .kind = first & 15, .flags = vb__read8(&r) };
	if (first >> 4 != VB__RECORD_VERSION || offer->kind < VB__OFFER_FILE ||
	    offer->kind > VB__OFFER_MISSED)
		return false;
	has = vb__read8(&r);
	name = vb__read8(&r);
	offer->number = vb__read32(&r);
	offer->parent = vb__read32(&r);
	offer->name = vb__read_slice(&r, name);
	if (has > (is_made(offer->kind) ? HAS_USER | HAS_GROUP | HAS_XATTRS : 0))
		return false;
	if (is_made(offer->kind))
		decode_attributes(&r, offer);
	decode_kind(&r, offer);
	return decode_rest(&r, offer, has) && !r.broken && is_right(offer) &&
	       vb__read_all(&r, from, at);
}

size_t vb__xattr_encode(uint8_t *to, size_t room, const struct vb__xattr *xattr)
{
	struct vb__writer w = { .to = to, .room = room };
	size_t name = strnlen(xattr->name, sizeof(xattr->name));

	if (!name || name > VB__NAME_MAX || xattr->value.len > XATTR_VALUE_MAX)
		return 0;
	vb__write8(&w, (uint8_t)name);
	vb__write32(&w, (uint32_t)xattr->value.len);
	vb__write_bytes(&w, xattr->name, name);
	vb__write_bytes(&w, xattr->value.data, xattr->value.len);
	return vb__written(&w);
}

bool vb__xattr_decode(struct vb__xattr *xattr, const uint8_t *from, size_t len, size_t *at)
{
	struct vb__reader r = vb__reader(from, len, *at);
	unsigned name_len = vb__read8(&r);
	uint32_t value_len = vb__read32(&r);
	struct vb__slice name = vb__read_slice(&r, name_len);

	xattr->value = vb__read_slice(&r, value_len);
	if (r.broken || !name.len || !vb__has_no_nul(name) || value_len > XATTR_VALUE_MAX)
		return false;
	memcpy(xattr->name, name.data, name.len);
	xattr->name[name.len] = '\0';
	return vb__read_all(&r, from, at);
}
