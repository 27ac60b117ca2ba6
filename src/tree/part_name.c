/* SPDX-License-Identifier: Apache-2.0 */
/* What the files are called that a tree's receiver makes for itself, and how they are known. */
#include "tree/part_name.h"

#include <stdio.h>
#include <string.h>

#define PREFIX ".rdcp-"

void vb__journal_name(char to[VB__JOURNAL_NAME], uint64_t tag)
{
	snprintf(to, VB__JOURNAL_NAME, PREFIX "%016llx.journal", (unsigned long long)tag);
}

struct vb__part_name vb__part_name(uint64_t tag, const struct vb__path_hash *path)
{
	struct vb__part_name name;

	snprintf(name.text, sizeof(name.text), PREFIX "%016llx-%016llx%016llx",
		 (unsigned long long)tag, (unsigned long long)path->high,
		 (unsigned long long)path->low);
	return name;
}

static bool is_hex(const char *text, size_t len)
{
	return strspn(text, "0123456789abcdef") >= len;
}

bool vb__is_reserved(const char *name)
{
	const char *tag = name + strlen(PREFIX);

	if (strncmp(name, PREFIX, strlen(PREFIX)) != 0 || !is_hex(tag, 16))
		return false;
	return strcmp(tag + 16, ".journal") == 0 ||
	       (tag[16] == '-' && is_hex(tag + 17, 32) && !tag[49]);
}

bool vb__is_part_of(const char *name, uint64_t tag)
{
	char start[40];

	snprintf(start, sizeof(start), PREFIX "%016llx-", (unsigned long long)tag);
	return vb__is_reserved(name) && strncmp(name, start, strlen(start)) == 0;
}
