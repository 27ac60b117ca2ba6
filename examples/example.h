/* SPDX-License-Identifier: Apache-2.0 */
/* What the shorter examples share: addresses on the command line, and errors in words. Nothing of how the library is used. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <verbatim/verbatim.h>

struct address {
	const char *host; /* NULL: none is given */
	const char *port;
};

/* Splits "[HOST]:PORT", where HOST may be "[V6]", in place. */
static inline bool read_address(char *text, struct address *address)
{
	char *colon = strrchr(text, ':');

	if (!colon || !colon[1])
		return false;
	*colon = '\0';
	address->host = colon > text ? text : NULL;
	address->port = colon + 1;
	if (*text == '[' && colon[-1] == ']') {
		colon[-1] = '\0';
		address->host = text + 1;
	}
	return true;
}

/* Returns an exit code. */
static inline int complain(const char *program, const struct vb_error *err)
{
	char line[VB_ERROR_LINE_MAX];

	fprintf(stderr, "%s: %s\n", program, vb_error_format(err, line, sizeof(line)));
	return 1;
}

#endif
