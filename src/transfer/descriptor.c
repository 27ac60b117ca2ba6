/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for descriptors, opening them anew, and naming them. */
#include "transfer/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/failure.h"

/* What an unprivileged user may have. */
#define PIPE_BYTES (1 << 20)

int vb__fd_wait(int fd, short events, int cancel_fd, int timeout_ms)
{
	struct pollfd fds[2] = {
		{ .fd = fd, .events = events },
		{ .fd = cancel_fd, .events = POLLIN },
	};
	int n;

	do {
		n = poll(fds, 2, timeout_ms);
	} while (n < 0 && errno == EINTR);
	if (n > 0 && fds[1].revents)
		return VB_ERR_INTERRUPTED;
	return n != 0;
}

int vb__fail_cancelled(struct vb_error *err, const char *operation, const char *object)
{
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_INTERRUPTED,
				     .operation = operation,
				     .object = object,
			     });
}

int vb__fd_reopen(int fd, int flags)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, flags | O_CLOEXEC | O_NOCTTY);
}

int vb__fd_check(int fd, int access)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0)
		return EBADF;
	return (flags & O_ACCMODE) == access || (flags & O_ACCMODE) == O_RDWR ? 0 : EBADF;
}

static int number_at_end(const char *path, const char *start)
{
	size_t len = strlen(start);
	char *end;
	long n;

	if (strncmp(path, start, len) != 0 || path[len] < '0' || path[len] > '9')
		return -1;
	n = strtol(path + len, &end, 10);
	return *end || n > 1 << 20 ? -1 : (int)n;
}

int vb__fd_from_path(const char *path)
{
	static const char *const names[] = { "/dev/stdin", "/dev/stdout", "/dev/stderr" };
	int fd;

	for (fd = 0; fd < 3; fd++)
		if (strcmp(path, names[fd]) == 0)
			return fd;
	fd = number_at_end(path, "/dev/fd/");
	return fd >= 0 ? fd : number_at_end(path, "/proc/self/fd/");
}

void vb__fd_name(struct vb__fd_name *name, int fd, const char *path)
{
	static const char *const names[] = { "standard input", "standard output",
					     "standard error" };

	if (path)
		snprintf(name->text, sizeof(name->text), "%s", path);
	else if (fd >= 0 && fd < 3)
		snprintf(name->text, sizeof(name->text), "%s", names[fd]);
	else
		snprintf(name->text, sizeof(name->text), "descriptor %d", fd);
}

void vb__fd_enlarge_pipe(int fd)
{
	int now = fcntl(fd, F_GETPIPE_SZ);

	if (now > 0 && now < PIPE_BYTES)
		(void)fcntl(fd, F_SETPIPE_SZ, PIPE_BYTES);
}

int vb__fd_flush(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	return copy < 0 || close(copy) ? errno : 0;
}
