/* SPDX-License-Identifier: Apache-2.0 */
/* Reading: what has arrived, then what it takes to get more. */
#include "stream/stream_state.h"

/* How many blocks of what waits at the peer are asked for at a time. */
#define BLOCKS_PER_PULL 4u

struct reading {
	const struct vb__call *call;
	uint8_t *data;
	size_t len, done;
};

/* It does not come by itself: it may wait at the peer to be fetched. */
static void ask(struct vb_stream *s, const struct reading *r)
{
	size_t left = r->len - r->done;

	if (s->in.want.open)
		return;
	if (r->call->blocking && left >= s->direct_bytes && s->in.is_placed &&
	    vb__stream_want(s, r->data + r->done, left))
		return;
	vb__stream_pull(s, BLOCKS_PER_PULL * s->block_bytes);
}

static int go_on_reading(struct vb_stream *s, void *arg, struct vb_error *err)
{
	struct reading *r = arg;

	r->done += vb__stream_take(s, r->data + r->done, r->len - r->done);
	if (r->done == r->len || (r->done && !r->call->blocking))
		return 0;
	if (s->in.ended)
		return 0;
	if (s->failure.code)
		return vb__fail_again(err, &s->failure);
	ask(s, r);
	vb__stream_say_due(s); /* the peer may wait to hear that so much was read */
	return VB_ERR_AGAIN;
}

/* All that has come was read, and the peer will not be told of it anyway. */
static bool may_be_asked(const struct vb_stream *s)
{
	return s->in.consumed == s->in.received && s->in.asked_at < s->in.consumed;
}

/* What was read stands in the ledger. Who asked before that could see it is waiting for an answer. */
static int go_on_leaving(struct vb_stream *s, void *arg, struct vb_error *err)
{
	bool *listened = arg;

	(void)err;
	if (!*listened && s->ledger.region && may_be_asked(s)) {
		vb__channel_listen(s->channel);
		*listened = true;
		return VB_ERR_AGAIN; /* to look at it */
	}
	if (*listened)
		s->in.settled = s->in.consumed;
	vb__stream_say_due(s);
	return 0;
}

/* For the peer to hear of while nobody is in a call here: it looks it up, or a thread is there to tell. */
static void tell_read(struct vb_stream *s, struct vb__call *call)
{
	bool listened = false;

	if (s->ledger.region)
		vb__ledger_note(s);
	if (s->ledger.region || vb__stream_owes_answer(s) || s->due)
		vb__stream_until(s, call, go_on_leaving, &listened, NULL);
	if (!s->ledger.region)
		vb__channel_leave(s->channel, false);
}

static ssize_t read_some(struct vb_stream *s, void *data, size_t len, bool blocking,
			 struct vb_error *err)
{
	struct vb__call call = { .wish = VB__WISH_READ, .blocking = blocking };
	struct reading r = { .call = &call, .data = data, .len = len };
	int rc;

	vb__error_clear(err);
	if (!len)
		return 0;
	if (!data)
		return vb__fail_invalid(err, "read", "there is a length but no address");
	pthread_mutex_lock(&s->lock);
	s->reading = true;
	if (s->out.filled) {
		s->due |= VB__DUE_FLUSH;
		vb__stream_say_due(s);
	}
	rc = vb__stream_until(s, &call, go_on_reading, &r, err);
	vb__stream_unwant(s);
	if (rc == 0)
		tell_read(s, &call);
	vb__stream_leave(s);
	s->reading = false;
	if (s->awaiting)
		vb__channel_poke(s->channel); /* it may be its turn to make way */
	pthread_mutex_unlock(&s->lock);
	return rc ? rc : (ssize_t)r.done;
}

ssize_t vb_stream_read(struct vb_stream *s, void *data, size_t len, struct vb_error *err)
{
	return read_some(s, data, len, true, err);
}

ssize_t vb_stream_try_read(struct vb_stream *s, void *data, size_t len, struct vb_error *err)
{
	return read_some(s, data, len, false, err);
}
