/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of paths, as rules: each path, the directories on the way to it, and nothing else. */
#include "copy/listed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/trouble.h"

#define LIST_MAX (32u << 20) /* what still fits into an order, as rules */

/* ---- Reading ---- */

/* Appends "a/b" for "//a/./b/"; NULL or what is wrong. `to` has room. */
static const char *clean(char *to, const char *from)
{
	size_t used = 0;

	while (*from) {
		size_t len = strcspn(from, "/");

		if (len == 2 && from[0] == '.' && from[1] == '.')
			return "a path with '..' would leave SRC";
		if (len && !(len == 1 && from[0] == '.')) {
			if (used)
				to[used++] = '/';
			memcpy(to + used, from, len);
			used += len;
		}
		from += len + (from[len] == '/');
	}
	to[used] = '\0';
	return NULL;
}

const char *listed_parse(struct list *listed, const char *bytes, size_t len, char end)
{
	const char *wrong = NULL;

	while (len && !wrong) {
		const char *stop = memchr(bytes, end, len);
		size_t path_len = stop ? (size_t)(stop - bytes) : len;
		char *path = strndup(bytes, path_len), *to = malloc(path_len + 1);

		if (!path || !to)
			wrong = "out of memory";
		else if (strlen(path) != path_len)
			wrong = "there is a NUL in it; are the paths separated by such? use --from0";
		else
			wrong = clean(to, path);
		if (!wrong && *to && list_add(listed, to) != 0)
			wrong = "out of memory";
		free(path);
		free(to);
		bytes += path_len + (stop ? 1 : 0);
		len -= path_len + (stop ? 1 : 0);
	}
	return wrong;
}

static char *read_whole(int fd, size_t *len, int *errnum)
{
	char *text = NULL;
	size_t room = 0;

	*len = 0;
	for (;;) {
		ssize_t n;

		if (*len == room) {
			char *more = room < LIST_MAX ? realloc(text, room = 2 * room + 65536)
						     : NULL;

			if (!more)
				break;
			text = more;
		}
		n = read(fd, text + *len, room - *len);
		if (n == 0)
			return text;
		if (n < 0 && errno != EINTR)
			break;
		*len += n > 0 ? (size_t)n : 0;
	}
	*errnum = *len >= LIST_MAX ? EFBIG : errno;
	free(text);
	return NULL;
}

int listed_read(struct list *listed, const char *path, bool from0, struct vb_error *err)
{
	int errnum = 0;
	int fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	const char *wrong;
	size_t len = 0;
	char *text = fd >= 0 ? read_whole(fd, &len, &errnum) : NULL;

	if (!text)
		errnum = fd < 0 ? errno : errnum;
	if (fd > STDIN_FILENO)
		close(fd);
	if (!text)
		return trouble_errno(err, VB_ERR_IO, errnum, "read the list", path);
	wrong = listed_parse(listed, text, len, from0 ? '\0' : '\n');
	free(text);
	if (!wrong && !listed->count)
		wrong = "it lists nothing";
	return wrong ? trouble_say(err, VB_ERR_INVALID, "the list %s: %s", path, wrong) : 0;
}

/* ---- Rules ---- */

/* "+ /" and the first `len` bytes of the path as they are, then `tail`. */
static int add_rule(struct list *rules, const char *path, size_t len, const char *tail)
{
	char *rule = malloc(2 * len + strlen(tail) + 4), *at = rule;
	int result;

	if (!rule)
		return -1;
	at = stpcpy(at, "+ /");
	for (size_t i = 0; i < len; i++) {
		if (strchr("*?[\\", path[i]))
			*at++ = '\\';
		*at++ = path[i];
	}
	memcpy(at, tail, strlen(tail) + 1);
	result = list_add(rules, rule);
	free(rule);
	return result;
}

/* The directories on the way, unless the path before went the same way. */
static int add_way(struct list *rules, const char *path, const char *before)
{
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		size_t len = (size_t)(slash - path);

		if (before && strncmp(before, path, len + 1) == 0)
			continue;
		if (add_rule(rules, path, len, "/") != 0)
			return -1;
	}
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorted, what is in one directory stands together, and its way is told but once. */
int listed_rules(struct list *rules, const struct list *listed)
{
	char **paths = calloc(listed->count + 1, sizeof(*paths));
	int failed = paths ? 0 : -1;

	if (paths && listed->count) {
		memcpy(paths, listed->item, listed->count * sizeof(*paths));
		qsort(paths, listed->count, sizeof(*paths), by_name);
	}
	for (size_t i = 0; !failed && i < listed->count; i++) {
		const char *before = i ? paths[i - 1] : NULL;
		size_t len = strlen(paths[i]);

		if (before && strcmp(before, paths[i]) == 0)
			continue;
		failed = add_way(rules, paths[i], before) | add_rule(rules, paths[i], len, "") |
			 add_rule(rules, paths[i], len, "/**");
	}
	free(paths);
	return failed ? -1 : list_add(rules, "- *");
}
