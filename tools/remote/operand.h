/* SPDX-License-Identifier: Apache-2.0 */
/* Operands: what stands for SRC and DST on the command line. Pure. */
#ifndef TOOLS_OPERAND_H
#define TOOLS_OPERAND_H

#include <stdbool.h>

enum operand_kind {
	OPERAND_LOCAL,
	OPERAND_REMOTE,
	OPERAND_STDIO, /* "-" */
};

struct operand {
	enum operand_kind kind;
	char *host; /* "[user@]host" for ssh, without brackets; NULL unless remote */
	char *path; /* at a far side empty for the home directory */
};

/*
 * Understands "path", "host:path", "user@[address]:path" and "-". Returns NULL, or what is wrong
 * with it in words. Free it with operand_free in any case.
 */
const char *operand_parse(struct operand *operand, const char *text);

/* Of a source: no slashes at the end, and of "." and the like what is in it. False: no memory. */
bool operand_as_source(struct operand *operand);

bool operand_ends_in_slash(const struct operand *operand);

/* Do both mean the same host, as they are written? */
bool operand_same_host(const struct operand *a, const struct operand *b);

void operand_free(struct operand *operand);

#endif
