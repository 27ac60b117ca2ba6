/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of trees share: a directory full of things, and what happened to them. */
#ifndef VB_TEST_TREE_KIT_H
#define VB_TEST_TREE_KIT_H

#include <stdbool.h>
#include <sys/stat.h>

#include <verbatim/tree.h>

#include "suite.h"

#define KIB 1024u
#define MIB (1024u * 1024u)

struct kit {
	char dir[64];
	int dir_fd;
	int cancel_fd; /* an eventfd */
	char paths[8][512];
	unsigned path_count;

	/* The events of failures, as "happening path: cause" lines. */
	char told[4096];
};

/* For cmocka: the state is a struct kit. */
int kit_setup(void **state);
int kit_teardown(void **state);

/* A path of something in the directory; valid as long as the kit. Up to 8 of them. */
const char *kit_path(struct kit *kit, const char *name);

/* Made in the directory; names may have slashes. */
void make_dir(struct kit *kit, const char *name);
void make_file(struct kit *kit, const char *name, size_t len);
void make_link(struct kit *kit, const char *name, const char *target);

/* The byte that files have at an offset: never 0. */
uint8_t byte_at(uint64_t offset);

/* For vb_tree_options.event; the argument is the kit. */
void kit_event(void *kit, const struct vb_tree_event *event);

#endif
