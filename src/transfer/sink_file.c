/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sinks that are regular files: written beside their place by any number of threads, and moved
 * there when all is well. Holes are left out.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "core/failure.h"
#include "transfer/descriptor.h"
#include "transfer/direct.h"
#include "transfer/sink.h"
#include "transfer/tempfile.h"

/* Below this, preallocation is not worth its system call. */
#define PREALLOCATE_MIN_BYTES (1u << 20)
/* Files below this are written through the cache, synced or not. */
#define DIRECT_MIN_BYTES (64u << 20)

struct file_sink {
	struct vb__sink base;
	struct vb__tempfile temp;
	struct vb__direct direct;
	/* Through the page cache the kernel lets only one write to a file at a time, and the
	 * others would spin for their turn. */
	pthread_mutex_t writing;
	bool fsync;
	mode_t mode;
	atomic_uint_fast64_t stored;
	int cancel_fd;
	vb_at_end_fn at_end;
	void *at_end_arg;
	struct vb__fd_name name;
};

static struct file_sink *file_of(struct vb__sink *sink)
{
	return (struct file_sink *)sink;
}

static int fail_write(const struct file_sink *f, int errnum, struct vb_error *err)
{
	return vb__fail(err,
			&(struct vb__failure){
				.code = VB_ERR_IO,
				.native_kind = VB_NATIVE_ERRNO,
				.native = errnum,
				.operation = "write",
				.object = f->name.text,
				.hint = errnum == EFBIG ? "files are limited: see `ulimit -f`, "
							  "and what the file system can hold"
							: NULL,
			});
}

static ssize_t write_some(struct file_sink *f, const uint8_t *from, size_t len, uint64_t offset)
{
	bool alone = f->direct.fd < 0;
	ssize_t n;

	if (alone)
		pthread_mutex_lock(&f->writing);
	n = vb__direct_write(&f->direct, from, len, offset, true);
	if (alone)
		pthread_mutex_unlock(&f->writing);
	return n;
}

static int file_put(struct vb__sink *sink, const struct vb__block *block, const void *data,
		    struct vb_error *err)
{
	struct file_sink *f = file_of(sink);
	uint64_t len = vb__block_data_bytes(block), done = 0;

	while (done < len) {
		ssize_t n = write_some(f, (const uint8_t *)data + done, len - done,
				       block->offset + done);

		if (n < 0)
			return fail_write(f, errno, err);
		done += (uint64_t)n;
	}
	atomic_fetch_add_explicit(&f->stored, block->length, memory_order_relaxed);
	return 0;
}

/* Growing a file beyond this would not only fail but also raise a signal that kills. */
static bool over_limit(uint64_t bytes)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
	       bytes > limit.rlim_cur;
}

/* Size, owner, permissions: all that the file has besides its data. */
static int dress(struct file_sink *f, uint64_t total_bytes, struct vb_error *err)
{
	const struct stat *old = &f->temp.old;

	if (over_limit(total_bytes))
		return fail_write(f, EFBIG, err);
	if (ftruncate(f->temp.fd, (off_t)total_bytes))
		return fail_write(f, errno, err);
	if (old->st_mode && geteuid() == 0)
		(void)!fchown(f->temp.fd, old->st_uid, old->st_gid);
	if (fchmod(f->temp.fd, f->mode) && errno != EPERM && errno != ENOTSUP)
		return vb__fail_io(err, errno, "set the mode of", f->name.text);
	return 0;
}

static int file_finish(struct vb__sink *sink, uint64_t total_bytes, struct vb_error *err)
{
	struct file_sink *f = file_of(sink);
	int rc;

	if (atomic_load(&f->stored) != total_bytes)
		return vb__fail(err, &(struct vb__failure){
					     .code = VB_ERR_PROTOCOL,
					     .operation = "write",
					     .object = f->name.text,
					     .cause = "the end came before all of the data",
				     });
	rc = dress(f, total_bytes, err);
	if (rc)
		return rc;
	if (f->fsync && fsync(f->temp.fd))
		return vb__fail_io(err, errno, "fsync", f->name.text);
	rc = vb__fd_flush(f->temp.fd);
	if (rc)
		return fail_write(f, rc, err);
	rc = vb__tempfile_commit(&f->temp, f->fsync, f->name.text, err);
	if (rc)
		return rc;
	return f->at_end ? f->at_end(f->at_end_arg, f->cancel_fd, err) : 0;
}

