/* SPDX-License-Identifier: Apache-2.0 */
/* The command lines of the tools. */
#ifndef TOOLS_ARGUMENTS_H
#define TOOLS_ARGUMENTS_H

#include <stdbool.h>
#include <verbatim/perf.h>
#include <verbatim/transfer.h>
#include <verbatim/tree.h>

#include "common/key.h"
#include "common/list.h"

/* Bits, for what several understand. */
enum tool {
	RDSEND = 1,
	RDRECV = 2,
	RDCP = 4,
	RDPIPE = 8,
	RDPERF = 16,
};

enum request {
	REQUEST_NONE = 0,
	REQUEST_HELP,
	REQUEST_VERSION,
};

struct arguments {
	enum tool tool;

	/* NULL where not given. */
	const char *host; /* the peer of rdsend and rdperf */
	const char *port;
	char *key;	  /* still as typed, in argv */
	const char *file; /* NULL: stdin or stdout */
	char **command;	  /* ends with NULL */

	const char *key_file; /* "-": stdin */
	const char *bind;
	int verbosity; /* -1: quiet */
	bool json, keep_listening;
	enum request request;

	/* As far as the command line tells: no key, callbacks or stop_fd. */
	struct vb_transfer_options options;

	/* rdcp's. */
	struct list places;	     /* SRC... DST, or stages, as typed; rdpipe's, too */
	struct vb_tree_options tree; /* no rules or callbacks; see below */
	struct list rules;
	bool archive, sync, checksum; /* what they mean for `tree` is in there */
	const char *files_from;	      /* "-": stdin */
	bool from0;
	bool no_fallback, stats;
	uint32_t retries;

	/* rdcp's and rdpipe's. */
	const char *rsh;
	const char *far_path;	 /* of the tool itself, at far sides */
	struct list ssh_options; /* "-i", "file", ... */
	bool no_stdin;		 /* rdpipe's alone */

	/* rdperf's. */
	struct vb_perf_cell cell; /* without a size */
	const char *size;
	bool serve, only_bandwidth, only_latency;
	const char *svg, *label;
	struct list runs; /* files to draw as well */
};

/* "rdsend", "rdrecv", "rdcp", "rdpipe", "rdperf". */
const char *tool_name(enum tool tool);

/*
 * Understands the command line; `have_key` says that none is needed among the arguments. Returns -1
 * to go on; else the exit code: what was asked for, or what is wrong, has been printed.
 */
int arguments_parse(struct arguments *arguments, enum tool tool, bool have_key, int argc,
		    char **argv);

/* Says what is wrong, and where the help is. Returns EXIT_USAGE. */
__attribute__((format(printf, 2, 3))) int arguments_misused(const struct arguments *arguments,
							    const char *format, ...);

void arguments_free(struct arguments *arguments);

#endif
