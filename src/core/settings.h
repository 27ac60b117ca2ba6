/* SPDX-License-Identifier: Apache-2.0 */
/* struct vb_options checked, completed from defaults and environment, and made our own. */
#ifndef VB_CORE_SETTINGS_H
#define VB_CORE_SETTINGS_H

#include <stdatomic.h>
#include <stdbool.h>

#include <verbatim/error.h>
#include <verbatim/options.h>

#include "core/log.h"

/* Which way messages go. Where none go there is no memory for them. */
enum vb__traffic {
	VB__TRAFFIC_BOTH = 0,
	VB__TRAFFIC_OUT, /* we send */
	VB__TRAFFIC_IN,	 /* we receive */
};

struct vb__settings {
	enum vb_fabric fabric;
	enum vb_wireup wireup;
	struct vb_qp_options qp; /* mtu_bytes and ack_timeout 0: as they follow from the rest */
	char device[64];	 /* empty: any */
	int family;
	char source[64]; /* empty: by the route */
	uint32_t max_message;
	uint32_t depth;
	uint32_t connect_timeout_ms;
	bool listener_is_up;
	uint32_t peer_timeout_ms;
	uint32_t spin_us;
	struct vb__log log;

	/* What only the library's own channels use. */
	enum vb__traffic traffic;
	uint8_t token[16];	     /* shown to the listener; all zero: none */
	const atomic_bool *given_up; /* connecting, listening: set from another thread; or NULL */
};

bool vb__settings_given_up(const struct vb__settings *settings);

int vb__settings_from(struct vb__settings *settings, const struct vb_options *options,
		      struct vb_error *err);

#endif
