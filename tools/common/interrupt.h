/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interrupts: SIGINT, SIGTERM and SIGHUP make a descriptor readable; what is
 * under way then ends in good order. The second one ends the process at once.
 */
#ifndef TOOLS_INTERRUPT_H
#define TOOLS_INTERRUPT_H

#include <stdbool.h>
#include <verbatim/error.h>

/* Begins to wait for them, and ignores SIGPIPE. Early in main: threads that are there already would still get them. */
int interrupt_open(struct vb_error *err);

/* Before that: no further one ends the process, which has something to see to first. */
void interrupt_only_once(void);

/* Readable, for ever, once there was one. Nobody may read from it. */
int interrupt_fd(void);

bool interrupt_seen(void);

#endif
