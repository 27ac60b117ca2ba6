/* SPDX-License-Identifier: Apache-2.0 */
/* Failures of the tools' own. */
#include "common/trouble.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int trouble_errno(struct vb_error *err, enum vb_err code, int errnum, const char *operation,
		  const char *object)
{
	if (!err)
		return code;
	*err = (struct vb_error){ .code = code, .native_kind = VB_NATIVE_ERRNO, .native = errnum };
	snprintf(err->operation, sizeof(err->operation), "%s", operation);
	snprintf(err->object, sizeof(err->object), "%s", object);
	snprintf(err->cause, sizeof(err->cause), "%s", strerror(errnum));
	return code;
}

int trouble_say(struct vb_error *err, enum vb_err code, const char *format, ...)
{
	va_list args;

	if (!err)
		return code;
	*err = (struct vb_error){ .code = code };
	va_start(args, format);
	vsnprintf(err->cause, sizeof(err->cause), format, args);
	va_end(args);
	return code;
}
