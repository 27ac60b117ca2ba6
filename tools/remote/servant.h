/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servants: `TOOL --server`, which ssh has started, as far as it does not matter what it does. It
 * does what the client orders, with the rights of whom ssh has let in, and ends when the client
 * does. Nothing but frames goes to its stdout.
 */
#ifndef TOOLS_SERVANT_H
#define TOOLS_SERVANT_H

#include "remote/link.h"
#include "remote/message.h"

struct servant {
	struct link link;
	int stop;    /* an event: what is under way is not wanted any more */
	int stop_fd; /* that, or a signal; as in vb_transfer_options */

	int news; /* an event: of the following something has changed */
	pthread_mutex_t lock;
	bool gone; /* the client */

	struct pack coming; /* of an order that is longer than a frame */
};

/*
 * Takes over stdin and stdout and exchanges hellos. From the begin of the process: signals are waited
 * for. Returns an exit code, 0 to go on.
 */
int servant_open(struct servant *servant, enum tool tool);

/* From now on frames are heard, by a thread; FRAME_NONE at the end, after servant_end. */
int servant_listen(struct servant *servant, link_fn heard, void *arg);

/* For `heard`: the client has gone, or breaks the protocol. What hangs is not waited for. */
void servant_end(struct servant *servant);
void servant_break(struct servant *servant);

/*
 * For `heard`: a FRAME_ORDER_PART or FRAME_ORDER. 1 when the order in `coming` is whole, 0 if more is
 * to come, -1 if it is too long. Whoever has read it forgets it.
 */
int servant_hear_order(struct servant *servant, const struct frame *frame, size_t most);
void servant_forget_order(struct servant *servant);

/* A line for the client's stderr. */
void servant_note(struct servant *servant, enum vb_log_level level, const char *text);

/* "~/x" is the home's, as people are used to from the shell, which sees nothing of this. */
void servant_expand_home(char **path);

#endif
