/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a stream hears and says: the one place where messages are taken from
 * the channel, whichever thread waits and whatever for; the words that are due; and the
 * waiting itself.
 */
#include <string.h>

#include "stream/stream_state.h"

void vb__stream_violated(struct vb_stream *s, const char *how)
{
	vb__fail(&s->failure, &(struct vb__failure){
				      .code = VB_ERR_PROTOCOL,
				      .operation = "receive from",
				      .object = vb_channel_peer(s->channel),
				      .cause = how,
				      .hint = "the peer runs a broken or foreign program",
			      });
	vb__channel_cancel(s->channel, &s->failure);
}

/* ---- Hearing ---- */

/* It asked when the ledger had told it, and looks there. */
static bool knows_by_itself(const struct vb_stream *s, const struct vb__stream_word *word)
{
	return !word->length && s->in.received <= s->in.settled && !(s->due & VB__DUE_LEDGER);
}

/* True if the loan was kept. */
static bool on_data(struct vb_stream *s, const struct vb__stream_word *word,
		    const struct vb__loan *loan)
{
	struct vb__incoming *in = &s->in;

	if (word->offset != in->received) {
		vb__stream_violated(s, "data came out of order");
		return false;
	}
	in->received += word->length;
	if (word->asks && !knows_by_itself(s, word))
		in->asked_at = in->received;
	if (!word->length || s->closing)
		return false;
	vb__arrivals_add(&in->arrivals, loan, word->offset, (size_t)word->length);
	return true;
}

static void on_synced(struct vb_stream *s, uint64_t to)
{
	if (to <= s->out.answered_to || to > s->out.asked_at) {
		vb__stream_violated(s, "what was not asked for was confirmed");
		return;
	}
	s->out.answered_to = to;
	if (to > s->out.synced_to)
		s->out.synced_to = to;
}

static void on_ready(struct vb_stream *s, const struct vb__stream_word *word)
{
	if (word->offset != s->in.received || s->in.ready_to > s->in.received)
		vb__stream_violated(s, "data was announced out of order");
	else
		s->in.ready_to = word->offset + word->length;
	s->in.is_placed = true;
}

static void on_pull(struct vb_stream *s, const struct vb__stream_word *word)
{
	uint64_t to = word->offset + word->length;

	if (word->offset > s->out.sent || to > s->out.ready_to || to <= s->out.pulled_to)
		vb__stream_violated(s, "what was not announced was asked for");
	else
		s->out.pulled_to = to;
}

static void on_bye(struct vb_stream *s, uint64_t read)
{
	if (s->out.peer_left || read > s->out.sent) {
		vb__stream_violated(s, "it took leave twice, or of what it never had");
		return;
	}
	s->out.peer_left = true;
	s->out.peer_read = read;
	vb__fail(&s->send_failure, &(struct vb__failure){
					   .code = VB_ERR_CLOSED,
					   .operation = "write to",
					   .object = vb_channel_peer(s->channel),
					   .cause = "the peer has closed the stream",
				   });
}

/* True if the loan was kept. */
static bool on_word(struct vb_stream *s, const struct vb__loan *loan)
{
	struct vb__stream_word word;

	if (!vb__stream_word_decode(&word, loan->data, loan->bytes)) {
		vb__stream_violated(s, "a word of a stream makes no sense");
		return false;
	}
	switch (word.kind) {
	case VB__STREAM_DATA:
		return on_data(s, &word, loan);
	case VB__STREAM_SYNCED:
		on_synced(s, word.offset);
		break;
	case VB__STREAM_READY:
		on_ready(s, &word);
		break;
	case VB__STREAM_PULL:
		on_pull(s, &word);
		break;
	case VB__STREAM_BYE:
		on_bye(s, word.offset);
		break;
	case VB__STREAM_WANT:
		vb__stream_on_want(s, &word, loan->data);
		break;
	case VB__STREAM_PLACED:
		vb__stream_on_placed(s, &word);
		break;
	case VB__STREAM_LEDGER:
		vb__stream_on_ledger(s, loan->data);
		break;
	}
	return false;
}

static void take_in(struct vb_stream *s)
{
	struct vb_error err;
	struct vb__loan loan;
	int rc = 0;

	vb__error_clear(&err);
	while (!s->failure.code && (rc = vb__channel_try_recv_loan(s->channel, &loan, &err)) == 0)
		if (!on_word(s, &loan))
			vb__channel_give_back(s->channel, &loan);
	if (rc == VB_ERR_EOF)
		s->in.ended = true;
	else if (rc && rc != VB_ERR_AGAIN)
		vb__fail_again(&s->failure, &err);
}

