/* SPDX-License-Identifier: Apache-2.0 */
/* Opening an output: what stands under its name decides how it is written. */
#include "transfer/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/failure.h"
#include "transfer/descriptor.h"

/* How often it is tried whether a FIFO has got a reader; there is no way to wait for one. */
#define FIFO_RETRY_MS 10

/* Descriptors are written as they are, from where they stand: even a regular file may be shared. */
static int open_descriptor(int fd, bool own, const struct vb_output *output,
			   const struct vb__sink_options *options, struct vb__sink **sink,
			   struct vb_error *err)
{
	struct vb__fd_name name;
	int errnum = vb__fd_check(fd, O_WRONLY), rc;

	vb__fd_name(&name, fd, output->path ? output->path : output->name);
	if (errnum)
		return vb__fail_io(err, errnum, "write", name.text);
	rc = vb__stream_sink_open(fd, own, output, options, sink, err);
	if (rc && own)
		close(fd);
	return rc;
}

/* A FIFO or a device. */
static int open_special(const struct vb_output *output, const struct vb__sink_options *options,
			struct vb__sink **sink, struct vb_error *err)
{
	int fd;

	while ((fd = open(output->path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)) < 0) {
		struct stat st;

		if (errno == EINTR)
			continue;
		if (errno != ENXIO || stat(output->path, &st) || !S_ISFIFO(st.st_mode))
			return vb__fail_io(err, errno, "open", output->path);
		if (vb__fd_wait(-1, 0, options->cancel_fd, FIFO_RETRY_MS) < 0)
			return vb__fail_cancelled(err, "open", output->path);
	}
	return open_descriptor(fd, true, output, options, sink, err);
}

static int open_path(const struct vb_output *output, const struct vb__origin *origin,
		     const struct vb__sink_options *options, struct vb__sink **sink,
		     struct vb_error *err)
{
	struct stat st = { .st_mode = S_IFREG };

	/* A link that leads nowhere is a file to be. */
	if (stat(output->path, &st) && errno != ENOENT)
		return vb__fail_io(err, errno, "open", output->path);
	if (S_ISDIR(st.st_mode))
		return vb__fail(err, &(struct vb__failure){
					     .code = VB_ERR_IO,
					     .native_kind = VB_NATIVE_ERRNO,
					     .native = EISDIR,
					     .operation = "write",
					     .object = output->path,
					     .hint = "name the file to be written, in it",
				     });
	if (S_ISREG(st.st_mode))
		return vb__file_sink_open(output, origin, options, sink, err);
	if (S_ISBLK(st.st_mode))
		return vb__device_sink_open(output, origin, options, sink, err);
	return open_special(output, options, sink, err);
}

int vb__sink_open(const struct vb_output *output, const struct vb__origin *origin,
		  const struct vb__sink_options *options, struct vb__sink **sink,
		  struct vb_error *err)
{
	int fd = output->path ? vb__fd_from_path(output->path) : output->fd;

	if (output->path && fd < 0)
		return open_path(output, origin, options, sink, err);
	if (!output->path)
		return open_descriptor(fd, false, output, options, sink, err);
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return vb__fail_io(err, errno, "open", output->path);
	return open_descriptor(fd, true, output, options, sink, err);
}
