/* SPDX-License-Identifier: Apache-2.0 */
/* Matching paths with a rule. Nothing here looks at files. */
#include "tree/rule.h"

#include <string.h>
#include <wctype.h>

#define CLASS_NAME_MAX 16u

/* Where the class that begins at `p`, which is a bracket, ends: behind its bracket, or NULL. */
static const char *class_end(const char *p, const char *end)
{
	p++;
	if (p < end && (*p == '!' || *p == '^'))
		p++;
	if (p < end && *p == ']')
		p++;
	for (; p < end && *p != ']'; p++) {
		if (*p == '[' && p + 1 < end && p[1] == ':') {
			p += 2;
			while (p < end && *p != ']')
				p++;
			if (p < end && p[-1] != ':')
				return NULL;
		} else if (*p == '\\') {
			p++;
		}
	}
	return p < end ? p + 1 : NULL;
}

/* Is `c` in a named class, [:alpha:] say? `p` is at its name; moves it behind. */
static bool in_named(const char **p, unsigned char c)
{
	char name[CLASS_NAME_MAX] = "";
	size_t len = 0;

	while ((*p)[len] != ':')
		len++;
	if (len < sizeof(name))
		memcpy(name, *p, len);
	*p += len + 2;
	return c < 0x80 && iswctype(c, wctype(name));
}

/* Is `c` in the class between brackets? */
static bool in_class(const char *p, const char *end, unsigned char c)
{
	bool negated = p[1] == '!' || p[1] == '^', found = false;

	p += negated ? 2 : 1;
	end--; /* at the bracket */
	for (bool first = true; first || p < end; first = false) {
		unsigned char low, high;

		if (p[0] == '[' && p[1] == ':') {
			p += 2;
			found |= in_named(&p, c);
			continue;
		}
		p += *p == '\\';
		low = high = (unsigned char)*p++;
		if (p + 1 < end && *p == '-') {
			p++;
			p += *p == '\\';
			high = (unsigned char)*p++;
		}
		found |= low <= c && c <= high;
	}
	return found != negated;
}

/* One character of the text by one item of the pattern, which is no star; moves `*p` behind it. */
static bool match_one(const char **p, const char *end, char c)
{
	const char *item = *p;

	if (*item == '?') {
		*p = item + 1;
		return c != '/';
	}
	if (*item == '[') {
		*p = class_end(item, end);
		return c != '/' && in_class(item, *p, (unsigned char)c);
	}
	item += *item == '\\' && item + 1 < end;
	*p = item + 1;
	return *item == c;
}

/*
 * Where it does not match, the last star takes one more; if that would be over a slash, the last
 * double one does. Going back further is never needed, so this stays quick whatever the pattern.
 */
static bool match(const char *p, const char *end, const char *text, const char *text_end)
{
	const char *star = NULL, *star_text = NULL, *double_star = NULL, *double_text = NULL;

	for (;;) {
		if (p < end && *p == '*') {
			if (p + 1 < end && p[1] == '*') {
				while (p < end && *p == '*')
					p++;
				double_star = p;
				double_text = text;
				star = NULL;
			} else {
				star = ++p;
				star_text = text;
			}
			continue;
		}
		if (p == end && text == text_end)
			return true;
		if (p < end && text < text_end && match_one(&p, end, *text)) {
			text++;
			continue;
		}
		if (star && star_text < text_end && *star_text != '/') {
			p = star;
			text = ++star_text;
		} else if (double_star && double_text < text_end) {
			p = double_star;
			text = ++double_text;
			star = NULL;
		} else {
			return false;
		}
	}
}

static bool contains(const char *from, const char *end, const char *what)
{
	size_t len = strlen(what);

	for (; from + len <= end; from++)
		if (memcmp(from, what, len) == 0)
			return true;
	return false;
}

static bool ends_with(const char *from, const char *end, const char *what)
{
	size_t len = strlen(what);

	return (size_t)(end - from) > len && memcmp(end - len, what, len) == 0;
}

