/* SPDX-License-Identifier: Apache-2.0 */
/* What the examples share. They are to be read first: there is little here of how the library is used. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <err.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <verbatim/verbatim.h>

struct address {
	const char *host; /* NULL: none is given */
	const char *port;
};

/* The arguments begin with this flag and "[HOST]:PORT", which is split in place. HOST may be "[V6]". */
static inline bool asks_for(char **argv, const char *flag, struct address *address)
{
	char *colon = argv[1] && argv[2] ? strrchr(argv[2], ':') : NULL;

	if (!colon || !colon[1] || strcmp(argv[1], flag) != 0)
		return false;
	*colon = '\0';
	address->host = colon > argv[2] ? argv[2] : NULL;
	address->port = colon + 1;
	return true;
}

/* A number of at least 1. */
static inline unsigned number(const char *text)
{
	int value = atoi(text);

	if (value < 1)
		errx(2, "%s: not a number of 1 or more", text);
	return (unsigned)value;
}

/* Returns an exit code. */
static inline int usage(const char *text)
{
	fprintf(stderr, "usage: %s\n", text);
	return 2;
}

/* What a call has returned, unless it has failed: then the program ends, and says why. The system gives everything back. */
static inline ssize_t must(ssize_t returned, const struct vb_error *err)
{
	char line[VB_ERROR_LINE_MAX];

	if (returned < 0)
		errx(1, "%s", vb_error_format(err, line, sizeof(line)));
	return returned;
}

static inline double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

#endif
