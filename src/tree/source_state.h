/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sending end's inside. A walker thread fills the outbox with offers (outbox.c), the sink's
 * answers make items wanted (wants.c), and what is wanted goes as parcels (parcels.c) or, if large,
 * in blocks of its own (large.c); tree_source.c decides what is next.
 *
 * An item is a file that was offered. It is owned by the ring until it is settled or handed out,
 * then by a job. A job is what `next` leaves for `fill`.
 */
#ifndef VB_TREE_SOURCE_STATE_H
#define VB_TREE_SOURCE_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "transfer/reading.h"
#include "tree/dirs.h"
#include "tree/tree_ends.h"
#include "tree/walk.h"
#include "wire/offer.h"

/* Offers that wait to be sent; one more may come on top. */
#define VB__OUTBOX_BYTES (1u << 20)

/* What a receiver may ask for in parts, all files together. */
#define VB__PARTS_MAX (1u << 20)

/* Room for words in a parcel, instead of data. */
#define VB__PARCEL_WORDS 64u

/* Why a file is given up that somebody writes to. */
#define VB__CHANGED "it changed while it was read"

struct vb__range {
	uint64_t start, end;
};

struct vb__item {
	struct vb__item *next;
	uint32_t number;
	bool follow, sparse, wanted;
	mode_t mode;
	struct vb__dir *dir;
	uint64_t size, identity;
	struct vb__range *parts; /* NULL: all of it */
	size_t part_count, part_room;
	char name[];
};

/* A parcel without data that is to be sent. */
struct vb__notice {
	struct vb__notice *next;
	struct vb__parcel parcel;
	char words[VB__PARCEL_WORDS];
};

/* A large file that is being read. */
struct vb__large {
	struct vb__large *prev, *next;
	struct vb__item *item;
	struct vb__notice *notice;  /* that it will end with */
	struct vb__reading reading; /* .fd is ours */
	struct stat st;		    /* at its opening */
	struct vb__range whole, *ranges;
	size_t range_count, range; /* which is being dealt out */
	uint64_t at, data_end;
	uint64_t left;	      /* bytes that were not read yet */
	unsigned reading_now; /* blocks */
	bool dealt;	      /* all of it, or it failed */
	bool failed;	      /* and the user knows */
};

struct vb__job {
	struct vb__job *prev, *next;
	struct vb__large *large; /* a block of it, or a hole; else parcels: */
	struct vb__notice *notices;
	struct vb__item *items;
};

struct vb__tree_source {
	struct vb__source base;
	const struct vb_tree_options *options;
	struct vb__filter *filter;
	enum vb_direct direct;
	struct vb_tree_report *report;
	const char *const *paths;
	size_t path_count;
	struct vb__dirs dirs;

	pthread_t walker;
	atomic_bool stop;
	int wake_fd; /* an eventfd, for `next` */

	pthread_mutex_t telling; /* held while the user is told of an event */

	pthread_mutex_t lock; /* for all below */
	pthread_cond_t changed;
	bool waiting; /* `next` is */
	size_t room;  /* of a block; 0: not known yet */

	/* The walker and its offers: each with its length and number before it. */
	bool walk_ended, walker_waits;
	struct vb_error walk_failure;
	uint8_t *outbox;
	size_t outbox_at, outbox_len, outbox_room;
	uint64_t outbox_since_ns;
	uint64_t offers_offset;

	/* The ring: numbers from `base_number`. */
	struct vb__item *ring[VB__TREE_AHEAD];
	uint32_t base_number, last_number; /* that the walker has given */
	uint32_t told;			   /* that the sink has been offered */
	uint32_t settled;
	size_t part_count;

	struct vb__item *ready, **ready_end; /* wanted, in that order */
	size_t ready_count;
	struct vb__notice *notices, **notices_end;
	struct vb__large *larges, *last_large; /* those that are open, in their order */
	struct vb__job *jobs;		       /* handed out and not filled */

