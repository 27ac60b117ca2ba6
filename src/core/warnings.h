/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Warnings of what strangers can cause as often as they like: the first of a
 * kind is told at once, those that come within a second are told together.
 *
 * For one thread at a time. Nothing but the log's callback can block.
 */
#ifndef VB_CORE_WARNINGS_H
#define VB_CORE_WARNINGS_H

#include <stdint.h>

#include "core/log.h"

#define VB__WARNING_KINDS 8u

/* All zero but for the log: nothing was told yet. */
struct vb__warnings {
	struct vb__log log;
	struct vb__warning {
		unsigned untold;
		uint64_t due_ns; /* not to be told before */
		char last[VB__LOG_LINE_MAX];
	} kind[VB__WARNING_KINDS];
};

/* Tells or counts one; the kinds are the caller's, below VB__WARNING_KINDS. */
void vb__warnings_add(struct vb__warnings *warnings, unsigned kind, uint64_t now_ns,
		      const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Tells what is due. Returns when there is more to tell, UINT64_MAX if there is nothing. */
uint64_t vb__warnings_tell(struct vb__warnings *warnings, uint64_t now_ns);

/* Tells all the rest. */
void vb__warnings_close(struct vb__warnings *warnings);

#endif
