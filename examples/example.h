/* SPDX-License-Identifier: Apache-2.0 */
/* What the examples share. They are to be read first: there is little here of how the library is used. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <err.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <verbatim/verbatim.h>

struct address {
	const char *host; /* NULL: none is given */
	const char *port;
};

/* The arguments begin with this flag and "[HOST]:PORT", which is split in place. HOST may be "[V6]". */
static inline bool asks_for(char **argv, const char *flag, struct address *address)
{
	char *colon = argv[1] && argv[2] ? strrchr(argv[2], ':') : NULL;

	if (!colon || !colon[1] || strcmp(argv[1], flag) != 0)
		return false;
	*colon = '\0';
	address->host = colon > argv[2] ? argv[2] : NULL;
	address->port = colon + 1;
	return true;
}

/* A number of at least 1. */
static inline unsigned number(const char *text)
{
	int value = atoi(text);

	if (value < 1)
		errx(2, "%s: not a number of 1 or more", text);
	return (unsigned)value;
}

/* Returns an exit code. */
static inline int usage(const char *text)
{
	fprintf(stderr, "usage: %s\n", text);
	return 2;
}

/* What a call has returned, unless it has failed: then the program ends, and says why. The system gives everything back. */
static inline ssize_t must(ssize_t returned, const struct vb_error *err)
{
	char line[VB_ERROR_LINE_MAX];

	if (returned < 0)
		errx(1, "%s", vb_error_format(err, line, sizeof(line)));
	return returned;
}

/* What the library warns of: what is no failure of a call, like a peer that a listener cannot serve. */
static inline void print_warning(void *arg, enum vb_log_level level, const char *line)
{
	(void)arg, (void)level;
	warnx("warning: %s", line);
}

static const struct vb_options with_warnings = { .log = print_warning };

/* NULL, or why a call has failed, in one line. */
static inline const char *why_not(ssize_t returned, const struct vb_error *err)
{
	static char line[VB_ERROR_LINE_MAX];

	return returned < 0 ? vb_error_format(err, line, sizeof(line)) : NULL;
}

/* An exit code: the one given, if all that was printed has got out. */
static inline int printed(int code)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return code;
	warn("standard output");
	return code ? code : 1;
}

/* What somebody else has sent, fit for a terminal; in place. */
static inline const char *printable(char *text)
{
	for (char *at = text; *at; at++)
		*at = *at < ' ' || *at > '~' ? '?' : *at;
	return text;
}

static inline const void *map_file(const char *path, size_t *len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *data;

	if (fd < 0 || fstat(fd, &st) != 0)
		err(1, "%s", path);
	*len = (size_t)st.st_size;
	data = *len ? mmap(NULL, *len, PROT_READ, MAP_PRIVATE, fd, 0) : "";
	if (data == MAP_FAILED)
		err(1, "%s", path);
	return data;
}

/* Written beside it first: if that fails, what was there is still there. */
static inline bool store_file(const char *path, const void *data, size_t len)
{
	char beside[4096];
	struct stat st;
	FILE *file;
	bool ok;

	snprintf(beside, sizeof(beside), "%s.part", path);
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		warnx("%s: not a file", path);
		return false;
	}
	file = fopen(beside, "wb");
	ok = file && fwrite(data, len, 1, file) == 1;
	if (file && fclose(file) == 0 && ok && rename(beside, path) == 0)
		return true;
	warn("%s", path);
	if (file)
		remove(beside);
	return false;
}

/* What stands behind `id` in a file of lines "ID REST", into `rest`, and zeros behind it. NULL, or why not. */
static inline const char *find_line(const char *path, const char *id, char rest[256])
{
	const char *why = "nobody is known by that ID";
	char line[512], first[256], other[256];
	FILE *file = fopen(path, "r");

	while (file && why && fgets(line, sizeof(line), file))
		if (sscanf(line, "%255s %255[^\n]", first, other) == 2 && !strcmp(first, id))
			why = NULL;
	if (!file || ferror(file)) {
		warn("%s", path);
		why = "the secrets cannot be read";
	}
	if (!why)
		strncpy(rest, other, 256); /* what is behind belongs to nobody else */
	if (file)
		fclose(file);
	return why;
}

static inline double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

#endif
