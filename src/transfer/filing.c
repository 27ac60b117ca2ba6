/* SPDX-License-Identifier: Apache-2.0 */
/* Storing in regular files. Where they are, and under what names, is not its business. */
#include "transfer/filing.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "core/cpus.h"
#include "core/failure.h"

/* Below this, preallocation is not worth its system call. */
#define PREALLOCATE_MIN_BYTES (1u << 20)
/* Files below this are written through the cache, synced or not. */
#define DIRECT_MIN_BYTES (64u << 20)
/* Pages are made by all CPUs for files from this size on, and where receiving does not need all of those. */
#define PAGES_MIN_BYTES (16u << 20)
#define PAGES_MIN_CPUS 8u

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
mode_t vb__less_umask(mode_t mode)
{
	uint64_t mask = 022;

	(void)read_number("/proc/self/status", "Umask:", 8, &mask);
	return mode & 0777 & ~(mode_t)mask;
}

/*
 * Past the cache goes what would not leave room for much else there, and what has to be on the
 * disk in the end anyway.
 */
static bool wants_direct(const struct vb__filing_plan *plan)
{
	uint64_t available_kib = 0;

	if (plan->direct != VB_DIRECT_AUTO)
		return plan->direct == VB_DIRECT_ALWAYS;
	/* Without preallocation each direct write would have to find room on the disk. */
	if (plan->total_bytes == UINT64_MAX || plan->sparse)
		return false;
	/* Worth looking only for what is not small: there may be many. */
	if (plan->total_bytes < DIRECT_MIN_BYTES)
		return false;
	return plan->fsync || (read_number("/proc/meminfo", "MemAvailable:", 10, &available_kib) &&
			       plan->total_bytes / 1024 > available_kib / 4);
}

static bool is_memory(int fd, struct statfs *fs)
{
	return fd >= 0 && fstatfs(fd, fs) == 0 && fs->f_type == TMPFS_MAGIC;
}

static uint64_t bytes_in_pages(const struct vb__filing_plan *plan)
{
	bool many = plan->total_bytes != UINT64_MAX && plan->total_bytes >= PAGES_MIN_BYTES;

	return many && !plan->sparse && vb__cpus() >= PAGES_MIN_CPUS ? plan->total_bytes : 0;
}

void vb__filing_open(struct vb__filing *filing, int fd, const struct vb__filing_plan *plan)
{
	struct statfs fs;
	/* There is nothing but its cache. Small files are many, and would gain nothing. */
	bool memory = plan->total_bytes >= PAGES_MIN_BYTES && is_memory(fd, &fs);

	pthread_mutex_init(&filing->writing, NULL);
	vb__direct_open(&filing->direct, fd, O_WRONLY, fd >= 0 && !memory && wants_direct(plan));
	vb__pages_open(&filing->pages, fd, memory ? bytes_in_pages(plan) : 0);
}

void vb__filing_close(struct vb__filing *filing)
{
	vb__direct_close(&filing->direct);
	vb__pages_close(&filing->pages);
	pthread_mutex_destroy(&filing->writing);
}

bool vb__filing_one_at_a_time(const struct vb__filing *filing)
{
	return filing->direct.fd < 0 && !filing->pages.map;
}

static ssize_t write_some(struct vb__filing *filing, const uint8_t *from, size_t len,
			  uint64_t offset)
{
	bool alone = filing->direct.fd < 0;
	ssize_t n;

	if (alone)
		pthread_mutex_lock(&filing->writing);
	n = vb__direct_write(&filing->direct, from, len, offset, true);
	if (alone)
		pthread_mutex_unlock(&filing->writing);
	return n;
}

int vb__filing_put(struct vb__filing *filing, const void *data, size_t len, uint64_t offset)
{
	size_t done = 0;

	vb__pages_make(&filing->pages, offset, len);
	while (done < len) {
		ssize_t n =
			write_some(filing, (const uint8_t *)data + done, len - done, offset + done);

		if (n < 0)
			return errno;
		done += (size_t)n;
	}
	return 0;
}

/* Growing a file beyond this would not only fail but also raise a signal that kills. */
static bool over_limit(uint64_t bytes)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
	       bytes > limit.rlim_cur;
}

/* It is not asked for beforehand: to zero it takes long, and could overlap. But pages are made within the size only. */
static int reserve_memory(int fd, const struct statfs *fs, uint64_t total)
{
	if (fs->f_blocks && fs->f_bavail < total / (uint64_t)fs->f_bsize)
		return ENOSPC;
	return vb__filing_resize(fd, total);
}

int vb__filing_reserve(int fd, const struct vb__filing_plan *plan)
{
	uint64_t total = plan->total_bytes;
	struct statfs fs;
	int rc;

	if (total == UINT64_MAX)
		return 0;
	if (total > INT64_MAX || over_limit(total))
		return EFBIG;
	if (plan->sparse || total < PREALLOCATE_MIN_BYTES)
		return 0;
	if (is_memory(fd, &fs))
		return reserve_memory(fd, &fs, total);
	do {
		rc = fallocate(fd, 0, 0, (off_t)total);
	} while (rc && errno == EINTR);
	return rc && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG) ? errno : 0;
}

int vb__filing_resize(int fd, uint64_t bytes)
{
	if (over_limit(bytes))
		return EFBIG;
	return ftruncate(fd, (off_t)bytes) ? errno : 0;
}

int vb__fail_filing(struct vb_error *err, int errnum, const char *object)
{
	return vb__fail(err,
			&(struct vb__failure){
				.code = VB_ERR_IO,
				.native_kind = VB_NATIVE_ERRNO,
				.native = errnum,
				.operation = "write",
				.object = object,
				.hint = errnum == EFBIG ? "files are limited: see `ulimit -f`, "
							  "and what the file system can hold"
							: NULL,
			});
}
