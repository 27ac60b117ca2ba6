/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources that have no positions: pipes, sockets, terminals, devices, files of /proc. Blocks are read in `next`.
 *
 * The descriptor may be shared with other processes, so its flags are left alone: a pipe is opened
 * anew, all else is polled before each read.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/failure.h"
#include "transfer/descriptor.h"
#include "transfer/source.h"

/* A block goes out short when nothing came for so long, or when its first bytes are so old. */
#define PATIENCE_MS 2
#define AGE_MAX_MS 5

struct stream_source {
	struct vb__source base;
	int fd;
	bool own;
	bool careful; /* a read may block, or a FIFO seem to be at its end: wait before reading */
	bool ended;
	uint64_t offset;
	vb_at_end_fn at_end;
	void *at_end_arg;
	struct vb__fd_name name;
};

static struct stream_source *stream_of(struct vb__source *source)
{
	return (struct stream_source *)source;
}

/* Is it time to send what there is? `since` is when that was asked first. */
static bool is_old(uint64_t *since)
{
	uint64_t now = vb__now_ns();

	if (!*since)
		*since = now;
	return now - *since >= vb__ms(AGE_MAX_MS);
}

/* Reads until the room is full, the end is reached, or nothing more comes soon. */
static ssize_t read_block(struct stream_source *s, uint8_t *to, size_t room, struct vb_error *err)
{
	bool wait = s->careful;
	uint64_t since = 0;
	size_t got = 0;

	while (got < room) {
		int ready =
			wait ? vb__fd_wait(s->fd, POLLIN, s->base.cancel_fd, got ? PATIENCE_MS : -1)
			     : 1;
		ssize_t n;

		if (ready < 0)
			return vb__fail_cancelled(err, "read", s->name.text);
		if (!ready)
			break;
		n = read(s->fd, to + got, room - got);
		if (n == 0) {
			s->ended = true;
			break;
		}
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return vb__fail_io(err, errno, "read", s->name.text);
		if (n > 0)
			got += (size_t)n;
		if (got && got < room && is_old(&since))
			break;
		/* What gave less than it could is empty now: reading at once would be in vain. */
		wait = true;
	}
	return (ssize_t)got;
}

static int stream_next(struct vb__source *source, void *buffer, size_t room,
		       struct vb__block *block, struct vb_error *err)
{
	struct stream_source *s = stream_of(source);
	ssize_t n;

	if (s->ended)
		return 0;
	n = read_block(s, buffer, room, err);
	if (n <= 0)
		return (int)n;
	/* What is our own does not block, and the FIFO's writer was there. */
	if (s->own)
		s->careful = false;
	*block = (struct vb__block){ .offset = s->offset, .length = (uint64_t)n };
	s->offset += (uint64_t)n;
	return 1;
}

static int stream_fill(struct vb__source *source, void *buffer, struct vb__block *block,
		       struct vb_error *err)
{
	(void)source, (void)buffer, (void)block, (void)err;
	return 0;
}

static int stream_finish(struct vb__source *source, struct vb_error *err)
{
	struct stream_source *s = stream_of(source);

	return s->at_end ? s->at_end(s->at_end_arg, source->cancel_fd, err) : 0;
}

static void stream_close(struct vb__source *source)
{
	struct stream_source *s = stream_of(source);

	if (s->own)
		close(s->fd);
	free(s);
}

static const struct vb__source_ops stream_ops = {
	.next = stream_next,
	.fill = stream_fill,
	.finish = stream_finish,
	.close = stream_close,
};

/* Chooses how `fd` is read. */
static void prepare(struct stream_source *s, int fd, bool own)
{
	struct stat st = { .st_mode = 0 };
	int again = -1;

	(void)fstat(fd, &st);
	s->fd = fd;
	s->own = own;
	s->base.has_mode = S_ISREG(st.st_mode);
	s->base.mode = s->base.has_mode ? st.st_mode & 0777 : 0;
	/* Of our own but nobody writes to it yet: a FIFO whose writer has to come. Regular ones may block: /proc/kmsg. */
	s->careful = true;
	if (!S_ISFIFO(st.st_mode))
		return;
	vb__fd_enlarge_pipe(fd);
	if (!own)
		again = vb__fd_reopen(fd, O_RDONLY | O_NONBLOCK);
	if (again < 0)
		return;
	s->fd = again;
	s->own = true;
	s->careful = false;
}

int vb__stream_source_open(int fd, bool own, const struct vb_input *input, int cancel_fd,
			   struct vb__source **source, struct vb_error *err)
{
	struct stream_source *s = calloc(1, sizeof(*s));

	if (!s)
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	*s = (struct stream_source){
		.base = { .ops = &stream_ops, .total_bytes = UINT64_MAX, .cancel_fd = cancel_fd },
		.at_end = input->at_end,
		.at_end_arg = input->at_end_arg,
	};
	vb__fd_name(&s->name, fd, input->path ? input->path : input->name);
	prepare(s, fd, own);
	*source = &s->base;
	return 0;
}
