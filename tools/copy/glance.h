/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Glances: while the two sides of a --sync are still getting at each other, each looks at its own tree. If
 * what they see comes to the same there is nothing to do, and no need for a data connection.
 */
#ifndef TOOLS_GLANCE_H
#define TOOLS_GLANCE_H

#include <pthread.h>
#include <stdatomic.h>

#include "copy/order.h"

/* By the thread that looks, when it has seen all or enough; not if it is ended before. */
typedef void (*glance_fn)(void *arg, const struct glimpse *seen);

/* Zero it. */
struct glance {
	const struct order *order;
	glance_fn done;
	void *arg;
	pthread_t thread;
	bool begun;
	int stop; /* an event */

	atomic_bool ready;
	struct glimpse seen; /* when it is ready */
};

/* Could it show that there is nothing to do, and would nobody miss what a transfer tells? */
bool glance_is_for(const struct order *order);

/* Begins to look, by a thread of its own. The order is that of this side, and stays until the end. */
void glance_begin(struct glance *glance, const struct order *order, glance_fn done, void *arg);

/* What it has seen. False: nothing yet. */
bool glance_has_seen(const struct glance *glance, struct glimpse *seen);

/* Comes back when nobody looks any more, if anybody did. */
void glance_end(struct glance *glance);

#endif
