/* SPDX-License-Identifier: Apache-2.0 */
/* Directories by chains of descriptors, the least used of which are closed. */
#include "tree/dirs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void vb__dirs_init(struct vb__dirs *dirs)
{
	*dirs = (struct vb__dirs){ .open = 0 };
	pthread_mutex_init(&dirs->lock, NULL);
}

void vb__dirs_destroy(struct vb__dirs *dirs)
{
	pthread_mutex_destroy(&dirs->lock);
}

static void take_off_list(struct vb__dirs *dirs, struct vb__dir *dir)
{
	*(dir->newer ? &dir->newer->older : &dirs->newest) = dir->older;
	*(dir->older ? &dir->older->newer : &dirs->oldest) = dir->newer;
	dir->newer = dir->older = NULL;
}

static void put_on_list(struct vb__dirs *dirs, struct vb__dir *dir)
{
	dir->older = dirs->newest;
	*(dir->older ? &dir->older->newer : &dirs->oldest) = dir;
	dirs->newest = dir;
}

static void shut(struct vb__dirs *dirs, struct vb__dir *dir)
{
	if (dir->fd < 0)
		return;
	take_off_list(dirs, dir);
	close(dir->fd);
	dir->fd = -1;
	dirs->open--;
}

static void shut_old_ones(struct vb__dirs *dirs)
{
	struct vb__dir *dir = dirs->oldest, *next;

	for (; dir && dirs->open > VB__DIRS_OPEN; dir = next) {
		next = dir->newer;
		if (!dir->users)
			shut(dirs, dir);
	}
}

struct vb__dir *vb__dir_add(struct vb__dirs *dirs, const struct vb__dir_facts *facts)
{
	size_t len = strlen(facts->name);
	struct vb__dir *dir = calloc(1, sizeof(*dir) + len + 1);

	if (!dir)
		return NULL;
	memcpy(dir->name, facts->name, len);
	dir->shown = dir->name + (facts->shown ? 0 : len);
	dir->parent = facts->parent;
	dir->follow = facts->follow;
	dir->depth = facts->parent ? facts->parent->depth + 1 : 1;
	dir->refs = 1;
	dir->fd = -1;
	if (facts->st) {
		dir->dev = facts->st->st_dev;
		dir->ino = facts->st->st_ino;
	}
	if (dir->parent)
		vb__dir_hold(dirs, dir->parent);
	return dir;
}

void vb__dir_hold(struct vb__dirs *dirs, struct vb__dir *dir)
{
	pthread_mutex_lock(&dirs->lock);
	dir->refs++;
	pthread_mutex_unlock(&dirs->lock);
}

void vb__dir_let_go(struct vb__dirs *dirs, struct vb__dir *dir)
{
	struct vb__dir *parent;

	pthread_mutex_lock(&dirs->lock);
	for (; dir && --dir->refs == 0; dir = parent) {
		parent = dir->parent;
		shut(dirs, dir);
		free(dir);
	}
	pthread_mutex_unlock(&dirs->lock);
}

/* Is this what was found here? The first time it is whatever it is. */
static bool is_same(struct vb__dir *dir, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return false;
	if (!dir->ino) {
		dir->dev = st.st_dev;
		dir->ino = st.st_ino;
	}
	return dir->dev == st.st_dev && dir->ino == st.st_ino;
}

/* The parent is open. */
static int open_one(struct vb__dirs *dirs, struct vb__dir *dir)
{
	int fd = openat(dir->parent ? dir->parent->fd : AT_FDCWD, dir->name,
			O_PATH | O_DIRECTORY | O_CLOEXEC | (dir->follow ? 0 : O_NOFOLLOW));

	if (fd < 0)
		return errno;
	if (!is_same(dir, fd)) {
		close(fd);
		return ENOENT;
	}
	dir->fd = fd;
	dirs->open++;
	put_on_list(dirs, dir);
	return 0;
}

/* Opens all on the way down that are not open. Each stays in use until the next one is open. */
static int open_chain(struct vb__dirs *dirs, struct vb__dir *dir)
{
	struct vb__dir **chain = malloc(dir->depth * sizeof(struct vb__dir *)), *at = dir;
	unsigned count = 0;
	int errnum = chain ? 0 : ENOMEM;

	for (; chain && at && at->fd < 0; at = at->parent)
		chain[count++] = at;
	while (errnum == 0 && count--) {
		at = chain[count];
		errnum = open_one(dirs, at);
		at->users++;
		shut_old_ones(dirs);
		at->users--;
	}
	free(chain);
	return errnum;
}

int vb__dir_use(struct vb__dirs *dirs, struct vb__dir *dir)
{
	int result = 0;

	pthread_mutex_lock(&dirs->lock);
	if (dir->fd < 0) {
		result = -open_chain(dirs, dir);
	} else {
		take_off_list(dirs, dir);
		put_on_list(dirs, dir);
	}
	if (result == 0) {
		dir->users++;
		result = dir->fd;
	}
	pthread_mutex_unlock(&dirs->lock);
	return result;
}

void vb__dir_release(struct vb__dirs *dirs, struct vb__dir *dir)
{
	pthread_mutex_lock(&dirs->lock);
	dir->users--;
	pthread_mutex_unlock(&dirs->lock);
}

char *vb__dir_path(const struct vb__dir *dir, const char *name)
{
	size_t len = strlen(name);
	const struct vb__dir *d;
	char *path, *at;

	for (d = dir; d; d = d->parent)
		len += *d->shown ? strlen(d->shown) + 1 : 0;
	path = malloc(len + 1);
	if (!path)
		return NULL;
	at = path + len - strlen(name);
	memcpy(at, name, strlen(name) + 1);
	for (d = dir; d; d = d->parent) {
		size_t part = strlen(d->shown);

		if (!part)
			continue;
		/* The directory itself ends without a slash. */
		at[-1] = at == path + len ? '\0' : '/';
		at -= part + 1;
		memcpy(at, d->shown, part);
	}
	return path;
}
