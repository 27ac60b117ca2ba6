/* SPDX-License-Identifier: Apache-2.0 */
/* The way to a peer as queue pairs want it that are wired up by hand. */
#ifndef VB_FABRIC_VERBS_WAY_H
#define VB_FABRIC_VERBS_WAY_H

#include <infiniband/verbs.h>

#include <verbatim/device.h>

#include "fabric/address.h"

struct verbs_way {
	char device[64];
	char interface[16]; /* that it leaves by */
	uint8_t port;
	enum vb_wire wire;
	uint8_t gid_index; /* not to be kept: indexes move when a link goes down */
	union ibv_gid gid; /* at that index; ours */
	uint16_t lid;	   /* ours; InfiniBand's */
	uint16_t pkey_index;
	enum ibv_mtu mtu; /* of the port as it is now */
	char why[320];
};

/*
 * The device, port and GID by which the kernel's route from `source` (NULL: any address of ours) to `peer`
 * leaves; only `device`, if that is not empty. Works for both sides of a connection: who accepted one takes its own
 * address as the source. VB_ERR_NO_DEVICE with the reason if there is none. Asks the peer nothing.
 */
int verbs_way_find(struct verbs_way *way, const struct vb__address *peer,
		   const struct vb__address *source, const char *device, struct vb_error *err);

/* Opens a device by its name, for the caller to close; NULL and the reason if it cannot be had. */
struct ibv_context *verbs_open_named(const char *name, struct vb_error *err);

#endif
