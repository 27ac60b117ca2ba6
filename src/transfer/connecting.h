/* SPDX-License-Identifier: Apache-2.0 */
/* Connecting, but so that it can be given up at once. */
#ifndef VB_TRANSFER_CONNECTING_H
#define VB_TRANSFER_CONNECTING_H

#include "channel/inside.h"

/* As vb__channel_connect; VB_ERR_INTERRUPTED as soon as `stop_fd` (or -1) is readable. */
int vb__connect_or_stop(const char *host, const char *port, const struct vb__settings *settings,
			int stop_fd, struct vb_channel **channel, struct vb_error *err);

#endif
