/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of this machine, on one screen. */
#ifndef TOOLS_DEVICE_VIEW_H
#define TOOLS_DEVICE_VIEW_H

#include <stdio.h>
#include <verbatim/device.h>

void device_view_print(const struct vb_device *devices, FILE *out);
void device_view_json(const struct vb_device *devices, FILE *out);

#endif
