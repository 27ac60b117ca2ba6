/* SPDX-License-Identifier: Apache-2.0 */
/* One-sided memory: both sides grant, and access what the other one granted. */
#include <string.h>

#include "lives.h"

/* On a huge page, where there is one. */
#define REGION (2u << 20)
#define BYTES 5000u

static bool exchange(struct side *side, struct vb_channel *ch, const struct vb_token *ours,
		     struct vb_token *theirs)
{
	const void *message;
	struct vb_error err;
	ssize_t n;

	if (!goes_on(side, vb_channel_send(ch, ours, sizeof(*ours), &err), &err))
		return false;
	n = vb_channel_recv(ch, &message, &err);
	if (!goes_on(side, n < 0 ? (int)n : 0, &err) ||
	    !expects(side, n == sizeof(*theirs), "no token"))
		return false;
	memcpy(theirs, message, sizeof(*theirs));
	return true;
}

static bool post(struct side *side, struct vb_channel *ch, const struct vb_token *token, void *data)
{
	struct iovec piece = { .iov_base = data, .iov_len = BYTES };
	struct vb_access access = { .kind = VB_PUT, .token = token, .pieces = &piece, .count = 1 };
	struct vb_error err;
	int64_t handle = vb_access_post(ch, &access, 1, &err);

	return goes_on(side, handle < 0 ? (int)handle : 0, &err) &&
	       goes_on(side, vb_access_wait(ch, handle, &err), &err);
}

static bool access_all(struct side *side, struct vb_channel *ch, const struct vb_token *token)
{
	uint8_t data[BYTES], back[BYTES] = { 0 };
	struct vb_region *region;
	struct vb_error err;
	bool well;

	memset(data, 7, sizeof(data));
	if (!goes_on(side, vb_region_open(ch, data, sizeof(data), &region, &err), &err))
		return false;
	well = post(side, ch, token, data) &&
	       goes_on(side, vb_get(ch, token, 0, back, BYTES, &err), &err) &&
	       expects(side, memcmp(data, back, BYTES) == 0, "other bytes") &&
	       goes_on(side, vb_put(ch, token, BYTES, back, BYTES, &err), &err) &&
	       goes_on(side, vb_put_notify(ch, token, 2 * BYTES, data, BYTES, 42, &err), &err);
	vb_region_close(region);
	return well;
}

static bool look(struct side *side, struct vb_channel *ch, const uint8_t *memory)
{
	uint32_t number = 0;
	struct vb_error err;

	return goes_on(side, vb_notice_wait(ch, &number, &err), &err) &&
	       expects(side, number == 42 && memory[0] == 7 && memory[3 * BYTES - 1] == 7,
		       "another notice, or other bytes");
}

static void share(struct side *side, struct vb_channel *ch)
{
	struct vb_region *region = NULL;
	struct vb_grant *grant = NULL;
	struct vb_token theirs;
	struct vb_error err;
	unsigned rights = VB_RIGHT_READ | VB_RIGHT_WRITE;

	if (goes_on(side, vb_region_alloc(ch, REGION, &region, &err), &err) &&
	    goes_on(side, vb_grant(region, 0, REGION, rights, &grant, &err), &err) &&
	    exchange(side, ch, vb_grant_token(grant), &theirs) && access_all(side, ch, &theirs) &&
	    look(side, ch, vb_region_addr(region)) && goes_on(side, vb_channel_fd(ch, &err), &err))
		vb_revoke(grant);
	vb_region_close(region); /* and what was not revoked */
	begins_to_end(side);
	if (side->rc)
		vb_channel_abort(ch);
	else
		goes_on(side, vb_channel_close(ch, &err), &err);
}

static void victim_accepts(struct side *side)
{
	struct vb_listener *listener;
	struct vb_channel *ch;
	struct vb_error err;

	if (!goes_on(side, vb_listener_open("127.0.0.1", "0", &life_options, &listener, &err),
		     &err))
		return;
	now_listening(side, vb_listener_port(listener));
	if (goes_on(side, vb_listener_accept(listener, &ch, &err), &err))
		share(side, ch);
	vb_listener_close(listener);
}

static void peer_connects(struct side *side)
{
	struct vb_channel *ch;
	char port[8];

	if (!port_there(side, port))
		return;
	while (vb_channel_connect("127.0.0.1", port, &life_options, &ch, NULL) != 0)
		if (!try_again(side))
			return;
	share(side, ch);
}

static void victim_connects(struct side *side)
{
	struct vb_channel *ch;
	struct vb_error err;
	char port[8];

	if (port_there(side, port) &&
	    goes_on(side, vb_channel_connect("127.0.0.1", port, &life_options, &ch, &err), &err))
		share(side, ch);
}

static void peer_accepts(struct side *side)
{
	struct vb_listener *listener;
	struct vb_channel *ch;
	struct vb_error err;
	int rc;

	if (!goes_on(side, vb_listener_open("127.0.0.1", "0", &life_options, &listener, &err),
		     &err))
		return;
	now_listening(side, vb_listener_port(listener));
	do
		rc = vb_listener_try_accept(listener, &ch, &err);
	while (rc == VB_ERR_AGAIN && !nobody_came(side, vb_listener_fd(listener)));
	if (rc == 0)
		share(side, ch);
	vb_listener_close(listener);
}

const struct life memory_lives[2] = {
	{ .name = "channel that accepts", .victim = victim_accepts, .peer = peer_connects },
	{ .name = "channel that connects", .victim = victim_connects, .peer = peer_accepts },
};
