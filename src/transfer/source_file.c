/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources that have positions: regular files and block devices. `next` only deals out ranges, and
 * holes; `fill` reads, and decides for each block whether past the page cache.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/failure.h"
#include "transfer/descriptor.h"
#include "transfer/reading.h"
#include "transfer/source.h"

struct file_source {
	struct vb__source base;
	int fd;
	bool own;
	int given_fd;	   /* the user's: its offset moves as if it had been read. -1: none */
	uint64_t start;	   /* where in the file the transfer begins */
	uint64_t next;	   /* the next block's offset */
	uint64_t data_end; /* up to there it is data */
	struct vb__reading reading;
	vb_at_end_fn at_end;
	void *at_end_arg;
	struct vb__fd_name name;
};

static struct file_source *file_of(struct vb__source *source)
{
	return (struct file_source *)source;
}

static int fail_shorter(const struct file_source *f, struct vb_error *err)
{
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_IO,
				     .operation = "read",
				     .object = f->name.text,
				     .cause = "the file became shorter while it was being read",
				     .hint = "is another program writing to it?",
			     });
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static int file_next(struct vb__source *source, void *buffer, size_t room, struct vb__block *block,
		     struct vb_error *err)
{
	struct file_source *f = file_of(source);
	uint64_t hole = 0;

	(void)buffer, (void)err;
	if (f->next == f->base.total_bytes)
		return 0;
	if (f->next == f->data_end) {
		hole = vb__reading_find_data(&f->reading, f->start + f->next, &f->data_end);
		f->data_end -= f->start;
	}
	*block = (struct vb__block){ .offset = f->next, .length = hole };
	if (hole)
		block->flags = VB__BLOCK_HOLE;
	else /* up to a multiple of the room: that keeps blocks aligned after a hole */
		block->length = min_u64(room - f->next % room, f->data_end - f->next);
	f->next += block->length;
	return 1;
}

static int file_fill(struct vb__source *source, void *buffer, struct vb__block *block,
		     struct vb_error *err)
{
	struct file_source *f = file_of(source);
	uint64_t len = vb__block_data_bytes(block);
	ssize_t n = vb__reading_read(&f->reading, buffer, len, f->start + block->offset);

	if (n < 0)
		return vb__fail_io(err, errno, "read", f->name.text);
	return (uint64_t)n < len ? fail_shorter(f, err) : 0;
}

static int file_finish(struct vb__source *source, struct vb_error *err)
{
	struct file_source *f = file_of(source);
	uint64_t end = f->start + f->base.total_bytes;
	struct stat st;

	/* Holes are not read: a file cut off there is noticed here only. */
	if (f->base.total_bytes && fstat(f->fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    (uint64_t)st.st_size < end)
		return fail_shorter(f, err);
	if (f->given_fd >= 0)
		(void)lseek(f->given_fd, (off_t)end, SEEK_SET);
	return f->at_end ? f->at_end(f->at_end_arg, source->cancel_fd, err) : 0;
}

static void file_close(struct vb__source *source)
{
	struct file_source *f = file_of(source);

	vb__reading_close(&f->reading);
	if (f->own)
		close(f->fd);
	free(f);
}

static const struct vb__source_ops file_ops = {
	.next = file_next,
	.fill = file_fill,
	.finish = file_finish,
	.close = file_close,
};

/* Whose offset is ours alone; only there may we seek. */
static void take_fd(struct file_source *f, int fd, bool own)
{
	int again = own ? -1 : vb__fd_reopen(fd, O_RDONLY);

	f->given_fd = own ? -1 : fd;
	f->fd = again >= 0 ? again : fd;
	f->own = own || again >= 0;
}

static int measure(struct file_source *f, const struct stat *st)
{
	off_t at = f->given_fd >= 0 ? lseek(f->given_fd, 0, SEEK_CUR) : 0;
	uint64_t size = (uint64_t)st->st_size;

	if (at < 0)
		return errno;
	if (S_ISBLK(st->st_mode) && ioctl(f->fd, BLKGETSIZE64, &size))
		return errno;
	f->start = (uint64_t)at;
	f->base.total_bytes = size > f->start ? size - f->start : 0;
	return 0;
}

int vb__file_source_open(int fd, bool own, const struct vb_input *input, enum vb_direct direct,
			 struct vb__source **source, struct vb_error *err)
{
	struct file_source *f = calloc(1, sizeof(*f));
	struct stat st;
	int errnum;

	if (!f)
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	f->base.ops = &file_ops;
	f->at_end = input->at_end;
	f->at_end_arg = input->at_end_arg;
	vb__fd_name(&f->name, fd, input->path ? input->path : input->name);
	take_fd(f, fd, own);
	f->reading.direct.fd = -1;
	errnum = fstat(f->fd, &st) ? errno : measure(f, &st);
	if (errnum) {
		vb__fail_io(err, errnum, "read", f->name.text);
		f->own = f->own && !own;
		file_close(&f->base);
		return VB_ERR_IO;
	}
	f->base.has_mode = S_ISREG(st.st_mode);
	f->base.mode = f->base.has_mode ? st.st_mode & 0777 : 0;
	vb__reading_open(&f->reading, f->fd, f->start, f->start + f->base.total_bytes, &st, direct);
	f->base.sparse = f->own && vb__reading_look_for_holes(&f->reading, f->start, &st);
	(void)posix_fadvise(f->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	*source = &f->base;
	return 0;
}
