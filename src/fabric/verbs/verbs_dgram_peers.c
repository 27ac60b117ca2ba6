/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where datagrams go: others are asked by rdma_cm (SIDR), which tells queue
 * pair, Q_Key and the way; groups are joined by it; senders are answered by
 * what their datagrams tell. And others who ask are answered.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "fabric/verbs/verbs_dgram.h"

/* Not meant for user space, and so without a name there. */
#define KERNEL_ENOTSUPP 524

/* Making a way may take a second, if nobody answers to the question for the peer's hardware address. */
#define RETRY_MS 5000u

/* ---- What the CM says ---- */

/* Somebody asks who is here. The id that stands for the question is of no further use. */
static void answer_question(struct verbs_dg *dg, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = {
		.private_data = dg->base.greeting,
		.private_data_len = sizeof(dg->base.greeting),
		.qp_num = dg->home->qp->qp_num,
	};

	if (rdma_accept(id, &param) != 0)
		vb__log(&dg->log, VB_LOG_WARNING,
			"%s: somebody who asks cannot be answered: rdma_accept: %s",
			dg->base.address, strerror(errno));
	VERBS_UNDO(&dg->log, dg->base.address, rdma_destroy_id, id);
}

static bool is_of_group(const struct rdma_cm_event *event)
{
	return event->event == RDMA_CM_EVENT_MULTICAST_JOIN ||
	       event->event == RDMA_CM_EVENT_MULTICAST_ERROR;
}

static struct verbs_dg_answer *who_waits(struct verbs_dg *dg, const struct rdma_cm_event *event)
{
	struct verbs_dg_answer *a = dg->awaited;
	const void *context = is_of_group(event) ? event->param.ud.private_data : NULL;

	while (a && (a->id != event->id || a->joining != context))
		a = a->next;
	return a;
}

static void fail_nobody(struct vb_error *err, int status)
{
	vb__fail(err, &(struct vb__failure){
			      .code = VB_ERR_REFUSED,
			      .native_kind = VB_NATIVE_CM,
			      .native = status,
			      .operation = "ask",
			      .cause = "nobody has an endpoint for datagrams there",
			      .hint = "start the other side first, check the port, and that it is "
				      "on the verbs fabric, too",
		      });
}

static void keep_answer(struct verbs_dg_answer *a, const struct rdma_cm_event *event)
{
	const struct rdma_ud_param *ud = &event->param.ud;

	a->event = event->event;
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		return;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (ud->private_data && ud->private_data_len >= sizeof(a->greeting))
			memcpy(a->greeting, ud->private_data, sizeof(a->greeting));
		break;
	case RDMA_CM_EVENT_MULTICAST_JOIN:
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
		if (event->status > 0) { /* that is an answer: no */
			fail_nobody(&a->failure, event->status);
			return;
		}
		/* fall through */
	default:
		verbs_fail_cm(&a->failure, event, a->joining ? "join" : "ask", NULL);
		return;
	}
	a->ah = ud->ah_attr;
	a->qp_num = ud->qp_num;
	a->qkey = ud->qkey;
}

static void on_unasked(struct verbs_dg *dg, const struct rdma_cm_event *event)
{
	if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		verbs_fail_cm(&dg->base.down, event, "datagrams at", dg->base.address);
	else if (event->event == RDMA_CM_EVENT_MULTICAST_ERROR)
		vb__log(&dg->log, VB_LOG_WARNING, "%s: a group was lost, status %d; join it again",
			dg->base.address, event->status);
}

void verbs_dg_take_cm_events(struct verbs_dg *dg)
{
	struct rdma_cm_event *event;

	while (rdma_get_cm_event(dg->cm, &event) == 0) {
		struct verbs_dg_answer *waiting = who_waits(dg, event);
		struct rdma_cm_id *asking =
			event->event == RDMA_CM_EVENT_CONNECT_REQUEST ? event->id : NULL;

		if (waiting)
			keep_answer(waiting, event);
		else
			on_unasked(dg, event);
		VERBS_UNDO(&dg->log, dg->base.address, rdma_ack_cm_event, event);
		if (asking)
			answer_question(dg, asking);
	}
	if (errno != EAGAIN && errno != EINTR)
		verbs_dg_break(dg, errno, "rdma_get_cm_event");
}

