/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Offers, answers and parcels: how a tree travels. See docs/protocol.md.
 *
 * The sender tells of its entries in offers, which are records in blocks with
 * VB__BLOCK_OFFERS; the blocks' offsets count their bytes from 0, and they are taken in that order.
 * The receiver's answers go back as notes over the parley. What it wants then
 * comes as blocks of that file (block.file is the entry's number), or, if
 * small, as parcels: records in blocks with VB__BLOCK_PARCELS, in any order.
 * No record crosses the end of its block or note.
 */
#ifndef VB_WIRE_OFFER_H
#define VB_WIRE_OFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <verbatim/error.h>

#define VB__NAME_MAX 255u
#define VB__LINK_MAX 4095u
#define VB__OWNER_MAX 255u

/* ---- Offers ---- */

enum vb__offer_kind {
	VB__OFFER_FILE = 1,
	VB__OFFER_DIRECTORY = 2,
	VB__OFFER_SYMLINK = 3,
	VB__OFFER_SPECIAL = 4,	/* FIFO, socket, device: by `mode` and `device` */
	VB__OFFER_HARDLINK = 5, /* a further name of file `first` */
	VB__OFFER_LISTED = 6,	/* that was all of directory `number` */
	VB__OFFER_MISSED =
		7, /* something is there but cannot be copied: `name` in `parent`, and why */
};

enum vb__offer_flag {
	VB__OFFER_LINKED = 1, /* FILE: there may be hard links to it later */
	VB__OFFER_INCOMPLETE =
		2,		/* LISTED: it could not be read to its end: delete nothing there */
	VB__OFFER_SPARSE = 4,	/* FILE: it has holes */
	VB__OFFER_VANISHED = 8, /* MISSED: it is gone, rather than failed */
	VB__OFFER_HASHED = 16,	/* FILE: `content` is given */
};

/* Bytes within the block that was decoded, not terminated. */
struct vb__slice {
	const uint8_t *data;
	size_t len;
};

struct vb__offer {
	enum vb__offer_kind kind;
	unsigned flags;
	uint32_t number; /* ascending from 1, one for each record but LISTED and MISSED */
	uint32_t parent; /* number of the directory; 0: the target */
	uint32_t first;	 /* HARDLINK */
	uint32_t mode;	 /* as in struct stat, type included */
	uint32_t uid, gid;
	uint64_t size;
	int64_t mtime_s;
	uint32_t mtime_ns;
	uint32_t device_major, device_minor;
	uint64_t identity;   /* FILE: changes when the source does: of inode, size, mtime, ctime */
	uint8_t content[16]; /* FILE, HASHED: XXH3-128 of all bytes, see tree/content.h */

	/* No slash, no NUL, not empty but where `parent` is 0 and the contents come to stand in the
	 * target itself, not "." or "..": decode checks. */
	struct vb__slice name;
	struct vb__slice user, group; /* empty: by number */
	struct vb__slice target;      /* SYMLINK; MISSED: why, in words */
	struct vb__slice xattrs;      /* a run of vb__xattr records, ACLs among them */
	int32_t error;		      /* MISSED: an enum vb_err... */
	int32_t native;		      /* ...and an errno */
};

/* Writes a record. Returns its length, or 0 if it does not fit into `room`. */
size_t vb__offer_encode(uint8_t *to, size_t room, const struct vb__offer *offer);

/* Takes the record at `*at`, moves `*at` behind it. False: it makes no sense, or breaks a rule above. */
bool vb__offer_decode(struct vb__offer *offer, const uint8_t *from, size_t len, size_t *at);

/* One extended attribute, in offer.xattrs. */
struct vb__xattr {
	char name[VB__NAME_MAX + 1];
	struct vb__slice value;
};

size_t vb__xattr_encode(uint8_t *to, size_t room, const struct vb__xattr *xattr);
bool vb__xattr_decode(struct vb__xattr *xattr, const uint8_t *from, size_t len, size_t *at);

/* ---- Answers ---- */

enum vb__answer_kind {
	VB__ANSWER_WANT = 1, /* entries `number` to `number + count - 1`: all of each */
	/* Of entry `number`: `length` bytes from `offset`; more may follow, in ascending order. If it
	 * is no longer what was offered it is MISSED: its parts would not belong together. */
	VB__ANSWER_PART = 2,
	VB__ANSWER_SETTLED =
		3, /* no more wants for entries up to `number`; the rest is not needed */
	VB__ANSWER_HAPPENED = 4, /* to an entry over there: told to the user here */
};

struct vb__answer {
	enum vb__answer_kind kind;
	uint32_t number, count;
	uint64_t offset, length;

	/* HAPPENED */
	uint8_t happening; /* enum vb_tree_happening */
	uint32_t mode;
	uint64_t bytes;
	int32_t error, native; /* FAILED, VANISHED */
	struct vb__slice path; /* cut at the front if too long */
	struct vb__slice cause;
};

/* Room enough for any answer; longer texts are cut. */
#define VB__ANSWER_MAX 1000u

size_t vb__answer_encode(uint8_t *to, size_t room, const struct vb__answer *answer);
bool vb__answer_decode(struct vb__answer *answer, const uint8_t *from, size_t len, size_t *at);

/* ---- Parcels ---- */

enum vb__parcel_kind {
	VB__PARCEL_WHOLE = 1, /* a file: all of its data */
	VB__PARCEL_END = 2,   /* a file whose data comes in blocks of its own: it was read well */
	/* A file that could not be read, or changed meanwhile: give it up. It may be said more than
	 * once, and blocks of the file may still come: they are to be ignored. */
	VB__PARCEL_MISSED = 3,
};

struct vb__parcel {
	enum vb__parcel_kind kind;
	uint32_t number;
	bool vanished; /* MISSED */

	/* WHOLE and END: the file as it was read, which may be newer than the offer, and then shorter
	 * or longer: blocks beyond the offered size may come. */
	uint64_t size;
	int64_t mtime_s;
	uint32_t mtime_ns;
	uint64_t identity;

	struct vb__slice data; /* WHOLE: the bytes; MISSED: why, in words */
	int32_t error, native; /* MISSED */
};

/* The room that all but the data takes. */
#define VB__PARCEL_HEADER 56u

/* Writes the header to `to`; `parcel->data.len` bytes of data are to follow it. */
void vb__parcel_encode(uint8_t to[VB__PARCEL_HEADER], const struct vb__parcel *parcel);
bool vb__parcel_decode(struct vb__parcel *parcel, const uint8_t *from, size_t len, size_t *at);

#endif
