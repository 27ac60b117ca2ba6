/* SPDX-License-Identifier: Apache-2.0 */
/* Sending and receiving datagrams, and waiting for either. */
#include <stdio.h>

#include "core/clock.h"
#include "dgram/dgram_state.h"
#include "fabric/waiter.h"

/* ---- Sending ---- */

static int fail_too_big(const struct vb_dgram_peer *peer, size_t len, struct vb_error *err)
{
	char cause[120];

	snprintf(cause, sizeof(cause), "%zu bytes are over the limit of %zu for a datagram there",
		 len, peer->max_bytes);
	return vb__fail(err,
			&(struct vb__failure){
				.code = VB_ERR_TOO_BIG,
				.operation = "send to",
				.object = peer->text,
				.cause = cause,
				.hint = "a datagram is one packet: send smaller ones, raise the "
					"MTU of the network, or use a channel",
			});
}

/* Lock held. */
static int send_one(struct vb_dgram *dgram, struct vb_dgram_peer *peer, const void *bytes,
		    size_t len, struct vb_error *err)
{
	struct vb__number number = { .flow = peer->flow, .sequence = peer->sequence };
	uint8_t head[VB__NUMBER_BYTES];
	int rc;

	if (peer->dgram != dgram)
		return vb__fail_invalid(err, "send to", "%s is a peer of another endpoint",
					peer->text);
	if (len > peer->max_bytes)
		return fail_too_big(peer, len, err);
	rc = vb__dgram_find_way(peer, err);
	if (rc)
		return rc;
	vb__number_encode(head, &number);
	rc = vb__dg_send(dgram->dg, peer->way, head, dgram->numbered ? sizeof(head) : 0, bytes, len,
			 err);
	if (rc)
		return rc;
	peer->sequence++;
	dgram->counters.sent++;
	dgram->counters.sent_bytes += len;
	return 0;
}

/* Lock held. Not worth to wait for, or the way to the next try is free: see vb__dg_arm. */
static int try_send(struct vb_dgram *dgram, struct vb_dgram_peer *peer, const void *bytes,
		    size_t len, struct vb_error *err)
{
	int rc;

	do
		rc = send_one(dgram, peer, bytes, len, err);
	while (rc == VB_ERR_AGAIN && vb__dg_arm(dgram->dg, true) != 0);
	return rc;
}

int vb_dgram_try_send(struct vb_dgram *dgram, struct vb_dgram_peer *peer, const void *bytes,
		      size_t len, struct vb_error *err)
{
	int rc;

	vb__error_clear(err);
	pthread_mutex_lock(&dgram->lock);
	rc = try_send(dgram, peer, bytes, len, err);
	pthread_mutex_unlock(&dgram->lock);
	return rc;
}

static int fail_stuck(const struct vb_dgram *dgram, struct vb_error *err)
{
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_TIMEOUT,
				     .operation = "send from",
				     .object = dgram->dg->address,
				     .cause = "the device does not send what it was given",
				     .hint = "is its link up? See `rdma link`",
			     });
}

int vb_dgram_send(struct vb_dgram *dgram, struct vb_dgram_peer *peer, const void *bytes, size_t len,
		  struct vb_error *err)
{
	uint64_t deadline_ns = 0;
	int rc;

	vb__error_clear(err);
	pthread_mutex_lock(&dgram->lock);
	while ((rc = try_send(dgram, peer, bytes, len, err)) == VB_ERR_AGAIN) {
		if (!deadline_ns)
			deadline_ns = vb__now_ns() + vb__ms(dgram->settings.peer_timeout_ms);
		else if (vb__now_ns() >= deadline_ns)
			rc = fail_stuck(dgram, err);
		if (rc != VB_ERR_AGAIN)
			break;
		pthread_mutex_unlock(&dgram->lock);
		vb__waiter_sleep(dgram->dg->wait_fd, deadline_ns);
		pthread_mutex_lock(&dgram->lock);
	}
	pthread_mutex_unlock(&dgram->lock);
	return rc;
}

/* ---- Receiving; lock held ---- */

static void give_back_shown(struct vb_dgram *dgram)
{
	if (dgram->showing)
		vb__dg_give_back(dgram->dg, dgram->shown);
	dgram->showing = false;
}

/* False: it is no datagram of ours, and was thrown away. */
static bool read_number(struct vb_dgram *dgram, struct vb__dg_arrival *arrival,
			struct vb_datagram *received)
{
	struct vb__flow_news news;
	struct vb__number number;

	if (!vb__number_decode(&number, arrival->bytes, arrival->len)) {
		dgram->counters.foreign++;
		return false;
	}
	news = vb__flows_note(&dgram->flows, &arrival->from, &number);
	arrival->bytes += VB__NUMBER_BYTES;
	arrival->len -= VB__NUMBER_BYTES;
	received->lost = news.lost;
	received->late = news.late;
	dgram->counters.late += news.late;
	dgram->counters.lost += news.lost;
	dgram->counters.lost -= news.late;
	return true;
}

static int take_one(struct vb_dgram *dgram, struct vb_datagram *received)
{
	struct vb__dg_arrival arrival;
	int n;

	while ((n = vb__dg_receive(dgram->dg, &arrival)) == 1) {
		*received = (struct vb_datagram){ .lost = 0 };
		dgram->showing = true;
		dgram->shown = arrival.slot;
		if (dgram->numbered && !read_number(dgram, &arrival, received)) {
			give_back_shown(dgram);
			continue;
		}
		received->bytes = arrival.bytes;
		received->len = arrival.len;
		received->from = vb__dgram_sender(dgram, &arrival.from);
		dgram->counters.received++;
		dgram->counters.received_bytes += arrival.len;
		return 1;
	}
	return n;
}

/* The lock is let go of during the waits. */
static int receive_until(struct vb_dgram *dgram, uint64_t deadline_ns, struct vb_datagram *received,
			 struct vb_error *err)
{
	uint64_t spin_until = vb__now_ns() + (uint64_t)dgram->settings.spin_us * 1000;

	for (;;) {
		int n = take_one(dgram, received);
		uint64_t now;

		if (n < 0)
			return vb__fail_again(err, &dgram->dg->down);
		if (n == 1)
			return 0;
		now = vb__now_ns();
		if (now < spin_until && now < deadline_ns)
			continue;
		if (vb__dg_arm(dgram->dg, false) != 0)
			continue;
		if (now >= deadline_ns)
			return VB_ERR_AGAIN;
		pthread_mutex_unlock(&dgram->lock);
		vb__waiter_sleep(dgram->dg->wait_fd, deadline_ns);
		pthread_mutex_lock(&dgram->lock);
	}
}

int vb_dgram_recv(struct vb_dgram *dgram, int timeout_ms, struct vb_datagram *received,
		  struct vb_error *err)
{
	uint64_t deadline_ns = timeout_ms < 0	 ? UINT64_MAX
			       : timeout_ms == 0 ? 0
						 : vb__now_ns() + vb__ms((uint64_t)timeout_ms);
	int rc;

	vb__error_clear(err);
	pthread_mutex_lock(&dgram->lock);
	give_back_shown(dgram);
	rc = receive_until(dgram, deadline_ns, received, err);
	pthread_mutex_unlock(&dgram->lock);
	return rc;
}
