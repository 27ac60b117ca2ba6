/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A governor: says how hard each block is to be packed. Told to hold one level it does that. Else it
 * watches and turns packing up, down and off as it goes, so that the transfer is as fast
 * as it can be:
 *
 * - It knows of each block how long packing took and what it gained, how long the other work took, and how much
 *   of the room for blocks under way is taken. So it can forecast how fast each level would be: the
 *   workers limit it, or the link does.
 * - What looks better by forecast is tried, and measured. If it is not better it is given up, and for a time, which
 *   doubles with each failure, not tried again. What no forecast can know (a receiver that unpacks too slowly) is
 *   found out in the same way: not packing is tried every now and then where it might be faster.
 * - One block now and then is packed at another level, to know what that would gain. That takes a hundredth of
 *   the time at most.
 *
 * Pure: it neither waits nor looks at a clock. The caller locks.
 */
#ifndef VB_TRANSFER_GOVERNOR_H
#define VB_TRANSFER_GOVERNOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VB__GOVERNOR_RUNGS 6u

/* A level by zstd's counting, where 0 means: as it is. */
#define VB__LEVEL_OFF 0

/* What became of a block. */
struct vb__effort {
	int level;	   /* as it was chosen */
	uint64_t plain;	   /* bytes */
	uint64_t wire;	   /* bytes that were sent for them */
	uint64_t pack_ns;  /* to pack it */
	uint64_t other_ns; /* other work of the worker for it: reading, hashing, sealing */
	unsigned filled; /* percent of the blocks that may be under way that were, behind this one */
};

/* What one rung of the ladder is thought to cost and to gain. */
struct vb__rung {
	double cost;	    /* ns for a byte */
	double ratio;	    /* bytes sent for a byte */
	uint64_t block;	    /* when it was learnt, in blocks; 0: never */
	uint64_t ban_until; /* in periods */
	unsigned ban;	    /* how long the last one was */
};

/* Bytes and times since `start_ns`. */
struct vb__period {
	uint64_t start_ns, last_ns;
	uint64_t blocks, plain, wire, pack_ns, other_ns, filled;
	unsigned filled_from; /* percent, when it began */
};

struct vb__governor {
	bool steady; /* holds one level: */
	int level;
	unsigned workers, slots;

	unsigned rung; /* at present */
	unsigned base; /* the one before, which it is compared with, if on trial */
	bool trial;
	double base_rate, base_ratio,
		base_filled; /* bytes in a ns, and so on, as the base was measured */
	struct vb__rung rungs[VB__GOVERNOR_RUNGS];
	double other; /* ns of other work for a byte */
	double link;  /* bytes in a ns that the link takes; 0: more than was ever asked for */

	uint64_t blocks, periods;
	uint64_t largest; /* block so far, in bytes */
	struct vb__period now;
	unsigned filled;    /* percent of the slots, when the last one was sent */
	uint64_t unsettled; /* blocks that still belong to the rung before */

	uint64_t probed_block, probed_ns; /* when that was */
	double probe_ns;		  /* spent so far */
	uint64_t begin_ns;
};

/* `slots`: how many blocks may be under way at once. */
void vb__governor_hold(struct vb__governor *governor, int level);
void vb__governor_begin(struct vb__governor *governor, unsigned workers, unsigned slots);

/* The level for the next block. */
int vb__governor_choose(struct vb__governor *governor);

/* A block was sent. Blocks may be noted in another order than they were chosen for. */
void vb__governor_note(struct vb__governor *governor, const struct vb__effort *effort,
		       uint64_t now_ns);

#endif