static int fail_timeout(struct vb_error *err, const char *operation, const char *object)
{
	return vb__fail(err,
			&(struct vb__failure){
				.code = VB_ERR_TIMEOUT,
				.operation = operation,
				.object = object,
				.cause = "no answer over RDMA",
				.hint = "check the address, and that there is an RDMA device on "
					"that network (`rdma link`); an endpoint answers only "
					"while its program receives",
			});
}

/* Waits for one event. Others may be waiting for theirs meanwhile. */
static int await(struct verbs_dg *dg, struct verbs_dg_answer *a, int wanted, const char *operation,
		 const char *object, uint64_t deadline_ns, struct vb_error *err)
{
	for (;;) {
		verbs_dg_take_cm_events(dg);
		if (dg->base.down.code != VB_OK)
			return vb__fail_again(err, &dg->base.down);
		if (a->failure.code != VB_OK) {
			snprintf(a->failure.object, sizeof(a->failure.object), "%s", object);
			return vb__fail_again(err, &a->failure);
		}
		if (a->event == wanted)
			return 0;
		if (vb__now_ns() >= deadline_ns)
			return fail_timeout(err, operation, object);
		vb__dg_doze(&dg->base, dg->cm->fd, deadline_ns);
	}
}

static void begin_waiting(struct verbs_dg *dg, struct verbs_dg_answer *a)
{
	a->event = VERBS_NO_EVENT;
	a->next = dg->awaited;
	dg->awaited = a;
}

static void end_waiting(struct verbs_dg *dg, const struct verbs_dg_answer *a)
{
	struct verbs_dg_answer **at = &dg->awaited;

	while (*at && *at != a)
		at = &(*at)->next;
	*at = a->next;
}

/* ---- Peers ---- */

static int make_peer(struct verbs_dg *dg, struct verbs_dg_peer **out, struct vb_error *err)
{
	struct verbs_dg_peer *peer = calloc(1, sizeof(*peer));

	*out = peer;
	if (!peer)
		return verbs_fail(err, ENOMEM, "calloc", NULL);
	peer->base.dg = &dg->base;
	peer->base.max_bytes = dg->base.max_bytes;
	peer->group.ss_family = AF_UNSPEC;
	return 0;
}

static int set_way(struct verbs_dg *dg, struct verbs_dg_peer *peer, struct ibv_ah_attr *ah,
		   struct vb_error *err)
{
	peer->way = *ah;
	peer->ways_changed = dg->base.ways_changed;
	errno = 0; /* providers do not always say why */
	peer->ah = ibv_create_ah(dg->pd, ah);
	return peer->ah ? 0
			: verbs_fail(err, errno ? errno : EINVAL, "ibv_create_ah", peer->base.text);
}

/* A handle for the new way in the place of the old one, which what is under way may still need. False: not now. */
static bool change_way(struct verbs_dg *dg, struct verbs_dg_peer *peer, struct ibv_ah_attr *way)
{
	struct ibv_ah *ah;

	errno = 0; /* providers do not always say why */
	ah = ibv_create_ah(dg->pd, way);
	if (!ah) {
		verbs_note(&dg->log, errno ? errno : EINVAL, "ibv_create_ah", peer->base.text,
			   "the old way is kept for now");
		return false;
	}
	verbs_dg_drain(dg);
	if (dg->posted != dg->completed) {
		VERBS_UNDO(&dg->log, peer->base.text, ibv_destroy_ah, ah);
		return false;
	}
	VERBS_UNDO(&dg->log, peer->base.text, ibv_destroy_ah, peer->ah);
	peer->ah = ah;
	peer->way = *way;
	return true;
}

int verbs_dg_refresh(struct verbs_dg *dg, struct verbs_dg_peer *peer, struct vb_error *err)
{
	struct ibv_ah_attr way = peer->way;
	int rc;

	if (peer->ways_changed == dg->base.ways_changed || vb__now_ns() < peer->retry_ns)
		return 0;
	rc = dg->ethernet ? verbs_dg_find_gid(dg, &way.grh.sgid_index, err) : 0;
	if (rc)
		return rc;
	if (way.grh.sgid_index != peer->way.grh.sgid_index && !change_way(dg, peer, &way)) {
		peer->retry_ns = vb__now_ns() + vb__ms(RETRY_MS);
		return 0;
	}
	peer->retry_ns = 0;
	peer->ways_changed = dg->base.ways_changed;
	return 0;
}

