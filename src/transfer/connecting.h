/* SPDX-License-Identifier: Apache-2.0 */
/* Connecting, but so that it can be given up at once. */
#ifndef VB_TRANSFER_CONNECTING_H
#define VB_TRANSFER_CONNECTING_H

#include "channel/inside.h"

struct vb__connecting;

/* Starts to do as vb__channel_connect does, in a thread of its own. */
int vb__connecting_start(const char *host, const char *port, const struct vb__settings *settings,
			 struct vb__connecting **connecting, struct vb_error *err);

/* Waits for what has come of it; VB_ERR_INTERRUPTED as soon as `stop_fd` (or -1) is readable. Frees it in any case. */
int vb__connecting_finish(struct vb__connecting *connecting, int stop_fd,
			  struct vb_channel **channel, struct vb_error *err);

/* Waits until finish would not, which is true, or until one of these (or -1) is readable. */
bool vb__connecting_await(struct vb__connecting *connecting, int fd, int other_fd);

/* Leaves it to itself: it ends by its own time-out, and is freed then. */
void vb__connecting_leave(struct vb__connecting *connecting);

#endif
