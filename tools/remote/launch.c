/* SPDX-License-Identifier: Apache-2.0 */
/* Launching. What is said after the hellos is not known here. */
#include "remote/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/console.h"
#include "common/interrupt.h"
#include "common/printable.h"
#include "common/spawn.h"
#include "common/trouble.h"
#include "remote/frame.h"
#include "remote/split.h"

#define ENDING_MS 2000 /* for an exit status, when its output has ended */
#define GRACE_MS 500   /* between SIGTERM and SIGKILL */
#define STEP_MS 5
#define CHATTER_MAX 65536u /* what a shell may print before there is a hello */

/* ---- The command ---- */

/*
 * As scp has them: nothing is forwarded and nothing else run. The user's own go before, and the
 * first counts. A dead network is noticed by ssh itself, whatever the kernel thinks.
 */
static const char *const ssh_manners[] = {
	"-x", "-T",
	"-o", "PermitLocalCommand=no",
	"-o", "ClearAllForwardings=yes",
	"-o", "RemoteCommand=none",
	"-o", "ForwardAgent=no",
	"-o", "ServerAliveInterval=5",
	"-o", "ServerAliveCountMax=3",
};

static bool is_ssh(const char *program)
{
	const char *slash = strrchr(program, '/');

	return strcmp(slash ? slash + 1 : program, "ssh") == 0;
}

static int add_ssh_options(struct list *words, const struct arguments *a)
{
	int failed = 0, family = a->options.connection.family;

	for (size_t i = 0; i < a->ssh_options.count; i++)
		failed |= list_add(words, a->ssh_options.item[i]);
	if (family)
		failed |= list_add(words, family == AF_INET ? "-4" : "-6");
	for (size_t i = 0; i < sizeof(ssh_manners) / sizeof(ssh_manners[0]); i++)
		failed |= list_add(words, ssh_manners[i]);
	return failed | list_add(words, "--");
}

/* Puts the host where "%h" stands; false if it stands nowhere. */
static bool put_host(struct list *words, const char *host)
{
	for (size_t i = 0; i < words->count; i++) {
		char *copy;

		if (strcmp(words->item[i], "%h") != 0)
			continue;
		copy = strdup(host);
		if (!copy)
			return false;
		free(words->item[i]);
		words->item[i] = copy;
		return true;
	}
	return false;
}

const char *launch_words(struct list *words, const struct arguments *a, const char *host,
			 bool *by_ssh)
{
	const char *wrong = split_words(words, a->rsh ? a->rsh : "ssh");
	int failed = 0;

	if (wrong)
		return wrong;
	if (!words->count)
		return "it is empty";
	*by_ssh = is_ssh(words->item[0]);
	if (*by_ssh)
		failed = add_ssh_options(words, a);
	if (*by_ssh || !put_host(words, host))
		failed |= list_add(words, host);
	failed |= list_add(words, a->far_path ? a->far_path : tool_name(a->tool));
	failed |= list_add(words, "--server");
	return failed ? "out of memory" : NULL;
}

/* ---- Starting ---- */

static int run(struct launch *launch, char *const *argv, struct vb_error *err)
{
	int to[2] = { -1, -1 }, from[2] = { -1, -1 };
	struct spawn_fd fds[2];
	int errnum = 0;

	if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0)
		errnum = errno;
	fds[0] = (struct spawn_fd){ .fd = to[0], .as = STDIN_FILENO };
	fds[1] = (struct spawn_fd){ .fd = from[1], .as = STDOUT_FILENO };
	launch->own_group = !spawn_in_foreground();
	if (!errnum)
		errnum = spawn_program(&launch->pid, argv, fds, 2, launch->own_group);
	if (to[0] >= 0)
		close(to[0]);
	if (from[1] >= 0)
		close(from[1]);
	launch->in = from[0];
	launch->out = to[1];
	if (!errnum)
		return 0;
	launch->pid = -1;
	return trouble_errno(err, VB_ERR_SYSTEM, errnum, "run", argv[0]);
}

/* ---- Its end ---- */

static bool has_ended(const struct launch *launch)
{
	siginfo_t how = { 0 };

	return waitid(P_PID, (id_t)launch->pid, &how, WEXITED | WNOHANG | WNOWAIT) != 0 ||
	       how.si_pid == launch->pid;
}

static bool await_end(const struct launch *launch, int timeout_ms)
{
	int watch = (int)syscall(SYS_pidfd_open, launch->pid, 0);
	struct pollfd fd = { .fd = watch, .events = POLLIN };

	while (!has_ended(launch) && timeout_ms > 0) {
		int step = watch >= 0 ? timeout_ms : STEP_MS;

		poll(&fd, 1, step);
		timeout_ms -= step;
	}
	if (watch >= 0)
		close(watch);
	return has_ended(launch);
}

