/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metadata: what an entry has besides its name and contents, and giving it that. In this order:
 * owner, which clears the bits of setuid; permissions; attributes, ACLs among them; times, which
 * all others might change.
 */
#ifndef VB_TREE_META_H
#define VB_TREE_META_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include <verbatim/error.h>

#include "tree/owners.h"
#include "wire/offer.h"

struct vb__meta {
	uint32_t mode;
	uint32_t uid, gid;
	int64_t mtime_s;
	uint32_t mtime_ns;
	uint32_t xattrs_len;
	uint8_t *xattrs; /* a run of vb__xattr records */
};

/* What is kept, for a whole tree. */
struct vb__meta_rules {
	unsigned keep; /* VB_KEEP_... */
	mode_t umask;
	bool root;
	struct vb__owners owners;
};

void vb__meta_rules_open(struct vb__meta_rules *rules, unsigned keep);
void vb__meta_rules_close(struct vb__meta_rules *rules);

/* As offered; owners get the numbers that they have here. One thread at a time. False: no memory. */
bool vb__meta_take(struct vb__meta_rules *rules, struct vb__meta *meta,
		   const struct vb__offer *offer);
void vb__meta_free(struct vb__meta *meta);

/* What it is to be set on: by descriptor, or what stands under `name`, itself if it is a link. */
struct vb__thing {
	int fd;	    /* -1: by name */
	int dir_fd; /* by name */
	const char *name;
	struct stat st;	  /* as it is now */
	bool fresh;	  /* it was just made: it has no attributes yet */
	const char *path; /* for errors */
};

/* The permissions that a new file gets if it replaces `old` (NULL: nothing). */
mode_t vb__meta_mode(const struct vb__meta_rules *rules, const struct vb__meta *meta,
		     const struct stat *old);

/*
 * Makes it so; `mode` as above. Sets `*changed` (may be NULL) if it was not. Owners that we may not
 * give are left. Any number of threads.
 */
int vb__meta_apply(const struct vb__meta_rules *rules, const struct vb__meta *meta, mode_t mode,
		   const struct vb__thing *thing, bool *changed, struct vb_error *err);

#endif
