/* SPDX-License-Identifier: Apache-2.0 */
/* The log: formats a line and hands it to the application's callback. */
#include "core/log.h"

#include <stdarg.h>
#include <stdio.h>

void vb__log(const struct vb__log *log, enum vb_log_level level, const char *format, ...)
{
	char line[VB__LOG_LINE_MAX];
	va_list args;

	if (!log->write || level > log->level)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	log->write(log->arg, level, line);
}
