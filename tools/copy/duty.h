/* SPDX-License-Identifier: Apache-2.0 */
/* Duties: carries an order out in this process. */
#ifndef TOOLS_DUTY_H
#define TOOLS_DUTY_H

#include "copy/order.h"
#include "copy/tunnel.h"

/* Who orders, and how to tell. The functions get `arg`; NULL: not told. */
struct duty {
	const struct order *order;
	int stop_fd; /* as in vb_transfer_options */
	int fd;	     /* of a stream that is stdin or stdout here; -1: by the path */

	/* For a tunnelled order: by this link, and here its frames are awaited. */
	struct link *link;
	struct tunnel_slot *slot;

	void *arg;
	void (*invite)(void *arg, const struct invitation *invitation); /* the door is open */
	void (*say)(void *arg, const char *text);			/* a note */
	void (*begins)(void *arg); /* files will be read or written from now on */
	vb_tree_event_fn event;
	vb_tree_event_fn missing; /* of the paths in a list; nobody else can tell that */
	vb_progress_fn progress;
	vb_log_fn log;
};

/* Blocks until it is done. What came of it is in `ending`. */
void duty_run(const struct duty *duty, struct ending *ending);

#endif
