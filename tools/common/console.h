/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The console: all that a tool says on stderr. A process has one. Every line is
 * written at once and made printable; any thread may speak. If nobody reads, speaking
 * blocks until there was an interrupt (see interrupt.h): then what cannot be written is lost.
 */
#ifndef TOOLS_CONSOLE_H
#define TOOLS_CONSOLE_H

#include <stdbool.h>
#include <verbatim/options.h>

/*
 * First of all in main: `program` begins every line, and descriptors 0 to 2
 * that are closed are taken, so that no file or socket gets their numbers.
 */
void console_open(const char *program);

/* Verbosity: -1 says only errors, 0 also warnings, 1 and more also notes. As JSON: every line is an object. */
void console_set(int verbosity, bool as_json);
int console_verbosity(void);
bool console_as_json(void);

/* One line each, after "program: ". */
__attribute__((format(printf, 1, 2))) void console_error(const char *format, ...);
__attribute__((format(printf, 1, 2))) void console_warning(const char *format, ...);
__attribute__((format(printf, 1, 2))) void console_note(const char *format, ...);

/* Whatever the verbosity, as it stands: lines that end with a newline. */
void console_write(const char *text);

/* The same, but if it would have to wait it is left out: for what is of use at its moment only. */
void console_write_if_room(const char *text);

/* A vb_log_fn. What would have to wait is left out here, too. */
void console_log(void *arg, enum vb_log_level level, const char *line);

/* May a status line be drawn now: stderr is a terminal, and we are in its foreground? */
bool console_has_status(void);

/* The terminal's width in columns. */
unsigned console_width(void);

/* Draws the status line anew, if there is room. Other lines push it away; the next drawing brings it back. */
void console_status(const char *line);

/* Ends it: with `keep` it stays readable, else it is erased. */
void console_status_end(bool keep);

#endif
