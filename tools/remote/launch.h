/* SPDX-License-Identifier: Apache-2.0 */
/* Launching: starts the far side, and makes sure that it is one. */
#ifndef TOOLS_LAUNCH_H
#define TOOLS_LAUNCH_H

#include <sys/types.h>

#include "common/arguments.h"
#include "common/exit_code.h"

struct launch {
	pid_t pid; /* -1: none */
	bool own_group;
	bool by_ssh;
	int in, out; /* from it and to it; whoever takes them over sets them to -1 */
};

/*
 * Pure: the command that starts the far side at `host`. Nothing in it is secret, and no path
 * either. `by_ssh` says whether it is ssh, which is given its options. NULL, or what is wrong.
 */
const char *launch_words(struct list *words, const struct arguments *arguments, const char *host,
			 bool *by_ssh);

/*
 * Starts it and exchanges hellos, for as long as that takes: somebody may be typing a password.
 * Fails with the details in `err` and the exit code in `code`.
 */
int launch_start(struct launch *launch, const struct arguments *arguments, const char *host,
		 struct vb_error *err, enum exit_code *code);

/* Waits so long for its end, then makes it end. Returns its exit status, -1 if it was ended. */
int launch_end(struct launch *launch, int patience_ms);

#endif
