/* SPDX-License-Identifier: Apache-2.0 */
/* Taking paths apart. */
#include "tree/top.h"

#include <stdlib.h>
#include <string.h>

bool vb__top_open(struct vb__top *top, const char *path)
{
	size_t len = strlen(path);
	char *copy = malloc(len + 3), *slash;

	*top = (struct vb__top){ .dir = copy };
	if (!copy)
		return false;
	memcpy(copy, path, len + 1);
	for (; len > 1 && copy[len - 1] == '/'; len--)
		top->slash = true;
	copy[len] = '\0';
	slash = strrchr(copy, '/');
	top->name = slash ? slash + 1 : copy;
	top->contents = !*top->name || strcmp(top->name, ".") == 0 || strcmp(top->name, "..") == 0;
	if (!len || top->contents) {
		top->name = ".";
	} else if (!slash) {
		memmove(copy + 2, copy, len + 1);
		memcpy(copy, ".", 2);
		top->name = copy + 2;
	} else if (slash == copy) {
		/* In the root: its slash is needed, and the name moves out of the way. */
		memmove(copy + 2, copy + 1, len);
		copy[1] = '\0';
		top->name = copy + 2;
	} else {
		*slash = '\0';
	}
	return true;
}

void vb__top_close(struct vb__top *top)
{
	free(top->dir);
	top->dir = NULL;
}
