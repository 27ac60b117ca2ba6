/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sinks that are regular files: written beside their place by any number of threads, and moved
 * there when all is well. Holes are left out.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/failure.h"
#include "transfer/descriptor.h"
#include "transfer/filing.h"
#include "transfer/sink.h"
#include "transfer/tempfile.h"

/* Is brought to the disk at a time, so that a stop need not wait for all of it; but not in more steps than that. */
#define SYNC_BYTES (16u << 20)
#define SYNC_STEPS 4096u

struct file_sink {
	struct vb__sink base;
	struct vb__tempfile temp;
	struct vb__filing filing;
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

static int file_put(struct vb__sink *sink, const struct vb__block *block, const void *data,
		    struct vb_error *err)
{
	struct file_sink *f = file_of(sink);
	int errnum = vb__filing_put(&f->filing, data, vb__block_data_bytes(block), block->offset);

	if (errnum)
		return vb__fail_filing(err, errnum, f->name.text);
	atomic_fetch_add_explicit(&f->stored, block->length, memory_order_relaxed);
	return 0;
}

/* Size, owner, permissions: all that the file has besides its data. */
static int dress(struct file_sink *f, uint64_t total_bytes, struct vb_error *err)
{
	const struct stat *old = &f->temp.old;
	int errnum = vb__filing_resize(f->temp.fd, total_bytes);

	if (errnum)
		return vb__fail_filing(err, errnum, f->name.text);
	if (old->st_mode && geteuid() == 0)
		(void)!fchown(f->temp.fd, old->st_uid, old->st_gid);
	if (fchmod(f->temp.fd, f->mode) && errno != EPERM && errno != ENOTSUP)
		return vb__fail_io(err, errno, "set the mode of", f->name.text);
	return 0;
}

static int check_wanted(const struct file_sink *f, struct vb_error *err)
{
	return vb__fd_cancelled(f->cancel_fd) ? vb__fail_cancelled(err, "write", f->name.text) : 0;
}

/* 0 or an errno, which fsync(2) would not tell once more. */
static int sync_range(int fd, uint64_t offset, uint64_t bytes)
{
	const unsigned all = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
			     SYNC_FILE_RANGE_WAIT_AFTER;

	if (sync_file_range(fd, (off_t)offset, (off_t)bytes, all) == 0)
		return 0;
	/* Where there is no such thing fsync does all of it. */
	return errno == ENOSYS || errno == EINVAL || errno == EOPNOTSUPP ? 0 : errno;
}

/* The pieces are brought to the disk one by one, and fsync(2), which nothing can end, finds little left to do. */
static int sync_all(const struct file_sink *f, uint64_t total_bytes, struct vb_error *err)
{
	uint64_t step = total_bytes / SYNC_STEPS < SYNC_BYTES ? SYNC_BYTES
							      : total_bytes / SYNC_STEPS;
	int rc = 0, errnum = 0;

	for (uint64_t at = 0; at < total_bytes && rc == 0 && errnum == 0; at += step) {
		errnum = sync_range(f->temp.fd, at, step);
		rc = check_wanted(f, err);
	}
	if (rc == 0 && errnum == 0 && fsync(f->temp.fd))
		errnum = errno;
	return errnum ? vb__fail_io(err, errnum, "fsync", f->name.text) : rc;
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
	rc = f->fsync ? sync_all(f, total_bytes, err) : 0;
	if (rc)
		return rc;
	rc = vb__fd_flush(f->temp.fd);
	if (rc)
		return vb__fail_filing(err, rc, f->name.text);
	/* Who was told that it failed is to find the old file. */
	rc = check_wanted(f, err);
	if (rc == 0)
		rc = vb__tempfile_commit(&f->temp, f->fsync, f->name.text, err);
	if (rc)
		return rc;
	return f->at_end ? f->at_end(f->at_end_arg, f->cancel_fd, err) : 0;
}

static void file_close(struct vb__sink *sink)
{
	struct file_sink *f = file_of(sink);

	vb__filing_close(&f->filing);
	vb__tempfile_close(&f->temp);
	free(f);
}

static const struct vb__sink_ops file_ops = {
	.put = file_put,
	.finish = file_finish,
	.close = file_close,
};

static mode_t choose_mode(const struct file_sink *f, const struct vb__origin *origin)
{
	if (origin->has_mode)
		return vb__less_umask(origin->mode);
	return f->temp.old.st_mode ? f->temp.old.st_mode & 0777 : vb__less_umask(0666);
}

int vb__file_sink_open(const struct vb_output *output, const struct vb__origin *origin,
		       const struct vb__sink_options *options, struct vb__sink **sink,
		       struct vb_error *err)
{
	struct file_sink *f = calloc(1, sizeof(*f));
	struct vb__filing_plan plan = {
		.total_bytes = origin->total_bytes,
		.sparse = origin->sparse,
		.fsync = options->fsync,
		.direct = options->direct,
	};
	int rc, errnum;

	if (!f)
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	f->base.ops = &file_ops;
	f->fsync = options->fsync;
	f->cancel_fd = options->cancel_fd;
	f->at_end = output->at_end;
	f->at_end_arg = output->at_end_arg;
	vb__fd_name(&f->name, -1, output->path);
	rc = vb__tempfile_open(&f->temp, output->path, err);
	vb__filing_open(&f->filing, f->temp.fd, &plan);
	errnum = rc ? 0 : vb__filing_reserve(f->temp.fd, &plan);
	if (errnum)
		rc = vb__fail_filing(err, errnum, f->name.text);
	if (rc) {
		file_close(&f->base);
		return rc;
	}
	f->mode = choose_mode(f, origin);
	f->base.one_at_a_time = vb__filing_one_at_a_time(&f->filing);
	*sink = &f->base;
	return 0;
}
