/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of rdinfo. */
#ifndef TOOLS_INQUIRY_H
#define TOOLS_INQUIRY_H

#include <stdbool.h>
#include <verbatim/options.h>

/* 0 to 2 are what the doctor found; this is that there was nothing to be found out. */
#define INQUIRY_FAILED 3

struct inquiry {
	const char *host; /* or NULL */
	bool check, serve, json;
	int verbosity;
	const char *port, *bind;
	struct vb_options options;
};

/* Returns -1 to go on; else the exit code: what was asked for, or what is wrong, has been printed. */
int inquiry_parse(struct inquiry *inquiry, int argc, char **argv);

#endif
