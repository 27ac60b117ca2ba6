/* SPDX-License-Identifier: Apache-2.0 */
/* Stages: what the command line makes of a pipeline. Nothing is looked at but the words. Pure. */
#ifndef TOOLS_STAGES_H
#define TOOLS_STAGES_H

#include "common/arguments.h"

enum stage_kind {
	STAGE_COMMAND = 1,
	STAGE_READ,   /* '<': only the first */
	STAGE_WRITE,  /* '>': only the last */
	STAGE_APPEND, /* '>>': likewise */
};

struct stage {
	enum stage_kind kind;
	char *host; /* "[user@]host" for ssh; NULL: here, where there are files only */
	char *text; /* the command, or the file's name */
};

/*
 * In order. Those with a host stand together; before and after them there may be a file here. Where
 * there is none, it is stdin and stdout of this process.
 */
struct stages {
	struct stage *stage;
	size_t count;
};

/* -1 to go on; else the exit code: what is wrong has been printed. Free it in any case. */
int stages_make(struct stages *stages, const struct arguments *arguments);

/* One word. Returns NULL, or what is wrong with it in words. Free it in any case. */
const char *stage_parse(struct stage *stage, const char *word);

void stage_free(struct stage *stage);
void stages_free(struct stages *stages);

#endif
