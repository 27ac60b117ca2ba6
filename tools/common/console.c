/* SPDX-License-Identifier: Apache-2.0 */
/* The console. What is worth saying is decided elsewhere. */
#include "common/console.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <verbatim/error.h>

#include "common/interrupt.h"
#include "common/json.h"
#include "common/printable.h"

#define LINE_MAX_BYTES (4 * VB_ERROR_LINE_MAX)
/* How long whoever reads is waited for when we are to end. */
#define PATIENCE_MS 100

static struct {
	pthread_mutex_t lock;
	const char *program;
	int verbosity;
	bool as_json;
	size_t status; /* columns that the status line takes */
} console = { .lock = PTHREAD_MUTEX_INITIALIZER, .program = "verbatim" };

void console_open(const char *program)
{
	/* Opened the wrong way round: to use them is an error, as it was when they were closed. */
	static const int modes[] = { O_WRONLY, O_RDONLY, O_RDWR };

	console.program = program;
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			open("/dev/null", modes[fd]);
}

void console_set(int verbosity, bool as_json)
{
	console.verbosity = verbosity;
	console.as_json = as_json;
}

int console_verbosity(void)
{
	return console.verbosity;
}

bool console_as_json(void)
{
	return console.as_json;
}

static bool has_room(void)
{
	struct pollfd fd = { .fd = STDERR_FILENO, .events = POLLOUT };

	return poll(&fd, 1, 0) > 0;
}

/* Waits for as long as it takes, but not for ever if somebody wants us to end. */
static bool await_room(void)
{
	struct pollfd fds[] = { { .fd = STDERR_FILENO, .events = POLLOUT },
				{ .fd = interrupt_fd(), .events = POLLIN } };

	while (poll(fds, 2, -1) < 0 && errno == EINTR)
		;
	return fds[0].revents || poll(fds, 1, PATIENCE_MS) > 0;
}

/* There is nobody to tell if it fails. Where there is room at all there is some for PIPE_BUF. */
static void put(const char *text, size_t len)
{
	while (len && await_room()) {
		ssize_t n = write(STDERR_FILENO, text, len < PIPE_BUF ? len : PIPE_BUF);

		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return;
		text += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
}

/* With the lock held. */
static void erase_status(void)
{
	char blank[LINE_MAX_BYTES];
	int len;

	if (!console.status)
		return;
	len = snprintf(blank, sizeof(blank), "\r%*s\r", (int)console.status, "");
	put(blank, (size_t)len);
	console.status = 0;
}

void console_write(const char *text)
{
	pthread_mutex_lock(&console.lock);
	erase_status();
	put(text, strlen(text));
	pthread_mutex_unlock(&console.lock);
}

void console_write_if_room(const char *text)
{
	if (has_room())
		console_write(text);
}

static void say_json(const char *event, const char *text)
{
	struct json json;
	char *line;

	json_begin(&json);
	json_text(&json, "event", event);
	json_text(&json, "text", text);
	line = json_end(&json);
	if (line)
		console_write(line);
	free(line);
}

static void say(const char *event, const char *text)
{
	char clean[LINE_MAX_BYTES], line[LINE_MAX_BYTES + 64];
	bool marked = !strcmp(event, "warning");

	if (console.as_json) {
		say_json(event, text);
		return;
	}
	snprintf(line, sizeof(line), "%.32s: %s%s\n", console.program, marked ? "warning: " : "",
		 printable(clean, sizeof(clean), text));
	console_write(line);
}

__attribute__((format(printf, 3, 0))) static void say_formatted(const char *event, int verbosity,
								const char *format, va_list args)
{
	char text[LINE_MAX_BYTES];

	if (console.verbosity < verbosity)
		return;
	vsnprintf(text, sizeof(text), format, args);
	say(event, text);
}

void console_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say_formatted("error", -1, format, args);
	va_end(args);
}

void console_warning(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say_formatted("warning", 0, format, args);
	va_end(args);
}

void console_note(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say_formatted("note", 1, format, args);
	va_end(args);
}

void console_log(void *arg, enum vb_log_level level, const char *line)
{
	(void)arg;
	/* Strangers can make the library speak: whoever does not read must not be stopped by that. */
	if (console.verbosity >= (int)level && has_room())
		say(level == VB_LOG_WARNING ? "warning" : "note", line);
}

bool console_has_status(void)
{
	return isatty(STDERR_FILENO) && tcgetpgrp(STDERR_FILENO) == getpgrp();
}

unsigned console_width(void)
{
	struct winsize size = { 0 };

	return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

void console_status(const char *line)
{
	char drawn[LINE_MAX_BYTES];
	size_t columns = printable_columns(line);
	int n;

	if (!has_room())
		return;
	pthread_mutex_lock(&console.lock);
	/* Blanks over what is left of a longer one before: every terminal understands them. */
	n = snprintf(drawn, sizeof(drawn), "\r%s%*s", line,
		     console.status > columns ? (int)(console.status - columns) : 0, "");
	if (n > 0 && (size_t)n < sizeof(drawn))
		put(drawn, (size_t)n);
	console.status = columns;
	pthread_mutex_unlock(&console.lock);
}

void console_status_end(bool keep)
{
	pthread_mutex_lock(&console.lock);
	if (keep && console.status)
		put("\n", 1);
	else
		erase_status();
	console.status = 0;
	pthread_mutex_unlock(&console.lock);
}
