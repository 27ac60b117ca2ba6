/* SPDX-License-Identifier: Apache-2.0 */
/* Which network interface a port belongs to. */
#ifndef VB_FABRIC_VERBS_NETDEV_H
#define VB_FABRIC_VERBS_NETDEV_H

#include <verbatim/device.h>

/* Fills in ifindex and interface of the ports, as `rdma link` shows them. Only of Ethernet does the kernel know. */
void verbs_netdevs_read(struct vb_device *devices);

#endif
