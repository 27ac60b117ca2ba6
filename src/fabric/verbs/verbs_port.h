/* SPDX-License-Identifier: Apache-2.0 */
/* From an address of ours to the device that has it. For those who go without rdma_cm, which does that by itself. */
#ifndef VB_FABRIC_VERBS_PORT_H
#define VB_FABRIC_VERBS_PORT_H

#include "fabric/verbs/verbs.h"

/*
 * The port that has the address, of the device `only` if that is not empty: by the rules of discovery (path.h), a
 * GID of RoCE v2 that is the address, of the interface that has it; or the InfiniBand port that this interface stands
 * on, with its LID and the index of the partition. Its context is held: it ends with verbs_device_release.
 * VB_ERR_NO_DEVICE tells why there is none. What was found before is found again by asking its device alone. Any thread.
 */
int verbs_port_find(const struct vb__address *local, const char *only, const struct vb__log *log,
		    struct verbs_port *port, struct vb_error *err);

/* For tests, whose devices change as none does. */
void verbs_ports_forget(void);

#endif
