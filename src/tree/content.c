/* SPDX-License-Identifier: Apache-2.0 */
/* Hashing a whole file. */
#include "tree/content.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef VB_HAVE_XXH_DISPATCH
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

#include "transfer/descriptor.h"

#define CHUNK (256u << 10)

static int hash_all(int fd, XXH3_state_t *state, void *chunk, const atomic_bool *stop,
		    int cancel_fd)
{
	off_t at = 0;
	ssize_t n;

	do {
		if ((stop && atomic_load_explicit(stop, memory_order_relaxed)) ||
		    vb__fd_cancelled(cancel_fd))
			return ECANCELED;
		n = pread(fd, chunk, CHUNK, at);
		if (n < 0 && errno != EINTR)
			return errno;
		if (n > 0) {
			XXH3_128bits_update(state, chunk, (size_t)n);
			at += n;
		}
	} while (n != 0);
	return 0;
}

int vb__content_hash(int fd, uint8_t content[VB__CONTENT_BYTES], const atomic_bool *stop,
		     int cancel_fd)
{
	XXH3_state_t *state = XXH3_createState();
	void *chunk = malloc(CHUNK);
	XXH128_canonical_t canonical;
	int errnum = ENOMEM;

	if (state && chunk) {
		XXH3_128bits_reset(state);
		(void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
		errnum = hash_all(fd, state, chunk, stop, cancel_fd);
	}
	if (errnum == 0) {
		XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state));
		memcpy(content, canonical.digest, VB__CONTENT_BYTES);
	}
	free(chunk);
	XXH3_freeState(state);
	return errnum;
}
