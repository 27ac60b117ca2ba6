/* SPDX-License-Identifier: Apache-2.0 */
/* Events. */
#include "common/event.h"

#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

int event_open(void)
{
	return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

void event_raise(int fd)
{
	const uint64_t one = 1;
	ssize_t n = write(fd, &one, sizeof(one));

	(void)n; /* it cannot be full */
}

void event_clear(int fd)
{
	uint64_t count;
	ssize_t n = read(fd, &count, sizeof(count));

	(void)n; /* nor does it matter if it was empty */
}
