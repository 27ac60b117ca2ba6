/* SPDX-License-Identifier: Apache-2.0 */
/* What verbs knows of this machine: its devices, and whether one can reach a peer. */
#ifndef VB_FABRIC_VERBS_SYSTEM_H
#define VB_FABRIC_VERBS_SYSTEM_H

#include "fabric/path.h"

/*
 * All RDMA devices, sorted by name; what each can do only `with_abilities`, since trying that out
 * takes a few calls. The interfaces of ports are filled in as far as the kernel tells them.
 */
int verbs_devices_read(struct vb_device **devices, bool with_abilities, struct vb_error *err);

/* A vb__prove_fn: lets the device make an address handle for the peer. */
enum vb__proof verbs_prove(void *arg, struct vb_path *path, const struct vb__ip *peer);

#endif
