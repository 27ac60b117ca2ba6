/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a listener, as an errand: its host may be a name that has to be looked up. */
#ifndef VB_TRANSFER_OPENING_H
#define VB_TRANSFER_OPENING_H

#include "channel/inside.h"
#include "transfer/errand.h"

/* Starts to do as vb__listener_open does. */
int vb__opening_start(const char *host, const char *port, const struct vb__settings *settings,
		      struct vb__errand **opening, struct vb_error *err);

/* As vb__errand_finish. */
int vb__opening_finish(struct vb__errand *opening, int stop_fd, struct vb_listener **listener,
		       struct vb_error *err);

#endif
