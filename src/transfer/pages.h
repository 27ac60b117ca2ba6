/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pages of a file on tmpfs, made before they are written. To make one takes longer than to fill it. A write makes its
 * own, but of a file's writes only one goes on at a time; made by way of a mapping, they come from all CPUs at once.
 */
#ifndef VB_TRANSFER_PAGES_H
#define VB_TRANSFER_PAGES_H

#include <stddef.h>
#include <stdint.h>

struct vb__pages {
	uint8_t *map; /* NULL: nothing is made */
	size_t bytes;
};

/* `fd` is readable and writable. Of 0 bytes, or if it cannot be, the writes make the pages as ever. */
void vb__pages_open(struct vb__pages *pages, int fd, uint64_t bytes);
void vb__pages_close(struct vb__pages *pages);

/* Those of a part, as far as the file reaches and there is memory: for what is missing the write has the error. Any number of threads. */
void vb__pages_make(const struct vb__pages *pages, uint64_t offset, size_t len);

#endif
