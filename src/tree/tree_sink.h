/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a tree's sink, shared by the files that it is made of:
 *
 *	tree_sink.c	the sink itself: blocks in, answers out, beginning and end
 *	target.c	what the target's path means
 *	offered.c	what is done about each thing that is offered; wanting.c: about files
 *	making.c	links and specials, which are made at once
 *	arrival.c	files that were asked for, until they stand
 *	storing.c	how they come to stand; part.c: what large ones are written to
 *	leaving.c	directories that are complete; sweep.c: removing what is in none
 *	telling.c	what is told to the users on both sides, and counted
 *
 * Offers are dealt with by one thread at a time, in their order. All else is done by any number of
 * threads. What they share is under `lock`, which is never held over a call of the file system.
 */
#ifndef VB_TREE_TREE_SINK_H
#define VB_TREE_TREE_SINK_H

#include <pthread.h>
#include <stdatomic.h>

#include "transfer/turns.h"
#include "tree/answers.h"
#include "tree/arrival.h"
#include "tree/filter.h"
#include "tree/journal.h"
#include "tree/meta.h"
#include "tree/numbers.h"
#include "tree/place.h"
#include "tree/target.h"
#include "tree/tree_ends.h"

/* So many entries may be under way before it is no mistake any more. */
#define VB__TREE_FILES_MAX (4u * VB__TREE_AHEAD)
#define VB__TREE_PLACES_MAX (1u << 20)
/* Files that were given up: blocks of them may still come. */
#define VB__TREE_GONE_MAX (1u << 16)

struct vb__tree_sink {
	struct vb__sink base;
	const struct vb_tree_options *tree;
	struct vb__filter *filter;
	struct vb__sink_options options;
	struct vb_tree_report *report_to;
	struct vb__meta_rules rules;
	struct vb__turns turns;
	struct vb__answers answers;
	uint64_t seed;		 /* of the names' hashes */
	bool nameless;		 /* files need no name while they are written */
	atomic_bool no_nameless; /* the file system has refused that */
	atomic_bool no_empty_path;

	/* Of the offers' turns: the target, and what came. */
	struct vb__target target;
	struct vb__places places;
	struct vb__journal journal;
	bool begun;		    /* the two above are open */
	bool as;		    /* what comes becomes the target itself */
	char *shown;		    /* AS: what the sender calls it */
	struct vb__place *contents; /* the place of things without a name, or NULL */
	uint32_t last_number;
	unsigned tops;
	bool top_missed; /* something that the user named could not be read */

	pthread_mutex_t telling; /* events are told one at a time */

	pthread_mutex_t opening; /* for the parts that are open: part.c */
	struct vb__arrival *newest, *oldest;
	unsigned open_parts;

	pthread_mutex_t lock;		/* for all below, and the places' refs */
	struct vb__numbers directories; /* struct vb__place: those that are not listed */
	struct vb__numbers arrivals;	/* struct vb__arrival */
	struct vb__numbers firsts;	/* struct vb__first: files that may get further names */
	struct vb__numbers gone;	/* files that were given up */
	uint32_t gone_ring[VB__TREE_GONE_MAX];
	size_t gone_at;
	size_t waiting;		   /* arrivals of which all was asked for... */
	uint64_t heavy_bytes;	   /* ...and what their attributes take */
	uint32_t decided, settled; /* the last entries that were, and were told */
	bool unsettled;		   /* there were too many to go on */
	struct vb_tree_report report;
	uint64_t wanted_bytes, stored_bytes;
	uint64_t files_found, files_done;
	char current[256];
};

/* A file that may get further names. */
struct vb__first {
	dev_t dev;
	ino_t ino;
	bool failed;
	char path[]; /* from the base */
};

/* A name that waits for its file. */
struct vb__further {
	struct vb__further *next;
	struct vb__place *place;
	const char *shown;
	char name[];
};

/* ---- telling.c ---- */

/* What happened; all but `happening` may be zero. */
struct vb__told {
	enum vb_tree_happening happening;
	struct vb__place *place;
	const char *name;
	mode_t mode;
	uint64_t bytes;
	bool at_peer;
	const struct vb_error *failure;
};

