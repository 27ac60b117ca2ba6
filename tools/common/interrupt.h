/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interrupts: SIGINT, SIGTERM and others that end a process and that somebody may send make a
 * descriptor readable; what is under way then ends in good order. A second one, some tenths of a second
 * later, ends the process at once, but for a command, which is killed first: else it would see an end of
 * its input.
 */
#ifndef TOOLS_INTERRUPT_H
#define TOOLS_INTERRUPT_H

#include <stdbool.h>
#include <sys/types.h>
#include <verbatim/error.h>

/* Begins to wait for them, and ignores SIGPIPE. Early in main: threads that are there already would still get them. */
int interrupt_open(struct vb_error *err);

/* Before that: no further one ends the process, which has something to see to first. */
void interrupt_only_once(void);

/*
 * From now on a second one waits, until it is told whom it kills: a process, or a group, as kill(2) has
 * it; 0: nobody. One that belongs to somebody else and cannot be killed keeps this process alive as well.
 */
void interrupt_hold(void);
void interrupt_let_go(pid_t victim);

/* Readable, for ever, once there was one. Nobody may read from it. */
int interrupt_fd(void);

bool interrupt_seen(void);

/*
 * At the end of main: if there was one, or a failure, ends the process at once. The library may have left threads to
 * themselves, which exit(3) would wait for, or take libraries down under.
 */
void interrupt_leave(int code);

#endif
