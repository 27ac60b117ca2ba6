/* SPDX-License-Identifier: Apache-2.0 */
#include "tree_kit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

int kit_setup(void **state)
{
	struct kit *kit = calloc(1, sizeof(*kit));
	const char *base = getenv("TMPDIR");

	snprintf(kit->dir, sizeof(kit->dir), "%s/vb-tree-XXXXXX", base ? base : "/var/tmp");
	kit->cancel_fd = eventfd(0, EFD_CLOEXEC);
	*state = kit;
	if (!mkdtemp(kit->dir) || kit->cancel_fd < 0)
		return -1;
	kit->dir_fd = open(kit->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return kit->dir_fd >= 0 ? 0 : -1;
}

int kit_teardown(void **state)
{
	struct kit *kit = *state;
	char command[128];

	close(kit->dir_fd);
	close(kit->cancel_fd);
	/* It knows how to remove what is too deep for a path. */
	snprintf(command, sizeof(command), "rm -rf '%s'", kit->dir);
	assert_int_equal(system(command), 0);
	free(kit);
	return 0;
}

const char *kit_path(struct kit *kit, const char *name)
{
	char *path = kit->paths[kit->path_count++];

	assert_true(kit->path_count <= COUNT(kit->paths));
	strcat(strcat(strcpy(path, kit->dir), "/"), name);
	return path;
}

void make_dir(struct kit *kit, const char *name)
{
	assert_int_equal(mkdirat(kit->dir_fd, name, 0755), 0);
}

uint8_t byte_at(uint64_t offset)
{
	return (uint8_t)((offset * 0x9e3779b97f4a7c15u) >> 56) | 1;
}

void make_file(struct kit *kit, const char *name, size_t len)
{
	int fd = openat(kit->dir_fd, name, O_CREAT | O_TRUNC | O_WRONLY, 0644);
	uint8_t *data = malloc(len + 1);

	assert_true(fd >= 0);
	for (size_t i = 0; i < len; i++)
		data[i] = byte_at(i);
	assert_int_equal(write(fd, data, len), len);
	free(data);
	close(fd);
}

void make_link(struct kit *kit, const char *name, const char *target)
{
	assert_int_equal(symlinkat(target, kit->dir_fd, name), 0);
}

void kit_event(void *arg, const struct vb_tree_event *event)
{
	static const char *const names[] = { "",	"copied", "unchanged",
					     "deleted", "failed", "vanished" };
	struct kit *kit = arg;
	size_t len = strlen(kit->told);

	snprintf(kit->told + len, sizeof(kit->told) - len, "%s%s %s: %s\n",
		 event->at_peer ? "there " : "", names[event->happening], event->path,
		 event->failure ? event->failure->cause : "");
}