/* Tells it where it is to be told. Counting is the caller's business, but for failures. */
void vb__tree_tell(struct vb__tree_sink *sink, const struct vb__told *told);

/*
 * Something failed for one entry. If that is its own affair it is told, and 0 returned; if the whole
 * transfer cannot go on, the failure.
 */
int vb__tree_fail(struct vb__tree_sink *sink, struct vb__place *place, const char *name,
		  mode_t mode, const struct vb_error *failure, struct vb_error *err);
int vb__tree_fail_errno(struct vb__tree_sink *sink, struct vb__place *place, const char *name,
			mode_t mode, int errnum, const char *operation, struct vb_error *err);

/* The peer breaks the protocol. */
int vb__tree_fail_protocol(const struct vb__tree_sink *sink, const char *cause,
			   struct vb_error *err);

/* Adds to a number of the report. */
void vb__tree_count(struct vb__tree_sink *sink, uint64_t *number, uint64_t more);

/* ---- offered.c ---- */

int vb__tree_take_offers(struct vb__tree_sink *sink, const uint8_t *data, size_t len,
			 struct vb_error *err);

/* Lock held: tells the sender to go on, if there are not too many under way. */
void vb__tree_settle(struct vb__tree_sink *sink);

/* An offer on its way. */
struct vb__offered {
	const struct vb__offer *offer;
	struct vb__place *place;     /* what it is in */
	char name[VB__NAME_MAX + 1]; /* what it is called there */
	const char *shown;	     /* what the sender calls it, if that differs; else NULL */
};

static inline const char *vb__offered_shown(const struct vb__offered *o)
{
	return o->shown ? o->shown : o->name;
}

/* ---- wanting.c ---- */

/* A file; not `admitted`: it failed already, and is only remembered. */
int vb__tree_take_file(struct vb__tree_sink *sink, const struct vb__offered *offered, bool admitted,
		       struct vb_error *err);

/*
 * If there may be further names: what stands there, `st`; all zero in a dry run; NULL if it could
 * not be made, and neither can they.
 */
int vb__tree_remember_first(struct vb__tree_sink *sink, struct vb__place *place, const char *name,
			    const struct vb__offer *offer, const struct stat *st,
			    struct vb_error *err);

/* ---- making.c ---- */

int vb__tree_make_symlink(struct vb__tree_sink *sink, struct vb__place *place, const char *name,
			  const struct vb__offer *offer, struct vb_error *err);
int vb__tree_make_special(struct vb__tree_sink *sink, struct vb__place *place, const char *name,
			  const struct vb__offer *offer, struct vb_error *err);
int vb__tree_make_hardlink(struct vb__tree_sink *sink, struct vb__place *place, const char *name,
			   const struct vb__offer *offer, struct vb_error *err);

/* A file stands, or failed: remembers it for further names. `st` NULL: it failed. */
struct vb__first *vb__first_new(const struct vb__place *place, const char *name,
				const struct stat *st);
/* Makes the names that have waited. Frees them. */
int vb__tree_make_further(struct vb__tree_sink *sink, struct vb__further *further,
			  const struct vb__first *first, struct vb_error *err);

/* Moves what is called `temp` to its name. If a directory is in the way it may go. 0 or an errno. */
int vb__tree_move(struct vb__tree_sink *sink, struct vb__place *place, int dir_fd, const char *temp,
		  const char *name);

/* ---- leaving.c ---- */

/* One less is under way in it. If that was the last, it gets its metadata and is freed. */
int vb__tree_leave(struct vb__tree_sink *sink, struct vb__place *place, struct vb_error *err);

/* All is done in it: what is not at the sender goes, the metadata is set. */
int vb__tree_complete_place(struct vb__tree_sink *sink, struct vb__place *place,
			    struct vb_error *err);

/* ---- sweep.c ---- */

/* Removes what did not come for this place, if that is wanted, and parts of ours that are left. */
int vb__tree_sweep(struct vb__tree_sink *sink, struct vb__place *place, struct vb_error *err);

/* Removes what stands there, with all that is in it. 0 or an errno. */
int vb__tree_remove(struct vb__tree_sink *sink, struct vb__place *place, int dir_fd,
		    const char *name);

#endif