struct vb__rule vb__rule_take_apart(const char *text)
{
	struct vb__rule r = { .takes = text[0] == '+', .pattern = text + 2 };

	r.end = r.pattern + strlen(r.pattern);
	r.with_contents = ends_with(r.pattern, r.end, "/***");
	if (r.with_contents)
		r.end -= 4;
	else if (ends_with(r.pattern, r.end, "/"))
		r.directories = true;
	r.end -= r.directories;
	r.last = !r.with_contents && !contains(r.pattern, r.end, "/") &&
		 !contains(r.pattern, r.end, "**");
	r.whole = *r.pattern == '/';
	r.pattern += r.whole;
	return r;
}

/* From the start of the path, or of any of its components. */
static bool matches_somewhere(const struct vb__rule *r, const char *path, const char *path_end)
{
	while (!match(r->pattern, r->end, path, path_end)) {
		path = r->whole ? NULL : memchr(path, '/', (size_t)(path_end - path));
		if (!path)
			return false;
		path++;
	}
	return true;
}

/* Is it, or any directory above it, the one that the rule is for? */
static bool matches_contents(const struct vb__rule *r, const char *path, bool directory)
{
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/'))
		if (matches_somewhere(r, path, slash))
			return true;
	return directory && matches_somewhere(r, path, path + strlen(path));
}

bool vb__rule_matches(const struct vb__rule *r, const char *path, bool directory)
{
	const char *slash = strrchr(path, '/'), *end = path + strlen(path);

	if (r->directories && !directory)
		return false;
	if (r->with_contents)
		return matches_contents(r, path, directory);
	if (r->last)
		return match(r->pattern, r->end, slash ? slash + 1 : path, end);
	return matches_somewhere(r, path, end);
}

static bool named_classes_are_known(const char *p, const char *end)
{
	char name[CLASS_NAME_MAX];

	for (; p + 1 < end; p++) {
		size_t len = 0;

		if (p[0] != '[' || p[1] != ':')
			continue;
		while (p + 2 + len < end && p[2 + len] != ':')
			len++;
		if (len >= sizeof(name))
			return false;
		memcpy(name, p + 2, len);
		name[len] = '\0';
		if (!wctype(name))
			return false;
		p += 2 + len;
	}
	return true;
}

const char *vb__rule_check(const char *text)
{
	struct vb__rule r;
	const char *next;

	if ((text[0] != '-' && text[0] != '+') || text[1] != ' ')
		return "it must begin with \"- \" or \"+ \"";
	r = vb__rule_take_apart(text);
	if (r.pattern == r.end)
		return "it has no pattern";
	for (const char *p = r.pattern; p < r.end; p = next) {
		next = p + 1;
		if (*p == '\\')
			next += next < r.end;
		else if (*p == '[')
			next = class_end(p, r.end);
		if (!next)
			return "a bracket is not closed";
		if (*p == '[' && !named_classes_are_known(p + 1, next - 1))
			return "it has an unknown class of characters";
	}
	return NULL;
}

/* Takes the backslashes away; false if there is more than characters in it. */
static bool is_plain(const char *p, const char *end, char *plain)
{
	for (; p < end; p++) {
		if (*p == '*' || *p == '?' || *p == '[')
			return false;
		p += *p == '\\' && p + 1 < end;
		*plain++ = *p;
	}
	*plain = '\0';
	return true;
}

bool vb__rule_anchor(const struct vb__rule *r, char *anchor)
{
	const char *end = r->end;

	if (!r->whole)
		return false;
	if (!r->with_contents && ends_with(r->pattern, end, "/**"))
		end -= 3;
	/* The slash that was taken off, or a star, may have been what a backslash is for. */
	if (end != r->end && end[-1] == '\\')
		return false;
	return is_plain(r->pattern, end, anchor);
}
