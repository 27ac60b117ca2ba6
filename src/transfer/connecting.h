/* SPDX-License-Identifier: Apache-2.0 */
/* Connecting, as an errand. */
#ifndef VB_TRANSFER_CONNECTING_H
#define VB_TRANSFER_CONNECTING_H

#include "channel/inside.h"
#include "transfer/errand.h"

/* Starts to do as vb__channel_connect does, which ends by its own time-out. */
int vb__connecting_start(const char *host, const char *port, const struct vb__settings *settings,
			 struct vb__errand **connecting, struct vb_error *err);

/* As vb__errand_finish. */
int vb__connecting_finish(struct vb__errand *connecting, int stop_fd, struct vb_channel **channel,
			  struct vb_error *err);

#endif
