/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs: what SRC... DST come to. Sources at one host are one job. */
#ifndef TOOLS_JOBS_H
#define TOOLS_JOBS_H

#include "common/arguments.h"
#include "remote/operand.h"

struct job {
	const struct operand *from; /* its kind and host count */
	struct list paths;
};

struct jobs {
	struct operand *sources;
	size_t source_count;
	struct operand target;
	bool into_directory;
	struct job *job;
	size_t count;
};

/* -1 to go on; else the exit code: what is wrong has been printed. Free it in any case. */
int jobs_make(struct jobs *jobs, const struct arguments *arguments);

void jobs_free(struct jobs *jobs);

#endif
