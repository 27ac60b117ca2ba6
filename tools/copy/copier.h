/* SPDX-License-Identifier: Apache-2.0 */
/* Copiers: the client's side of one job, with all its tries. */
#ifndef TOOLS_COPIER_H
#define TOOLS_COPIER_H

#include "copy/copy_far.h"
#include "copy/jobs.h"

struct copier {
	const struct arguments *arguments;
	const struct jobs *jobs;
	const struct job *job;
	const struct list *listed; /* of --files-from */
	struct listing *listing;

	/* The far sides, where the sources and the target are; open as long as they have a host. */
	struct copy_far source, target;
	int news; /* see far.h */

	bool has_looked;	   /* whether there is anything to do */
	bool was_up;		   /* data has flowed, so it can be done */
	enum exit_code start_code; /* if no far side could be started, what to exit with */
};

/* Does the job. What came of it is in `ending`; returns the exit code, and has told why. */
enum exit_code copier_run(struct copier *copier, struct ending *ending);

#endif
