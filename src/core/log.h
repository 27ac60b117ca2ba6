/* SPDX-License-Identifier: Apache-2.0 */
/* The log: one callback per connection or listener. Nothing on the data path, no secrets. */
#ifndef VB_CORE_LOG_H
#define VB_CORE_LOG_H

#include <verbatim/options.h>

#define VB__LOG_LINE_MAX 1024u

struct vb__log {
	vb_log_fn write;
	void *arg;
	enum vb_log_level level;
};

void vb__log(const struct vb__log *log, enum vb_log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
