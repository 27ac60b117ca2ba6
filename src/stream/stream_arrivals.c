/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What has arrived and was not read yet: in the channel's buffers, as long as
 * these last. When both sides are only writing they do not last: then the side
 * that accepted copies it into memory of its own, up to a limit.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stream/stream_state.h"

struct vb__spilled {
	struct vb__spilled *next;
	size_t at, len;
	uint8_t bytes[];
};

int vb__arrivals_open(struct vb__arrivals *a, unsigned size, struct vb_error *err)
{
	*a = (struct vb__arrivals){ .size = size };
	a->ring = calloc(size, sizeof(*a->ring));
	return a->ring ? 0 : vb__fail_errno(err, ENOMEM, "calloc", NULL);
}

void vb__arrivals_close(struct vb__arrivals *a)
{
	free(a->ring);
	a->ring = NULL;
}

void vb__arrivals_add(struct vb__arrivals *a, const struct vb__loan *loan, uint64_t offset,
		      size_t len)
{
	a->ring[(a->first + a->count++) % a->size] =
		(struct vb__arrived){ .loan = *loan, .offset = offset, .len = len };
}

static struct vb__arrived *first_arrived(struct vb__arrivals *a)
{
	return &a->ring[a->first];
}

static void give_back_first(struct vb_stream *s)
{
	struct vb__arrivals *a = &s->in.arrivals;

	vb__channel_give_back(s->channel, &first_arrived(a)->loan);
	a->first = (a->first + 1) % a->size;
	a->count--;
}

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

static void free_first_spilled(struct vb__spill *spill)
{
	struct vb__spilled *first = spill->first;

	spill->bytes -= sizeof(*first) + first->len - first->at;
	spill->first = first->next;
	if (!spill->first)
		spill->last = &spill->first;
	free(first);
}

static size_t take_spilled(struct vb__spill *spill, uint8_t *to, size_t len)
{
	struct vb__spilled *first = spill->first;
	size_t n = smaller(len, first->len - first->at);

	memcpy(to, first->bytes + first->at, n);
	first->at += n;
	spill->bytes -= n;
	if (first->at == first->len)
		free_first_spilled(spill);
	return n;
}

static size_t take_arrived(struct vb_stream *s, uint8_t *to, size_t len)
{
	struct vb__arrived *first = first_arrived(&s->in.arrivals);
	size_t at = (size_t)(s->in.consumed - first->offset);
	size_t n = smaller(len, first->len - at);

	memcpy(to, first->loan.data + at, n);
	if (at + n == first->len)
		give_back_first(s);
	return n;
}

/* Bytes that lie in the reader's memory already. */
static uint64_t placed(struct vb__incoming *in)
{
	uint64_t next = in->arrivals.count ? first_arrived(&in->arrivals)->offset : in->received;

	return !in->spill.first && next > in->consumed ? next - in->consumed : 0;
}

bool vb__stream_has_some(const struct vb_stream *s)
{
	return s->in.received != s->in.consumed;
}

size_t vb__stream_take(struct vb_stream *s, uint8_t *to, size_t len)
{
	size_t done = 0, n;

	while (done < len && vb__stream_has_some(s)) {
		n = smaller(len - done, placed(&s->in));
		if (n)
			s->counters.direct_read += n;
		else if (s->in.spill.first)
			n = take_spilled(&s->in.spill, to + done, len - done);
		else
			n = take_arrived(s, to + done, len - done);
		s->in.consumed += n;
		done += n;
	}
	s->counters.bytes_read += done;
	return done;
}

/* False if there is no memory for it. */
static bool spill_first(struct vb_stream *s)
{
	const struct vb__arrived *first = first_arrived(&s->in.arrivals);
	uint64_t from = first->offset;
	struct vb__spill *spill = &s->in.spill;
	struct vb__spilled *copy;
	size_t at = 0, len, room;

	if (!spill->first)
		at = (size_t)(s->in.consumed - from); /* a part of it may have been read */
	len = first->len - at;
	room = sizeof(*copy) + len;
	copy = room > len ? malloc(room) : NULL;
	if (!copy)
		return false;
	copy->next = NULL;
	copy->at = 0;
	copy->len = len;
	memcpy(copy->bytes, first->loan.data + at, len);
	*spill->last = copy;
	spill->last = &copy->next;
	spill->bytes += sizeof(*copy) + copy->len; /* a peer may send one by one */
	give_back_first(s);
	return true;
}

static uint64_t spill_room(const struct vb_stream *s)
{
	return s->spill_bytes > s->in.spill.bytes ? s->spill_bytes - s->in.spill.bytes : 0;
}

/* The peer has no room left to send more data. */
static bool peer_is_stuck(const struct vb_stream *s)
{
	return s->in.arrivals.count + VB__STREAM_RESERVE >= s->in.arrivals.size;
}

static bool fits_first(struct vb_stream *s)
{
	return sizeof(struct vb__spilled) + first_arrived(&s->in.arrivals)->len <= spill_room(s);
}

/*
 * Whether the peer will read before it has written all is for its program to know: a wait
 * without end cannot be told from one that is just long.
 */
static void warn_of_limit(struct vb_stream *s)
{
	bool waits = s->in.ready_to > s->in.received && !spill_room(s);

	if (s->warned || !(waits || peer_is_stuck(s)))
		return;
	s->warned = true;
	vb__log(&s->log, VB_LOG_WARNING,
		"%s writes more than spill_bytes while this side writes and nobody here reads: if it "
		"does not read either, both wait for ever",
		vb_channel_peer(s->channel));
}

void vb__stream_make_way(struct vb_stream *s, enum vb__wish waits_for)
{
	if (s->reading || (!s->accepted && waits_for != VB__WISH_SYNC))
		return;
	if (peer_is_stuck(s))
		while (s->in.arrivals.count && fits_first(s) && spill_first(s))
			;
	warn_of_limit(s);
	vb__stream_pull(s, spill_room(s));
}

void vb__stream_drop(struct vb_stream *s)
{
	while (s->in.spill.first)
		free_first_spilled(&s->in.spill);
	while (s->in.arrivals.count)
		give_back_first(s);
}
