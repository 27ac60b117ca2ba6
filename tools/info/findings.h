/* SPDX-License-Identifier: Apache-2.0 */
/* Findings of the doctor: one line each, with its remedy. */
#ifndef TOOLS_FINDINGS_H
#define TOOLS_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>

enum finding_level {
	FINDING_OK = 0,
	FINDING_WARNING,
	FINDING_PROBLEM,
};

struct finding {
	struct finding *next;
	enum finding_level level;
	char topic[24];
	char text[400];
	char remedy[480]; /* empty: none is needed */
};

/* Zeroed it is empty. */
struct findings {
	struct finding *first, *last;
	unsigned count[3]; /* by level */
	bool lost;	   /* there was no memory for one */
};

/* Adds a line; `remedy` may be NULL. */
__attribute__((format(printf, 5, 6))) void findings_add(struct findings *findings,
							enum finding_level level, const char *topic,
							const char *remedy, const char *format,
							...);

/* The worst level, which is also the exit code. */
enum finding_level findings_worst(const struct findings *findings);

/* "ok", "warning", "problem". */
const char *finding_level_name(enum finding_level level);

/* All of them to stdout, as lines or as one JSON object; -1 if that fails. */
int findings_print(const struct findings *findings, bool as_json);

void findings_free(struct findings *findings);

#endif
