/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands: a program whose output is sent, or that is fed with what arrives.
 * Its failure is a failure of the transfer, and the other way round.
 */
#ifndef TOOLS_COMMAND_H
#define TOOLS_COMMAND_H

#include <stdbool.h>
#include <sys/types.h>
#include <verbatim/error.h>

enum command_role {
	COMMAND_READ, /* we read what it writes */
	COMMAND_FEED, /* it reads what we write */
};

struct command {
	enum command_role role;
	pid_t pid;
	int watch; /* readable when it has ended, -1 if the kernel cannot tell */
	bool own_group;
	int pipe;	/* our end, for the library */
	int spare;	/* another one: so that whoever is fed sees no end before we want it to */
	char name[200]; /* as it was typed */
};

/* Whether there is such a program: fails as starting it would. */
int command_check(char *const *argv, struct vb_error *err);

/* Starts it with nothing of ours but stdin, stdout and stderr. */
int command_start(struct command *command, char *const *argv, enum command_role role,
		  struct vb_error *err);

/*
 * A vb_at_end_fn: after the last byte waits for its end. VB_ERR_IO unless it exits with 0,
 * VB_ERR_INTERRUPTED if the transfer is given up meanwhile.
 */
int command_at_end(void *command, int cancel_fd, struct vb_error *err);

/*
 * Frees it, and ends it if it still runs: SIGTERM, after a second SIGKILL, and
 * only then it sees the end of its input. `result` is what came of the transfer;
 * if that failed because the command did, `err` is made to say so.
 */
void command_finish(struct command *command, int result, struct vb_error *err);

#endif
