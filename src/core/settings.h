/* SPDX-License-Identifier: Apache-2.0 */
/* struct vb_options checked, completed from defaults and environment, and made our own. */
#ifndef VB_CORE_SETTINGS_H
#define VB_CORE_SETTINGS_H

#include <verbatim/error.h>
#include <verbatim/options.h>

#include "core/log.h"

struct vb__settings {
	enum vb_fabric fabric;
	char device[64]; /* empty: any */
	int family;
	uint32_t max_message;
	uint32_t depth;
	uint32_t connect_timeout_ms;
	uint32_t peer_timeout_ms;
	uint32_t spin_us;
	struct vb__log log;
};

int vb__settings_from(struct vb__settings *settings, const struct vb_options *options,
		      struct vb_error *err);

#endif