int launch_end(struct launch *launch, int patience_ms)
{
	pid_t target = launch->own_group ? -launch->pid : launch->pid;
	int status = 0;
	bool ended;

	if (launch->in >= 0)
		close(launch->in);
	if (launch->out >= 0)
		close(launch->out);
	launch->in = launch->out = -1;
	if (launch->pid < 0)
		return -1;
	ended = await_end(launch, patience_ms);
	if (!ended) {
		kill(target, SIGTERM);
		if (!await_end(launch, GRACE_MS))
			kill(target, SIGKILL);
	}
	while (waitpid(launch->pid, &status, 0) < 0 && errno == EINTR)
		;
	launch->pid = -1;
	return ended && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- The hellos ---- */

/* Some bytes; 0 at the end, or when they are late (-1: for ever) or we are interrupted. */
static size_t get(const struct launch *launch, void *to, size_t room, int timeout_ms)
{
	struct pollfd fds[] = { { .fd = launch->in, .events = POLLIN },
				{ .fd = interrupt_fd(), .events = POLLIN } };
	ssize_t n;

	do {
		fds[0].revents = fds[1].revents = 0;
		if (poll(fds, 2, timeout_ms) == 0 || fds[1].revents)
			return 0;
		n = read(launch->in, to, room);
	} while (n < 0 && (errno == EINTR || errno == EAGAIN));
	return n > 0 ? (size_t)n : 0;
}

static void hint_at_path(struct vb_error *err, const char *tool)
{
	snprintf(err->hint, sizeof(err->hint),
		 "install Verbatim there, or say with --%s-path where it is", tool);
}

static int no_hello(struct launch *launch, const char *tool, const char *host, struct vb_error *err,
		    enum exit_code *code)
{
	int status = launch_end(launch, interrupt_seen() ? 0 : ENDING_MS);
	int result;

	if (interrupt_seen()) {
		*code = EXIT_INTERRUPTED;
		return trouble_say(err, VB_ERR_INTERRUPTED, "interrupted");
	}
	if (launch->by_ssh && status == 255) {
		*code = EXIT_CONNECT;
		return trouble_say(err, VB_ERR_UNREACHABLE, "ssh cannot reach %s", host);
	}
	if (status < 0) {
		*code = EXIT_SOCKET;
		return trouble_say(err, VB_ERR_LOST, "%s: the command that leads there was killed",
				   host);
	}
	*code = status == 126 ? EXIT_NOT_RUN : EXIT_NOT_FOUND;
	if (status == 126)
		result =
			trouble_say(err, VB_ERR_REFUSED, "%s: %s there may not be run", host, tool);
	else if (status == 127)
		result = trouble_say(err, VB_ERR_REFUSED, "%s: %s was not found there", host, tool);
	else
		result = trouble_say(err, VB_ERR_REFUSED,
				     "%s: %s there did not start (exit status %d)", host, tool,
				     status);
	hint_at_path(err, tool);
	return result;
}

/* A shell may greet before the hello. If there is no hello, its first line tells where to look. */
static int only_chatter(struct launch *launch, const char *tool, const char *line, const char *host,
			struct vb_error *err)
{
	char shown[200];

	launch_end(launch, ENDING_MS);
	trouble_say(err, VB_ERR_PROTOCOL, "%s: the far side says \"%s\" and no hello of %s's", host,
		    printable(shown, sizeof(shown), line), tool);
	snprintf(err->hint, sizeof(err->hint),
		 "%s must be installed there, and its shell should print nothing: see its .bashrc",
		 tool);
	return VB_ERR_PROTOCOL;
}

/* Reads on until the last bytes are a hello. `line` gets the first that was something else. */
static bool find_hello(const struct launch *launch, enum tool tool,
		       uint8_t hello[FRAME_HELLO_BYTES], char *line, size_t room)
{
	size_t len = 0, said = 0, begins = 0;

	while (said < CHATTER_MAX) {
		size_t n = get(launch, hello + len, FRAME_HELLO_BYTES - len, -1);

		if (n == 0)
			break;
		len += n;
		for (begins = 0; begins < len; begins++) {
			if (frame_hello_begins(hello + begins, len - begins, tool))
				break;
			if (said < room - 1)
				line[said] = (char)hello[begins];
			said++;
		}
		len -= begins;
		memmove(hello, hello + begins, len);
		if (len == FRAME_HELLO_BYTES)
			return true;
	}
	/* What may have been the begin of a hello was none. */
	return false;
}

static int exchange_hellos(struct launch *launch, enum tool tool, const char *host,
			   struct vb_error *err, enum exit_code *code)
{
	const char *name = tool_name(tool);
	uint8_t hello[FRAME_HELLO_BYTES];
	char line[160] = "";
	bool found;

	frame_hello(hello, tool);
	*code = EXIT_PROTOCOL;
	if (write(launch->out, hello, sizeof(hello)) < 0 && errno != EPIPE)
		return trouble_errno(err, VB_ERR_IO, errno, "write to", host);
	found = find_hello(launch, tool, hello, line, sizeof(line));
	line[strcspn(line, "\r\n")] = '\0';
	if (!found && *line && !interrupt_seen())
		return only_chatter(launch, name, line, host, err);
	if (!found)
		return no_hello(launch, name, host, err, code);
	if (*line)
		console_note("%s: its shell prints \"%s\" first; it should be quiet", host, line);
	if (frame_hello_version(hello, tool) != FRAME_VERSION)
		return trouble_say(err, VB_ERR_VERSION,
				   "%s: %s there speaks version %u, this one %u; install the same "
				   "version of Verbatim",
				   host, name, frame_hello_version(hello, tool), FRAME_VERSION);
	return 0;
}

int launch_start(struct launch *launch, const struct arguments *a, const char *host,
		 struct vb_error *err, enum exit_code *code)
{
	struct list words = { 0 };
	const char *wrong;
	int result;

	*launch = (struct launch){ .pid = -1, .in = -1, .out = -1 };
	wrong = launch_words(&words, a, host, &launch->by_ssh);
	if (!wrong && !launch->by_ssh && a->ssh_options.count)
		console_note("-e is not ssh: -P, -F, -i, -J and -o are not passed on to it");
	*code = wrong ? EXIT_USAGE : EXIT_START;
	result = wrong ? trouble_say(err, VB_ERR_INVALID, "-e: %s", wrong)
		       : run(launch, words.item, err);
	list_free(&words);
	if (result == 0)
		result = exchange_hellos(launch, a->tool, host, err, code);
	if (result == 0)
		*code = EXIT_OK;
	else
		launch_end(launch, 0);
	return result;
}
