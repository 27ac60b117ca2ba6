/* SPDX-License-Identifier: Apache-2.0 */
/* Small files. */
#include "info/sysfs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool sysfs_line(char *to, size_t size, const char *path)
{
	FILE *file = fopen(path, "re");
	bool ok;

	to[0] = '\0';
	if (!file)
		return false;
	ok = fgets(to, (int)size, file) != NULL;
	fclose(file);
	to[strcspn(to, "\n")] = '\0';
	return ok;
}

double sysfs_number(const char *pattern, const char *name)
{
	const char *hole = strstr(pattern, "%s");
	char path[256], line[64];

	if (!hole)
		return 0;
	snprintf(path, sizeof(path), "%.*s%s%s", (int)(hole - pattern), pattern, name, hole + 2);
	return sysfs_line(line, sizeof(line), path) ? strtod(line, NULL) : 0;
}

void sysfs_library_version(const char *prefix, char *to, size_t size)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];

	to[0] = '\0';
	while (maps && !to[0] && fgets(line, sizeof(line), maps)) {
		const char *at = strstr(line, prefix);

		if (!at)
			continue;
		at += strlen(prefix);
		snprintf(to, size, "%.*s", (int)strspn(at, "0123456789."), at);
	}
	if (maps)
		fclose(maps);
}
