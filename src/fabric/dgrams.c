/* SPDX-License-Identifier: Apache-2.0 */
/* The common books of datagrams over all fabrics. */
#include "fabric/dgrams.h"

#include "core/clock.h"
#include "fabric/waiter.h"

/* Another thread may have taken what a dozing one waits for. */
#define MOMENT_MS 20u

const struct vb__dgrams *const vb__dgrams_all[] = {
#ifdef VB_HAVE_VERBS
	&vb__verbs_dgrams,
#endif
#ifdef VB_HAVE_OFI
	&vb__ofi_dgrams,
#endif
	NULL,
};

int vb__dg_open(const struct vb__dgrams *fabric, const struct vb__dg_attr *attr,
		const struct vb__address *at, struct vb__dg **dg, struct vb_error *err)
{
	return fabric->open(attr, at, dg, err);
}

void vb__dg_close(struct vb__dg *dg)
{
	if (dg)
		dg->fabric->close(dg);
}

static int keep(struct vb__dg *dg, struct vb__dg_peer *peer, int rc)
{
	if (rc)
		return rc;
	peer->dg = dg;
	peer->next = dg->peers;
	dg->peers = peer;
	return 0;
}

int vb__dg_resolve(struct vb__dg *dg, const struct vb__address *at, uint64_t deadline_ns,
		   uint8_t greeting[VB__GREETING_BYTES], struct vb__dg_peer **peer,
		   struct vb_error *err)
{
	int rc = dg->fabric->resolve(dg, at, deadline_ns, greeting, peer, err);

	return keep(dg, *peer, rc);
}

int vb__dg_join(struct vb__dg *dg, const struct vb__address *group, uint64_t deadline_ns,
		struct vb__dg_peer **peer, struct vb_error *err)
{
	int rc = dg->fabric->join(dg, group, deadline_ns, peer, err);

	return keep(dg, *peer, rc);
}

int vb__dg_peer_of(struct vb__dg *dg, const struct vb__origin *origin, struct vb__dg_peer **peer,
		   struct vb_error *err)
{
	int rc = dg->fabric->peer_of(dg, origin, peer, err);

	return keep(dg, *peer, rc);
}

void vb__dg_peer_close(struct vb__dg_peer *peer)
{
	struct vb__dg_peer **at = &peer->dg->peers;

	while (*at != peer)
		at = &(*at)->next;
	*at = peer->next;
	peer->dg->fabric->peer_close(peer);
}

int vb__dg_send(struct vb__dg *dg, struct vb__dg_peer *peer, const void *head, size_t head_len,
		const void *bytes, size_t len, struct vb_error *err)
{
	if (head_len > dg->max_bytes || len > dg->max_bytes - head_len)
		return vb__fail_invalid(err, "send to", "%zu bytes, the limit is %zu",
					head_len + len, dg->max_bytes);
	return dg->fabric->send(dg, peer, head, head_len, bytes, len, err);
}

int vb__dg_receive(struct vb__dg *dg, struct vb__dg_arrival *arrival)
{
	return dg->fabric->receive(dg, arrival);
}

void vb__dg_give_back(struct vb__dg *dg, unsigned slot)
{
	dg->fabric->give_back(dg, slot);
}

int vb__dg_arm(struct vb__dg *dg, bool for_room)
{
	return dg->fabric->arm(dg, for_room);
}

void vb__dg_doze(struct vb__dg *dg, int fd, uint64_t deadline_ns)
{
	uint64_t soon = vb__now_ns() + vb__ms(MOMENT_MS);

	if (dg->lock)
		pthread_mutex_unlock(dg->lock);
	vb__waiter_sleep(fd, dg->lock && soon < deadline_ns ? soon : deadline_ns);
	if (dg->lock)
		pthread_mutex_lock(dg->lock);
}