	struct vb_tree_report sums;
	uint64_t files_found, files_done;
	uint64_t bytes_due, bytes_done;
	struct vb__dir *current_dir; /* of the one that was handed out last */
	char current_name[VB__NAME_MAX + 1];
};

/* ---- tree_source.c; the lock is held ---- */

/* There may be something for `next` to do. */
void vb__source_wake(struct vb__tree_source *s);
/* It is filled: what it still holds is freed. */
void vb__job_end(struct vb__tree_source *s, struct vb__job *job);
/* It is wanted now. */
void vb__item_make_ready(struct vb__tree_source *s, struct vb__item *item);
void vb__notice_add(struct vb__tree_source *s, struct vb__notice *notice);

/* ---- tree_source.c; with or without the lock ---- */

/* NULL is fine. */
void vb__item_free(struct vb__tree_source *s, struct vb__item *item);

/* ---- source_tell.c; the lock is not held ---- */

/* Tells the user, if that was asked for. */
void vb__source_tell(struct vb__tree_source *s, const struct vb_tree_event *event);

/* An item cannot be sent: counts and tells it; the notice says so. No `why`: the errno's words. */
void vb__source_miss(struct vb__tree_source *s, const struct vb__item *item, int errnum,
		     const char *why, struct vb__notice *notice);

/* Likewise for what the walker has missed. */
void vb__source_tell_missed(struct vb__tree_source *s, const struct vb__walked *walked);

/* Likewise for what happened over there. */
void vb__source_tell_happened(struct vb__tree_source *s, const struct vb__answer *answer);

/* ---- outbox.c ---- */

/* The walker's thread; its argument is the source. */
void *vb__source_walk(void *arg);

/* Takes as many offers as fit: how many bytes. The lock is held. */
size_t vb__outbox_take(struct vb__tree_source *s, uint8_t *to, size_t room);

/* ---- wants.c ---- */

int vb__source_hear(struct vb__source *source, const void *note, size_t len, struct vb_error *err);

/* ---- parcels.c ---- */

bool vb__item_is_small(const struct vb__tree_source *s, const struct vb__item *item);

/* Takes notices and, if asked to, the small items that come next. The length they need; 0: there
 * are none. The lock is held. */
size_t vb__parcels_take(struct vb__tree_source *s, struct vb__job *job, bool items);
int vb__parcels_fill(struct vb__tree_source *s, struct vb__job *job, uint8_t *buffer,
		     struct vb__block *block, struct vb_error *err);
/* Writes it, with its words: the length. */
size_t vb__notice_write(const struct vb__notice *notice, uint8_t *to);

/* ---- large.c ---- */

/* Opens an item, which it takes over: either a large file, or a notice if there is nothing to read.
 * Without the lock. Fails for lack of memory only. */
int vb__large_open(struct vb__tree_source *s, struct vb__item *item, struct vb__large **large,
		   struct vb__notice **notice, struct vb_error *err);
void vb__large_free(struct vb__tree_source *s, struct vb__large *large);

/* Now its blocks can be dealt out. The lock is held, for the next two as well. */
void vb__large_add(struct vb__tree_source *s, struct vb__large *large);
/* The first that has blocks to deal out, or NULL. */
struct vb__large *vb__large_undealt(const struct vb__tree_source *s);
void vb__large_deal(struct vb__tree_source *s, struct vb__large *large, struct vb__block *block);

/* Reads a block, and ends the job. Whoever reads the last one also says how it went. */
void vb__large_fill(struct vb__tree_source *s, struct vb__job *job, uint8_t *buffer,
		    struct vb__block *block);

/* Opens an item's file and looks at it: a descriptor or a negative errno, ESTALE if it is no file any
 * more. */
int vb__item_open(struct vb__tree_source *s, const struct vb__item *item, struct stat *st);

/* Has the file been written to since? That it only grew does not count. */
bool vb__file_changed(int fd, const struct stat *before);

/* What a parcel tells of a file that was read. */
struct vb__parcel vb__parcel_of(enum vb__parcel_kind kind, const struct vb__item *item,
				const struct stat *st);

#endif
