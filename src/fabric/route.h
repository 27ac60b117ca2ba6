/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's interfaces, addresses and routes, as path.h wants them. */
#ifndef VB_FABRIC_ROUTE_H
#define VB_FABRIC_ROUTE_H

#include "fabric/address.h"
#include "fabric/path.h"

/* Both lists belong to the caller. Return 0 or an errno; what there is by then is to be freed all the same. */
int vb__interfaces_read(struct vb__interface **interfaces);
int vb__own_addresses_read(struct vb__own_address **addresses);
void vb__interfaces_free(struct vb__interface *interfaces);
void vb__own_addresses_free(struct vb__own_address *addresses);

/* The way to `peer`, from `source` if that is not NULL. What went wrong is in route->errnum. */
void vb__route_ask(struct vb__route *route, const struct vb__address *peer,
		   const struct vb__address *source);

struct vb__ip vb__ip_of(const struct vb__address *address);
unsigned vb__scope_of(const struct vb__address *address);

#endif
