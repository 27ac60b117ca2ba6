/* SPDX-License-Identifier: Apache-2.0 */
/* Writing: small writes are put together in an open block; large ones wait to be fetched. */
#include <string.h>

#include "stream/stream_state.h"

/* Up to this a copy is cheaper than waiting until the memory has been sent. */
#define COPY_MAX (16u << 10)

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Data leaves some room for words. */
static bool has_room(struct vb_stream *s)
{
	return vb__channel_room(s->channel) > VB__STREAM_RESERVE;
}

static int check_memory(const void *data, size_t len, struct vb_error *err)
{
	if (data || !len)
		return 0;
	return vb__fail_invalid(err, "write", "there is a length but no address");
}

static int check_open(struct vb_stream *s, struct vb_error *err)
{
	if (s->failure.code)
		return vb__fail_again(err, &s->failure);
	return s->send_failure.code ? vb__fail_again(err, &s->send_failure) : 0;
}

/*
 * The word stands in the loan behind `len` bytes, or behind memory that goes before it. Here and below, what
 * fails is in s->send_failure.
 */
static int64_t send_data(struct vb_stream *s, const struct vb__loan *loan, size_t len,
			 const struct iovec *before, bool asks)
{
	struct vb__stream_word word = {
		.kind = VB__STREAM_DATA,
		.asks = asks,
		.offset = s->out.sent,
		.length = before ? before->iov_len : len,
	};
	int64_t ticket;

	vb__stream_word_encode(loan->data + len, &word);
	ticket = vb__channel_try_send_loan(s->channel, loan, len + VB__STREAM_WORD, before,
					   &s->send_failure);
	if (ticket > 0)
		s->out.sent += word.length;
	return ticket;
}

int vb__stream_push(struct vb_stream *s, bool asks)
{
	int64_t rc;

	if (!s->out.filled)
		return 0;
	if (s->send_failure.code)
		return s->send_failure.code;
	if (!has_room(s)) {
		rc = vb__channel_check_open(s->channel, &s->send_failure);
		return rc ? (int)rc : VB_ERR_AGAIN;
	}
	rc = send_data(s, &s->out.block, s->out.filled, NULL, asks);
	if (rc == VB_ERR_AGAIN)
		return VB_ERR_AGAIN;
	s->out.open = false;
	if (rc < 0)
		return (int)rc;
	s->out.filled = 0;
	s->due &= ~(unsigned)VB__DUE_FLUSH;
	if (asks)
		s->out.asked_at = s->out.sent;
	return 0;
}

static bool is_full(const struct vb_stream *s)
{
	return s->out.filled == s->block_bytes;
}

static int open_block(struct vb_stream *s)
{
	int rc = 0;

	if (!s->out.open)
		rc = vb__channel_try_borrow(s->channel, &s->out.block, &s->send_failure);
	s->out.open = rc == 0;
	return rc;
}

bool vb__stream_can_write(struct vb_stream *s)
{
	return (s->out.open && !is_full(s)) || has_room(s);
}

/* Returns how much was taken, 0 if there is no room, or a failure. */
static ssize_t copy_into_block(struct vb_stream *s, const uint8_t *data, size_t len)
{
	size_t n;
	int rc = is_full(s) ? vb__stream_push(s, false) : 0;

	if (rc == 0)
		rc = open_block(s);
	if (rc)
		return rc == VB_ERR_AGAIN ? 0 : rc;
	n = smaller(len, s->block_bytes - s->out.filled);
	memcpy(s->out.block.data + s->out.filled, data, n);
	s->out.filled += n;
	if (is_full(s) && vb__stream_push(s, false) == VB_ERR_AGAIN)
		s->due |= VB__DUE_FLUSH;
	return (ssize_t)n;
}

/* Likewise, straight from the application's memory: to be waited for. */
static ssize_t send_from_memory(struct vb_stream *s, const uint8_t *data, size_t len)
{
	struct iovec piece = { .iov_base = (void *)data, .iov_len = smaller(len, s->block_bytes) };
	struct vb__loan loan;
	int64_t rc;

	if (!has_room(s))
		return vb__channel_check_open(s->channel, &s->send_failure);
	rc = vb__channel_try_borrow(s->channel, &loan, &s->send_failure);
	if (rc)
		return rc == VB_ERR_AGAIN ? 0 : (ssize_t)rc;
	rc = send_data(s, &loan, 0, &piece, false);
	if (rc == VB_ERR_AGAIN) {
		vb__channel_give_back_unsent(s->channel, &loan);
		return 0;
	}
	if (rc < 0)
		return (ssize_t)rc;
	s->out.ticket = rc;
	return (ssize_t)piece.iov_len;
}

