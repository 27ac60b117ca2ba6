/* SPDX-License-Identifier: Apache-2.0 */
/* The sending end of a tree, driven by hand: a receiver in small, for tests. */
#ifndef VB_TEST_DRIVEN_H
#define VB_TEST_DRIVEN_H

#include "tree/tree_ends.h"
#include "tree_kit.h"
#include "wire/offer.h"

#define ROOM (256u * KIB)
#define HANGS_S 20u

struct driven {
	struct kit *kit;
	struct vb_tree_options options;
	struct vb_tree_report report;
	struct vb__source *source;
	const char *paths[2];
	size_t room;
	uint8_t *buffer;

	/* What has come so far. */
	struct vb__block block;
	uint64_t offers_offset;
	uint32_t last_number;
	unsigned directories, listed, missed;
	struct vb__offer last_file; /* its slices are not valid */
};

struct driven driven_open(struct kit *kit, const char *path, unsigned keep);

void driven_start(struct driven *d);

void driven_end(struct driven *d);

int driven_next(struct driven *d);

void driven_fill(struct driven *d);

/* The next block, which must be of that kind. */
void driven_take(struct driven *d, uint32_t flags);

/* The block at hand holds offers: they are checked and counted. */
void driven_note_offers(struct driven *d);

/* Takes the first offers, until so many entries were told. */
void driven_take_first_offers(struct driven *d, uint32_t number);

/* Takes all offers: so many entries, and the end of each directory, which may come in a block of its own. */
void driven_take_offers(struct driven *d, uint32_t number);

int driven_hear(struct driven *d, struct vb__answer answer);

int driven_want(struct driven *d, uint32_t number, uint32_t count);

int driven_want_part(struct driven *d, uint32_t number, uint64_t offset, uint64_t length);

int driven_settle(struct driven *d, uint32_t number);

/* The next parcel of the block at hand. */
struct vb__parcel driven_parcel_at(struct driven *d, size_t *at);

struct vb__parcel driven_only_parcel(struct driven *d);

void assert_bytes(const uint8_t *data, size_t len, uint64_t offset);

void assert_words(const struct vb__parcel *parcel, const char *words);

#endif