/* What is under way still needs the way. */
void verbs_dg_peer_close(struct vb__dg_peer *base)
{
	struct verbs_dg_peer *peer = (struct verbs_dg_peer *)base;
	struct verbs_dg *dg = (struct verbs_dg *)base->dg;

	if (peer->group.ss_family != AF_UNSPEC)
		verbs_note(&dg->log,
			   rdma_leave_multicast(dg->home, (struct sockaddr *)&peer->group),
			   "rdma_leave_multicast", base->text, "it may have been lost before");
	if (peer->ah) {
		verbs_dg_drain(dg);
		VERBS_UNDO(&dg->log, base->text, ibv_destroy_ah, peer->ah);
	}
	free(peer);
}

/* ---- Asking ---- */

/* rdma_cm takes 0 for a mistake. */
static int ms_left(uint64_t deadline_ns)
{
	int ms = vb__ms_left(deadline_ns);

	return ms > 0 ? ms : 1;
}

static int check_route(struct verbs_dg *dg, const struct rdma_cm_id *id,
		       const struct vb__address *at, struct vb_error *err)
{
	char cause[200];

	if (id->verbs == dg->home->verbs && id->port_num == dg->home->port_num)
		return 0;
	snprintf(cause, sizeof(cause), "the route to it goes by device %s, this endpoint is on %s",
		 id->verbs ? ibv_get_device_name(id->verbs->device) : "?", dg->base.device);
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_UNREACHABLE,
				     .operation = "ask",
				     .object = at->text,
				     .cause = cause,
				     .hint = "open an endpoint at our address on that network (`ip "
					     "route get ADDRESS`)",
			     });
}

static int find_route(struct verbs_dg *dg, struct rdma_cm_id *id, struct verbs_dg_answer *a,
		      const struct vb__address *at, uint64_t deadline_ns, struct vb_error *err)
{
	struct vb__address from = dg->at;
	int rc;

	vb__address_set_port(&from, 0);
	if (rdma_resolve_addr(id, (struct sockaddr *)&from.sa, (struct sockaddr *)&at->sa,
			      ms_left(deadline_ns)) != 0)
		return verbs_fail(err, errno, "rdma_resolve_addr", at->text);
	rc = await(dg, a, RDMA_CM_EVENT_ADDR_RESOLVED, "rdma_resolve_addr", at->text, deadline_ns,
		   err);
	if (rc == 0)
		rc = check_route(dg, id, at, err);
	if (rc)
		return rc;
	if (rdma_resolve_route(id, ms_left(deadline_ns)) != 0)
		return verbs_fail(err, errno, "rdma_resolve_route", at->text);
	return await(dg, a, RDMA_CM_EVENT_ROUTE_RESOLVED, "rdma_resolve_route", at->text,
		     deadline_ns, err);
}

static int ask(struct verbs_dg *dg, struct rdma_cm_id *id, struct verbs_dg_answer *a,
	       const struct vb__address *at, uint64_t deadline_ns, struct vb_error *err)
{
	struct rdma_conn_param param = {
		.private_data = dg->base.greeting,
		.private_data_len = sizeof(dg->base.greeting),
		.qp_num = dg->home->qp->qp_num,
	};
	int rc = find_route(dg, id, a, at, deadline_ns, err);

	if (rc)
		return rc;
	if (rdma_connect(id, &param) != 0)
		return verbs_fail(err, errno, "rdma_connect", at->text);
	return await(dg, a, RDMA_CM_EVENT_ESTABLISHED, "ask", at->text, deadline_ns, err);
}

/* The way may take less than the port does. */
static void note_mtu(struct verbs_dg_peer *peer, const struct rdma_cm_id *id)
{
	int mtu = id->route.num_paths > 0 ? id->route.path_rec[0].mtu : 0;

	if (mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 && (size_t)128 << mtu < peer->base.max_bytes)
		peer->base.max_bytes = (size_t)128 << mtu;
}

int verbs_dg_resolve(struct vb__dg *base, const struct vb__address *at, uint64_t deadline_ns,
		     uint8_t greeting[VB__GREETING_BYTES], struct vb__dg_peer **out,
		     struct vb_error *err)
{
	struct verbs_dg *dg = (struct verbs_dg *)base;
	struct verbs_dg_answer a = { .id = NULL };
	struct verbs_dg_peer *peer;
	struct rdma_cm_id *id;
	int rc = make_peer(dg, &peer, err);

