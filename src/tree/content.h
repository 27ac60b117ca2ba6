/* SPDX-License-Identifier: Apache-2.0 */
/* The hash of a file's contents: what offer.content is made of, and compared with. */
#ifndef VB_TREE_CONTENT_H
#define VB_TREE_CONTENT_H

#include <stdatomic.h>
#include <stdint.h>

#define VB__CONTENT_BYTES 16u

/*
 * XXH3-128 in its canonical form, of all bytes from the file's start to its end; the offset is not
 * used. Returns 0, an errno, or ECANCELED once `*stop` (or NULL) is true or `cancel_fd` (or -1)
 * readable.
 */
int vb__content_hash(int fd, uint8_t content[VB__CONTENT_BYTES], const atomic_bool *stop,
		     int cancel_fd);

#endif
