/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Datagrams over libfabric's udp provider: sending, receiving, asking who is
 * there. Whoever takes in what has come answers questions, and keeps the rest for
 * those that it is for.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "core/clock.h"
#include "fabric/ofi/ofi_dgram.h"

#define ASK_AGAIN_MS 100u
#define ROOM_MS 1
#define DATAGRAM_MAX 65536u

/* ---- Names ---- */

struct vb__envelope ofi_dg_envelope(const struct vb__address *at)
{
	const struct sockaddr_in *four = (const struct sockaddr_in *)&at->sa;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&at->sa;
	struct vb__envelope e = {
		.six = at->sa.ss_family == AF_INET6,
		.port = vb__address_port(at),
	};

	memcpy(e.address, e.six ? (const void *)&six->sin6_addr : (const void *)&four->sin_addr,
	       e.six ? 16 : 4);
	return e;
}

/* Whatever it holds, the name is that of data. */
static struct vb__origin origin_of(const struct vb__envelope *envelope)
{
	struct vb__envelope data = *envelope;
	struct vb__origin origin;

	data.kind = VB__ENVELOPE_DATA;
	vb__envelope_encode(origin.bytes, &data);
	return origin;
}

static void address_of(const struct vb__envelope *e, struct vb__address *at)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(e->port) };
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(e->port) };

	memcpy(&six.sin6_addr, e->address, 16);
	memcpy(&four.sin_addr, e->address, 4);
	vb__address_from(at, e->six ? (struct sockaddr *)&six : (struct sockaddr *)&four);
}

/* ---- Peers ---- */

static int make_peer(struct ofi_dg *dg, const struct vb__address *at, struct vb__dg_peer **out,
		     struct vb_error *err)
{
	struct ofi_dg_peer *peer = calloc(1, sizeof(*peer));
	int n;

	*out = NULL;
	if (!peer)
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	n = fi_av_insert(dg->av, &at->sa, 1, &peer->at, 0, NULL);
	if (n != 1) {
		free(peer);
		return ofi_fail(err, n < 0 ? n : FI_EINVAL, "fi_av_insert", at->text);
	}
	peer->base.dg = &dg->base;
	peer->base.max_bytes = dg->base.max_bytes;
	snprintf(peer->base.text, sizeof(peer->base.text), "%s", at->text);
	*out = &peer->base;
	return 0;
}

int ofi_dg_peer_of(struct vb__dg *base, const struct vb__origin *origin, struct vb__dg_peer **peer,
		   struct vb_error *err)
{
	struct vb__envelope envelope;
	struct vb__address at;

	if (!vb__envelope_decode(&envelope, origin->bytes, sizeof(origin->bytes)))
		return vb__fail_invalid(err, "answer", "that is nobody's name");
	address_of(&envelope, &at);
	return make_peer((struct ofi_dg *)base, &at, peer, err);
}

void ofi_dg_peer_close(struct vb__dg_peer *base)
{
	struct ofi_dg_peer *peer = (struct ofi_dg_peer *)base;
	struct ofi_dg *dg = (struct ofi_dg *)base->dg;

	ofi_note(&dg->log, fi_av_remove(dg->av, &peer->at, 1, 0), "fi_av_remove", base->text,
		 "its place is taken until the endpoint closes");
	free(peer);
}

/* ---- Sending ---- */

/* Small enough all of it, by the provider's own limit, to be copied at once. */
static long inject(struct ofi_dg *dg, enum vb__envelope_kind kind, fi_addr_t to, const void *head,
		   size_t head_len, const void *bytes, size_t len)
{
	struct vb__envelope envelope = dg->envelope;
	uint8_t whole[DATAGRAM_MAX];

	envelope.kind = kind;
	vb__envelope_encode(whole, &envelope);
	if (head_len)
		memcpy(whole + VB__ENVELOPE_BYTES, head, head_len);
	if (len)
		memcpy(whole + VB__ENVELOPE_BYTES + head_len, bytes, len);
	return fi_inject(dg->ep, whole, VB__ENVELOPE_BYTES + head_len + len, to);
}

int ofi_dg_send(struct vb__dg *base, struct vb__dg_peer *peer, const void *head, size_t head_len,
		const void *bytes, size_t len, struct vb_error *err)
{
	struct ofi_dg *dg = (struct ofi_dg *)base;
	long rc;

	if (base->down.code != VB_OK)
		return vb__fail_again(err, &base->down);
	rc = inject(dg, VB__ENVELOPE_DATA, ((struct ofi_dg_peer *)peer)->at, head, head_len, bytes,
		    len);
	if (rc == -FI_EAGAIN)
		return VB_ERR_AGAIN;
	return rc ? ofi_fail(err, rc, "fi_inject", peer->text) : 0;
}

