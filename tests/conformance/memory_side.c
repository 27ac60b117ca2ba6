/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of one-sided memory have in common. */
#include "memory_side.h"

/* ---- The owner ---- */

struct vb_region *alloc_well(struct vb_channel *ch, size_t len)
{
	struct vb_error err;
	struct vb_region *region;

	if (vb_region_alloc(ch, len, &region, &err) != 0)
		fail_with(&err, "allocate a region");
	CHECK_EQ(vb_region_len(region), len);
	return region;
}

struct vb_grant *grant_well(struct vb_region *region, size_t offset, size_t len, unsigned rights)
{
	struct vb_error err;
	struct vb_grant *grant;

	if (vb_grant(region, offset, len, rights, &grant, &err) != 0)
		fail_with(&err, "grant");
	return grant;
}

struct vb_grant *grant_and_tell(struct vb_channel *ch, struct vb_region *region, size_t offset,
				size_t len, unsigned rights)
{
	struct vb_grant *grant = grant_well(region, offset, len, rights);

	send_well(ch, vb_grant_token(grant), sizeof(struct vb_token));
	return grant;
}

uint32_t notice_well(struct vb_channel *ch)
{
	struct vb_error err;
	uint32_t number;

	if (vb_notice_wait(ch, &number, &err) != 0)
		fail_with(&err, "wait for a notice");
	return number;
}

/* ---- The peer ---- */

struct vb_token token_well(struct vb_channel *ch)
{
	struct vb_token token;
	const void *message;

	CHECK_EQ(recv_well(ch, &message), sizeof(token));
	memcpy(&token, message, sizeof(token));
	return token;
}

void put_well(struct vb_channel *ch, const struct vb_token *token, uint64_t offset,
	      const void *data, size_t len)
{
	struct vb_error err;

	if (vb_put(ch, token, offset, data, len, &err) != 0)
		fail_with(&err, "put");
}

void get_well(struct vb_channel *ch, const struct vb_token *token, uint64_t offset, void *data,
	      size_t len)
{
	struct vb_error err;

	if (vb_get(ch, token, offset, data, len, &err) != 0)
		fail_with(&err, "get");
}

/* Until the connection is gone; returns why. */
int await_end(struct vb_channel *ch)
{
	const void *message;
	struct vb_error err;
	ssize_t n;

	while ((n = vb_channel_recv(ch, &message, &err)) >= 0)
		;
	return (int)n;
}
