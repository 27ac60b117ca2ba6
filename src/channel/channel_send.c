/* SPDX-License-Identifier: Apache-2.0 */
/* Sending messages: copied, put together, or straight from the user's memory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "channel/channel_state.h"

/*
 * Of memory that is in no region: up to this a copy is cheaper than waiting until the buffer has been
 * sent (`./dev bench ofi verbs`). Whoever made a region of it has asked for no copy.
 */
#define COPY_MAX (16u << 10)

/* Where posting is slow, messages up to this are put together, into packets up to that. */
#define TOGETHER_MAX 2048u
#define OUTBOX_BYTES (32u << 10)

/* What is being sent, and how. */
struct message {
	const struct iovec *pieces;
	int count;
	size_t len;
	bool blocking;
	bool keep; /* the caller lends its buffers until the ticket is done */
};

static int measure(struct vb_channel *ch, struct message *m, struct vb_error *err)
{
	size_t len = 0;

	if (m->count < 0 || (m->count && !m->pieces))
		return vb__fail_invalid(err, "send", "no pieces were given");
	for (int i = 0; i < m->count; i++) {
		if (m->pieces[i].iov_len && !m->pieces[i].iov_base)
			return vb__fail_invalid(err, "send", "a piece has a length but no address");
		if (__builtin_add_overflow(len, m->pieces[i].iov_len, &len))
			return vb__fail_invalid(err, "send", "the pieces' lengths overflow");
	}
	m->len = len;
	if (len <= ch->max_message)
		return 0;
	vb__fail(err, &(struct vb__failure){ .code = VB_ERR_TOO_BIG,
					     .operation = "send to",
					     .object = ch->ep->peer,
					     .cause = "the message is over the agreed limit" });
	vb__error_hint(err,
		       "%zu bytes, the limit is %u: raise max_message_bytes at both ends, or "
		       "send in parts",
		       len, ch->max_message);
	return VB_ERR_TOO_BIG;
}

int vb__channel_check_peer_open(struct vb_channel *ch, struct vb_error *err)
{
	if (ch->peer_closing)
		return vb__fail(err, &(struct vb__failure){
					     .code = VB_ERR_CLOSED,
					     .operation = "send to",
					     .object = ch->ep->peer,
					     .cause = "the peer has closed the channel",
					     .hint = "look there why: it wants no more",
				     });
	return ch->failure.code ? vb__fail_again(err, &ch->failure) : 0;
}

static int check_open(struct vb_channel *ch, struct vb_error *err)
{
	if (ch->ending)
		return vb__fail_invalid(err, "send", "after the channel was finished");
	return vb__channel_check_peer_open(ch, err);
}

static void copy_pieces(uint8_t *to, const struct message *m)
{
	for (int i = 0; i < m->count; i++) {
		if (!m->pieces[i].iov_len)
			continue;
		memcpy(to, m->pieces[i].iov_base, m->pieces[i].iov_len);
		to += m->pieces[i].iov_len;
	}
}

/* The user's memory as it is, if the fabric can take it from there. Returns how many pieces. */
static int lend(const struct vb_channel *ch, const struct message *m, struct vb__sge *sge)
{
	bool anywhere = ch->ep->caps & VB__CAP_ANY_BUFFER;
	int n = 0;

	if (m->count > (int)ch->ep->sge - 1)
		return -1;
	for (int i = 0; i < m->count; i++) {
		const struct iovec *piece = &m->pieces[i];
		const struct vb_region *region = NULL;

		if (!piece->iov_len)
			continue;
		if (!anywhere && !(region = vb__region_find(ch, piece)))
			return -1;
		sge[n++] = (struct vb__sge){
			.addr = piece->iov_base,
			.len = piece->iov_len,
			.mr = region ? region->mr : NULL,
		};
	}
	return n;
}

static void append(struct vb_channel *ch, const struct message *m)
{
	struct vb__slot *slot = ch->outbox.slot;

	copy_pieces(vb__frame_begin(slot->bytes + slot->filled, m->len), m);
	ch->counters.bytes_copied += m->len;
	slot->filled += vb__frame_room(m->len);
	ch->outbox.messages++;
}

