/* SPDX-License-Identifier: Apache-2.0 */
/* The exit codes of the tools: rsync's numbers where one fits. */
#ifndef TOOLS_EXIT_CODE_H
#define TOOLS_EXIT_CODE_H

#include <stdio.h>
#include <verbatim/error.h>

#include "common/arguments.h"

enum exit_code {
	EXIT_OK = 0,
	EXIT_USAGE = 1,
	EXIT_START = 5,
	EXIT_SOCKET = 10,
	EXIT_FILE = 11,
	EXIT_PROTOCOL = 12,
	EXIT_INTERRUPTED = 20,
	EXIT_MEMORY = 22,
	EXIT_PARTIAL = 23,
	EXIT_VANISHED = 24,
	EXIT_TIMEOUT = 30,
	EXIT_CONNECT = 35,
	EXIT_NOT_RUN = 126,
	EXIT_NOT_FOUND = 127,
};

/* What was being done when it failed. */
enum phase {
	PHASE_CHECK,	/* looking at the arguments and files */
	PHASE_KEY,	/* getting hold of the key */
	PHASE_LISTEN,	/* opening the door */
	PHASE_WAIT,	/* for a sender */
	PHASE_CONNECT,	/* to a receiver */
	PHASE_TRANSFER, /* everything after the proofs */
};

enum exit_code exit_code_of(enum vb_err code, enum phase phase);

/* The table of codes, for the help. */
void exit_code_print(enum tool tool, FILE *out);

#endif
