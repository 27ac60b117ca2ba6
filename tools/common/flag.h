/* SPDX-License-Identifier: Apache-2.0 */
/* Flags: the options of the command line, in one table for parsing and help. */
#ifndef TOOLS_FLAG_H
#define TOOLS_FLAG_H

#include <stddef.h>
#include <stdint.h>

#include "common/arguments.h"

enum flag_kind {
	FLAG_SET,      /* takes no value; stores `least` */
	FLAG_RAISE,    /* takes no value; one more than before, at least 1 */
	FLAG_TEXT,     /* not empty */
	FLAG_FABRIC,   /* by its name */
	FLAG_WIREUP,   /* likewise */
	FLAG_ENCRYPT,  /* no, ask or require; without a value ask */
	FLAG_COMPRESS, /* auto, no, or `least` to `most`; without a value auto */
	FLAG_OP,       /* by its name, of rdperf */
	FLAG_QP,
	FLAG_SIZE,  /* numbers, `least` to `most` */
	FLAG_BLOCK, /* likewise, of which `least` is a divisor */
	FLAG_TIME,  /* to milliseconds */
	FLAG_COUNT,
	FLAG_BITS, /* takes no value; `least` is or-ed to what is there */
	FLAG_RULE, /* appended to a list, after the character `least` and a space */
	FLAG_SSH,  /* appended to a list, after the option with the letter `least` */
	FLAG_ADD,  /* appended to a list */
};

struct flag {
	unsigned tools; /* of enum tool */
	char letter;	/* 0: none */
	const char *name;
	const char *
		value; /* as the help calls it, in [] if it may be left out; NULL if it takes none */
	enum flag_kind kind;
	size_t offset, width; /* of its field in struct arguments */
	uint64_t least, most;
	const char *wanted; /* "a size from 4K to 64M", to go after "is not" */
	const char *help;   /* a flag without a name but with this is a headline */
};

/* All flags and headlines. The last one has neither name nor help. */
extern const struct flag flags[];

/* May it be given without a value? Then that follows the long name and '=', and never the letter. */
bool flag_is_optional(const struct flag *flag);

/* Stores a value, NULL if none was given; -1 if it is not what is wanted. */
int flag_set(const struct flag *flag, struct arguments *arguments, const char *text);

/* What --fabric and --wireup take, for rdinfo, which has options of its own; -1 if nothing has that name. */
int flag_fabric_named(const char *name, enum vb_fabric *fabric);
int flag_wireup_named(const char *name, enum vb_wireup *wireup);

#endif
