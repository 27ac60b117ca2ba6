/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees: files and directories from one host to another, over a session
 * (verbatim/transfer.h), or from one place to another on this host.
 *
 *	const char *paths[] = { "photos", "notes.txt" };
 *	struct vb_tree_options options = { .keep = VB_KEEP_ARCHIVE, .recursive = true };
 *
 *	vb_session_send_tree(session, paths, 2, &options, &report, &err);
 *
 * and at the other end
 *
 *	vb_session_receive_tree(session, "/backup", &options, &report, &err);
 *
 * Both return 0 when all that could be copied was: what could not is counted in
 * the report, and told by `event` as it happens, here and there. A file stands
 * under its name only when it is complete and checked. Both sides must be given
 * the same options.
 */
#ifndef VERBATIM_TREE_H
#define VERBATIM_TREE_H

#include <sys/types.h>

#include <verbatim/transfer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is kept besides the contents and the names. */
enum vb_keep {
	VB_KEEP_MODE = 1,      /* permissions; else new files get the sender's, less the umask */
	VB_KEEP_TIMES = 2,     /* of modification, to the nanosecond */
	VB_KEEP_OWNER = 4,     /* by name, else by number; silently not where we may not */
	VB_KEEP_SYMLINKS = 8,  /* as they are; else what they point to is copied */
	VB_KEEP_SPECIALS = 16, /* FIFOs, sockets, device nodes; else they are failures */
	VB_KEEP_HARDLINKS = 32,
	VB_KEEP_XATTRS = 64, /* the user's; root's also security and trusted */
	VB_KEEP_ACLS = 128,
	VB_KEEP_HOLES = 256,	   /* zeros that were not stored stay so */
	VB_KEEP_NUMERIC_IDS = 512, /* OWNER: by number only */
};
#define VB_KEEP_ARCHIVE                                                                       \
	(VB_KEEP_MODE | VB_KEEP_TIMES | VB_KEEP_OWNER | VB_KEEP_SYMLINKS | VB_KEEP_SPECIALS | \
	 VB_KEEP_HARDLINKS | VB_KEEP_XATTRS | VB_KEEP_ACLS | VB_KEEP_HOLES)

/* Which files are copied. */
enum vb_select {
	VB_SELECT_ALL = 0,
	VB_SELECT_CHANGED,   /* where size or time of modification differ */
	VB_SELECT_DIFFERENT, /* where the contents differ */
};

/* What may happen to an entry. */
enum vb_tree_happening {
	VB_TREE_COPIED = 1, /* or, in a dry run, would be */
	VB_TREE_UNCHANGED,
	VB_TREE_DELETED,
	VB_TREE_FAILED,
	VB_TREE_VANISHED, /* it was there when the directory was read */
};

struct vb_tree_event {
	enum vb_tree_happening happening;
	bool at_peer;	  /* it happened there */
	const char *path; /* relative to the target; any bytes but NUL: escape it before printing */
	mode_t mode;	  /* what it is, as in struct stat; 0 if not known */
	uint64_t bytes;	  /* COPIED: its size */
	const struct vb_error *failure; /* FAILED and VANISHED, else NULL */
};

/* By threads of the library, one at a time. Must not call the library. */
typedef void (*vb_tree_event_fn)(void *arg, const struct vb_tree_event *event);

/* Zero means the default. */
struct vb_tree_options {
	unsigned keep; /* VB_KEEP_..., or-ed */
	enum vb_select select;
	bool recursive; /* else directories are failures */
	bool dry_run;	/* nothing is changed, only told */

	/* Receiving: removes from the directories that were copied what is not at the sender, but
	 * nothing that `rules` exclude, and nothing from a directory that could not be read. */
	bool delete_others;

	/* Receiving: parts of large files that were left by a failure are neither used nor left. */
	bool no_resume;

	/* Receiving: the target must be a directory, or is made one. */
	bool into_directory;

	/*
	 * Receiving: the paths that the sender was asked for, as it was given them. What comes must
	 * be one of them by its name, and nothing that `rules` leave out, else the transfer fails: a
	 * sender that is not trusted could bring along files of its own choice.
	 * NULL-terminated; NULL: whatever comes is taken.
	 */
	const char *const *asked;

