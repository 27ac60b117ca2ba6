/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that the peer may write for the time of one call: registered for just
 * that, once. A region and a grant in it would be registered twice where there
 * are no memory windows, and wait for all that was posted.
 */
#include "channel/channel_state.h"
#include "channel/inside.h"
#include "wire/token.h"

int vb__channel_expose(struct vb_channel *ch, void *addr, size_t len, struct vb_token *token,
		       struct vb__mr **mr, struct vb_error *err)
{
	struct vb__token_fields fields = { .rights = VB_RIGHT_WRITE, .len = len };
	int rc;

	vb__channel_lock(ch);
	rc = ch->failure.code ? vb__fail_again(err, &ch->failure)
			      : vb__mr_open(ch->ep, addr, len, VB__ACCESS_REMOTE_WRITE, mr, err);
	if (rc == 0) {
		fields.addr = (*mr)->remote_addr;
		fields.key = (*mr)->remote_key;
		vb__token_encode(token->bytes, &fields);
	}
	vb__channel_unlock(ch);
	return rc;
}

void vb__channel_cover(struct vb_channel *ch, struct vb__mr *mr)
{
	vb__channel_lock(ch);
	vb__mr_close(mr);
	vb__channel_unlock(ch);
}
