/* SPDX-License-Identifier: Apache-2.0 */
/* What an opened device can do. */
#ifndef VB_FABRIC_VERBS_ABILITIES_H
#define VB_FABRIC_VERBS_ABILITIES_H

#include <infiniband/verbs.h>

#include <verbatim/device.h>

/* Fills in device->can and the firmware's version. What cannot be found out stays zero. */
void verbs_abilities_read(struct ibv_context *context, struct vb_device *device);

#endif
