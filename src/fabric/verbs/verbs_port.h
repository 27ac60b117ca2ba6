/* SPDX-License-Identifier: Apache-2.0 */
/* From an address of ours to the device that has it. For those who go without rdma_cm, which does that by itself. */
#ifndef VB_FABRIC_VERBS_PORT_H
#define VB_FABRIC_VERBS_PORT_H

#include "fabric/verbs/verbs.h"

/*
 * The name of the interface that a GID belongs to; false if it has none in this network namespace. Its number alone
 * (ndev_ifindex) may be one of another namespace.
 */
bool verbs_gid_interface(const char *device, const struct ibv_gid_entry *entry, char name[16]);

/*
 * The port that has the address, on the interface that has it, of the device `only` if that is not empty. Its context is held: it ends
 * with verbs_device_release. VB_ERR_NO_DEVICE tells every device that was looked at, and why it was not taken.
 */
int verbs_port_find(const struct vb__address *local, const char *only, struct verbs_port *port,
		    struct vb_error *err);

#endif
