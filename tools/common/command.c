/* SPDX-License-Identifier: Apache-2.0 */
/* Commands. Which one to run, and when, is not decided here. */
#include "common/command.h"

#include <errno.h>
#include <fcntl.h>
#include <paths.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/interrupt.h"
#include "common/spawn.h"
#include "common/trouble.h"

#define GRACE_MS 1000	 /* between SIGTERM and SIGKILL */
#define EXITING_MS 200	 /* from closing its input to its end, for a command that fails */
#define BLIND_STEP_MS 10 /* how often to look where the kernel cannot tell of its end */

/* ---- Looking for it ---- */

static int try_file(const char *path)
{
	struct stat st;

	if (stat(path, &st) != 0)
		return errno;
	if (!S_ISREG(st.st_mode))
		return EACCES;
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

static int try_path(const char *name)
{
	const char *dir = getenv("PATH");
	int result = ENOENT;

	for (dir = dir ? dir : _PATH_DEFPATH; dir; dir = *dir ? dir + 1 : NULL) {
		size_t len = strcspn(dir, ":");
		char path[4096];
		int answer;

		snprintf(path, sizeof(path), "%.*s%s%s", (int)len, dir, len ? "/" : "", name);
		answer = try_file(path);
		if (answer == 0)
			return 0;
		if (answer == EACCES)
			result = EACCES;
		dir += len;
	}
	return result;
}

static int not_started(struct vb_error *err, int errnum, const char *name)
{
	trouble_errno(err, VB_ERR_IO, errnum, "run", name);
	if (errnum == ENOENT)
		snprintf(err->cause, sizeof(err->cause), "command not found");
	return VB_ERR_IO;
}

int command_check(char *const *argv, struct vb_error *err)
{
	int errnum = !*argv[0]		    ? ENOENT
		     : strchr(argv[0], '/') ? try_file(argv[0])
					    : try_path(argv[0]);

	return errnum ? not_started(err, errnum, argv[0]) : 0;
}

/* ---- Starting it ---- */

static void name_it(struct command *command, char *const *argv)
{
	size_t used = 0;

	for (; *argv && used < sizeof(command->name); argv++)
		used += (size_t)snprintf(command->name + used, sizeof(command->name) - used, "%s%s",
					 used ? " " : "", *argv);
	if (used >= sizeof(command->name))
		memcpy(command->name + sizeof(command->name) - 4, "...", 4);
}

/* Has the library left `to` open? The spare one shows what it was, if the number was used again. */
static bool still_ours(const struct command *command)
{
	struct stat to, spare;

	return fstat(command->to, &to) == 0 && fstat(command->spare, &spare) == 0 &&
	       to.st_dev == spare.st_dev && to.st_ino == spare.st_ino;
}

static void close_pipes(struct command *command)
{
	if (command->from >= 0)
		close(command->from);
	if (command->to >= 0 && still_ours(command))
		close(command->to);
	if (command->spare >= 0)
		close(command->spare);
	command->from = command->to = command->spare = -1;
}

/* A pipe with one end for the command, as its `as`, and the other for us. 0 or an errno. */
static int lay_pipe(int *ours, struct spawn_fd *theirs, int as)
{
	int ends[2], mine = as == STDIN_FILENO;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return errno;
	/* Fewer switches; where it may not be, never mind. */
	fcntl(ends[mine], F_SETPIPE_SZ, 1 << 20);
	*ours = ends[mine];
	*theirs = (struct spawn_fd){ .fd = ends[!mine], .as = as };
	return 0;
}

static int lay_pipes(struct command *command, unsigned roles, struct spawn_fd fds[2], size_t *count)
{
	int errnum = 0;

	if (roles & COMMAND_READ) {
		errnum = lay_pipe(&command->from, &fds[*count], STDOUT_FILENO);
		*count += !errnum;
	}
	if (!errnum && roles & COMMAND_FEED) {
		errnum = lay_pipe(&command->to, &fds[*count], STDIN_FILENO);
		*count += !errnum;
		if (!errnum) {
			command->spare = fcntl(command->to, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
			errnum = command->spare < 0 ? errno : 0;
		}
	}
	return errnum;
}

/* With all that it has started, where they are a group of their own: as kill(2) and waitpid(2) have it. */
static pid_t all_of(const struct command *command)
{
	return command->own_group ? -command->pid : command->pid;
}

static int spawn(struct command *command, char *const *argv, const struct spawn_fd *fds,
		 size_t count)
{
	int errnum;

	interrupt_hold();
	errnum = spawn_program(&command->pid, argv, fds, count, command->own_group);
	interrupt_let_go(errnum ? 0 : all_of(command));
	return errnum;
}

void command_bury_orphans(void)
{
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

int command_start(struct command *command, char *const *argv, unsigned roles, const char *name,
		  struct vb_error *err)
{
	struct spawn_fd fds[2] = { { 0 } };
	size_t count = 0;
	int errnum;

	*command = (struct command){ .pid = -1, .watch = -1, .from = -1, .to = -1, .spare = -1 };
	if (name)
		name_it(command, (char *const[]){ (char *)name, NULL });
	else
		name_it(command, argv);
	/* A group of its own is ended with all its children; those it leaves behind become ours, to be waited for. */
	command->own_group = roles & COMMAND_APART || !spawn_in_foreground();
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	errnum = lay_pipes(command, roles, fds, &count);
	if (!errnum)
		errnum = spawn(command, argv, fds, count);
	while (count)
		close(fds[--count].fd);
	if (errnum) {
		command->pid = -1;
		close_pipes(command);
		return not_started(err, errnum, command->name);
	}
	command->watch = (int)syscall(SYS_pidfd_open, command->pid, 0);
	return 0;
}

/* ---- Its end ---- */

/* Has it ended? It is not reaped, so its number stays its own. */
static bool has_ended(const struct command *command, siginfo_t *how)
{
	*how = (siginfo_t){ 0 };
	return waitid(P_PID, (id_t)command->pid, how, WEXITED | WNOHANG | WNOWAIT) != 0 ||
	       how->si_pid == command->pid;
}

/* Waits so long (-1: for ever) for its end, or, with a stop_fd of at least 0, for that. */
static bool await_end(const struct command *command, int timeout_ms, int stop_fd, siginfo_t *how)
{
	struct pollfd fds[] = { { .fd = command->watch, .events = POLLIN },
				{ .fd = stop_fd, .events = POLLIN } };

	while (!has_ended(command, how)) {
		int step = command->watch >= 0 ? timeout_ms : BLIND_STEP_MS;

		if (timeout_ms == 0 || fds[1].revents)
			return false;
		if (timeout_ms > 0 && step > timeout_ms)
			step = timeout_ms;
		if (poll(fds, 2, step) == 0 && timeout_ms > 0)
			timeout_ms -= step;
	}
	return true;
}

static int status_of(const siginfo_t *how)
{
	return how->si_code == CLD_EXITED ? W_EXITCODE(how->si_status, 0)
					  : W_EXITCODE(0, how->si_status);
}

bool command_has_ended(const struct command *command, int *status)
{
	siginfo_t how;
	bool ended = has_ended(command, &how);

	*status = status_of(&how);
	return ended;
}

int command_judge(const struct command *command, int status, struct vb_error *err)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFEXITED(status))
		return trouble_say(err, VB_ERR_IO, "command \"%s\" exited with %d", command->name,
				   WEXITSTATUS(status));
	return trouble_say(err, VB_ERR_IO, "command \"%s\" was ended by signal %d (%s)",
			   command->name, WTERMSIG(status), strsignal(WTERMSIG(status)));
}

int command_drained(void *arg, int cancel_fd, struct vb_error *err)
{
	const struct command *command = arg;
	siginfo_t how;

	/* A terminal's ^C reaches the command as well: we were interrupted, it has not failed. */
	if (!await_end(command, -1, cancel_fd, &how) || interrupt_seen())
		return trouble_say(err, VB_ERR_INTERRUPTED, "interrupted");
	return command_judge(command, status_of(&how), err);
}

int command_fed(void *arg, int cancel_fd, struct vb_error *err)
{
	struct command *command = arg;

	/* The library has closed its end for writing: now there is an end of file. */
	close(command->spare);
	command->to = command->spare = -1;
	return command_drained(arg, cancel_fd, err);
}

/* A command that fails first closes its pipe: what the library saw of it is only that. */
static void blame(const struct command *command, struct vb_error *err)
{
	siginfo_t how;

	if (command->to < 0 || err->code != VB_ERR_IO || err->native_kind != VB_NATIVE_ERRNO ||
	    err->native != EPIPE)
		return;
	if (await_end(command, EXITING_MS, -1, &how) &&
	    command_judge(command, status_of(&how), err) == 0)
		trouble_say(err, VB_ERR_IO, "command \"%s\" ended before it had read everything",
			    command->name);
}

void command_signal(const struct command *command, int signal)
{
	kill(all_of(command), signal);
}

/* Is nothing left of it, after so long at most (-1: for ever)? Reaps what has ended. */
static bool await_all(const struct command *command, int timeout_ms)
{
	pid_t ended;

	while ((ended = waitpid(all_of(command), NULL, WNOHANG)) >= 0 || errno == EINTR) {
		if (ended != 0)
			continue;
		if (timeout_ms == 0)
			return false;
		poll(NULL, 0, BLIND_STEP_MS);
		if (timeout_ms > 0)
			timeout_ms = timeout_ms > BLIND_STEP_MS ? timeout_ms - BLIND_STEP_MS : 0;
	}
	return true;
}

static void end_all(const struct command *command)
{
	command_signal(command, SIGTERM);
	if (await_all(command, GRACE_MS))
		return;
	command_signal(command, SIGKILL);
	if (await_all(command, GRACE_MS))
		return;
	/* Another user's, say. It must not see an end of its input, whatever else would end us. */
	signal(SIGALRM, SIG_IGN);
	await_all(command, -1);
}

void command_finish(struct command *command, int result, struct vb_error *err)
{
	if (command->pid < 0)
		return;
	if (result != 0) {
		blame(command, err);
		end_all(command);
	}
	interrupt_hold();
	interrupt_let_go(0);
	while (result == 0 && waitpid(command->pid, NULL, 0) < 0 && errno == EINTR)
		;
	close_pipes(command);
	if (command->watch >= 0)
		close(command->watch);
	command->pid = -1;
}
