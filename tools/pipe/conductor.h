/* SPDX-License-Identifier: Apache-2.0 */
/* Conductors: the client's side of a pipeline, which starts all stages and hears what comes of them. */
#ifndef TOOLS_CONDUCTOR_H
#define TOOLS_CONDUCTOR_H

#include "pipe/far_stage.h"
#include "pipe/side.h"

struct conductor {
	const struct arguments *arguments;
	const struct stage *from, *to; /* the files here; NULL: stdin and stdout, if any */
	bool reads, writes;	       /* is there anything that begins or ends here? */
	struct side input, output;     /* these ends */
	int file;		       /* that is appended to, or -1 */

	struct far_stage *stages;
	size_t count;
	int news; /* an event */
	struct progress progress;

	/* What was found here, and not told by a stage. */
	struct vb_error err;
	enum phase phase;
	enum exit_code start_code; /* if a far side could not be started, what to exit with */
	bool began;
};

/* -1 to go on; else the exit code: what is wrong has been printed. End it in any case. */
int conductor_open(struct conductor *conductor, const struct arguments *arguments,
		   const struct stages *stages);

/* Runs the pipeline. What came of it is in the conductor and its stages. */
void conductor_run(struct conductor *conductor);

void conductor_end(struct conductor *conductor);

#endif
