/* SPDX-License-Identifier: Apache-2.0 */
/* Starting programs. How they end is not looked at here. */
#include "common/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include "common/descriptors.h"

bool spawn_in_foreground(void)
{
	int fd = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY);
	bool answer = fd >= 0 && tcgetpgrp(fd) == getpgrp();

	if (fd >= 0)
		close(fd);
	return answer;
}

/* Default signals, the limit that was ours, and no descriptor of ours: libfabric leaves some of its own open. */
int spawn_program(pid_t *pid, char *const *argv, const struct spawn_fd *fds, size_t fd_count,
		  bool own_group)
{
	extern char **environ;
	short flags = POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK;
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t all, none;
	bool lowered;
	int result = 0;

	sigfillset(&all);
	sigemptyset(&none);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setpgroup(&attributes, 0);
	if (own_group)
		flags |= POSIX_SPAWN_SETPGROUP;
	posix_spawnattr_setflags(&attributes, flags);
	for (size_t i = 0; i < fd_count && result == 0; i++)
		result = posix_spawn_file_actions_adddup2(&actions, fds[i].fd, fds[i].as);
	if (result == 0)
		result = posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
	lowered = descriptors_lower();
	if (result == 0)
		result = posix_spawnp(pid, argv[0], &actions, &attributes, argv, environ);
	if (lowered)
		descriptors_raise();
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return result;
}