struct writing {
	const struct vb__call *call;
	const uint8_t *data;
	size_t len, done;
	struct vb_region *region; /* of all of it, once it is placed */
	bool unready;		  /* it cannot be placed */
};

static ssize_t send_eagerly(struct vb_stream *s, const struct writing *w, size_t len)
{
	const uint8_t *data = w->data + w->done;

	if (w->call->blocking && !s->out.filled && len > COPY_MAX &&
	    vb__channel_sends_any_memory(s->channel))
		return send_from_memory(s, data, len);
	return copy_into_block(s, data, len);
}

/* Whether it can go straight to where the peer wants it. */
static bool can_place(struct vb_stream *s, struct writing *w)
{
	if (s->out.target.to <= s->out.sent || w->unready)
		return false;
	if (!w->region)
		w->unready = !vb__stream_ready_memory(s, w->data, w->len, &w->region);
	return !w->unready;
}

/* The reader decides how a large write goes: it says where to place it, or asks for parts of it. */
static ssize_t send_as_asked(struct vb_stream *s, struct writing *w)
{
	struct vb__outgoing *out = &s->out;
	size_t left = w->len - w->done;
	uint64_t wanted;
	int rc = vb__stream_push(s, false);

	if (rc)
		return rc == VB_ERR_AGAIN ? 0 : rc;
	if (can_place(s, w))
		return vb__stream_place(s, w->data + w->done, left);
	wanted = out->pulled_to > out->target.to ? out->pulled_to : out->target.to;
	if (wanted > out->sent) {
		s->due |= VB__DUE_FLUSH;
		return send_eagerly(s, w, smaller(left, wanted - out->sent));
	}
	if (out->ready_to <= out->sent) {
		out->ready_at = out->sent + left;
		s->due |= VB__DUE_READY;
		vb__stream_say_due(s);
	}
	return 0;
}

/* Some of what is left of it, as above. */
static ssize_t send_some(struct vb_stream *s, struct writing *w)
{
	size_t left = w->len - w->done;

	if (s->due & VB__DUE_PLACED)
		return 0; /* nothing may overtake that */
	if (w->call->blocking && (left >= s->direct_bytes || s->out.ready_to > s->out.sent))
		return send_as_asked(s, w);
	return send_eagerly(s, w, left);
}

static int go_on_writing(struct vb_stream *s, void *arg, struct vb_error *err)
{
	struct writing *w = arg;
	ssize_t n;

	while (w->done < w->len) {
		n = check_open(s, NULL);
		if (n == 0)
			n = send_some(s, w);
		if (n < 0)
			return check_open(s, err);
		if (n == 0)
			return w->done && !w->call->blocking ? 0 : VB_ERR_AGAIN;
		w->done += (size_t)n;
		s->out.written += (uint64_t)n;
		s->counters.bytes_written += (uint64_t)n;
	}
	return 0;
}

static int go_on_flushing(struct vb_stream *s, void *arg, struct vb_error *err)
{
	int rc = vb__stream_push(s, false);

	(void)arg;
	if (rc && rc != VB_ERR_AGAIN)
		return check_open(s, err);
	return s->due & VB__DUE_PLACED ? VB_ERR_AGAIN : rc;
}

/* Until the peer has read as far as `arg` says. */
static int go_on_syncing(struct vb_stream *s, void *arg, struct vb_error *err)
{
	const uint64_t *goal = arg;
	int rc;

	vb__ledger_look(s);
	if (s->out.synced_to >= *goal || (s->out.peer_left && s->out.peer_read >= *goal))
		return 0;
	rc = check_open(s, err);
	if (rc)
		return rc;
	if (s->out.asked_at < *goal) {
		s->due |= VB__DUE_SYNC;
		vb__stream_say_due(s);
		vb__ledger_look(s);
	}
	return VB_ERR_AGAIN;
}

/* Large writes do not stay behind, nor does anything while an answer is waited for. */
static bool goes_at_once(const struct vb_stream *s, size_t len)
{
	return s->reader_waits || len >= s->block_bytes || len >= s->direct_bytes;
}

