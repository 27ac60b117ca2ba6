/* SPDX-License-Identifier: Apache-2.0 */
/* One side of a transfer: doors and sessions, and inputs and outputs whose bytes are known. */
#ifndef CONFORMANCE_TRANSFER_SIDE_H
#define CONFORMANCE_TRANSFER_SIDE_H

#include <pthread.h>
#include <verbatim/transfer.h>

#include "harness.h"

#define BLOCK 65536u

/* What came of a transfer. */
struct outcome {
	int rc;
	struct vb_error err;
	struct vb_report report;
};

/* Blocks of BLOCK bytes, four under way, one rail, two workers; the key is "sesame". */
struct vb_transfer_options transferring(const struct side *side);

/*
 * Stretches that key for all processes that are forked from now on, as it takes half a second in an emulated
 * guest. Other keys are stretched as ever.
 */
void stretch_key(void);

struct vb_door *door_here(struct side *side, const struct vb_transfer_options *options);
struct vb_session *let_in(struct vb_door *door);
struct vb_session *come_in(struct side *side, const struct vb_transfer_options *options);

struct outcome send_by(struct vb_session *session, const struct vb_input *input);
struct outcome receive_by(struct vb_session *session, const struct vb_output *output);

/* A whole transfer, from the door or to it. */
struct outcome serve_receiving(struct side *side, const struct vb_transfer_options *options,
			       const struct vb_output *output);
struct outcome serve_sending(struct side *side, const struct vb_transfer_options *options,
			     const struct vb_input *input);
struct outcome come_receiving(struct side *side, const struct vb_transfer_options *options,
			      const struct vb_output *output);
struct outcome come_sending(struct side *side, const struct vb_transfer_options *options,
			    const struct vb_input *input);

void went_well(const struct outcome *outcome, uint64_t bytes);

/* With this code, and with these words somewhere in the line that is told. */
void went_wrong(const struct outcome *outcome, enum vb_err code, const char *words);
void is_told(const struct vb_error *err, enum vb_err code, const char *words);

/* Both sides call it: their digests are the same. */
void same_digest(struct side *side, const struct outcome *mine, bool server);

/* Files, in the test's own directory. */
const char *scratch_path(const struct side *side, const char *name);
void make_file(const char *path, size_t len, uint32_t seed);
bool file_holds(const char *path, size_t len, uint32_t seed);
int scratch_files(const struct side *side);

/* A pipe whose other end a thread fills, or empties. */
struct feed {
	int fd, far_fd;
	size_t len;
	uint32_t seed;
	pthread_t thread;
};
void open_feed(struct feed *feed, size_t len, uint32_t seed);
void close_feed(struct feed *feed);

struct drain {
	int fd, far_fd;
	uint8_t *bytes;
	size_t len;
	pthread_t thread;
};
void open_drain(struct drain *drain);
/* Waits for the end; then `bytes` and `len` are what came. */
void end_drain(struct drain *drain);
bool drained(struct drain *drain, size_t len, uint32_t seed); /* ends it and frees it */

/* A pipe that has some bytes but no end: the transfer stays in the middle. */
#define HELD 50000u
struct held {
	int fd, far_fd;
};
void open_held(struct held *held);
void close_held(struct held *held);

/* Does something once, when so many bytes have been sent or stored; give it as `progress`. */
struct moment {
	uint64_t bytes;
	void (*act)(void *arg);
	void *arg;
	bool over;
};
void await_moment(void *moment, const struct vb_progress *progress);

/* A stop_fd, and making it readable. */
struct stopper {
	int fd, far_fd;
	struct shared *shared;
};
void open_stopper(struct stopper *stopper, struct side *side);
void stop_now(void *stopper); /* notes the time in number[3] of what is shared */
void close_stopper(struct stopper *stopper);
/* Since stop_now, at either side. */
uint64_t ms_since_stop(const struct side *side);

#endif
