/* SPDX-License-Identifier: Apache-2.0 */
/* The far side, as a client knows it: a process that takes orders, and whether it is still there. */
#ifndef TOOLS_FAR_H
#define TOOLS_FAR_H

#include "remote/launch.h"
#include "remote/link.h"

/* What a tool makes of what it hears, by the link's thread. */
struct far_ears {
	bool (*hear)(void *arg, const struct frame *frame); /* false: that makes no sense */
	void (*gone)(void *arg);			    /* no more will come; may be NULL */
};

struct far {
	char *host;
	struct launch launch;
	struct link link;
	int news; /* an event of the client's: raised when something changes */
	const struct far_ears *ears;
	void *arg;

	pthread_mutex_t lock; /* over these, and what the ears note */
	bool gone;	      /* no more will come, */
	bool wrong;	      /* because what came made no sense */
};

/* Starts it. Fails with the details in `err` and the exit code. Notes are printed, and not for the ears. */
int far_open(struct far *far, const struct arguments *arguments, const char *host, int news,
	     const struct far_ears *ears, void *arg, struct vb_error *err, enum exit_code *code);

/* Orders something that was packed, in as many frames as it takes; wipes and frees it. */
void far_order(struct far *far, struct pack *pack);

/* That it is not wanted any more. It ends all the same. */
void far_stop(struct far *far);

/* Wakes whoever waits for news. */
void far_tell(const struct far *far);

/* What is known by now. */
bool far_is_gone(struct far *far);
bool far_is_wrong(struct far *far);

/* Ends it, soon with `at_once`. Returns the exit status of what has started it, -1 if it was ended. */
int far_close(struct far *far, bool at_once);

#endif
