/* SPDX-License-Identifier: Apache-2.0 */
/* Opening an input: what it is decides how it is read. */
#include "transfer/source.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/failure.h"
#include "transfer/descriptor.h"

/*
 * Files of /proc and /sys look like regular ones of no size, or of one page that they do not fill;
 * what they hold is found by reading only. They take no blocks and yet begin with data.
 */
static bool size_is_true(int fd, const struct stat *st)
{
	off_t data;

	if (st->st_size == 0)
		return false;
	if (st->st_blocks)
		return true;
	/* The offset may be shared; seeking must not move it. */
	fd = vb__fd_reopen(fd, O_RDONLY);
	if (fd < 0)
		return false;
	data = lseek(fd, 0, SEEK_DATA);
	if (data < 0 && errno == ENXIO)
		data = st->st_size;
	close(fd);
	return data > 0;
}

static bool has_positions(int fd, const struct stat *st)
{
	if (S_ISBLK(st->st_mode))
		return true;
	return S_ISREG(st->st_mode) && size_is_true(fd, st);
}

static int open_kind(int fd, bool own, const struct vb_input *input, enum vb_direct direct,
		     int cancel_fd, struct vb__source **source, struct vb_error *err)
{
	struct vb__fd_name name;
	struct stat st;
	int errnum;

	vb__fd_name(&name, fd, input->path ? input->path : input->name);
	errnum = vb__fd_check(fd, O_RDONLY);
	if (errnum || fstat(fd, &st))
		return vb__fail_io(err, errnum ? errnum : errno, "read", name.text);
	if (S_ISDIR(st.st_mode))
		return vb__fail(err, &(struct vb__failure){
					     .code = VB_ERR_IO,
					     .native_kind = VB_NATIVE_ERRNO,
					     .native = EISDIR,
					     .operation = "read",
					     .object = name.text,
					     .hint = "name a file, or send what `tar` makes of it",
				     });
	if (has_positions(fd, &st))
		return vb__file_source_open(fd, own, input, direct, source, err);
	return vb__stream_source_open(fd, own, input, cancel_fd, source, err);
}

int vb__source_open(const struct vb_input *input, enum vb_direct direct, int cancel_fd,
		    struct vb__source **source, struct vb_error *err)
{
	int fd = input->path ? vb__fd_from_path(input->path) : input->fd;
	bool own = fd < 0 && input->path;
	int rc;

	/* Without waiting: a FIFO's writer, or a terminal's carrier, is waited for later. */
	if (own)
		fd = open(input->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (own && fd < 0)
		return vb__fail_io(err, errno, "open", input->path);
	rc = open_kind(fd, own, input, direct, cancel_fd, source, err);
	if (rc == 0)
		(*source)->cancel_fd = cancel_fd;
	else if (own)
		close(fd);
	return rc;
}
