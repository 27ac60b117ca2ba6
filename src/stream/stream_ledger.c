/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far the application has read stands in the ledger, memory that the peer may read by itself. A question that comes
 * while nobody is in a call here stays unheard, but the peer looks there right behind it. And a read
 * that ends notes first how far it came, and then listens once more: so of a read and a question one always meets
 * the other.
 */
#include <endian.h>
#include <stdatomic.h>

#include "stream/stream_state.h"

struct cells {
	/* Of ours, for the peer. Twice, the second one first: somebody may copy it while it changes, byte by byte. */
	_Atomic uint64_t read[2];
	/* Of the peer's, as it was found. */
	_Atomic uint64_t found[2];
};

static struct cells *cells_of(const struct vb_stream *s)
{
	return vb_region_addr(s->ledger.region);
}

int vb__ledger_open(struct vb_stream *s, struct vb_error *err)
{
	const size_t len = sizeof(((struct cells *)NULL)->read);
	struct vb__ledger *l = &s->ledger;
	struct vb_region *region;
	struct vb__mr *mr;
	void *page;
	int rc = vb_region_alloc(s->channel, sizeof(struct cells), &region, err);

	if (rc)
		return rc;
	page = vb_region_addr(region);
	rc = vb__channel_expose(s->channel, page, len, VB_RIGHT_READ, &mr, err);
	if (rc)
		return rc;
	l->region = region;
	vb__exposure_token(mr, page, len, VB_RIGHT_READ, &l->ours);
	s->due |= VB__DUE_LEDGER;
	vb__stream_say_due(s);
	return 0;
}

void vb__ledger_note(struct vb_stream *s)
{
	struct cells *cells = cells_of(s);
	uint64_t to = htole64(s->in.consumed);

	atomic_store_explicit(&cells->read[1], to, memory_order_relaxed);
	atomic_store_explicit(&cells->read[0], to, memory_order_release);
	atomic_thread_fence(memory_order_seq_cst); /* before any listening that follows */
}

void vb__stream_on_ledger(struct vb_stream *s, const uint8_t token[VB__STREAM_TOKEN])
{
	struct vb__ledger *l = &s->ledger;
	struct vb_token t;
	unsigned rights;
	uint64_t len;

	for (unsigned i = 0; i < VB__STREAM_TOKEN; i++)
		t.bytes[i] = token[i];
	if (vb__channel_is_attended(s->channel) || l->known ||
	    vb_token_read(&t, &len, &rights, NULL) != 0 || !(rights & VB_RIGHT_READ) ||
	    len != sizeof(((struct cells *)NULL)->read)) {
		vb__stream_violated(s, "a ledger that makes no sense");
		return;
	}
	l->theirs = t;
	l->known = true;
}

static void post_look(struct vb_stream *s)
{
	struct vb__ledger *l = &s->ledger;
	struct cells *cells = cells_of(s);
	struct iovec piece = { .iov_base = (void *)cells->found, .iov_len = sizeof(cells->found) };
	struct vb_access access = {
		.kind = VB_GET, .token = &l->theirs, .pieces = &piece, .count = 1
	};
	int64_t handle = vb__access_post(s->channel, &access, 1, true, NULL);

	/* If it could not be, the connection is down, and that will be told. */
	l->look = handle > 0 ? handle : 0;
	l->due = false;
}

static void judge_look(struct vb_stream *s)
{
	struct cells *cells = cells_of(s);
	uint64_t found = atomic_load(&cells->found[0]), to = le64toh(found);

	s->ledger.look = 0;
	if (found != atomic_load(&cells->found[1]))
		s->ledger.due = true; /* it was just changing */
	else if (to > s->out.sent)
		vb__stream_violated(s, "it has read more than was sent");
	else if (to > s->out.synced_to)
		s->out.synced_to = to;
}

void vb__ledger_look(struct vb_stream *s)
{
	struct vb__ledger *l = &s->ledger;

	if (l->look && vb__access_is_done(s->channel, l->look))
		judge_look(s);
	if (l->due && l->known && l->region && !l->look && vb__access_room(s->channel))
		post_look(s);
}
