/* SPDX-License-Identifier: Apache-2.0 */
/* Reading by position. What is read when is the caller's business. */
#include "transfer/reading.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

/* Files below this are read through the cache: they do little harm there. */
#define DIRECT_MIN_BYTES (64u << 20)

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* To others than the owner and those who may write, mincore shows all pages as present. */
static bool may_look(int fd, const struct stat *st)
{
	char path[32];

	if (st->st_uid == geteuid())
		return true;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0;
}

void vb__reading_open(struct vb__reading *r, int fd, uint64_t start, uint64_t end,
		      const struct stat *st, enum vb_direct wanted)
{
	bool possible = wanted != VB_DIRECT_NEVER;
	void *map;

	*r = (struct vb__reading){ .fd = fd, .end = end, .look = wanted == VB_DIRECT_AUTO };
	if (r->look && (end - start < DIRECT_MIN_BYTES || !may_look(fd, st)))
		possible = false;
	if (r->look && possible) {
		map = mmap(NULL, end, PROT_READ, MAP_SHARED, fd, 0);
		possible = map != MAP_FAILED;
		r->map = possible ? map : NULL;
	}
	vb__direct_open(&r->direct, fd, O_RDONLY, possible);
}

void vb__reading_close(struct vb__reading *r)
{
	if (r->map)
		munmap(r->map, r->end);
	r->map = NULL;
	vb__direct_close(&r->direct);
}

/* Is nothing of it in the page cache? */
static bool is_cold(const struct vb__reading *r, uint64_t offset, uint64_t len)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t at = offset & ~(page - 1);
	uint64_t end = min_u64(offset + len, r->end);
	uint64_t part = page; /* what is in the cache mostly is so from its first page */
	unsigned char seen[256];

	for (; at < end; at += part, part = sizeof(seen) * page) {
		part = min_u64(part, end - at);
		if (mincore((char *)r->map + at, part, seen))
			return false;
		for (uint64_t i = 0; i < (part + page - 1) / page; i++)
			if (seen[i] & 1)
				return false;
	}
	return true;
}

ssize_t vb__reading_read(struct vb__reading *r, void *to, size_t len, uint64_t offset)
{
	bool direct = r->direct.fd >= 0 && len && (!r->look || is_cold(r, offset, len));
	size_t done = 0;

	while (done < len) {
		ssize_t n = vb__direct_read(&r->direct, (uint8_t *)to + done, len - done,
					    offset + done, direct);

		if (n < 0)
			return -1;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

/* Where data begins at or after the offset, or a hole; the end if there is none any more. */
static int64_t seek_extent(const struct vb__reading *r, uint64_t offset, int whence)
{
	off_t at = lseek(r->fd, (off_t)offset, whence);

	if (at < 0)
		return errno == ENXIO ? (int64_t)r->end : -1;
	return (int64_t)min_u64((uint64_t)at, r->end);
}

/* Files that are no longer than what they take on the disk are not searched: it can be slow. */
bool vb__reading_look_for_holes(struct vb__reading *r, uint64_t start, const struct stat *st)
{
	int64_t hole;

	if (!S_ISREG(st->st_mode) || st->st_blocks * 512 >= st->st_size)
		return false;
	hole = seek_extent(r, start, SEEK_HOLE);
	r->holes = hole >= 0 && (uint64_t)hole < r->end;
	return r->holes;
}

uint64_t vb__reading_find_data(struct vb__reading *r, uint64_t offset, uint64_t *data_end)
{
	int64_t data, hole;

	data = r->holes ? seek_extent(r, offset, SEEK_DATA) : -1;
	hole = data >= 0 ? seek_extent(r, (uint64_t)data, SEEK_HOLE) : -1;
	/* It changed under us, or the file system has changed its mind: all is data. */
	if (hole < 0 || (uint64_t)data < offset || (hole <= data && (uint64_t)data < r->end)) {
		r->holes = false;
		*data_end = r->end;
		return 0;
	}
	*data_end = (uint64_t)hole;
	return (uint64_t)data - offset;
}
