/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrivals: files that were asked for and are under way. A small one comes whole, is written to a
 * file without a name and gets it when all is well. A large one comes in blocks, written by many
 * threads to a file beside its place, which is kept if the transfer fails.
 */
#ifndef VB_TREE_ARRIVAL_H
#define VB_TREE_ARRIVAL_H

#include "transfer/filing.h"
#include "tree/extents.h"
#include "tree/meta.h"
#include "tree/place.h"
#include "wire/block.h"

struct vb__tree_sink;

struct vb__arrival {
	uint32_t number;
	struct vb__place *place;
	struct vb__path_hash hash;
	struct vb__meta meta;
	uint64_t size;
	uint64_t identity;
	bool linked, sparse;
	bool resumed; /* only parts of it were asked for */

	/* Under the sink's lock. */
	struct vb__extents claimed;	 /* what came, or is about to be written */
	uint64_t stored;		 /* of that, what is written */
	bool failed;			 /* what still comes is thrown away */
	bool ended;			 /* the sender has said so, and... */
	uint64_t end_size, end_identity; /* ...as what it was read */
	bool missed;			 /* by giving it up */
	bool placing;			 /* somebody is at it: all is there */
	bool told_of;			 /* somebody tells of it: it must not go yet */
	struct vb__further *links;	 /* names that wait for it */

	/* Of part.c, under the sink's lock for opening. */
	struct vb__part *part;
	struct vb__arrival *newer, *older;
	const char *shown; /* what its user calls it; NULL: as it is called here */
	char name[];
};

/* Takes the offer of a file that is wanted. NULL: no memory. */
struct vb__arrival *vb__arrival_new(struct vb__tree_sink *sink, struct vb__place *place,
				    const char *name, const struct vb__offer *offer);
void vb__arrival_free(struct vb__arrival *arrival);

static inline const char *vb__arrival_shown(const struct vb__arrival *a)
{
	return a->shown ? a->shown : a->name;
}

/* A block of parcels; a block of a file. */
int vb__tree_take_parcels(struct vb__tree_sink *sink, const uint8_t *data, size_t len,
			  struct vb_error *err);
int vb__tree_take_block(struct vb__tree_sink *sink, const struct vb__block *block, const void *data,
			struct vb_error *err);

/* All of it is there: makes it stand. */
int vb__arrival_place(struct vb__tree_sink *sink, struct vb__arrival *arrival,
		      struct vb_error *err);

/* ---- storing.c ---- */

/*
 * Makes a file stand in the directory: of a parcel, or of the part that was written. `now` is what
 * it is then.
 */
int vb__store_whole(struct vb__tree_sink *sink, struct vb__arrival *arrival,
		    const struct vb__parcel *parcel, int dir_fd, struct stat *now,
		    struct vb_error *err);
int vb__store_part(struct vb__tree_sink *sink, struct vb__arrival *arrival, int dir_fd,
		   struct stat *now, struct vb_error *err);

/* ---- part.c ---- */

/* What is written of a large file. Any number of threads; 0 or an errno. */
int vb__part_write(struct vb__tree_sink *sink, struct vb__arrival *arrival,
		   const struct vb__block *block, const void *data);

/* Its descriptor, -1 with errno set; for one thread, until it is dropped. */
int vb__part_hold(struct vb__tree_sink *sink, struct vb__arrival *arrival);

/* Frees what it takes to write it. The file stays, unless it was moved, or `remove`. */
void vb__part_drop(struct vb__tree_sink *sink, struct vb__arrival *arrival, bool remove);

/* Looks for what an earlier run has left; fills in `claimed` and `stored`. 0 or an errno. */
int vb__part_resume(struct vb__tree_sink *sink, struct vb__arrival *arrival);

#endif
