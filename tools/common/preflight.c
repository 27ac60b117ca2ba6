/* SPDX-License-Identifier: Apache-2.0 */
/* Looking ahead. The transfer checks everything again: this is for an early answer only. */
#include "common/preflight.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/trouble.h"

static int allowed(const char *path, int mode)
{
	return faccessat(AT_FDCWD, path, mode, AT_EACCESS) == 0 ? 0 : errno;
}

/* Only regular files are opened: to open a FIFO or a tape does something. */
static int readable(const char *path)
{
	struct stat st;
	int fd;

	if (stat(path, &st) != 0)
		return errno;
	if (S_ISDIR(st.st_mode))
		return EISDIR;
	if (!S_ISREG(st.st_mode))
		return allowed(path, R_OK);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

int preflight_source(const char *path, struct vb_error *err)
{
	int errnum = readable(path);

	return errnum ? trouble_errno(err, VB_ERR_IO, errnum, "open", path) : 0;
}

static int check_directory(const char *path, struct vb_error *err)
{
	const char *slash = strrchr(path, '/');
	char dir[PATH_MAX];
	struct stat st;
	int errnum;

	if (strlen(path) >= sizeof(dir))
		return trouble_errno(err, VB_ERR_IO, ENAMETOOLONG, "create", path);
	snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
	if (slash == path)
		snprintf(dir, sizeof(dir), "/");
	if (stat(dir, &st) != 0)
		return trouble_errno(err, VB_ERR_IO, errno, "directory", dir);
	errnum = S_ISDIR(st.st_mode) ? allowed(dir, W_OK | X_OK) : ENOTDIR;
	return errnum ? trouble_errno(err, VB_ERR_IO, errnum, "create a file in", dir) : 0;
}

int preflight_target(const char *path, struct vb_error *err)
{
	struct stat st;
	int errnum = stat(path, &st) == 0 ? 0 : errno;

	if ((!errnum && S_ISDIR(st.st_mode)) || path[strlen(path) - 1] == '/')
		return trouble_errno(err, VB_ERR_IO, EISDIR, "write to", path);
	if (!errnum && !S_ISREG(st.st_mode)) {
		errnum = allowed(path, W_OK);
		return errnum ? trouble_errno(err, VB_ERR_IO, errnum, "write to", path) : 0;
	}
	/* Where a link leads, the library will see. */
	if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode))
		return 0;
	return check_directory(path, err);
}
