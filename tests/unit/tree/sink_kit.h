/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of a tree's sink share: a directory, and a sender in small, honest or not. */
#ifndef VB_TEST_SINK_KIT_H
#define VB_TEST_SINK_KIT_H

#include <stdbool.h>
#include <sys/stat.h>

#include "suite.h"
#include "tree/tree_ends.h"
#include "wire/offer.h"

#define KIB 1024u
#define MIB (1024u * 1024u)
#define NUMBERS 4096u

struct kit {
	char dir[64];
	char path[400]; /* the last one that was asked for */
	int cancel_fd, wake_fd;
	struct vb_tree_options options;
	struct vb__sink_options sink_options;
	struct vb_tree_report report;
	struct vb__sink *sink;
	struct vb_error err; /* of the last call */
	uint64_t offers_at;

	/* What the sink has said. */
	bool wanted[NUMBERS];
	struct {
		uint32_t number;
		uint64_t offset, length;
	} parts[64];
	unsigned part_count;
	uint32_t settled;
	unsigned happened;

	/* What was told here. */
	unsigned events[VB_TREE_VANISHED + 1];
	char last_path[300];
	struct vb_error last_failure;
};

/* For cmocka: the state is a struct kit. Archive mode, recursive. */
int kit_setup(void **state);
int kit_teardown(void **state);

/* A path in the kit's directory, until the next call; what is there. */
const char *kit_path(struct kit *kit, const char *name);
mode_t kit_mode(struct kit *kit, const char *name); /* 0: nothing */
void kit_make_file(struct kit *kit, const char *name, const char *text);
void kit_assert_file(struct kit *kit, const char *name, const char *text);
/* Bytes that differ from place to place. */
void kit_assert_bytes(struct kit *kit, const char *name, size_t len);
/* How many entries a directory has, hidden ones as well; and how many are ours. */
unsigned kit_count(struct kit *kit, const char *name);
unsigned kit_leftovers(struct kit *kit, const char *name);
void kit_run(struct kit *kit, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Opens a sink to a path in the directory, which must succeed; or returns the error. */
void kit_open(struct kit *kit, const char *target);
int kit_try_open(struct kit *kit, const char *target);
/* Ends it well, which must succeed; or closes it without an end. Both leave `report`. */
void kit_finish(struct kit *kit);
void kit_close(struct kit *kit);

/* Offers with what most have; to be changed, and sent. */
struct vb__offer offer_file(uint32_t number, uint32_t parent, const char *name, uint64_t size);
struct vb__offer offer_directory(uint32_t number, uint32_t parent, const char *name);
struct vb__offer offer_symlink(uint32_t number, uint32_t parent, const char *name, const char *to);
struct vb__offer offer_hardlink(uint32_t number, uint32_t parent, const char *name, uint32_t first);
struct vb__offer offer_listed(uint32_t number);
struct vb__offer offer_missed(uint32_t parent, const char *name);

/* One block each. They return what `put` does; the sink is listened to afterwards. */
int send_offer(struct kit *kit, struct vb__offer offer);
int send_parcel(struct kit *kit, const struct vb__parcel *parcel);
int send_whole(struct kit *kit, uint32_t number, const char *text);
int send_end(struct kit *kit, uint32_t number, uint64_t size);
int send_missed(struct kit *kit, uint32_t number);
int send_block(struct kit *kit, uint32_t number, uint64_t offset, size_t len);
int send_hole(struct kit *kit, uint32_t number, uint64_t offset, uint64_t len);
int send_raw(struct kit *kit, unsigned flags, uint32_t file, uint64_t offset, const void *data,
	     size_t len);

/* The same, and it must succeed. */
void offers(struct kit *kit, struct vb__offer offer);
void whole(struct kit *kit, uint32_t number, const char *text);
void blocks(struct kit *kit, uint32_t number, uint64_t offset, size_t len);
void ends(struct kit *kit, uint32_t number, uint64_t size);

/* Runs as somebody who is not root, in a child if we are: it must return true. */
void as_nobody(struct kit *kit, bool (*run)(struct kit *kit));

#endif
