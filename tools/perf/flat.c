/* SPDX-License-Identifier: Apache-2.0 */
/* Reading JSON, as far as the tools have written it, but bounded whatever it is. */
#include "perf/flat.h"

#include <stdlib.h>
#include <string.h>

#define NESTED_MAX 16

static void skip_space(struct flat *f)
{
	f->at += strspn(f->at, " \t\r\n");
}

static bool take(struct flat *f, char c)
{
	skip_space(f);
	if (*f->at != c)
		return false;
	f->at++;
	return true;
}

/* What an escape stands for; those of Unicode for '?', which is enough for a label. */
static char unescaped(struct flat *f)
{
	static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
	const char *place = strchr(from, *f->at);

	if (*f->at == 'u') {
		size_t digits = strspn(f->at + 1, "0123456789abcdefABCDEF");

		f->at += digits < 4 ? digits : 4;
		return '?';
	}
	return place ? to[place - from] : *f->at;
}

static bool take_string(struct flat *f, char *to, size_t size)
{
	size_t len = 0;

	if (!take(f, '"'))
		return false;
	for (; *f->at && *f->at != '"'; f->at++) {
		char c = *f->at;

		if (c == '\\') {
			if (!*++f->at)
				return false;
			c = unescaped(f);
		}
		if (len + 1 < size)
			to[len++] = c;
	}
	to[len] = '\0';
	if (*f->at != '"')
		return false;
	f->at++;
	return true;
}

/* An object or an array, of which only the end matters. */
static bool skip_nested(struct flat *f)
{
	char ignored[2];
	int depth = 0;

	do {
		skip_space(f);
		if (*f->at == '"') {
			if (!take_string(f, ignored, sizeof(ignored)))
				return false;
			continue;
		}
		if (!*f->at)
			return false;
		depth += *f->at == '{' || *f->at == '[';
		depth -= *f->at == '}' || *f->at == ']';
		f->at++;
	} while (depth > 0 && depth < NESTED_MAX);
	return depth == 0;
}

static bool take_word(struct flat *f)
{
	size_t len = strspn(f->at, "abcdefghijklmnopqrstuvwxyz");
	bool known = (len == 4 && (!strncmp(f->at, "true", 4) || !strncmp(f->at, "null", 4))) ||
		     (len == 5 && !strncmp(f->at, "false", 5));

	f->at += len;
	return known;
}

static bool take_number(struct flat *f)
{
	char *end;

	if (!*f->at || !strchr("-0123456789", *f->at))
		return false;
	f->number = strtod(f->at, &end);
	f->is_number = end > f->at;
	f->at = end;
	return f->is_number;
}

static bool take_value(struct flat *f)
{
	f->is_text = f->is_number = false;
	skip_space(f);
	if (*f->at == '"') {
		f->is_text = true;
		return take_string(f, f->text, sizeof(f->text));
	}
	if (*f->at == '{' || *f->at == '[')
		return skip_nested(f);
	return take_number(f) || take_word(f);
}

bool flat_begin(struct flat *f, const char *object)
{
	*f = (struct flat){ .at = object };
	return take(f, '{');
}

int flat_next(struct flat *f)
{
	if (take(f, '}'))
		return 0;
	if (f->name[0] && !take(f, ','))
		return -1;
	if (!take_string(f, f->name, sizeof(f->name)) || !f->name[0] || !take(f, ':'))
		return -1;
	return take_value(f) ? 1 : -1;
}