/* ---- Receiving ---- */

static uint8_t *slot_at(const struct ofi_dg *dg, unsigned slot)
{
	return dg->memory + slot * dg->stride;
}

int ofi_dg_post_receive(struct ofi_dg *dg, unsigned slot)
{
	return (int)fi_recv(dg->ep, slot_at(dg, slot), dg->info->ep_attr->max_msg_size, NULL,
			    FI_ADDR_UNSPEC, slot_at(dg, slot));
}

static void fail_down(struct ofi_dg *dg, long rc, const char *operation)
{
	ofi_fail(&dg->base.down, rc, operation, dg->base.address);
	vb__waiter_wake(&dg->waiter);
}

void ofi_dg_give_back(struct vb__dg *base, unsigned slot)
{
	struct ofi_dg *dg = (struct ofi_dg *)base;
	int rc = ofi_dg_post_receive(dg, slot);

	if (rc)
		fail_down(dg, rc, "fi_recv");
}

/* A lost answer is asked for again, so nothing is to be done about one that cannot be sent. */
static void answer_question(struct ofi_dg *dg, const struct vb__envelope *asking)
{
	struct vb__dg_peer *peer;
	struct vb__address at;

	address_of(asking, &at);
	make_peer(dg, &at, &peer, NULL);
	if (!peer)
		return;
	inject(dg, VB__ENVELOPE_ANSWER, ((struct ofi_dg_peer *)peer)->at, dg->base.greeting,
	       sizeof(dg->base.greeting), NULL, 0);
	ofi_dg_peer_close(peer);
}

static void keep_answer(struct ofi_dg *dg, const struct vb__envelope *from, const uint8_t *greeting)
{
	struct vb__origin origin = origin_of(from);

	for (struct ofi_dg_question *q = dg->questions; q; q = q->next)
		if (!memcmp(&q->of, &origin, sizeof(origin))) {
			q->answered = true;
			memcpy(q->greeting, greeting, sizeof(q->greeting));
		}
}

/* True: it is data, and waits. */
static bool sort(struct ofi_dg *dg, unsigned slot, size_t len)
{
	const uint8_t *at = slot_at(dg, slot);
	bool greets = len >= VB__ENVELOPE_BYTES + VB__GREETING_BYTES;
	struct vb__envelope envelope;
	bool ours = vb__envelope_decode(&envelope, at, len);

	if (ours && envelope.kind == VB__ENVELOPE_DATA && dg->count < dg->base.receives) {
		dg->waiting[(dg->first + dg->count++) % dg->slots] =
			(struct ofi_dg_waiting){ .slot = slot, .len = len };
		return true;
	}
	if (ours && greets && envelope.kind == VB__ENVELOPE_QUESTION)
		answer_question(dg, &envelope);
	if (ours && greets && envelope.kind == VB__ENVELOPE_ANSWER)
		keep_answer(dg, &envelope, at + VB__ENVELOPE_BYTES);
	ofi_dg_give_back(&dg->base, slot);
	return false;
}

/*
 * Takes in what has come; true if there is data. When as much waits as may, the rest stays in the
 * kernel, unless an answer could be among it.
 */
static bool take_in(struct ofi_dg *dg, bool to_the_end)
{
	struct fi_cq_msg_entry entry;
	bool data = false;
	ssize_t n = 1;

	for (unsigned i = 0; n == 1 && i < dg->slots && dg->base.down.code == VB_OK; i++) {
		const uint8_t *at;

		if (dg->count == dg->base.receives && !to_the_end)
			break;
		n = fi_cq_read(dg->receives, &entry, 1);
		at = n == 1 ? entry.op_context : NULL;
		if (at)
			data |= sort(dg, (unsigned)((size_t)(at - dg->memory) / dg->stride),
				     entry.len);
	}
	if (n < 0 && n != -FI_EAGAIN)
		fail_down(dg, n, "fi_cq_read");
	return data;
}

int ofi_dg_receive(struct vb__dg *base, struct vb__dg_arrival *arrival)
{
	struct ofi_dg *dg = (struct ofi_dg *)base;
	const struct ofi_dg_waiting *w = &dg->waiting[dg->first];
	struct vb__envelope envelope;

	if (!dg->count)
		take_in(dg, false);
	if (base->down.code != VB_OK)
		return base->down.code;
	if (!dg->count)
		return 0;
	vb__envelope_decode(&envelope, slot_at(dg, w->slot), w->len);
	*arrival = (struct vb__dg_arrival){
		.bytes = slot_at(dg, w->slot) + VB__ENVELOPE_BYTES,
		.len = w->len - VB__ENVELOPE_BYTES,
		.from = origin_of(&envelope),
		.slot = w->slot,
	};
	dg->first = (dg->first + 1) % dg->slots;
	dg->count--;
	return 1;
}