static size_t outbox_room(const struct vb_channel *ch)
{
	return ch->max_message < OUTBOX_BYTES ? ch->max_message : OUTBOX_BYTES;
}

/* True if the message was put together with others. */
static bool put_together(struct vb_channel *ch, const struct message *m)
{
	struct vb__outbox *out = &ch->outbox;
	size_t room = vb__frame_room(m->len);

	if (m->len > TOGETHER_MAX || room > outbox_room(ch))
		return false;
	if (out->slot) {
		if (out->slot->filled + room > outbox_room(ch))
			return false;
		append(ch, m);
		return true;
	}
	/* A lone message does not wait: only when the peer is behind is there company. */
	if (!(ch->ep->caps & VB__CAP_SLOW_POST) ||
	    vb__credits_used(&ch->credits) < vb__credits_half(&ch->credits))
		return false;
	if (vb__flusher_ready(ch) != 0)
		return false;
	out->slot = vb__slot_take(&ch->tx);
	if (!out->slot)
		return false;
	append(ch, m);
	vb__flusher_wake(ch);
	return true;
}

/* For as long as it takes until a buffer has been sent. */
static bool may_wait(const struct vb_channel *ch, const struct message *m)
{
	return m->blocking && !ch->timeout_ms;
}

static bool is_in_regions(const struct vb_channel *ch, const struct message *m)
{
	for (int i = 0; i < m->count; i++)
		if (m->pieces[i].iov_len && !vb__region_find(ch, &m->pieces[i]))
			return false;
	return true;
}

/* Is it copied although it could go from where it is? In regions only if it is small: it may be inline, or travel together. */
static bool is_rather_copied(const struct vb_channel *ch, const struct message *m)
{
	bool together = !m->keep && ch->ep->caps & VB__CAP_SLOW_POST;

	if (m->len <= (together ? TOGETHER_MAX : ch->ep->inline_bytes))
		return true;
	if (m->keep)
		return false;
	return !may_wait(ch, m) || (m->len <= COPY_MAX && !is_in_regions(ch, m));
}

/* Sends the message as a packet of its own. Lent is set if its buffers are still in use. */
static int send_alone(struct vb_channel *ch, const struct message *m, bool *lent)
{
	struct vb__slot *slot = vb__slot_take(&ch->tx);
	struct vb__packet packet = { .kind = VB__PACKET_DATA, .messages = 1 };
	struct vb__sge sge[VB__SGE_MAX];
	int n = -1;

	*lent = false;
	if (!is_rather_copied(ch, m))
		n = lend(ch, m, sge);
	if (n < 0) {
		copy_pieces(slot->bytes, m);
		ch->counters.bytes_copied += m->len;
		slot->filled = m->len;
		n = 0;
	} else {
		*lent = n > 0;
	}
	return vb__packet_post(ch, slot, packet, sge, (unsigned)n);
}

static bool has_room(const struct vb_channel *ch)
{
	return ch->credits.held && ch->tx.free && !ch->outbox.slot;
}

/* The news that a message without room waits for. */
static unsigned missing(const struct vb_channel *ch)
{
	return ch->credits.held ? VB__NEWS_SENT : VB__NEWS_ROOM;
}

/* Lock held. The ticket is 0 if the buffers are free already. */
static int send_message(struct vb_channel *ch, const struct message *m, int64_t *ticket,
			struct vb_error *err)
{
	uint64_t deadline = vb__channel_patience(ch, m->blocking);
	bool stalled = false, lent = false;
	int rc;

	for (;;) {
		rc = check_open(ch, err);
		if (rc == 0)
			rc = vb__channel_open_sends(ch, err);
		if (rc)
			return rc;
		if (put_together(ch, m))
			break;
		vb__outbox_push(ch);
		if (put_together(ch, m)) /* in the next one */
			break;
		if (has_room(ch)) {
			rc = send_alone(ch, m, &lent);
			if (rc)
				return vb__fail_again(err, &ch->failure);
			break;
		}
		if (!stalled && !ch->credits.held)
			ch->counters.credit_stalls++;
		stalled = true;
		rc = vb__channel_await(ch, missing(ch), deadline, "send to", err);
		if (rc)
			return rc;
	}
	if (!m->blocking)
		vb__loop_looks(ch, VB__NEWS_ROOM); /* that was what the loop waited for */
	ch->counters.messages_sent++;
	ch->counters.bytes_sent += m->len;
	*ticket = lent ? ch->posted : 0;
	return 0;
}

