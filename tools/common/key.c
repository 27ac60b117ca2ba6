/* SPDX-License-Identifier: Apache-2.0 */
/* The key. It is never printed, and copies are wiped as soon as they have been used. */
#include "common/key.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "common/console.h"
#include "common/interrupt.h"
#include "common/trouble.h"

extern char **environ;

static void set(struct key *key, const char *text)
{
	key->len = strnlen(text, sizeof(key->bytes));
	memcpy(key->bytes, text, key->len);
}

bool key_from_environment(struct key *key)
{
	static const char name[] = "VB_KEY=";
	char **to = environ;
	bool found = false;

	for (char **from = environ; from && *from; from++) {
		char *value = *from + sizeof(name) - 1;

		if (strncmp(*from, name, sizeof(name) - 1) != 0) {
			*to++ = *from;
			continue;
		}
		if (!found)
			set(key, value);
		found = true;
		explicit_bzero(value, strlen(value));
	}
	if (to)
		*to = NULL;
	return found;
}

int key_check(const struct key *key, struct vb_error *err)
{
	if (key->len == 0)
		return trouble_say(err, VB_ERR_INVALID, "the key is empty");
	if (key->len > KEY_MAX)
		return trouble_say(err, VB_ERR_INVALID, "the key is longer than %u bytes", KEY_MAX);
	return 0;
}

int key_from_argument(struct key *key, char *argument, struct vb_error *err)
{
	set(key, argument);
	memset(argument, '*', strlen(argument));
	return key_check(key, err);
}

/* A newline at the end is how editors and echo end files: it is not meant. */
static int trim(struct key *key, struct vb_error *err)
{
	if (key->len && key->bytes[key->len - 1] == '\n')
		key->len--;
	return key_check(key, err);
}

/* Up to the end of `file`, or without one of the line, byte by byte: what follows is not ours. */
static int read_text(struct key *key, int fd, const char *file, struct vb_error *err)
{
	const char *operation = file ? "read key file" : "read the key", *object = file ? file : "";
	size_t room = sizeof(key->bytes);

	key->len = 0;
	while (key->len < room) {
		struct pollfd fds[] = { { .fd = fd, .events = POLLIN },
					{ .fd = interrupt_fd(), .events = POLLIN } };
		ssize_t n;

		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return trouble_errno(err, VB_ERR_IO, errno, operation, object);
		if (interrupt_seen())
			return trouble_say(err, VB_ERR_INTERRUPTED, "interrupted");
		if (!fds[0].revents)
			continue;
		n = read(fd, key->bytes + key->len, file ? room - key->len : 1);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return trouble_errno(err, VB_ERR_IO, errno, operation, object);
		if (n == 0)
			break;
		key->len += n > 0 ? (size_t)n : 0;
		if (!file && n > 0 && key->bytes[key->len - 1] == '\n')
			break;
	}
	return trim(key, err);
}

int key_from_stdin(struct key *key, struct vb_error *err)
{
	return read_text(key, STDIN_FILENO, NULL, err);
}

int key_from_file(struct key *key, const char *path, struct vb_error *err)
{
	/* A FIFO's writer is waited for when it is read. */
	int result, fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return trouble_errno(err, VB_ERR_IO, errno, "open key file", path);
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & (S_IRGRP | S_IROTH)))
		console_warning("key file %s: others may read it; try 'chmod 600'", path);
	result = read_text(key, fd, path, err);
	close(fd);
	return result;
}

int key_from_terminal(struct key *key, struct vb_error *err)
{
	int result, fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
	struct termios before, hidden;

	if (fd < 0 || tcgetattr(fd, &before) != 0) {
		result = trouble_errno(err, VB_ERR_IO, errno, "ask for the key on", "/dev/tty");
		if (fd >= 0)
			close(fd);
		return result;
	}
	hidden = before;
	hidden.c_lflag &= ~(tcflag_t)(ECHO | ECHONL);
	/* ^C ends it by way of interrupt_fd, and the terminal is restored; these would not let us. */
	hidden.c_cc[VQUIT] = hidden.c_cc[VSUSP] = _POSIX_VDISABLE;
	tcsetattr(fd, TCSAFLUSH, &hidden);
	dprintf(fd, "Key: ");
	result = read_text(key, fd, NULL, err);
	tcsetattr(fd, TCSAFLUSH, &before);
	dprintf(fd, "\n");
	close(fd);
	return result;
}

void key_wipe(struct key *key)
{
	explicit_bzero(key, sizeof(*key));
}
