/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Grants: the peer's rights on a part of our memory. By a memory window where
 * the device has them, which is cheap to give and to take; else by a
 * registration of just that part.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "channel/channel_state.h"
#include "channel/inside.h"
#include "core/clock.h"
#include "wire/token.h"

struct vb_grant {
	struct vb_grant *next; /* of its region */
	struct vb_region *region;
	struct vb__window *window; /* one of the two */
	struct vb__mr *mr;
	struct vb_token token;
};

_Static_assert(sizeof(struct vb_token) == VB__TOKEN_LENGTH, "a token is what the wire has");

static unsigned access_of(unsigned rights)
{
	return (rights & VB_RIGHT_READ ? VB__ACCESS_REMOTE_READ : 0) |
	       (rights & VB_RIGHT_WRITE ? VB__ACCESS_REMOTE_WRITE : 0) |
	       (rights & VB_RIGHT_ATOMIC ? VB__ACCESS_REMOTE_ATOMIC : 0);
}

int vb__fail_no_atomics(const struct vb_channel *ch, struct vb_error *err)
{
	char cause[128];

	snprintf(cause, sizeof(cause), "not supported by %s over %s", ch->ep->device,
		 ch->ep->fabric->name);
	return vb__fail(err, &(struct vb__failure){ .code = VB_ERR_UNSUPPORTED,
						    .operation = "atomics with",
						    .object = ch->ep->peer,
						    .cause = cause });
}

static int check(const struct vb_region *region, size_t offset, size_t len, unsigned rights,
		 struct vb_error *err)
{
	if (offset > region->len || len > region->len - offset)
		return vb__fail_invalid(err, "grant", "it reaches beyond the region");
	if (!len)
		return vb__fail_invalid(err, "grant", "it is empty");
	if (!rights || rights & ~(unsigned)(VB_RIGHT_READ | VB_RIGHT_WRITE | VB_RIGHT_ATOMIC))
		return vb__fail_invalid(err, "grant", "there are no such rights");
	if (rights & VB_RIGHT_ATOMIC && !(region->channel->ep->caps & VB__CAP_ATOMIC))
		return vb__fail_no_atomics(region->channel, err);
	return 0;
}

/* Lock held, as in all that follows. */
static int bind_window(struct vb_grant *g, struct vb__sge memory, unsigned access,
		       struct vb_error *err)
{
	struct vb_channel *ch = g->region->channel;
	struct vb__op op = { .kind = VB__OP_BIND, .sge = &memory, .sge_count = 1, .access = access };
	int64_t handle;
	int rc = vb__window_open(ch->ep, &g->window, err);

	if (rc)
		return rc;
	op.window = g->window;
	handle = vb__access_start(ch, &op, err);
	return handle < 0 ? (int)handle : vb__access_finish(ch, handle, err);
}

static int give(struct vb_grant *g, size_t offset, size_t len, unsigned rights,
		struct vb_error *err)
{
	struct vb_region *region = g->region;
	struct vb__ep *ep = region->channel->ep;
	uint8_t *addr = region->addr + offset;
	struct vb__token_fields fields = { .rights = rights, .len = len };
	int rc;

	if (region->channel->failure.code)
		return vb__fail_again(err, &region->channel->failure);
	if (ep->caps & VB__CAP_WINDOW) {
		rc = bind_window(g, (struct vb__sge){ .addr = addr, .len = len, .mr = region->mr },
				 access_of(rights), err);
		fields.addr = (uintptr_t)addr;
		fields.key = g->window ? g->window->remote_key : 0;
	} else {
		rc = vb__mr_open(ep, addr, len, access_of(rights), &g->mr, err);
		fields.addr = g->mr ? g->mr->remote_addr : 0;
		fields.key = g->mr ? g->mr->remote_key : 0;
	}
	vb__token_encode(g->token.bytes, &fields);
	return rc;
}

/* The rights end here, if they have not. */
static void take(struct vb_grant *g)
{
	vb__window_close(g->window);
	vb__mr_close(g->mr);
	g->window = NULL;
	g->mr = NULL;
}

void vb__grant_free(struct vb_grant *g)
{
	struct vb_grant **at;

	for (at = &g->region->grants; *at != g; at = &(*at)->next)
		;
	*at = g->next;
	free(g);
}

static int attend(struct vb_channel *ch, struct vb_error *err)
{
	int errnum = ch->ep->caps & VB__CAP_ATTENDED ? vb__flusher_attend(ch) : 0;

	return errnum ? vb__fail_errno(err, errnum, "pthread_create", "for the peer's accesses")
		      : 0;
}

int vb_grant(struct vb_region *region, size_t offset, size_t len, unsigned rights,
	     struct vb_grant **out, struct vb_error *err)
{
	struct vb_channel *ch = region->channel;
	struct vb_grant *g;
	int rc;

	vb__error_clear(err);
	rc = check(region, offset, len, rights, err);
	if (rc)
		return rc;
	g = calloc(1, sizeof(*g));
	if (!g)
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	vb__channel_lock(ch);
	*g = (struct vb_grant){ .region = region, .next = region->grants };
	region->grants = g;
	rc = attend(ch, err);
	if (rc == 0)
		rc = give(g, offset, len, rights, err);
	if (rc) {
		take(g);
		vb__grant_free(g);
	} else {
		*out = g;
	}
	vb__channel_unlock(ch);
	return rc;
}

const struct vb_token *vb_grant_token(const struct vb_grant *g)
{
	return &g->token;
}

static void fail_unanswered(struct vb_channel *ch)
{
	vb__channel_fail(ch,
			 &(struct vb__failure){
				 .code = VB_ERR_LOST,
				 .operation = "take memory back from",
				 .object = ch->ep->peer,
				 .cause = "it does not say that its accesses are over, and they "
					  "can be stopped by ending the connection only",
				 .hint = "is its program stopped (SIGSTOP, a debugger)?",
			 });
}

/*
 * Where the provider moves the bytes, one access may have begun, and goes on though the key is gone. A peer that has
 * ever accessed memory polls ever after: an empty write is answered in order behind that one. If it is not, the
 * memory is safe only without the connection.
 */
static void await_begun(struct vb_channel *ch)
{
	uint64_t deadline = vb__now_ns() + vb__ms(ch->settings.peer_timeout_ms);
	struct vb__op op = { .kind = VB__OP_WRITE };
	const struct vb__accesses *a = &ch->accesses;
	int64_t handle = 0;

	vb__channel_progress(ch); /* an announcement comes before the access */
	if (!ch->peer_accesses)
		return;
	while (!ch->failure.code && (!handle || a->done < handle)) {
		if (!handle && a->posted - a->done < a->limit)
			handle = vb__access_start(ch, &op, NULL);
		else if (vb__now_ns() < deadline)
			vb__channel_wait_until(ch, VB__NEWS_SENT, deadline);
		else
			fail_unanswered(ch);
	}
}

void vb_revoke(struct vb_grant *g)
{
	struct vb_channel *ch;
	struct vb__op op = { .kind = VB__OP_UNBIND };
	int64_t handle;

	if (!g)
		return;
	ch = g->region->channel;
	vb__channel_lock(ch);
	op.window = g->window;
	/* If it fails the connection is down, and the rights with it. */
	if (g->window && (handle = vb__access_start(ch, &op, NULL)) > 0)
		vb__access_finish(ch, handle, NULL);
	take(g);
	if (ch->ep->caps & VB__CAP_ATTENDED)
		await_begun(ch);
	vb__grant_free(g);
	vb__channel_unlock(ch);
}
