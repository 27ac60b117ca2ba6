/* SPDX-License-Identifier: Apache-2.0 */
/* Starting programs, with nothing of ours but what they are given. */
#ifndef TOOLS_SPAWN_H
#define TOOLS_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* `fd` becomes the program's `as`. */
struct spawn_fd {
	int fd, as;
};

/* A terminal's foreground group stays together: the program may ask for a password there. */
bool spawn_in_foreground(void);

/*
 * Starts argv[0], looked for in PATH, with default signals, these descriptors and those of stdin,
 * stdout and stderr that are not among them. With `own_group` it leads a group of processes.
 * Returns 0 or an errno.
 */
int spawn_program(pid_t *pid, char *const *argv, const struct spawn_fd *fds, size_t fd_count,
		  bool own_group);

#endif