/* ---- Saying ---- */

/* 0, VB_ERR_AGAIN or a failure. */
static int say(struct vb_stream *s, const struct vb__stream_word *word)
{
	struct vb__loan loan = { .data = NULL };
	size_t before = 0;
	int64_t rc;

	if (vb__channel_room(s->channel))
		rc = vb__channel_try_borrow(s->channel, &loan, &s->send_failure);
	else
		rc = vb__channel_check_open(s->channel, &s->send_failure);
	if (rc || !loan.data)
		return rc ? (int)rc : VB_ERR_AGAIN;
	if (word->kind == VB__STREAM_WANT || word->kind == VB__STREAM_LEDGER) {
		before = VB__STREAM_TOKEN;
		memcpy(loan.data,
		       word->kind == VB__STREAM_WANT ? s->in.want.token.bytes
						     : s->ledger.ours.bytes,
		       before);
	}
	vb__stream_word_encode(loan.data + before, word);
	rc = vb__channel_try_send_loan(s->channel, &loan, before + VB__STREAM_WORD, NULL,
				       &s->send_failure);
	if (rc == VB_ERR_AGAIN)
		vb__channel_give_back_unsent(s->channel, &loan);
	return rc < 0 ? (int)rc : 0;
}

static struct vb__stream_word word_for(const struct vb_stream *s, enum vb__due due)
{
	const struct vb__incoming *in = &s->in;

	switch (due) {
	case VB__DUE_LEDGER:
		return (struct vb__stream_word){ .kind = VB__STREAM_LEDGER };
	case VB__DUE_BYE:
		return (struct vb__stream_word){ .kind = VB__STREAM_BYE, .offset = in->consumed };
	case VB__DUE_SYNCED:
		return (struct vb__stream_word){ .kind = VB__STREAM_SYNCED,
						 .offset = in->asked_at };
	case VB__DUE_PULL:
		return (struct vb__stream_word){ .kind = VB__STREAM_PULL,
						 .offset = in->received,
						 .length = in->pulled_to - in->received };
	case VB__DUE_WANT:
		return (struct vb__stream_word){ .kind = VB__STREAM_WANT,
						 .offset = in->want.from,
						 .length = in->want.to - in->want.from };
	case VB__DUE_PLACED:
		return (struct vb__stream_word){ .kind = VB__STREAM_PLACED,
						 .offset = s->out.placed_from,
						 .length = s->out.sent - s->out.placed_from };
	case VB__DUE_READY:
		return (struct vb__stream_word){ .kind = VB__STREAM_READY,
						 .offset = s->out.sent,
						 .length = s->out.ready_at - s->out.sent };
	default:
		return (struct vb__stream_word){ .kind = VB__STREAM_DATA,
						 .asks = true,
						 .offset = s->out.sent };
	}
}

static void note_said(struct vb_stream *s, enum vb__due due)
{
	if (due == VB__DUE_SYNCED)
		s->in.answered_at = s->in.asked_at;
	if (due == VB__DUE_READY)
		s->out.ready_to = s->out.ready_at;
	if (due == VB__DUE_SYNC) {
		s->out.asked_at = s->out.sent;
		s->ledger.due = true;
	}
}

/* A block that the application's bytes wait in may carry the question along. */
static int say_one(struct vb_stream *s, enum vb__due due)
{
	struct vb__stream_word word = word_for(s, due);
	bool block = due == VB__DUE_FLUSH || (due == VB__DUE_SYNC && s->out.filled);
	int rc;

	if (block)
		return vb__stream_push(s, due == VB__DUE_SYNC);
	if (due == VB__DUE_PULL && s->in.pulled_to <= s->in.received)
		return 0; /* it came without */
	if (due == VB__DUE_READY && s->out.ready_at <= s->out.sent)
		return 0; /* it went without */
	rc = say(s, &word);
	if (rc == 0)
		note_said(s, due);
	return rc;
}

void vb__stream_pull(struct vb_stream *s, uint64_t most)
{
	struct vb__incoming *in = &s->in;
	uint64_t waits = in->ready_to - in->received;

	if (in->ready_to <= in->received || in->pulled_to > in->received || !most)
		return;
	in->pulled_to = in->received + (waits < most ? waits : most);
	s->due |= VB__DUE_PULL;
	vb__stream_say_due(s);
}

