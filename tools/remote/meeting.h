/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Meetings: how two sides that ssh has brought together get a data connection of
 * their own. One opens a door and tells how to come there; the other tries.
 * `options` have no key: a meeting has one of its own, in the invitation.
 */
#ifndef TOOLS_MEETING_H
#define TOOLS_MEETING_H

#include "remote/message.h"

/*
 * Opens a door at a free port of this host, or of its address `bind` only. The invitation is
 * complete; whoever has it can come in, so wipe it.
 */
int meeting_open(const struct vb_transfer_options *options, const char *bind, struct vb_door **door,
		 struct invitation *invitation, struct vb_error *err);

/* Who is told what was tried, and how it went. `say` may be NULL. */
struct meeting_listener {
	void (*say)(void *arg, const char *text);
	void *arg;
};

/*
 * Connects to such a door, by whatever address of that host is best and works; where RDMA does not
 * get through, by TCP.
 */
int meeting_connect(const struct vb_transfer_options *options, const struct invitation *invitation,
		    const struct meeting_listener *listener, struct vb_session **session,
		    struct vb_error *err);

#endif
