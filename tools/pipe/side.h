/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sides: one end of a connection between two stages, or between a stage and the client, in a thread
 * of its own. It meets the other end, waits until it may begin, and moves the data.
 */
#ifndef TOOLS_SIDE_H
#define TOOLS_SIDE_H

#include <pthread.h>
#include <stdbool.h>
#include <verbatim/transfer.h>

#include "common/exit_code.h"
#include "remote/meeting.h"

struct side {
	/* By the caller, first of all. */
	bool sends;
	struct vb_transfer_options options; /* no key */
	struct invitation invitation;	    /* where to connect to, unless it has a door */
	struct meeting_listener listener;
	int stop_fds[2]; /* each, when it becomes readable, ends it; -1: none */
	int news;	 /* an event: raised when it has met, and when it is over */

	/* By the caller, before side_begin. */
	struct vb_input input;
	struct vb_output output;

	/* What came of it, once it is over. */
	enum phase phase;
	struct vb_error err;
	struct vb_report report;
	char cipher[32];

	/* Its own. */
	struct vb_door *door;
	pthread_t thread;
	bool running;
	int begin, quit, stop_fd;
	int over_fd; /* readable when it is over */
	pthread_mutex_t lock;
	bool met, over;
};

/* Of one that was never started, side_end and the questions are fine: it has met and is over. */
void side_init(struct side *side);

/* Opens a door for the other end, in place of connecting to one. `invitation` leads there. */
int side_open_door(struct side *side, struct invitation *invitation, struct vb_error *err);

/* Begins to meet the other end. */
int side_start(struct side *side, struct vb_error *err);

/* Data may flow. */
void side_begin(struct side *side);

/* Is not wanted any more: it ends soon, as if interrupted. Any thread. */
void side_quit(struct side *side);

bool side_has_met(struct side *side);
bool side_is_over(struct side *side);

/* Pure: did the other end say so, of itself? It has been told there, then. */
bool side_is_told(const struct vb_error *err);

/* A file to be appended to, for a side's output; -1 on failure. Never waits. */
int side_append_to(const char *path, struct vb_error *err);

/* Quits, waits for its end, and frees what it has. */
void side_end(struct side *side);

#endif
