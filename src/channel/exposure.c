/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that the peer may use until it is covered again: registered once, for
 * a call or for longer. A region and a grant in it would be registered twice where
 * there are no memory windows, and wait for all that was posted.
 */
#include "channel/channel_state.h"
#include "channel/inside.h"
#include "wire/token.h"

int vb__channel_expose(struct vb_channel *ch, void *addr, size_t len, unsigned right,
		       struct vb__mr **mr, struct vb_error *err)
{
	unsigned access = right == VB_RIGHT_READ ? VB__ACCESS_REMOTE_READ : VB__ACCESS_REMOTE_WRITE;
	int rc;

	vb__channel_lock(ch);
	rc = ch->failure.code ? vb__fail_again(err, &ch->failure)
			      : vb__mr_open(ch->ep, addr, len, access, mr, err);
	vb__channel_unlock(ch);
	return rc;
}

void vb__exposure_token(const struct vb__mr *mr, const void *addr, size_t len, unsigned right,
			struct vb_token *token)
{
	struct vb__token_fields fields = {
		.rights = right,
		.addr = mr->remote_addr + (uint64_t)((const uint8_t *)addr - (uint8_t *)mr->addr),
		.key = mr->remote_key,
		.len = len,
	};

	vb__token_encode(token->bytes, &fields);
}

void vb__channel_cover(struct vb_channel *ch, struct vb__mr *mr)
{
	vb__channel_lock(ch);
	vb__mr_close(mr);
	vb__channel_unlock(ch);
}

bool vb__channel_has_windows(const struct vb_channel *ch)
{
	return ch->ep->caps & VB__CAP_WINDOW;
}

uint64_t vb__channel_registrations(struct vb_channel *ch)
{
	uint64_t count;

	vb__channel_lock(ch);
	count = ch->ep->registrations;
	vb__channel_unlock(ch);
	return count;
}
