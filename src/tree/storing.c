/* SPDX-License-Identifier: Apache-2.0 */
/* How a file that has come gets all that it has, and its name, in this order. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/failure.h"
#include "transfer/descriptor.h"
#include "tree/tree_sink.h"

/* Pieces of zeros of this size are left out of a file that had holes. */
#define HOLE 4096u

/* ---- Small files. ---- */

static int link_fd(struct vb__tree_sink *s, int fd, int dir_fd, const char *name)
{
	char path[32];

	if (!atomic_load_explicit(&s->no_empty_path, memory_order_relaxed)) {
		if (linkat(fd, "", dir_fd, name, AT_EMPTY_PATH) == 0)
			return 0;
		if (errno != ENOENT && errno != EPERM)
			return -1;
		/* That takes a capability. */
		atomic_store_explicit(&s->no_empty_path, true, memory_order_relaxed);
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, path, dir_fd, name, AT_SYMLINK_FOLLOW);
}

/* The file is written to without a name if that can be, else under the one in `temp`. */
static int open_temp(struct vb__tree_sink *s, int dir_fd, mode_t mode, struct vb__part_name *temp)
{
	int flags = O_RDWR | O_CLOEXEC, fd;

	if (s->nameless && !atomic_load_explicit(&s->no_nameless, memory_order_relaxed)) {
		fd = openat(dir_fd, ".", O_TMPFILE | flags, mode);
		if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT)) {
			temp->text[0] = '\0';
			return fd;
		}
		atomic_store_explicit(&s->no_nameless, true, memory_order_relaxed);
	}
	flags |= O_CREAT | O_EXCL | O_NOFOLLOW;
	fd = openat(dir_fd, temp->text, flags, 0600);
	if (fd < 0 && errno == EEXIST && unlinkat(dir_fd, temp->text, 0) == 0)
		fd = openat(dir_fd, temp->text, flags, 0600);
	return fd;
}

static bool is_zero(const uint8_t *data, size_t len)
{
	return len && !data[0] && memcmp(data, data + 1, len - 1) == 0;
}

/* 0 or an errno. */
static int write_data(int fd, const uint8_t *data, size_t len, bool sparse)
{
	size_t at = 0, part;

	for (; at < len; at += part) {
		ssize_t n;

		part = sparse && len - at > HOLE ? HOLE : len - at;
		if (sparse && is_zero(data + at, part))
			continue;
		n = pwrite(fd, data + at, part, (off_t)at);
		if (n < 0 && errno != EINTR)
			return errno;
		if (n == 0)
			return ENOSPC;
		part = n < 0 ? 0 : (size_t)n;
	}
	return sparse ? vb__filing_resize(fd, len) : 0;
}

/* It has a name from which it can be moved, or its own at once. 0 or an errno. */
static int give_name(struct vb__tree_sink *s, struct vb__arrival *a, int dir_fd, int fd,
		     struct vb__part_name *temp, bool replaces)
{
	int errnum;

	if (!temp->text[0]) {
		if (!replaces && link_fd(s, fd, dir_fd, a->name) == 0)
			return 0;
		if (!replaces && errno != EEXIST)
			return errno;
		*temp = vb__part_name(s->journal.tag, &a->hash);
		if (link_fd(s, fd, dir_fd, temp->text) &&
		    (errno != EEXIST || unlinkat(dir_fd, temp->text, 0) ||
		     link_fd(s, fd, dir_fd, temp->text)))
			return errno;
	}
	errnum = vb__tree_move(s, a->place, dir_fd, temp->text, a->name);
	if (errnum)
		(void)unlinkat(dir_fd, temp->text, 0);
	return errnum;
}

/* All that it has besides its contents; it replaces `old`, or nothing. */
static int dress(struct vb__tree_sink *s, const struct vb__arrival *a, int fd,
		 const struct stat *old, bool fresh, struct vb_error *err)
{
	struct vb__thing thing = { .fd = fd, .fresh = fresh, .path = a->name };

	if (fstat(fd, &thing.st))
		return vb__fail_io(err, errno, "fstat", a->name);
	if (old && s->rules.root && !(s->tree->keep & VB_KEEP_OWNER))
		(void)!fchown(fd, old->st_uid, old->st_gid);
	return vb__meta_apply(&s->rules, &a->meta, vb__meta_mode(&s->rules, &a->meta, old), &thing,
			      NULL, err);
}

/* What it replaces; NULL: nothing, or no file. */
static const struct stat *look_for_old(const struct vb__arrival *a, int dir_fd, struct stat *st,
				       bool *replaces)
{
	*replaces = !a->place->made && fstatat(dir_fd, a->name, st, AT_SYMLINK_NOFOLLOW) == 0;
	return *replaces && S_ISREG(st->st_mode) ? st : NULL;
}

int vb__store_whole(struct vb__tree_sink *s, struct vb__arrival *a, const struct vb__parcel *parcel,
		    int dir_fd, struct stat *now, struct vb_error *err)
{
	struct vb__part_name temp = vb__part_name(s->journal.tag, &a->hash);
	struct stat old_st;
	bool replaces;
	const struct stat *old = look_for_old(a, dir_fd, &old_st, &replaces);
	int fd = open_temp(s, dir_fd, vb__meta_mode(&s->rules, &a->meta, old) & 0777, &temp);
	int rc, errnum;

	if (fd < 0)
		return vb__fail_io(err, errno, "write", a->name);
	errnum = write_data(fd, parcel->data.data, parcel->data.len, a->sparse);
	rc = errnum ? vb__fail_filing(err, errnum, a->name) : 0;
	if (rc == 0)
		rc = dress(s, a, fd, old, !a->place->default_acl, err);
	if (rc && temp.text[0])
		(void)unlinkat(dir_fd, temp.text, 0);
	errnum = rc ? 0 : give_name(s, a, dir_fd, fd, &temp, replaces);
	if (errnum)
		rc = vb__fail_io(err, errnum, "write", a->name);
	if (rc == 0 && fstat(fd, now))
		rc = vb__fail_io(err, errno, "fstat", a->name);
	close(fd);
	return rc;
}

/* ---- Large files. ---- */

int vb__store_part(struct vb__tree_sink *s, struct vb__arrival *a, int dir_fd, struct stat *now,
		   struct vb_error *err)
{
	struct vb__part_name temp = vb__part_name(s->journal.tag, &a->hash);
	int fd = vb__part_hold(s, a), rc, errnum;
	struct stat old, st = { .st_ino = 0 };
	bool replaces;

	if (fd < 0)
		return vb__fail_io(err, errno, "write", a->name);
	errnum = vb__filing_resize(fd, a->end_size);
	if (errnum)
		return vb__fail_filing(err, errnum, a->name);
	rc = dress(s, a, fd, look_for_old(a, dir_fd, &old, &replaces), !a->place->default_acl, err);
	if (rc)
		return rc;
	if (s->options.fsync && fsync(fd))
		return vb__fail_io(err, errno, "fsync", a->name);
	errnum = vb__fd_flush(fd);
	if (!errnum && (fstat(fd, now) || fstatat(dir_fd, temp.text, &st, AT_SYMLINK_NOFOLLOW)))
		errnum = errno;
	if (!errnum && (st.st_ino != now->st_ino || st.st_dev != now->st_dev))
		errnum = ESTALE;
	if (!errnum)
		errnum = vb__tree_move(s, a->place, dir_fd, temp.text, a->name);
	if (errnum)
		return vb__fail_io(err, errnum, "write", a->name);
	return fstat(fd, now) ? vb__fail_io(err, errno, "fstat", a->name) : 0;
}
