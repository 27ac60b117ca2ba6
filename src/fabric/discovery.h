/* SPDX-License-Identifier: Apache-2.0 */
/* Discovery, for the library's own use: the way to one address. */
#ifndef VB_FABRIC_DISCOVERY_H
#define VB_FABRIC_DISCOVERY_H

#include <stdbool.h>

#include <verbatim/device.h>

#include "fabric/address.h"

struct vb__path_query {
	const struct vb__address *peer;
	const struct vb__address *source; /* NULL: by the route */
	enum vb_fabric fabric;
	const char *device; /* NULL or empty: any */
	bool prove;	    /* which may take seconds */
};

/* The path, for vb_path_free; there is one whenever 0 is returned. */
int vb__path_to(const struct vb__path_query *query, struct vb_path **path, struct vb_error *err);

#endif