	/*
	 * Sending: what is taken and what is left, the first that matches counts; "- PATTERN" or
	 * "+ PATTERN" as in rsync's filters: `*` stops at a slash, `**` does not, `?`, `[a-z]`; a
	 * slash at the start ties it to the source's top, at the end to directories. Receiving:
	 * what is not to be deleted. NULL-terminated; NULL: none.
	 */
	const char *const *rules;

	/* Events are told for failures always, for the rest only with `tell_all`. */
	vb_tree_event_fn event;
	void *event_arg;
	bool tell_all;
};

struct vb_tree_report {
	uint64_t files, directories, symlinks, specials; /* copied or, in a dry run, to be */
	uint64_t hardlinks;				 /* further names of copied files */
	uint64_t unchanged, deleted;
	uint64_t failed, vanished; /* at both ends together */
	uint64_t bytes;		   /* of all files that were offered */
	uint64_t sent_bytes;	   /* of those, what had to be sent; holes not */
	uint64_t resumed_bytes;	   /* what was there from an earlier try */
	uint64_t elapsed_ns;

	/* Of a transfer, as in struct vb_report. */
	uint64_t moved_bytes; /* in blocks: files' data and what is said about them */
	uint64_t wire_bytes, pack_ns;
};

/*
 * Sends what is at these paths. Each comes to stand under its last component; of one that ends in
 * "/." the contents do. With `path_count` 1 and a target that is no directory the target's name counts.
 */
int vb_session_send_tree(struct vb_session *session, const char *const *paths, size_t path_count,
			 const struct vb_tree_options *options, struct vb_tree_report *report,
			 struct vb_error *err);

/*
 * Receives to `path` (empty: the working directory). If that is a directory, into it; else, if only
 * one thing comes, under that name. Nothing is ever written outside, whatever the sender says
 * and whatever links others put in the way.
 */
int vb_session_receive_tree(struct vb_session *session, const char *path,
			    const struct vb_tree_options *options, struct vb_tree_report *report,
			    struct vb_error *err);

/* Does both on this host, with no connection. Of `transfer` the key and the connection are not looked at; NULL: defaults. */
int vb_tree_copy(const char *const *paths, size_t path_count, const char *target,
		 const struct vb_tree_options *options, const struct vb_transfer_options *transfer,
		 struct vb_tree_report *report, struct vb_error *err);

/*
 * What a tree comes to, in few bytes. Where both sides come to the same, a transfer with these options
 * would copy, change and delete nothing: it would find `bytes` and count `entries` as unchanged. So two
 * who can talk to each other need no session to find that out. Where they differ, or a side cannot
 * tell, only a transfer can.
 */
#define VB_TREE_KEY_BYTES 192u

struct vb_tree_sum {
	uint8_t digest[16];
	uint64_t entries, bytes;
};

/* What is summed up, and how. */
struct vb_tree_scope {
	/* As given to vb_session_send_tree. */
	const char *const *paths;
	size_t path_count;

	/* As given to vb_session_receive_tree: what stands there of the paths is summed up, whatever is
	 * at the paths themselves. NULL: what is at the paths. */
	const char *target;

	/* VB_TREE_KEY_BYTES of chance, for this once and the same at both sides: without, somebody
	 * could make files whose sum hides a change. */
	const uint8_t *key;

	int stop_fd; /* as in struct vb_transfer_options; 0: none */
};

/*
 * Walks through all of it; changes nothing. The options are those of the transfer, and `select` must be
 * VB_SELECT_CHANGED. Any number of threads. VB_ERR_UNSUPPORTED, or VB_ERR_IO for the target: this side
 * cannot tell, because something is missing, cannot be read or is left from an earlier try, or because
 * two of several paths may come to stand in one place.
 */
int vb_tree_sum(const struct vb_tree_scope *scope, const struct vb_tree_options *options,
		struct vb_tree_sum *sum, struct vb_error *err);

#ifdef __cplusplus
}
#endif
#endif
