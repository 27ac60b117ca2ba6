/* SPDX-License-Identifier: Apache-2.0 */
/* Temporary files beside their place, and the move there. */
#include "transfer/tempfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "core/failure.h"

/* As many as the kernel follows itself. */
#define LINKS_MAX 40
#define NAME_TRIES 100
/* So much of the name goes into the temporary one. */
#define NAME_PART 48

static int fail_with_hint(struct vb_error *err, int errnum, const char *operation, const char *path,
			  const char *hint)
{
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_IO,
				     .native_kind = VB_NATIVE_ERRNO,
				     .native = errnum,
				     .operation = operation,
				     .object = path,
				     .hint = hint,
			     });
}

/* What follows the last slash: where the name begins. */
static char *name_in(char *path)
{
	char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

int vb__follow_links(const char *path, char where[PATH_MAX])
{
	char to[PATH_MAX];

	if (snprintf(where, PATH_MAX, "%s", path) >= PATH_MAX)
		return ENAMETOOLONG;
	for (int i = 0; i < LINKS_MAX; i++) {
		char *name = name_in(where);
		ssize_t n = readlink(where, to, sizeof(to) - 1);

		if (n < 0)
			return 0;
		to[n] = '\0';
		if (to[0] == '/')
			name = where;
		if ((size_t)(name - where) + (size_t)n >= PATH_MAX)
			return ENAMETOOLONG;
		memcpy(name, to, (size_t)n + 1);
	}
	return ELOOP;
}

/* Keeps the name at the end of `where`, and opens the directory before it. */
static int open_directory(struct vb__tempfile *temp, char *where, const char *path,
			  struct vb_error *err)
{
	char *name = name_in(where);

	temp->name = strdup(name);
	if (!temp->name)
		return vb__fail_errno(err, ENOMEM, "strdup", NULL);
	memcpy(name, ".", 2); /* there is room: a name has at least one character */
	temp->dir_fd = open(where, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* One may be allowed to make files in it and yet not to list it. */
	if (temp->dir_fd < 0 && errno == EACCES)
		temp->dir_fd = open(where, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (temp->dir_fd >= 0)
		return 0;
	return fail_with_hint(err, errno, "write", path,
			      errno == ENOENT ? "its directory does not exist: make it first"
					      : NULL);
}

/* A name nobody has: ".NAME.XXXXXX". */
static void invent_name(struct vb__tempfile *temp)
{
	static const char digits[] = "abcdefghijklmnopqrstuvwxyz012345";
	size_t part = strnlen(temp->name, NAME_PART);
	uint8_t random[6] = { 0 };
	char *at;

	/* Not within a character of several bytes: some file systems refuse that. */
	while (temp->name[part] && (temp->name[part] & 0xc0) == 0x80)
		part--;
	(void)!getrandom(random, sizeof(random), 0);
	at = temp->temp_name + sprintf(temp->temp_name, ".%.*s.", (int)part, temp->name);
	for (size_t i = 0; i < sizeof(random); i++)
		*at++ = digits[random[i] % 32];
	*at = '\0';
}

static bool can_be_linked(int fd)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return access(path, F_OK) == 0;
}

/* A file without a name vanishes with us, however we end. */
static bool open_nameless(struct vb__tempfile *temp)
{
	temp->fd = openat(temp->dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (temp->fd < 0)
		return false;
	if (can_be_linked(temp->fd))
		return true;
	close(temp->fd);
	temp->fd = -1;
	return false;
}

static bool open_named(struct vb__tempfile *temp)
{
	for (int i = 0; i < NAME_TRIES; i++) {
		invent_name(temp);
		temp->fd = openat(temp->dir_fd, temp->temp_name,
				  O_CREAT | O_EXCL | O_NOFOLLOW | O_RDWR | O_CLOEXEC, 0600);
		if (temp->fd >= 0)
			return true;
		if (errno != EEXIST)
			break;
	}
	temp->temp_name[0] = '\0';
	return false;
}

/* In a directory like /tmp others' files may not be replaced: say so now, not at the end. */
static bool is_protected(const struct vb__tempfile *temp)
{
	uid_t me = geteuid();
	struct stat dir;

	if (!temp->old.st_mode || me == 0 || fstat(temp->dir_fd, &dir))
		return false;
	return (dir.st_mode & S_ISVTX) && dir.st_uid != me && temp->old.st_uid != me;
}

static const char *hint_for(int errnum)
{
	if (errnum == EACCES || errnum == EPERM)
		return "a file is written beside its place first: that needs write permission for "
		       "its directory";
	if (errnum == EROFS)
		return "choose a place that can be written to";
	return NULL;
}

static int open_beside(struct vb__tempfile *temp, const char *path, struct vb_error *err)
{
	if (fstatat(temp->dir_fd, temp->name, &temp->old, AT_SYMLINK_NOFOLLOW))
		temp->old = (struct stat){ .st_mode = 0 };
	if (is_protected(temp))
		return fail_with_hint(err, EPERM, "write", path,
				      "it belongs to somebody else, and its directory lets only "
				      "owners replace files");
	if (open_nameless(temp) || open_named(temp))
		return 0;
	return fail_with_hint(err, errno, "write", path, hint_for(errno));
}

int vb__tempfile_open(struct vb__tempfile *temp, const char *path, struct vb_error *err)
{
	char where[PATH_MAX];
	int errnum, rc;

	*temp = (struct vb__tempfile){ .fd = -1, .dir_fd = -1 };
	errnum = *path ? vb__follow_links(path, where) : ENOENT;
	if (errnum)
		return vb__fail_io(err, errnum, "write", path);
	if (!*name_in(where))
		return fail_with_hint(err, ENOENT, "write", path,
				      "no such directory; name the file to be written as well");
	rc = open_directory(temp, where, path, err);
	if (!rc)
		rc = open_beside(temp, path, err);
	if (rc)
		vb__tempfile_close(temp);
	return rc;
}

static int link_as(const struct vb__tempfile *temp, const char *name)
{
	char from[32];

	snprintf(from, sizeof(from), "/proc/self/fd/%d", temp->fd);
	return linkat(AT_FDCWD, from, temp->dir_fd, name, AT_SYMLINK_FOLLOW);
}

/* Gives a nameless file its final name if that is free, else one from which it can be moved. */
static bool give_name(struct vb__tempfile *temp, bool *done)
{
	*done = !temp->old.st_mode && link_as(temp, temp->name) == 0;
	if (*done)
		return true;
	for (int i = 0; i < NAME_TRIES; i++) {
		invent_name(temp);
		if (link_as(temp, temp->temp_name) == 0)
			return true;
		if (errno != EEXIST)
			break;
	}
	temp->temp_name[0] = '\0';
	return false;
}

static int sync_directory(const struct vb__tempfile *temp)
{
	if (fsync(temp->dir_fd) == 0 || errno == EINVAL)
		return 0;
	/* It could not be opened for reading: then all of the file system. */
	return errno == EBADF ? syncfs(temp->fd) : -1;
}

int vb__tempfile_commit(struct vb__tempfile *temp, bool sync, const char *path,
			struct vb_error *err)
{
	bool done = false;

	if (!temp->temp_name[0] && !give_name(temp, &done))
		return vb__fail_io(err, errno, "link", path);
	if (!done && renameat(temp->dir_fd, temp->temp_name, temp->dir_fd, temp->name))
		return vb__fail_io(err, errno, "rename to", path);
	temp->temp_name[0] = '\0';
	if (sync && sync_directory(temp))
		return vb__fail_io(err, errno, "fsync", path);
	return 0;
}

void vb__tempfile_close(struct vb__tempfile *temp)
{
	if (temp->temp_name[0])
		(void)unlinkat(temp->dir_fd, temp->temp_name, 0);
	if (temp->fd >= 0)
		close(temp->fd);
	if (temp->dir_fd >= 0)
		close(temp->dir_fd);
	free(temp->name);
	*temp = (struct vb__tempfile){ .fd = -1, .dir_fd = -1 };
}
