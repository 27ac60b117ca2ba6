/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes without opening, which works for entries that may not be opened, or should not: FIFOs, devices.
 * Values are read by paths through /proc; without it, files and directories are opened.
 */
#include "tree/walk_xattrs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <verbatim/tree.h>

#include "tree/xattr_list.h"

/* What the kernel gives at most, each. */
#define NAMES_MAX (64u << 10)
#define VALUE_MAX (64u << 10)
#define NAMES_FEW 1024u
#define VALUE_SMALL 1024u

/* How the entry is reached. */
struct way {
	const struct vb__xattr_place *place;
	int fd; /* or -1: by the place */
};

static ssize_t list(const struct way *a, char *to, size_t room)
{
	if (a->fd >= 0)
		return flistxattr(a->fd, to, room);
	return vb__xattr_list_at(a->place->dir_fd, a->place->name, a->place->follow, to, room);
}

static ssize_t get(const struct way *a, const char *name, void *to, size_t room)
{
	char path[VB__NAME_MAX + 48];

	if (a->fd >= 0)
		return fgetxattr(a->fd, name, to, room);
	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", a->place->dir_fd, a->place->name);
	return a->place->follow ? getxattr(path, name, to, room) : lgetxattr(path, name, to, room);
}

/* Most have few or none, and the kernel takes as much memory as it is offered room. */
static ssize_t list_names(const struct way *a, char *to)
{
	ssize_t n = list(a, to, NAMES_FEW);

	return n < 0 && errno == ERANGE ? list(a, to, NAMES_MAX) : n;
}

static ssize_t get_value(const struct way *a, const char *name, void *to)
{
	ssize_t n = get(a, name, to, VALUE_SMALL);

	return n < 0 && errno == ERANGE ? get(a, name, to, VALUE_MAX) : n;
}

static bool begins(const char *name, const char *with)
{
	return strncmp(name, with, strlen(with)) == 0;
}

static bool is_kept(const char *name, unsigned keep)
{
	if (strcmp(name, "system.posix_acl_access") == 0 ||
	    strcmp(name, "system.posix_acl_default") == 0)
		return keep & VB_KEEP_ACLS;
	if (!(keep & VB_KEEP_XATTRS))
		return false;
	return begins(name, "user.") ||
	       (geteuid() == 0 && (begins(name, "security.") || begins(name, "trusted.")));
}

static bool have_buffers(struct vb__xattr_reader *r)
{
	r->names = r->names ? r->names : malloc(NAMES_MAX);
	r->value = r->value ? r->value : malloc(VALUE_MAX);
	r->run = r->run ? r->run : malloc(VB__XATTRS_MAX);
	return r->names && r->value && r->run;
}

static int add(struct vb__xattr_reader *r, const struct way *a, const char *name)
{
	struct vb__xattr xattr = { .value.data = r->value };
	ssize_t n = get_value(a, name, r->value);
	size_t len;

	if (n < 0) /* one that has just gone is none */
		return errno == ENODATA ? 0 : errno;
	if (strlen(name) > VB__NAME_MAX)
		return E2BIG;
	memcpy(xattr.name, name, strlen(name) + 1);
	xattr.value.len = (size_t)n;
	len = vb__xattr_encode(r->run + r->run_len, VB__XATTRS_MAX - r->run_len, &xattr);
	r->run_len += len;
	return len ? 0 : E2BIG;
}

static int read_all(struct vb__xattr_reader *r, const struct way *a, struct vb__slice *run)
{
	ssize_t n = list_names(a, r->names);
	int errnum = 0;

	if (n < 0)
		return errno == ENOTSUP ? 0 : errno;
	r->run_len = 0;
	for (const char *name = r->names; name < r->names + n && errnum == 0;
	     name += strlen(name) + 1)
		if (is_kept(name, r->keep))
			errnum = add(r, a, name);
	if (errnum == 0)
		*run = (struct vb__slice){ .data = r->run, .len = r->run_len };
	return errnum;
}

/* Without /proc. What cannot be opened without harm has none then. */
static int read_opened(struct vb__xattr_reader *r, const struct vb__xattr_place *place,
		       struct vb__slice *run)
{
	struct way a = { .place = place };
	int errnum;

	if (!S_ISREG(place->mode) && !S_ISDIR(place->mode))
		return 0;
	a.fd = openat(place->dir_fd, place->name,
		      O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC |
			      (place->follow ? 0 : O_NOFOLLOW));
	if (a.fd < 0)
		return errno;
	errnum = read_all(r, &a, run);
	close(a.fd);
	return errnum;
}

int vb__xattrs_read(struct vb__xattr_reader *r, const struct vb__xattr_place *place,
		    struct vb__slice *run)
{
	struct way a = { .place = place, .fd = -1 };
	int errnum;

	*run = (struct vb__slice){ .len = 0 };
	if (!(r->keep & (VB_KEEP_XATTRS | VB_KEEP_ACLS)))
		return 0;
	if (!have_buffers(r))
		return ENOMEM;
	if (strlen(place->name) > VB__NAME_MAX)
		return ENAMETOOLONG;
	errnum = read_all(r, &a, run);
	if (errnum == ENOENT && access("/proc/self/fd", F_OK))
		errnum = read_opened(r, place, run);
	return errnum;
}

void vb__xattr_reader_close(struct vb__xattr_reader *r)
{
	free(r->names);
	free(r->value);
	free(r->run);
	*r = (struct vb__xattr_reader){ .keep = r->keep };
}