/* ---- Sleeping ---- */

static bool wake_soon(struct ofi_dg *dg)
{
	struct itimerspec soon = { .it_value = { .tv_nsec = ROOM_MS * 1000000L } };

	return timerfd_settime(dg->timer, 0, &soon, NULL) == 0;
}

/* fi_trywait also takes back the signals of the queue, so it must be asked every time. */
int ofi_dg_arm(struct vb__dg *base, bool for_room)
{
	struct ofi_dg *dg = (struct ofi_dg *)base;
	struct fid *fid = &dg->receives->fid;
	uint64_t ticks;
	bool woken;

	while (read(dg->timer, &ticks, sizeof(ticks)) < 0 && errno == EINTR)
		;
	if (for_room)
		return !wake_soon(dg) || base->down.code != VB_OK;
	take_in(dg, false);
	woken = vb__waiter_check(&dg->waiter, VB__READY_WAKE) & VB__READY_WAKE;
	return woken || dg->count || base->down.code != VB_OK ||
	       fi_trywait(dg->fabric, &fid, 1) != FI_SUCCESS;
}

/* ---- Asking ---- */

static int fail_silent(struct vb_error *err, const struct vb__address *at)
{
	return vb__fail(
		err,
		&(struct vb__failure){
			.code = VB_ERR_TIMEOUT,
			.operation = "ask",
			.object = at->text,
			.cause = "no answer over UDP: nobody has an endpoint for "
				 "datagrams there",
			.hint = "start the other side first, check the port, the firewalls, and that it is on the ofi fabric, too; an endpoint answers only while its program receives",
		});
}

/* Until there is an answer, or it is time to ask again. */
static int await_answer(struct ofi_dg *dg, const struct ofi_dg_question *q, uint64_t until_ns,
			struct vb_error *err)
{
	while (!q->answered && vb__now_ns() < until_ns) {
		if (take_in(dg, true)) /* somebody may sleep on it who now would not hear of it */
			vb__waiter_wake(&dg->waiter);
		if (dg->base.down.code != VB_OK)
			return vb__fail_again(err, &dg->base.down);
		if (!q->answered)
			vb__dg_doze(&dg->base, dg->waiter.epoll, until_ns);
	}
	return 0;
}

static int ask(struct ofi_dg *dg, struct ofi_dg_question *q, const struct ofi_dg_peer *peer,
	       const struct vb__address *at, uint64_t deadline_ns, struct vb_error *err)
{
	while (!q->answered) {
		uint64_t again = vb__now_ns() + vb__ms(ASK_AGAIN_MS);
		long n = inject(dg, VB__ENVELOPE_QUESTION, peer->at, dg->base.greeting,
				sizeof(dg->base.greeting), NULL, 0);
		int rc;

		if (n && n != -FI_EAGAIN)
			return ofi_fail(err, n, "fi_inject", at->text);
		rc = await_answer(dg, q, again < deadline_ns ? again : deadline_ns, err);
		if (rc)
			return rc;
		if (!q->answered && vb__now_ns() >= deadline_ns)
			return fail_silent(err, at);
	}
	return 0;
}

int ofi_dg_resolve(struct vb__dg *base, const struct vb__address *at, uint64_t deadline_ns,
		   uint8_t greeting[VB__GREETING_BYTES], struct vb__dg_peer **out,
		   struct vb_error *err)
{
	struct ofi_dg *dg = (struct ofi_dg *)base;
	struct vb__envelope there = ofi_dg_envelope(at);
	struct ofi_dg_question q = { .next = dg->questions, .of = origin_of(&there) };
	struct ofi_dg_question **link = &dg->questions;
	struct vb__dg_peer *peer;
	int rc = make_peer(dg, at, &peer, err);

	*out = NULL;
	if (!peer)
		return rc;
	dg->questions = &q;
	rc = ask(dg, &q, (struct ofi_dg_peer *)peer, at, deadline_ns, err);
	while (*link != &q)
		link = &(*link)->next;
	*link = q.next;
	if (rc) {
		ofi_dg_peer_close(peer);
		return rc;
	}
	memcpy(greeting, q.greeting, sizeof(q.greeting));
	*out = peer;
	return 0;
}
