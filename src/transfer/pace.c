/* SPDX-License-Identifier: Apache-2.0 */
#include "transfer/pace.h"

#include <poll.h>

#include <verbatim/transfer.h>

#include "core/clock.h"

#define BLOCKS_PER_SECOND 10u
#define CATCH_UP_MS 100u

static uint64_t time_of(const struct vb__pace *pace, uint64_t bytes)
{
	return (uint64_t)((double)bytes * 1e9 / (double)pace->bytes_per_second);
}

void vb__pace_keep(struct vb__pace *pace, uint64_t bytes, int cancel_fd)
{
	struct pollfd cancel = { .fd = cancel_fd, .events = POLLIN };
	uint64_t now = vb__now_ns();

	if (!pace->bytes_per_second)
		return;
	if (!pace->next_ns)
		pace->next_ns = now;
	/* What was missed lately may be made up for: waits are never exact. */
	if (pace->next_ns + vb__ms(CATCH_UP_MS) < now)
		pace->next_ns = now - vb__ms(CATCH_UP_MS);
	pace->next_ns += time_of(pace, bytes);
	if (pace->next_ns > now)
		poll(&cancel, 1, vb__ms_left(pace->next_ns));
}

void vb__pace_refund(struct vb__pace *pace, uint64_t bytes)
{
	if (pace->bytes_per_second)
		pace->next_ns -= time_of(pace, bytes);
}

uint32_t vb__pace_room(const struct vb__pace *pace, uint32_t room)
{
	uint64_t rate = pace->bytes_per_second;

	while (rate && room > VB_BLOCK_MIN && room > rate / BLOCKS_PER_SECOND)
		room /= 2;
	return room < VB_BLOCK_MIN ? VB_BLOCK_MIN : room / VB_BLOCK_MIN * VB_BLOCK_MIN;
}