/* The application's memory is its own again. Lock held, given away meanwhile. */
static int await_memory(struct vb_stream *s, struct vb_region *region, struct vb_error *err)
{
	int64_t ticket = s->out.ticket, access = s->out.access;
	struct vb_error second;
	int rc = 0;

	if (!ticket && !access && !region)
		return 0;
	vb__error_clear(&second);
	s->out.ticket = s->out.access = 0;
	pthread_mutex_unlock(&s->lock);
	if (ticket)
		rc = vb_channel_wait(s->channel, ticket, err);
	if (access && vb_access_wait(s->channel, access, &second) != 0 && rc == 0)
		rc = vb__fail_again(err, &second);
	vb_region_close(region);
	pthread_mutex_lock(&s->lock);
	return rc;
}

/* Lock held. What a small write can do without. */
static int finish_write(struct vb_stream *s, struct vb__call *call, const struct writing *w, int rc,
			struct vb_error *err)
{
	struct vb_error late;
	int late_rc;

	vb__error_clear(&late);
	if (rc == 0 && w->len && goes_at_once(s, w->len))
		rc = vb__stream_until(s, call, go_on_flushing, NULL, err);
	late_rc = await_memory(s, w->region, &late);
	return rc ? rc : late_rc ? vb__fail_again(err, &late) : 0;
}

int vb_stream_write(struct vb_stream *s, const void *data, size_t len, struct vb_error *err)
{
	struct vb__call call = { .wish = VB__WISH_WRITE, .blocking = true };
	struct writing w = { .call = &call, .data = data, .len = len };
	bool flows = len >= s->direct_bytes;
	int rc;

	vb__error_clear(err);
	rc = check_memory(data, len, err);
	if (rc)
		return rc;
	if (flows)
		vb__channel_begin_flow(s->channel);
	pthread_mutex_lock(&s->lock);
	rc = vb__stream_until(s, &call, go_on_writing, &w, err);
	if (len > COPY_MAX || goes_at_once(s, len))
		rc = finish_write(s, &call, &w, rc, err);
	vb__stream_leave(s);
	pthread_mutex_unlock(&s->lock);
	if (flows)
		vb__channel_end_flow(s->channel);
	return rc;
}

ssize_t vb_stream_try_write(struct vb_stream *s, const void *data, size_t len, struct vb_error *err)
{
	struct vb__call call = { .wish = VB__WISH_WRITE };
	struct writing w = { .call = &call, .data = data, .len = len };
	int rc;

	vb__error_clear(err);
	rc = check_memory(data, len, err);
	if (rc)
		return rc;
	pthread_mutex_lock(&s->lock);
	rc = vb__stream_until(s, &call, go_on_writing, &w, err);
	if (rc == 0 && goes_at_once(s, w.done)) {
		s->due |= VB__DUE_FLUSH;
		vb__stream_say_due(s);
	}
	vb__stream_leave(s);
	pthread_mutex_unlock(&s->lock);
	return rc ? rc : (ssize_t)w.done;
}

static int flush(struct vb_stream *s, bool blocking, struct vb_error *err)
{
	struct vb__call call = { .wish = VB__WISH_FLUSH, .blocking = blocking };
	int rc;

	vb__error_clear(err);
	pthread_mutex_lock(&s->lock);
	rc = vb__stream_until(s, &call, go_on_flushing, NULL, err);
	vb__stream_leave(s);
	pthread_mutex_unlock(&s->lock);
	return rc;
}

int vb_stream_flush(struct vb_stream *s, struct vb_error *err)
{
	return flush(s, true, err);
}

int vb_stream_try_flush(struct vb_stream *s, struct vb_error *err)
{
	return flush(s, false, err);
}

static int sync_all(struct vb_stream *s, bool blocking, struct vb_error *err)
{
	struct vb__call call = { .wish = VB__WISH_SYNC, .blocking = blocking };
	uint64_t goal;
	int rc;

	vb__error_clear(err);
	pthread_mutex_lock(&s->lock);
	goal = s->out.written;
	if (s->send_failure.code)
		vb__stream_attend(s, &call); /* the peer may have said that it had read all */
	rc = vb__stream_until(s, &call, go_on_syncing, &goal, err);
	if (rc == 0) /* what it found may have come before it asked again */
		s->due &= ~(unsigned)VB__DUE_SYNC;
	vb__stream_leave(s);
	pthread_mutex_unlock(&s->lock);
	return rc;
}

int vb_stream_sync(struct vb_stream *s, struct vb_error *err)
{
	return sync_all(s, true, err);
}

int vb_stream_try_sync(struct vb_stream *s, struct vb_error *err)
{
	return sync_all(s, false, err);
}