void vb__stream_say_due(struct vb_stream *s)
{
	int rc;

	if (vb__stream_owes_answer(s) && s->in.consumed >= s->in.asked_at && !s->closing)
		s->due |= VB__DUE_SYNCED;
	else
		s->due &= ~(
			unsigned)VB__DUE_SYNCED; /* above all if it has asked again since, further on */
	for (unsigned due = VB__DUE_LEDGER; due <= VB__DUE_FLUSH && s->due; due <<= 1) {
		if (!(s->due & due))
			continue;
		rc = say_one(s, due);
		if (rc != VB_ERR_AGAIN)
			s->due &= ~due;
		else if (due == VB__DUE_PLACED)
			break; /* nothing may overtake that */
	}
}

void vb__stream_leave(struct vb_stream *s)
{
	if (s->due && !s->failure.code)
		vb__channel_leave(s->channel, true);
}

/* ---- Waiting ---- */

void vb__stream_attend(struct vb_stream *s, struct vb__call *call)
{
	call->seen = vb__channel_changes(s->channel);
	take_in(s);
	if (s->ledger.look)
		vb__ledger_look(s);
	vb__stream_say_due(s);
}

static void wait_for_change(struct vb_stream *s, const struct vb__call *call)
{
	bool reads = call->wish == VB__WISH_READ, to_send = !reads || s->due;

	s->awaiting += !reads;
	s->reader_waits |= reads;
	pthread_mutex_unlock(&s->lock);
	vb__channel_await_change(s->channel, call->seen, to_send);
	pthread_mutex_lock(&s->lock);
	if (reads)
		s->reader_waits = false;
	s->awaiting -= !reads;
}

static bool is_met(struct vb_stream *s, enum vb__wish wish)
{
	switch (wish) {
	case VB__WISH_READ:
		return vb__stream_has_some(s) || s->in.ended;
	case VB__WISH_WRITE:
		return vb__stream_can_write(s);
	case VB__WISH_SYNC:
		return s->out.synced_to == s->out.written;
	default:
		return !s->out.filled;
	}
}

/* What this call took in may be what another one was told to wait for. */
static void tell_others(struct vb_stream *s, unsigned asking)
{
	for (unsigned wish = VB__WISH_READ; wish <= VB__WISH_FLUSH; wish <<= 1)
		if (wish != asking && (s->unmet & wish) &&
		    (s->failure.code || s->send_failure.code || is_met(s, wish))) {
			vb__channel_wake_loop(s->channel);
			return;
		}
}

bool vb__stream_look(void *arg)
{
	struct vb_stream *s = arg;
	struct vb__call call;
	bool more;

	pthread_mutex_lock(&s->lock);
	vb__stream_attend(s, &call);
	if (s->unmet)
		tell_others(s, 0);
	more = s->due;
	pthread_mutex_unlock(&s->lock);
	return more;
}

/* After attend had no luck: waits, 0; or VB_ERR_AGAIN for those who cannot. */
static int stall(struct vb_stream *s, const struct vb__call *call)
{
	bool to_send = call->wish != VB__WISH_READ || s->due;

	if (call->blocking) {
		if (call->wish != VB__WISH_READ)
			vb__stream_make_way(s, call->wish);
		wait_for_change(s, call);
		return 0;
	}
	if (!vb__channel_is_quiet(s->channel, call->seen, to_send))
		return 0;
	s->unmet |= call->wish;
	return VB_ERR_AGAIN;
}

int vb__stream_until(struct vb_stream *s, struct vb__call *call, vb__stream_step step, void *arg,
		     struct vb_error *err)
{
	bool attended = false, was_unmet = s->unmet & call->wish;
	int rc;

	s->unmet &= ~call->wish;
	while ((rc = step(s, arg, err)) == VB_ERR_AGAIN) {
		if (attended && stall(s, call) != 0)
			break;
		vb__stream_attend(s, call);
		attended = true;
	}
	if (was_unmet && rc != VB_ERR_AGAIN && !(s->unmet & ~VB__WISH_READ) && !s->due)
		vb__channel_unwatch(s->channel, !s->unmet);
	if (attended && s->unmet)
		tell_others(s, call->wish);
	return rc;
}
