/* SPDX-License-Identifier: Apache-2.0 */
/* Operands. As scp understands them: a slash before the first colon makes a path of it. */
#include "remote/operand.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The colon behind the host, or NULL: then it is a path. `bracket` is where an address begins. */
static const char *host_end(const char *text, const char **bracket)
{
	const char *at = text + strcspn(text, "@:/[");

	*bracket = NULL;
	if (*at == '@')
		at++;
	else
		at = text;
	if (*at == '[') {
		const char *close = strchr(at, ']');

		if (close && close[1] == ':' && !memchr(at, '/', (size_t)(close - at))) {
			*bracket = at;
			return close + 1;
		}
	}
	at = text + strcspn(text, ":/");
	return *at == ':' ? at : NULL;
}

static char *host_of(const char *text, const char *bracket, const char *colon)
{
	char *host = NULL;

	if (!bracket)
		return strndup(text, (size_t)(colon - text));
	/* The user, and the address less its brackets. */
	if (asprintf(&host, "%.*s%.*s", (int)(bracket - text), text, (int)(colon - bracket - 2),
		     bracket + 1) < 0)
		return NULL;
	return host;
}

static bool is_address(const char *text, size_t len)
{
	char copy[INET6_ADDRSTRLEN + 1];
	struct in6_addr address;
	const char *zone = memchr(text, '%', len);

	if (zone)
		len = (size_t)(zone - text);
	if (!len || len >= sizeof(copy) || text[len - 1] == ':')
		return false;
	memcpy(copy, text, len);
	copy[len] = '\0';
	return inet_pton(AF_INET6, copy, &address) == 1;
}

/* Would its first colon make nonsense of an address? ssh would only say that it finds no host "2001". */
static const char *check_address(const char *text)
{
	const char *at = text + strcspn(text, "@:/ ");

	at = *at == '@' ? at + 1 : text;
	if (*at == '[')
		return "behind an address in brackets there is a colon: [ADDRESS]:...";
	for (size_t len = strcspn(at, ":/ "); at[len] == ':';
	     len += 1 + strcspn(at + len + 1, ":/ "))
		if (is_address(at, len))
			return "an IPv6 address goes in brackets: [ADDRESS]:...";
	return is_address(at, strlen(at)) ? "an IPv6 address goes in brackets: [ADDRESS]:..."
					  : NULL;
}

static const char *check_host(const char *host)
{
	const char *name = strrchr(host, '@');

	if (name == host)
		return "the user's name is empty";
	name = name ? name + 1 : host;
	if (!*name)
		return "the host's name is empty; write ./ before a file's name that begins so";
	if (*host == '-' || *name == '-')
		return "a host's name does not begin with a dash; write ./ before a file's name";
	for (const char *c = host; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == 0x7f)
			return "a host's name has no blanks or control characters; write ./ before "
			       "a file's name";
	return NULL;
}

const char *operand_parse(struct operand *operand, const char *text)
{
	const char *bracket, *colon = host_end(text, &bracket);

	*operand = (struct operand){ .kind = OPERAND_LOCAL };
	if (!*text)
		return "it is empty";
	if (strcmp(text, "-") == 0)
		operand->kind = OPERAND_STDIO;
	if (colon && !bracket && check_address(text))
		return check_address(text);
	if (colon) {
		operand->kind = OPERAND_REMOTE;
		operand->host = host_of(text, bracket, colon);
	}
	operand->path = strdup(colon ? colon + 1 : text);
	if (!operand->path || (colon && !operand->host))
		return "out of memory";
	return operand->host ? check_host(operand->host) : NULL;
}

bool operand_ends_in_slash(const struct operand *operand)
{
	size_t len = strlen(operand->path);

	return len && operand->path[len - 1] == '/';
}

static void take_off_slashes(struct operand *operand)
{
	size_t len = strlen(operand->path);

	while (len > 1 && operand->path[len - 1] == '/')
		operand->path[--len] = '\0';
}

bool operand_as_source(struct operand *operand)
{
	const char *last;
	char *more;

	take_off_slashes(operand);
	last = strrchr(operand->path, '/');
	last = last ? last + 1 : operand->path;
	/* These have no name that a copy could get, but contents. "x/." says so itself. */
	if (*last && strcmp(last, "..") != 0 && strcmp(operand->path, ".") != 0 &&
	    !(operand->host && strcmp(operand->path, "~") == 0))
		return true;
	if (asprintf(&more, "%s/.",
		     !*operand->path		       ? "."
		     : strcmp(operand->path, "/") == 0 ? ""
						       : operand->path) < 0)
		return false;
	free(operand->path);
	operand->path = more;
	return true;
}

bool operand_same_host(const struct operand *a, const struct operand *b)
{
	return a->kind == b->kind && (!a->host || strcmp(a->host, b->host) == 0);
}

void operand_free(struct operand *operand)
{
	free(operand->host);
	free(operand->path);
	*operand = (struct operand){ .kind = OPERAND_LOCAL };
}