static void file_close(struct vb__sink *sink)
{
	struct file_sink *f = file_of(sink);

	vb__direct_close(&f->direct);
	vb__tempfile_close(&f->temp);
	pthread_mutex_destroy(&f->writing);
	free(f);
}

static const struct vb__sink_ops file_ops = {
	.put = file_put,
	.finish = file_finish,
	.close = file_close,
};

/* A number behind a word at a line's start in a file of /proc. */
static bool read_number(const char *path, const char *word, int base, uint64_t *number)
{
	FILE *file = fopen(path, "re");
	char line[256];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file)) {
		found = strncmp(line, word, strlen(word)) == 0;
		if (found)
			*number = strtoull(line + strlen(word), NULL, base);
	}
	if (file)
		fclose(file);
	return found;
}

/* umask(2) cannot be asked without being changed, for all threads. */
static mode_t masked(mode_t mode)
{
	uint64_t mask = 022;

	(void)read_number("/proc/self/status", "Umask:", 8, &mask);
	return mode & 0777 & ~(mode_t)mask;
}

static mode_t choose_mode(const struct file_sink *f, const struct vb__origin *origin)
{
	if (origin->mode)
		return masked(origin->mode);
	return f->temp.old.st_mode ? f->temp.old.st_mode & 0777 : masked(0666);
}

/*
 * Past the cache goes what would not leave room for much else there, and what has to be on the
 * disk in the end anyway.
 */
static bool wants_direct(const struct vb__sink_options *options, const struct vb__origin *origin)
{
	uint64_t available_kib = 0;

	if (options->direct != VB_DIRECT_AUTO)
		return options->direct == VB_DIRECT_ALWAYS;
	/* Without preallocation each direct write would have to find room on the disk. */
	if (origin->total_bytes == UINT64_MAX || origin->sparse)
		return false;
	if (options->fsync && origin->total_bytes >= DIRECT_MIN_BYTES)
		return true;
	return read_number("/proc/meminfo", "MemAvailable:", 10, &available_kib) &&
	       origin->total_bytes / 1024 > available_kib / 4;
}

/*
 * Finds out early that there is not enough room, and where there is, keeps it and keeps it
 * together. Memory is not asked for beforehand: to zero it takes long, and could overlap.
 */
static int preallocate(struct file_sink *f, const struct vb__origin *origin)
{
	uint64_t total = origin->total_bytes;
	struct statfs fs;
	int rc;

	if (total == UINT64_MAX)
		return 0;
	if (total > INT64_MAX || over_limit(total))
		return EFBIG;
	if (origin->sparse || total < PREALLOCATE_MIN_BYTES)
		return 0;
	if (fstatfs(f->temp.fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC)
		return fs.f_blocks && fs.f_bavail < total / (uint64_t)fs.f_bsize ? ENOSPC : 0;
	do {
		rc = fallocate(f->temp.fd, 0, 0, (off_t)total);
	} while (rc && errno == EINTR);
	return rc && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG) ? errno : 0;
}

int vb__file_sink_open(const struct vb_output *output, const struct vb__origin *origin,
		       const struct vb__sink_options *options, struct vb__sink **sink,
		       struct vb_error *err)
{
	struct file_sink *f = calloc(1, sizeof(*f));
	int rc, errnum;

	if (!f)
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	f->base.ops = &file_ops;
	pthread_mutex_init(&f->writing, NULL);
	f->fsync = options->fsync;
	f->cancel_fd = options->cancel_fd;
	f->at_end = output->at_end;
	f->at_end_arg = output->at_end_arg;
	vb__fd_name(&f->name, -1, output->path);
	rc = vb__tempfile_open(&f->temp, output->path, err);
	vb__direct_open(&f->direct, f->temp.fd, O_WRONLY, !rc && wants_direct(options, origin));
	errnum = rc ? 0 : preallocate(f, origin);
	if (errnum)
		rc = fail_write(f, errnum, err);
	if (rc) {
		file_close(&f->base);
		return rc;
	}
	f->mode = choose_mode(f, origin);
	*sink = &f->base;
	return 0;
}
