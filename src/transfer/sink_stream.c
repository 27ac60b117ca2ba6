/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sinks that have no positions: pipes, sockets, terminals, devices, and files that somebody else
 * has opened. Blocks come in any order and are written in theirs, each by the thread that brings
 * it, which waits for its turn. The first failure is everybody's.
 *
 * The descriptor may be shared with other processes, so its flags are left alone: a pipe or a
 * terminal is opened anew, so that a reader who is stuck cannot hold us.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/failure.h"
#include "transfer/descriptor.h"
#include "transfer/sink.h"
#include "transfer/turns.h"

struct stream_sink {
	struct vb__sink base;
	int fd;	      /* what is written to */
	int given_fd; /* what was given */
	bool own;     /* given_fd is ours to close */
	bool socket;
	bool steady;	  /* never has to be waited for: a regular file */
	bool careful;	  /* a write may block: wait first... */
	size_t piece_max; /* ...and write no more than is sure to go in */
	int cancel_fd;
	bool fsync;
	vb_at_end_fn at_end;
	void *at_end_arg;
	struct vb__fd_name name;
	struct vb__turns turns;
};

/* Not const: then it takes no room in the library's file. */
static uint8_t zeros[64 << 10];

static struct stream_sink *stream_of(struct vb__sink *sink)
{
	return (struct stream_sink *)sink;
}