	*out = NULL;
	if (rc)
		return rc;
	snprintf(peer->base.text, sizeof(peer->base.text), "%s", at->text);
	if (rdma_create_id(dg->cm, &id, NULL, RDMA_PS_UDP) != 0) {
		rc = verbs_fail(err, errno, "rdma_create_id", at->text);
		goto free_peer;
	}
	a.id = id;
	begin_waiting(dg, &a);
	rc = ask(dg, id, &a, at, deadline_ns, err);
	end_waiting(dg, &a);
	note_mtu(peer, id);
	VERBS_UNDO(&dg->log, at->text, rdma_destroy_id, id);
	peer->qp_num = a.qp_num;
	peer->qkey = a.qkey;
	if (rc == 0)
		rc = set_way(dg, peer, &a.ah, err);
free_peer:
	if (rc) {
		verbs_dg_peer_close(&peer->base);
		return rc;
	}
	memcpy(greeting, a.greeting, sizeof(a.greeting));
	*out = &peer->base;
	return 0;
}

/* ---- Groups ---- */

static int fail_join(struct vb_error *err, int errnum, const char *group)
{
	if (errnum != KERNEL_ENOTSUPP)
		return verbs_fail(err, errnum, "rdma_join_multicast", group);
	return vb__fail(err,
			&(struct vb__failure){
				.code = VB_ERR_UNSUPPORTED,
				.native_kind = VB_NATIVE_ERRNO,
				.native = errnum,
				.operation = "rdma_join_multicast",
				.object = group,
				.cause = "Linux has no such groups on this device; over RoCE it "
					 "has none of IPv6",
				.hint = "use IPv4: an endpoint at such an address of ours, and a "
					"group like 239.1.2.3",
			});
}

static int join(struct verbs_dg *dg, struct verbs_dg_peer *peer, struct verbs_dg_answer *a,
		const struct vb__address *group, uint64_t deadline_ns, struct vb_error *err)
{
	if (rdma_join_multicast(dg->home, (struct sockaddr *)&group->sa, peer) != 0)
		return fail_join(err, errno, peer->base.text);
	peer->group = group->sa; /* so that closing leaves it, or calls the joining off */
	return await(dg, a, RDMA_CM_EVENT_MULTICAST_JOIN, "join", peer->base.text, deadline_ns,
		     err);
}

int verbs_dg_join(struct vb__dg *base, const struct vb__address *group, uint64_t deadline_ns,
		  struct vb__dg_peer **out, struct vb_error *err)
{
	struct verbs_dg *dg = (struct verbs_dg *)base;
	struct verbs_dg_answer a = { .id = dg->home };
	struct verbs_dg_peer *peer;
	int rc = make_peer(dg, &peer, err);

	*out = NULL;
	if (rc)
		return rc;
	/* Without the port, which groups do not have here. */
	snprintf(peer->base.text, sizeof(peer->base.text), "group %.*s",
		 (int)strcspn(group->text, " "), group->text);
	peer->base.group = true;
	a.joining = peer;
	begin_waiting(dg, &a);
	rc = join(dg, peer, &a, group, deadline_ns, err);
	end_waiting(dg, &a);
	peer->qp_num = a.qp_num;
	peer->qkey = a.qkey;
	if (rc == 0)
		rc = set_way(dg, peer, &a.ah, err);
	if (rc) {
		verbs_dg_peer_close(&peer->base);
		return rc;
	}
	*out = &peer->base;
	return 0;
}

/* ---- Senders ---- */

/* Q_Keys are all the same in rdma_cm's UDP port space, so the sender's is ours. */
int verbs_dg_peer_of(struct vb__dg *base, const struct vb__origin *origin, struct vb__dg_peer **out,
		     struct vb_error *err)
{
	struct verbs_dg *dg = (struct verbs_dg *)base;
	struct verbs_dg_peer *peer;
	struct ibv_ah_attr ah;
	int rc = make_peer(dg, &peer, err);

	*out = NULL;
	if (rc)
		return rc;
	peer->qkey = dg->qkey;
	rc = verbs_dg_way_to(dg, origin, &ah, &peer->qp_num, peer->base.text, err);
	if (rc == 0)
		rc = set_way(dg, peer, &ah, err);
	if (rc) {
		verbs_dg_peer_close(&peer->base);
		return rc;
	}
	*out = &peer->base;
	return 0;
}
