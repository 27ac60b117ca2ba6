/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of sources and sinks share: a directory, opening, and an engine in small. */
#ifndef VB_TEST_FILE_KIT_H
#define VB_TEST_FILE_KIT_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "suite.h"
#include "transfer/sink.h"
#include "transfer/source.h"

#define KIB 1024u
#define MIB (1024u * 1024u)

/* Only what hangs takes so long. */
#define HANGS_MS 10000u

struct kit {
	char dir[64];
	int cancel_fd;	 /* an eventfd */
	char *paths[16]; /* made so far */
};

/* For cmocka: the state is a struct kit. All signals that writing may raise are blocked. */
int kit_setup(void **state);
int kit_teardown(void **state);

/* A path in the kit's directory; valid as long as the kit. */
const char *kit_path(struct kit *kit, const char *name);
void kit_cancel(struct kit *kit);
/* How many files are in the directory, hidden ones as well. */
unsigned kit_count(struct kit *kit);

/* Bytes that differ from place to place. */
void make_bytes(uint8_t *to, size_t len, uint64_t offset);
void make_file(const char *path, size_t len);
void assert_bytes(const uint8_t *data, size_t len, uint64_t offset);
void assert_file_is(const char *path, const void *data, size_t len);
void assert_same_files(const char *a, const char *b);
uint8_t *page_aligned(size_t len);

/* Opening that must succeed. */
struct vb__source *open_source(struct kit *kit, const struct vb_input *input);
struct vb__sink *open_sink(struct kit *kit, const char *path, uint64_t total_bytes);

/* Opening that must fail: returns the code. */
int sink_refuses(struct kit *kit, const char *path, const struct vb__origin *origin,
		 struct vb_error *err);

/* Takes all from a source, as the engine does, and puts it to the sink, which it finishes. */
struct pump {
	struct vb__source *source;
	struct vb__sink *sink; /* NULL: nowhere */
	size_t block_bytes;
	unsigned threads;

	/* What came of it. */
	int rc;
	struct vb_error err;
	uint64_t bytes, hole_bytes, blocks, full_blocks;

	pthread_mutex_t lock;
};

int pump_run(struct pump *pump);
/* The same, and both are closed. */
int pump_through(struct vb__source *source, struct vb__sink *sink, size_t block_bytes,
		 unsigned threads, struct vb_error *err);

/* A thread that does one thing. */
pthread_t start_thread(void *(*run)(void *), void *arg);
void join_thread(pthread_t thread);

#endif
