/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal of a tree's receiver: what has arrived, so that after a failure only the rest need
 * come. A file in the base directory, only ever appended to, with write(2): what is in it survives
 * us, but not all of it a crash of the system. So its header names the boot, and what was recorded in
 * another one is believed only after it was read again.
 *
 * The header also says whether all of it came sealed. What did not may be anybody's, so a session that is
 * sealed begins anew; one that is not believes either, and from then on the journal is unsealed.
 *
 * A record of a part holds the hash of its block as it came over the wire, with the file's number,
 * which goes into that hash: so nothing is hashed a second time.
 */
#ifndef VB_TREE_JOURNAL_H
#define VB_TREE_JOURNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "tree/extents.h"
#include "tree/part_name.h"
#include "tree/place.h"
#include "wire/block.h"

#define VB__JOURNAL_RECORD 64u
#define VB__JOURNAL_BATCH 64u

struct vb__journal {
	int fd;	    /* -1: there is none, nothing is remembered */
	int dir_fd; /* where it stands; not ours */
	char name[VB__JOURNAL_NAME];
	uint64_t tag;	/* of the names of all our files: see below */
	bool resumed;	/* it was there */
	bool same_boot; /* and what it says needs no proof */
	bool mute;	/* nothing is recorded */
	bool removed;

	pthread_mutex_t lock; /* for all below */
	struct vb__journal_done *done;
	size_t done_room;
	uint8_t batch[VB__JOURNAL_BATCH * VB__JOURNAL_RECORD];
	size_t batched;
	uint64_t at;  /* where the next batch goes */
	bool written; /* there is something in it */
};

enum vb__journal_wish {
	VB__JOURNAL_NONE, /* keep none; what was left of an earlier one is not believed */
	VB__JOURNAL_KEEP,
	VB__JOURNAL_KEEP_SEALED, /* what is recorded comes sealed; one of what did not is not believed */
};

/* Is there one of this tag? */
bool vb__journal_exists(int dir_fd, uint64_t tag);

/*
 * Opens it, or makes a new one, and reads it. If somebody else has it open, or it cannot be, then there
 * is none, and `tag` is one that nobody has. Never fails.
 */
void vb__journal_open(struct vb__journal *journal, int dir_fd, uint64_t tag,
		      enum vb__journal_wish wish);

/* All went well, or nothing is to be left: the file goes. */
void vb__journal_remove(struct vb__journal *journal);

/* It is to stay even if there is nothing in it. */
void vb__journal_keep(struct vb__journal *journal);

/* The file stays, unless it was removed, or nothing is in it. */
void vb__journal_close(struct vb__journal *journal);

/* Records wait for others to be written with: not any longer. */
void vb__journal_flush(struct vb__journal *journal);

/* What tells whether a file that stands there is the one that we have put there. */
uint64_t vb__journal_target(const struct stat *st, bool linked);

/* Did this file, as it is at the sender now, arrive, and is it untouched? */
bool vb__journal_has(struct vb__journal *journal, const struct vb__path_hash *path,
		     uint64_t identity, uint64_t target);

/* Which parts of it are in `fd`. 0 or an errno. */
int vb__journal_parts(struct vb__journal *journal, const struct vb__path_hash *path,
		      uint64_t identity, uint64_t size, int fd, struct vb__extents *extents);

/* To be called before a file of parts is begun anew: what was said of an earlier one is void. */
void vb__journal_restart(struct vb__journal *journal, const struct vb__path_hash *path);

/* To be called when it is so: the file is in its place, or the block is written. */
void vb__journal_add_done(struct vb__journal *journal, const struct vb__path_hash *path,
			  uint64_t identity, uint64_t target, bool synced);
void vb__journal_add_part(struct vb__journal *journal, const struct vb__path_hash *path,
			  uint64_t identity, const struct vb__block *block);

#endif
