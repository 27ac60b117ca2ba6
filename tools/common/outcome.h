/* SPDX-License-Identifier: Apache-2.0 */
/* What came of a transfer, told to the user in words or in JSON. */
#ifndef TOOLS_OUTCOME_H
#define TOOLS_OUTCOME_H

#include <verbatim/transfer.h>

#include "common/exit_code.h"

struct outcome {
	enum phase phase; /* how far it came */
	struct vb_error err;
	struct vb_report report;
	char peer[128]; /* empty until there is one */
	char description[768];
	const char *cipher; /* NULL: the data is not encrypted */
};

/* Notes whom the session is with and what was chosen; says so with -v if that is news. */
void outcome_describe(struct outcome *outcome, const struct vb_session *session);

struct json;

/* Adds the error, if there is one, as the member "error". */
void outcome_add_error(struct json *json, const struct vb_error *err);

/* What compression came to, of `bytes` sent as `wire_bytes`; to people only if there was any. */
void outcome_tell_packing(uint64_t bytes, uint64_t wire_bytes, uint64_t pack_ns);
void outcome_add_packing(struct json *json, uint64_t bytes, uint64_t wire_bytes, uint64_t pack_ns);

/* The last line of -v. */
void outcome_tell_bandwidth(uint64_t bytes_per_second);

/* What an error is to the user: one line. */
const char *outcome_error_line(const struct vb_error *err, char line[VB_ERROR_LINE_MAX]);

/* Tells how it ended and returns the exit code. */
enum exit_code outcome_tell(const struct outcome *outcome);

#endif
