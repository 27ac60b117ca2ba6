/* SPDX-License-Identifier: Apache-2.0 */
#include "transfer/pages.h"

#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* since Linux 5.14 */
#endif

void vb__pages_open(struct vb__pages *pages, int fd, uint64_t bytes)
{
	void *map = MAP_FAILED;

	if (bytes && bytes <= PTRDIFF_MAX)
		map = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	*pages =
		(struct vb__pages){ .map = map == MAP_FAILED ? NULL : map, .bytes = (size_t)bytes };
}

void vb__pages_close(struct vb__pages *pages)
{
	if (pages->map)
		munmap(pages->map, pages->bytes);
	pages->map = NULL;
}

void vb__pages_make(const struct vb__pages *pages, uint64_t offset, size_t len)
{
	uint64_t before = offset % (uint64_t)sysconf(_SC_PAGESIZE);

	if (!pages->map || offset > pages->bytes || len > pages->bytes - offset)
		return;
	madvise(pages->map + offset - before, len + before, MADV_POPULATE_WRITE);
	madvise(pages->map + offset - before, len + before, MADV_DONTNEED); /* the file has them */
}