static ssize_t write_some(const struct stream_sink *s, const uint8_t *from, size_t len)
{
	if (s->socket)
		return send(s->fd, from, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	return write(s->fd, from, len < s->piece_max ? len : s->piece_max);
}

static int fail_write(const struct stream_sink *s, int errnum, struct vb_error *err)
{
	return vb__fail(err,
			&(struct vb__failure){
				.code = VB_ERR_IO,
				.native_kind = VB_NATIVE_ERRNO,
				.native = errnum,
				.operation = "write",
				.object = s->name.text,
				.cause = errnum == EPIPE ? "the reader has closed the pipe" : NULL,
			});
}

static int write_all(const struct stream_sink *s, const uint8_t *from, size_t len,
		     struct vb_error *err)
{
	bool wait = s->careful;
	size_t done = 0;

	while (done < len) {
		ssize_t n;

		if (wait && vb__fd_wait(s->fd, POLLOUT, s->cancel_fd, -1) < 0)
			return vb__fail_cancelled(err, "write", s->name.text);
		n = write_some(s, from + done, len - done);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return fail_write(s, errno, err);
		if (n > 0)
			done += (size_t)n;
		wait = n < 0 || !s->steady;
	}
	return 0;
}

static int write_zeros(const struct stream_sink *s, uint64_t len, struct vb_error *err)
{
	int rc = 0;

	while (len && !rc) {
		size_t part = len < sizeof(zeros) ? (size_t)len : sizeof(zeros);

		/* A hole can be endless, and the reader tireless. */
		if (vb__fd_cancelled(s->cancel_fd))
			return vb__fail_cancelled(err, "write", s->name.text);
		rc = write_all(s, zeros, part, err);
		len -= part;
	}
	return rc;
}

static int stream_put(struct vb__sink *sink, const struct vb__block *block, const void *data,
		      struct vb_error *err)
{
	struct stream_sink *s = stream_of(sink);
	struct vb_error failure = { .code = VB_OK };
	int rc = vb__turns_take(&s->turns, block->offset, err);

	if (rc)
		return rc;
	rc = block->flags & VB__BLOCK_HOLE ? write_zeros(s, block->length, &failure)
					   : write_all(s, data, block->length, &failure);
	vb__turns_pass(&s->turns, block->length, &failure);
	return rc ? vb__fail_again(err, &failure) : 0;
}

static unsigned stream_waiting(struct vb__sink *sink)
{
	return vb__turns_waiting(&stream_of(sink)->turns);
}

/* Pipes and the like cannot be synced, and need not be. */
static int sync_output(const struct stream_sink *s, struct vb_error *err)
{
	int errnum = s->steady ? vb__fd_flush(s->fd) : 0;

	if (errnum)
		return vb__fail_io(err, errnum, "close", s->name.text);
	if (!s->fsync || !fsync(s->fd) || errno == EINVAL || errno == EROFS || errno == ENOTSUP)
		return 0;
	return vb__fail_io(err, errno, "fsync", s->name.text);
}

/* What we opened ourselves goes, so that the reader sees the end. */
static int release(struct stream_sink *s)
{
	int rc = 0;

	if (s->fd != s->given_fd && s->fd >= 0)
		close(s->fd);
	if (s->own && s->given_fd >= 0)
		rc = close(s->given_fd);
	s->fd = s->given_fd = -1;
	return rc;
}

static int stream_finish(struct vb__sink *sink, uint64_t total_bytes, struct vb_error *err)
{
	struct stream_sink *s = stream_of(sink);
	int rc;

	rc = vb__turns_end(&s->turns, total_bytes, err);
	if (!rc)
		rc = sync_output(s, err);
	if (rc)
		return rc;
	s->own = s->own || s->at_end;
	if (release(s))
		rc = vb__fail_io(err, errno, "close", s->name.text);
	if (s->at_end) {
		int at_end = s->at_end(s->at_end_arg, s->cancel_fd, rc ? NULL : err);

		rc = rc ? rc : at_end;
	}
	return rc;
}

static void stream_close(struct vb__sink *sink)
{
	struct stream_sink *s = stream_of(sink);

	(void)release(s);
	vb__turns_destroy(&s->turns);
	free(s);
}

static const struct vb__sink_ops stream_ops = {
	.put = stream_put,
	.waiting = stream_waiting,
	.finish = stream_finish,
	.close = stream_close,
};

/* Chooses how `fd` is written. */
static void prepare(struct stream_sink *s, int fd, bool nonblocking)
{
	struct stat st = { .st_mode = 0 };
	bool may_be_stuck;
	int again = -1;

	(void)fstat(fd, &st);
	s->fd = s->given_fd = fd;
	s->socket = S_ISSOCK(st.st_mode);
	s->steady = S_ISREG(st.st_mode) || S_ISBLK(st.st_mode);
	s->fsync = s->fsync || S_ISBLK(st.st_mode); /* errors of a device show there only */
	if (S_ISFIFO(st.st_mode))
		vb__fd_enlarge_pipe(fd);
	may_be_stuck = S_ISFIFO(st.st_mode) || (S_ISCHR(st.st_mode) && isatty(fd));
	if (may_be_stuck)
		again = vb__fd_reopen(fd, O_WRONLY | O_NONBLOCK);
	if (again >= 0)
		s->fd = again;
	s->careful = !nonblocking && again < 0 && !s->steady && !s->socket;
	/* A pipe that polls as writable has room for this much at least. */
	s->piece_max = s->careful && may_be_stuck ? PIPE_BUF : SIZE_MAX;
}

int vb__stream_sink_open(int fd, bool own, const struct vb_output *output,
			 const struct vb__sink_options *options, struct vb__sink **sink,
			 struct vb_error *err)
{
	struct stream_sink *s = calloc(1, sizeof(*s));

	if (!s)
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	*s = (struct stream_sink){
		.base = { .ops = &stream_ops },
		.own = own,
		.cancel_fd = options->cancel_fd,
		.fsync = options->fsync,
		.at_end = output->at_end,
		.at_end_arg = output->at_end_arg,
	};
	vb__fd_name(&s->name, fd, output->path ? output->path : output->name);
	vb__turns_init(&s->turns, options->cancel_fd, "write", s->name.text);
	prepare(s, fd, own && (fcntl(fd, F_GETFL) & O_NONBLOCK));
	*sink = &s->base;
	return 0;
}
