/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failures that a tool finds itself, told as the library tells its own. All
 * return the code; `err` may be NULL.
 */
#ifndef TOOLS_TROUBLE_H
#define TOOLS_TROUBLE_H

#include <verbatim/error.h>

/* "operation object: what errno means (errno n)". */
int trouble_errno(struct vb_error *err, enum vb_err code, int errnum, const char *operation,
		  const char *object);

/* Just words. */
__attribute__((format(printf, 3, 4))) int trouble_say(struct vb_error *err, enum vb_err code,
						      const char *format, ...);

#endif
