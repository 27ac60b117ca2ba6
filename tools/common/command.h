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

/* Bits: a stage of a pipeline is both. */
enum command_role {
	COMMAND_READ = 1,  /* we read what it writes */
	COMMAND_FEED = 2,  /* it reads what we write */
	COMMAND_APART = 4, /* a group of its own, on a terminal as well: nobody types to it */
};

struct command {
	pid_t pid;
	int watch; /* readable when it has ended, -1 if the kernel cannot tell */
	bool own_group;
	int from, to;	/* our ends, for the library; -1: none */
	int spare;	/* another `to`: so that whoever is fed sees no end before we want it to */
	char name[200]; /* as it was typed */
};

/* Whether there is such a program: fails as starting it would. */
int command_check(char *const *argv, struct vb_error *err);

/*
 * Starts it with nothing of ours but stdin, stdout and stderr. `roles` of the above. Messages call it
 * `name`; NULL: by its words.
 */
int command_start(struct command *command, char *const *argv, unsigned roles, const char *name,
		  struct vb_error *err);

/*
 * What commands have left behind is ours, to be waited for; this does so for all that has ended. Not for a process
 * that still needs to know of a child how it ended.
 */
void command_bury_orphans(void);

/*
 * vb_at_end_fns, of one that we read and of one that we feed: after the last byte they wait for its
 * end. VB_ERR_IO unless it exits with 0, VB_ERR_INTERRUPTED if the transfer is given up meanwhile.
 */
int command_drained(void *command, int cancel_fd, struct vb_error *err);
int command_fed(void *command, int cancel_fd, struct vb_error *err);

/* Has it ended? Then `status` is as waitpid(2) has it. */
bool command_has_ended(const struct command *command, int *status);

/* 0 if that is an exit with 0, else VB_ERR_IO and in `err` how it ended. */
int command_judge(const struct command *command, int status, struct vb_error *err);

/* To it, and where it has a group of its own to all that it has started. */
void command_signal(const struct command *command, int signal);

/*
 * Frees it, and if the transfer failed ends it with all of its group: SIGTERM,
 * after a second SIGKILL, and only when none is left there is an end of its
 * input. What cannot be ended, being another user's, is waited for. `result` is
 * what came of the transfer; if that failed because the command did, `err` is
 * made to say so.
 */
void command_finish(struct command *command, int result, struct vb_error *err);

#endif
