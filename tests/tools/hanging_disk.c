/* SPDX-License-Identifier: Apache-2.0 */
/* To be preloaded: a file system that does not answer. */
#include <unistd.h>

/* What programs that are made like this one call. */
ssize_t pwrite(int fd, const void *bytes, size_t len, off_t offset)
{
	(void)fd, (void)bytes, (void)len, (void)offset;
	for (;;)
		sleep(1000);
}
