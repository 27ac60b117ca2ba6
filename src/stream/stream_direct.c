/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Straight from the writer's memory into the reader's: the reader says where
 * it wants what comes next (WANT), the writer places it there and says so (PLACED).
 * Memory is registered for one call, or kept registered if the application says so.
 */
#include <errno.h>
#include <stdlib.h>

#include "stream/stream_state.h"

_Static_assert(sizeof(struct vb_token) == VB__STREAM_TOKEN, "a token is what the wire has");

static struct vb__kept *find_kept(const struct vb_stream *s, const void *data, size_t len)
{
	const uint8_t *addr = data;

	for (struct vb__kept *k = s->kept; k; k = k->next)
		if (addr >= k->addr && len <= k->len && (size_t)(addr - k->addr) <= k->len - len)
			return k;
	return NULL;
}

/* ---- The reader ---- */

static int grant(struct vb_stream *s, const struct vb__kept *kept, uint8_t *data, size_t len)
{
	struct vb__want *want = &s->in.want;
	int rc = vb_grant(kept->region, (size_t)(data - kept->addr), len, VB_RIGHT_WRITE,
			  &want->grant, NULL);

	if (rc == 0)
		want->token = *vb_grant_token(want->grant);
	s->counters.registrations_saved += rc == 0;
	return rc;
}

/* All of it, from the first time on until it is forgotten. */
static int expose_kept(struct vb_stream *s, struct vb__kept *kept, uint8_t *data, size_t len)
{
	int rc = 0;

	if (kept->exposed)
		s->counters.registrations_saved++;
	else
		rc = vb__channel_expose(s->channel, kept->addr, kept->len, VB_RIGHT_WRITE,
					&kept->exposed, NULL);
	if (rc == 0)
		vb__exposure_token(kept->exposed, data, len, VB_RIGHT_WRITE, &s->in.want.token);
	return rc;
}

static int expose(struct vb_stream *s, uint8_t *data, size_t len)
{
	struct vb__want *want = &s->in.want;
	int rc = vb__channel_expose(s->channel, data, len, VB_RIGHT_WRITE, &want->exposed, NULL);

	if (rc == 0)
		vb__exposure_token(want->exposed, data, len, VB_RIGHT_WRITE, &want->token);
	return rc;
}

bool vb__stream_want(struct vb_stream *s, void *data, size_t len)
{
	struct vb__kept *kept = find_kept(s, data, len);
	struct vb__want *want = &s->in.want;
	int rc;

	if (!kept)
		rc = expose(s, data, len);
	else if (vb__channel_has_windows(s->channel))
		rc = grant(s, kept, data, len);
	else
		rc = expose_kept(s, kept, data, len);
	if (rc)
		return false;
	want->open = true;
	want->used = false;
	want->from = s->in.consumed;
	want->to = want->from + len;
	vb__channel_begin_flow(s->channel);
	s->due |= VB__DUE_WANT;
	vb__stream_say_due(s);
	return true;
}

void vb__stream_unwant(struct vb_stream *s)
{
	struct vb__want *want = &s->in.want;

	if (!want->open)
		return;
	s->due &= ~(unsigned)VB__DUE_WANT;
	vb__channel_end_flow(s->channel);
	/* If it writes small again, the next one would be in vain. */
	s->in.is_placed = want->used;
	if (want->exposed)
		vb__channel_cover(s->channel, want->exposed);
	vb_revoke(want->grant);
	*want = (struct vb__want){ .open = false };
}

void vb__stream_on_placed(struct vb_stream *s, const struct vb__stream_word *word)
{
	struct vb__want *want = &s->in.want;

	if (!want->open || s->due & VB__DUE_WANT || word->offset != s->in.received ||
	    word->offset > want->to || word->length > want->to - word->offset) {
		vb__stream_violated(s, "more was placed than was wanted");
		return;
	}
	s->in.received += word->length;
	want->used = true;
}

/* ---- The writer ---- */

void vb__stream_on_want(struct vb_stream *s, const struct vb__stream_word *word,
			const uint8_t token[VB__STREAM_TOKEN])
{
	struct vb__target *target = &s->out.target;

	if (word->offset < target->to || word->offset > s->out.sent) {
		vb__stream_violated(s, "what it wants is out of order");
		return;
	}
	target->from = word->offset;
	target->to = word->offset + word->length;
	for (unsigned i = 0; i < VB__STREAM_TOKEN; i++)
		target->token.bytes[i] = token[i];
}

bool vb__stream_ready_memory(struct vb_stream *s, const void *data, size_t len,
			     struct vb_region **region)
{
	if (vb__channel_sends_any_memory(s->channel))
		return true;
	if (!find_kept(s, data, len))
		return vb__region_open_source(s->channel, data, len, region, NULL) == 0;
	s->counters.registrations_saved++;
	return true;
}

ssize_t vb__stream_place(struct vb_stream *s, const void *data, size_t len)
{
	struct vb__outgoing *out = &s->out;
	uint64_t wanted = out->target.to - out->sent, room = vb__access_room(s->channel);
	uint64_t most = wanted < room ? wanted : room;
	struct iovec piece = { .iov_base = (void *)data, .iov_len = len < most ? len : most };
	struct vb_access access = {
		.kind = VB_PUT,
		.token = &out->target.token,
		.offset = out->sent - out->target.from,
		.pieces = &piece,
		.count = 1,
	};
	int64_t handle;

	if (!room)
		return 0;
	handle = vb__access_post(s->channel, &access, 1, true, &s->send_failure);
	if (handle == VB_ERR_INVALID || handle == VB_ERR_REMOTE_ACCESS)
		vb__stream_violated(s, "where it wants data there is no place for it");
	if (handle < 0)
		return (ssize_t)handle;
	out->access = handle;
	out->placed_from = out->sent;
	out->sent += piece.iov_len;
	s->counters.direct_written += piece.iov_len;
	s->due |= VB__DUE_PLACED;
	vb__stream_say_due(s);
	return (ssize_t)piece.iov_len;
}

/* ---- Kept memory ---- */

int vb_stream_keep(struct vb_stream *s, void *data, size_t len, struct vb_error *err)
{
	struct vb__kept *kept = calloc(1, sizeof(*kept));
	int rc;

	vb__error_clear(err);
	if (!kept)
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	rc = vb_region_open(s->channel, data, len, &kept->region, err);
	if (rc) {
		free(kept);
		return rc;
	}
	kept->addr = data;
	kept->len = len;
	pthread_mutex_lock(&s->lock);
	kept->next = s->kept;
	s->kept = kept;
	pthread_mutex_unlock(&s->lock);
	return 0;
}

void vb_stream_forget(struct vb_stream *s, void *data)
{
	struct vb__kept **at, *kept;

	pthread_mutex_lock(&s->lock);
	for (at = &s->kept; *at && (*at)->addr != data; at = &(*at)->next)
		;
	kept = *at;
	if (kept)
		*at = kept->next;
	pthread_mutex_unlock(&s->lock);
	if (kept) {
		vb__channel_cover(s->channel, kept->exposed);
		vb_region_close(kept->region);
	}
	free(kept);
}

void vb__stream_free_kept(struct vb_stream *s)
{
	struct vb__kept *kept;

	while ((kept = s->kept)) {
		s->kept = kept->next;
		free(kept);
	}
}