int vb__channel_wait_ticket(struct vb_channel *ch, int64_t ticket, uint64_t deadline_ns,
			    struct vb_error *err)
{
	unsigned news = deadline_ns == VB__NOT_AT_ALL ? VB__NEWS_TICKET : VB__NEWS_SENT;
	int rc;

	/* After a failure as well: what is posted comes back flushed. */
	while (ch->done < ticket && (!ch->failure.code || ch->ep->outstanding)) {
		rc = vb__channel_await(ch, news, deadline_ns, "wait for what was sent to", err);
		if (rc)
			return rc;
	}
	return ch->done_well >= ticket ? 0 : vb__fail_again(err, &ch->failure);
}

/* All of it; returns a ticket, or an error. */
static int64_t send_or_post(struct vb_channel *ch, struct message *m, struct vb_error *err)
{
	int64_t ticket = 0;
	int rc;

	vb__error_clear(err);
	rc = measure(ch, m, err);
	if (rc)
		return rc;
	vb__channel_lock(ch);
	rc = send_message(ch, m, &ticket, err);
	if (rc == 0 && ticket && !m->keep)
		rc = vb__channel_wait_ticket(ch, ticket, UINT64_MAX, err);
	if (rc == 0 && !ticket)
		ticket = ch->done;
	vb__channel_unlock(ch);
	return rc ? rc : ticket;
}

static int send_pieces(struct vb_channel *ch, const struct iovec *pieces, int count, bool blocking,
		       struct vb_error *err)
{
	struct message m = { .pieces = pieces, .count = count, .blocking = blocking };
	int64_t ticket = send_or_post(ch, &m, err);

	return ticket < 0 ? (int)ticket : 0;
}

static int64_t post_pieces(struct vb_channel *ch, const struct iovec *pieces, int count,
			   bool blocking, struct vb_error *err)
{
	struct message m = { .pieces = pieces, .count = count, .blocking = blocking, .keep = true };

	return send_or_post(ch, &m, err);
}

int vb_channel_send(struct vb_channel *ch, const void *message, size_t len, struct vb_error *err)
{
	struct iovec piece = { .iov_base = (void *)message, .iov_len = len };

	return send_pieces(ch, &piece, 1, true, err);
}

int vb_channel_sendv(struct vb_channel *ch, const struct iovec *pieces, int count,
		     struct vb_error *err)
{
	return send_pieces(ch, pieces, count, true, err);
}

int vb_channel_try_send(struct vb_channel *ch, const void *message, size_t len,
			struct vb_error *err)
{
	struct iovec piece = { .iov_base = (void *)message, .iov_len = len };

	return send_pieces(ch, &piece, 1, false, err);
}

int64_t vb_channel_post(struct vb_channel *ch, const struct iovec *pieces, int count,
			struct vb_error *err)
{
	return post_pieces(ch, pieces, count, true, err);
}

int64_t vb_channel_try_post(struct vb_channel *ch, const struct iovec *pieces, int count,
			    struct vb_error *err)
{
	return post_pieces(ch, pieces, count, false, err);
}

static int await_ticket(struct vb_channel *ch, int64_t ticket, bool blocking, struct vb_error *err)
{
	int rc;

	vb__error_clear(err);
	vb__channel_lock(ch);
	if (ticket < 0 || ticket > ch->posted)
		rc = vb__fail_invalid(err, "wait", "ticket %lld was never given",
				      (long long)ticket);
	else
		rc = vb__channel_wait_ticket(ch, ticket, vb__channel_patience(ch, blocking), err);
	if (!blocking && rc != VB_ERR_AGAIN)
		vb__loop_looks(ch, VB__NEWS_TICKET);
	vb__channel_unlock(ch);
	return rc;
}

int vb_channel_wait(struct vb_channel *ch, int64_t ticket, struct vb_error *err)
{
	return await_ticket(ch, ticket, true, err);
}

int vb_channel_try_wait(struct vb_channel *ch, int64_t ticket, struct vb_error *err)
{
	return await_ticket(ch, ticket, false, err);
}
