/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources that have positions: regular files and block devices. `next` only deals out ranges, and
 * holes; `fill` reads, and decides for each block whether past the page cache.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/failure.h"
#include "transfer/descriptor.h"
#include "transfer/direct.h"
#include "transfer/source.h"

/* Files below this are read through the cache: they do little harm there. */
#define DIRECT_MIN_BYTES (64u << 20)

struct file_source {
	struct vb__source base;
	int fd;
	bool own;
	int given_fd;	   /* the user's: its offset moves as if it had been read. -1: none */
	bool holes;	   /* look for them */
	uint64_t start;	   /* where in the file the transfer begins */
	uint64_t next;	   /* the next block's offset */
	uint64_t data_end; /* up to there it is data */
	struct vb__direct direct;
	bool look; /* direct only what is not in the cache... */
	void *map; /* ...which is seen here; never touched */
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

/* Where data begins at or after the offset, or a hole; the end if there is none any more. */
static int64_t seek_extent(struct file_source *f, uint64_t offset, int whence)
{
	off_t at = lseek(f->fd, (off_t)(f->start + offset), whence);

	if (at < 0)
		return errno == ENXIO ? (int64_t)f->base.total_bytes : -1;
	return (int64_t)min_u64((uint64_t)at - f->start, f->base.total_bytes);
}

/* Sets data_end beyond `next`, and returns the length of the hole that comes first. */
static uint64_t find_data(struct file_source *f)
{
	int64_t data, hole;

	data = f->holes ? seek_extent(f, f->next, SEEK_DATA) : -1;
	hole = data >= 0 ? seek_extent(f, (uint64_t)data, SEEK_HOLE) : -1;
	/* It changed under us, or the file system has changed its mind: all is data. */
	if (hole < 0 || (uint64_t)data < f->next ||
	    (hole <= data && (uint64_t)data < f->base.total_bytes)) {
		f->holes = false;
		f->data_end = f->base.total_bytes;
		return 0;
	}
	f->data_end = (uint64_t)hole;
	return (uint64_t)data - f->next;
}

static int file_next(struct vb__source *source, void *buffer, size_t room, struct vb__block *block,
		     struct vb_error *err)
{
	struct file_source *f = file_of(source);
	uint64_t hole = 0;

	(void)buffer, (void)err;
	if (f->next == f->base.total_bytes)
		return 0;
	if (f->next == f->data_end)
		hole = find_data(f);
	*block = (struct vb__block){ .offset = f->next, .length = hole };
	if (hole)
		block->flags = VB__BLOCK_HOLE;
	else /* up to a multiple of the room: that keeps blocks aligned after a hole */
		block->length = min_u64(room - f->next % room, f->data_end - f->next);
	f->next += block->length;
	return 1;
}

/* Is nothing of it in the page cache? */
static bool is_cold(const struct file_source *f, const struct vb__block *block)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t at = (f->start + block->offset) & ~(page - 1);
	uint64_t end = f->start + block->offset + block->length;
	uint64_t part = page; /* what is in the cache mostly is so from its first page */
	unsigned char seen[256];

	for (; at < end; at += part, part = sizeof(seen) * page) {
		part = min_u64(part, end - at);
		if (mincore((char *)f->map + at, part, seen))
			return false;
		for (uint64_t i = 0; i < (part + page - 1) / page; i++)
			if (seen[i] & 1)
				return false;
	}
	return true;
}

static int file_fill(struct vb__source *source, void *buffer, struct vb__block *block,
		     struct vb_error *err)
{
	struct file_source *f = file_of(source);
	uint64_t len = vb__block_data_bytes(block), done = 0;
	bool direct = f->direct.fd >= 0 && len && (!f->look || is_cold(f, block));

	while (done < len) {
		ssize_t n = vb__direct_read(&f->direct, (uint8_t *)buffer + done, len - done,
					    f->start + block->offset + done, direct);

		if (n < 0)
			return vb__fail_io(err, errno, "read", f->name.text);
		if (n == 0)
			return fail_shorter(f, err);
		done += (uint64_t)n;
	}
	return 0;
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

	if (f->map)
		munmap(f->map, f->start + f->base.total_bytes);
	vb__direct_close(&f->direct);
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

/* Files that are no longer than what they take on the disk are not searched: it can be slow. */
static void look_for_holes(struct file_source *f, const struct stat *st)
{
	int64_t hole;

	if (!S_ISREG(st->st_mode) || !f->own || st->st_blocks * 512 >= st->st_size)
		return;
	hole = seek_extent(f, 0, SEEK_HOLE);
	f->base.sparse = hole >= 0 && (uint64_t)hole < f->base.total_bytes;
	f->holes = f->base.sparse;
}

/* To others than the owner and those who may write, mincore shows all pages as present. */
static bool may_look(const struct file_source *f, const struct stat *st)
{
	char path[32];

	if (st->st_uid == geteuid())
		return true;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", f->fd);
	return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0;
}

static void prepare_direct(struct file_source *f, enum vb_direct wanted, const struct stat *st)
{
	uint64_t end = f->start + f->base.total_bytes;
	void *map;

	f->look = wanted == VB_DIRECT_AUTO;
	if (f->look) {
		if (f->base.total_bytes < DIRECT_MIN_BYTES || !may_look(f, st))
			return;
		map = mmap(NULL, end, PROT_READ, MAP_SHARED, f->fd, 0);
		if (map == MAP_FAILED)
			return;
		f->map = map;
	}
	vb__direct_open(&f->direct, f->fd, O_RDONLY, wanted != VB_DIRECT_NEVER);
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
	vb__fd_name(&f->name, fd, input->path);
	take_fd(f, fd, own);
	vb__direct_open(&f->direct, f->fd, O_RDONLY, false);
	errnum = fstat(f->fd, &st) ? errno : measure(f, &st);
	if (errnum) {
		vb__fail_io(err, errnum, "read", f->name.text);
		f->own = f->own && !own;
		file_close(&f->base);
		return VB_ERR_IO;
	}
	f->base.mode = S_ISREG(st.st_mode) ? st.st_mode & 0777 : 0;
	look_for_holes(f, &st);
	prepare_direct(f, direct, &st);
	(void)posix_fadvise(f->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	*source = &f->base;
	return 0;
}
