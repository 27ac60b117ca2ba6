/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings. Which are of one kind, and when somebody looks after them, is not known here. */
#include "core/warnings.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/clock.h"

#define PAUSE_MS 1000u

static void tell(struct vb__warnings *w, struct vb__warning *kind)
{
	if (kind->untold == 1)
		vb__log(&w->log, VB_LOG_WARNING, "%s", kind->last);
	else if (kind->untold)
		vb__log(&w->log, VB_LOG_WARNING, "%u more like this: %s", kind->untold, kind->last);
	kind->untold = 0;
}

static void tell_if_due(struct vb__warnings *w, struct vb__warning *kind, uint64_t now_ns)
{
	if (!kind->untold || now_ns < kind->due_ns)
		return;
	tell(w, kind);
	kind->due_ns = now_ns + vb__ms(PAUSE_MS);
}

void vb__warnings_add(struct vb__warnings *w, unsigned number, uint64_t now_ns, const char *format,
		      ...)
{
	struct vb__warning *kind = &w->kind[number];
	va_list args;

	va_start(args, format);
	vsnprintf(kind->last, sizeof(kind->last), format, args);
	va_end(args);
	kind->untold++;
	tell_if_due(w, kind, now_ns);
}

uint64_t vb__warnings_tell(struct vb__warnings *w, uint64_t now_ns)
{
	uint64_t next = UINT64_MAX;

	for (unsigned i = 0; i < VB__WARNING_KINDS; i++) {
		struct vb__warning *kind = &w->kind[i];

		tell_if_due(w, kind, now_ns);
		if (kind->untold && kind->due_ns < next)
			next = kind->due_ns;
	}
	return next;
}

void vb__warnings_close(struct vb__warnings *w)
{
	for (unsigned i = 0; i < VB__WARNING_KINDS; i++)
		tell(w, &w->kind[i]);
}
