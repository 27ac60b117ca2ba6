/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wire-up by TCP: a socket carries a record each way, the ladder does the
 * rest. Then the socket stays open and silent. Its end is the end of the
 * connection; and the kernel's keep-alive on it tells whether the peer's host
 * is there, where nothing else does (UC). Listening is verbs_tcp_listener.c's job.
 */
#include "fabric/verbs/verbs_tcp.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "fabric/verbs/verbs_ladder.h"
#include "fabric/verbs/verbs_port.h"

#define KEEPALIVE_MAX 32767 /* seconds that the kernel takes */

/* Our own half of the wire-up. */
static struct vb__wireup describe(const struct verbs_ep *ep, enum vb__wireup_kind kind,
				  const void *data, size_t len)
{
	const struct verbs_port *port = &ep->tcp.port;
	struct vb__wireup record = {
		.kind = kind,
		.version = VB__WIREUP_VERSION,
		.qp_type = (uint8_t)ep->type,
		.link = port->link,
		.mtu = port->mtu_bytes,
		.qpn = ep->qp->qp_num,
		.psn = ep->tcp.psn,
		.lid = port->lid,
		.responder_resources = ep->responder_resources,
		.initiator_depth = ep->initiator_depth,
		.data_len = (uint8_t)len,
	};

	if (ep->tuning.mtu_bytes && ep->tuning.mtu_bytes < record.mtu)
		record.mtu = (uint16_t)ep->tuning.mtu_bytes;
	memcpy(record.gid, port->gid, sizeof(record.gid));
	if (len)
		memcpy(record.data, data, len);
	return record;
}

/* ---- The socket's life ---- */

static void hang_up(struct verbs_ep *ep)
{
	if (ep->tcp.fd < 0)
		return;
	vb__waiter_remove(&ep->waiter, ep->tcp.fd);
	shutdown(ep->tcp.fd, SHUT_RDWR); /* also if a forked process has it, too */
	close(ep->tcp.fd);
	ep->tcp.fd = -1;
}

/* The peer sees the end of the stream after all that completed here is in its memory. */
static void disconnect(struct verbs_ep *ep)
{
	verbs_ladder_error(ep);
	hang_up(ep);
}

/* So that a silent host ends the connection within the peer time-out, to the second. */
static void keep_alive(const struct verbs_ep *ep)
{
	int ms = ep->peer_timeout_ms < INT_MAX ? (int)ep->peer_timeout_ms : INT_MAX;
	int step = ms / 4000, silence, fd = ep->tcp.fd;

	if (step < 1)
		step = 1;
	if (step > KEEPALIVE_MAX)
		step = KEEPALIVE_MAX;
	silence = ms - step * 1000;
	if (silence < 500)
		silence = 500;
	verbs_tcp_option(&ep->log, fd, IPPROTO_TCP, TCP_KEEPIDLE, step);
	verbs_tcp_option(&ep->log, fd, IPPROTO_TCP, TCP_KEEPINTVL, step);
	verbs_tcp_option(&ep->log, fd, IPPROTO_TCP, TCP_USER_TIMEOUT, silence);
	verbs_tcp_option(&ep->log, fd, SOL_SOCKET, SO_KEEPALIVE, 1);
}

static void on_socket_end(struct verbs_ep *ep, int errnum)
{
	if (ep->base.state == VB__EP_DOWN)
		return;
	if (errnum == ECONNRESET || errnum == EPIPE)
		vb__ep_down_gone(&ep->base);
	else if (vb__errno_is_silence(errnum))
		vb__ep_down_silent(&ep->base);
	else
		verbs_break(ep, errnum, "recv");
	disconnect(ep);
}

static void on_garbage(struct verbs_ep *ep)
{
	vb__ep_down(&ep->base,
		    &(struct vb__failure){
			    .code = VB_ERR_PROTOCOL,
			    .operation = "connection to",
			    .object = ep->base.peer,
			    .cause = "what came over the wire-up's socket makes no sense",
			    .hint = "the peer runs a broken or foreign program",
		    });
	disconnect(ep);
}

static bool is_ready_record(const struct verbs_record *record)
{
	struct vb__wireup said;

	return vb__wireup_decode(&said, record->bytes) == VB__WIREUP_GOOD &&
	       said.kind == VB__WIREUP_READY;
}

/* Accepting, READY is still to come, once. After that only the end can. */
static void look_after(struct verbs_ep *ep)
{
	struct verbs_record extra = { .have = VB__WIREUP_BYTES - 1 };
	int rc;

	if (ep->tcp.fd < 0)
		return;
	rc = verbs_tcp_hear(ep->tcp.fd, ep->tcp.ready ? &extra : &ep->tcp.in);
	if (rc < 0)
		on_socket_end(ep, -rc);
	else if (rc && (ep->tcp.ready || !is_ready_record(&ep->tcp.in)))
		on_garbage(ep);
	else if (rc) {
		ep->tcp.ready = true;
		verbs_on_established(ep);
	}
}

/* ---- Both sides ---- */

static int create_qp(struct verbs_ep *ep, struct ibv_qp_init_attr *attr)
{
	errno = 0; /* providers do not always say why */
	ep->qp = ibv_create_qp(ep->pd, attr);
	return ep->qp ? 0 : errno ? errno : EIO;
}

static void destroy_qp(struct verbs_ep *ep)
{
	VERBS_UNDO(&ep->log, ep->base.device, ibv_destroy_qp, ep->qp);
}

/* A new connection must not take packets of an old one for its own: so it begins anywhere. */
static int get_ready(struct verbs_ep *ep, struct vb_error *err)
{
	uint32_t psn;

	if (getrandom(&psn, sizeof(psn), 0) != (ssize_t)sizeof(psn))
		return verbs_fail(err, errno, "getrandom", NULL);
	ep->tcp.psn = psn & 0xffffff;
	return verbs_ladder_init(ep, err);
}

static int climb(struct verbs_ep *ep, const struct vb__wireup *peer, struct vb_error *err)
{
	char why[180];
	int rc = verbs_ladder_rtr(ep, peer, err);

	if (rc == 0)
		rc = verbs_ladder_rts(ep, peer, err);
	if (rc)
		return rc;
	snprintf(why, sizeof(why), "%.170s", ep->base.how);
	snprintf(ep->base.how, sizeof(ep->base.how), "wired up by TCP%.150s; %s, MTU %u", why,
		 ep->type == VB__QP_UC ? "UC" : "RC", verbs_ladder_mtu(ep, peer));
	vb__log(&ep->log, VB_LOG_DEBUG, "%s: queue pair 0x%x of %s port %u is wired to 0x%x",
		ep->base.peer, ep->qp->qp_num, ep->base.device, ep->port, peer->qpn);
	keep_alive(ep);
	return vb__waiter_add(&ep->waiter, ep->tcp.fd, VERBS_READY_WIRE, err);
}

static void close_end(struct verbs_ep *ep)
{
	hang_up(ep);
	if (ep->tcp.port.context)
		verbs_device_release(ep->tcp.port.context, &ep->log);
}

/* ---- Connecting ---- */

static int fail_port(struct vb_error *err, const struct vb__address *peer)
{
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_INVALID,
				     .operation = "connect to",
				     .object = peer->text,
				     .cause = "the wire-up by TCP goes to the port 1000 above this "
					      "one, which does not exist",
				     .hint = "use a port up to 64535",
			     });
}

static int find(struct verbs_ep *ep, const struct vb__ep_attr *attr, const struct vb__address *peer,
		uint64_t deadline_ns, struct vb_error *err)
{
	struct verbs_tcp_end *tcp = &ep->tcp;
	uint16_t port = verbs_tcp_port(vb__address_port(peer));
	int rc = verbs_preflight("", false, err);

	(void)deadline_ns;
	if (rc)
		return rc;
	if (!port)
		return fail_port(err, peer);
	if (attr->source)
		tcp->from = *attr->source;
	else
		rc = vb__address_source(peer, &tcp->from, err);
	if (rc)
		return rc;
	tcp->to = *peer;
	vb__address_set_port(&tcp->to, port);
	rc = verbs_port_find(&tcp->from, attr->settings->device, &ep->log, &tcp->port, err);
	ep->context = tcp->port.context;
	ep->port = tcp->port.number;
	return rc;
}

static int fail_reach(const struct verbs_ep *ep, int errnum, const char *operation,
		      struct vb_error *err)
{
	char cause[200];
	bool timeout = errnum == ETIMEDOUT;
	bool plain = timeout || errnum == ECONNREFUSED || errnum == EHOSTUNREACH ||
		     errnum == ENETUNREACH;

	if (!plain)
		return verbs_fail(err, errnum, operation, ep->base.peer);
	snprintf(cause, sizeof(cause), "%s at TCP port %u, by which queue pairs are wired up",
		 timeout ? "no answer" : strerror(errnum), vb__address_port(&ep->tcp.to));
	return vb__fail(err,
			&(struct vb__failure){
				.code = vb__err_from_errno(errnum),
				.native_kind = VB_NATIVE_ERRNO,
				.native = errnum,
				.operation = "connect to",
				.object = ep->base.peer,
				.cause = cause,
				.hint = "start the receiving side first and check the port; it "
					"takes part only if it has an RDMA device with this "
					"address, and that TCP port must pass firewalls",
			});
}

/* 0, or ETIMEDOUT. */
static int await_socket(const struct verbs_ep *ep, short events, uint64_t deadline_ns)
{
	struct pollfd p = { .fd = ep->tcp.fd, .events = events };

	while (poll(&p, 1, vb__ms_left(deadline_ns)) <= 0)
		if (vb__now_ns() >= deadline_ns)
			return ETIMEDOUT;
	return 0;
}

/* The TCP connection, from the address that the GID belongs to. */
static int reach(struct verbs_ep *ep, uint64_t deadline_ns, struct vb_error *err)
{
	const struct sockaddr *from = (const struct sockaddr *)&ep->tcp.from.sa;
	const struct sockaddr *to = (const struct sockaddr *)&ep->tcp.to.sa;
	int rc, fd = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(rc);

	if (fd < 0)
		return verbs_fail(err, errno, "socket", NULL);
	ep->tcp.fd = fd;
	verbs_tcp_option(&ep->log, fd, IPPROTO_TCP, TCP_NODELAY, 1);
	if (bind(fd, from, ep->tcp.from.len) != 0)
		return verbs_fail(err, errno, "bind", ep->tcp.from.text);
	if (connect(fd, to, ep->tcp.to.len) != 0 && errno != EINPROGRESS)
		return fail_reach(ep, errno, "connect", err);
	rc = await_socket(ep, POLLOUT, deadline_ns);
	if (rc == 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &rc, &len) != 0)
		return verbs_fail(err, errno, "getsockopt", ep->base.peer);
	return rc ? fail_reach(ep, rc, "connect", err) : 0;
}

static int ask(struct verbs_ep *ep, const void *data, size_t len, uint64_t deadline_ns,
	       struct vb__wireup *answer, struct vb_error *err)
{
	struct vb__wireup ours = describe(ep, VB__WIREUP_REQUEST, data, len);
	int rc = verbs_tcp_say(ep->tcp.fd, &ours);

	if (rc)
		return verbs_fail(err, rc, "send", ep->base.peer);
	while ((rc = verbs_tcp_hear(ep->tcp.fd, &ep->tcp.in)) == 0)
		if (await_socket(ep, POLLIN, deadline_ns) != 0)
			return fail_reach(ep, ETIMEDOUT, "recv", err);
	if (rc < 0)
		return verbs_fail(err, -rc, "recv", ep->base.peer);
	return verbs_tcp_judge(ep, answer, vb__wireup_decode(answer, ep->tcp.in.bytes), err);
}

static int wire_up(struct verbs_ep *ep, const void *data, size_t len, uint64_t deadline_ns,
		   struct vb_error *err)
{
	const struct vb__wireup ready = { .kind = VB__WIREUP_READY, .version = VB__WIREUP_VERSION };
	struct vb__wireup answer = { .kind = 0 };
	int rc = reach(ep, deadline_ns, err);

	if (rc == 0)
		rc = ask(ep, data, len, deadline_ns, &answer, err);
	if (rc == 0)
		rc = climb(ep, &answer, err);
	if (rc)
		return rc;
	rc = verbs_tcp_say(ep->tcp.fd, &ready);
	return rc ? verbs_fail(err, rc, "send", ep->base.peer) : 0;
}

static int connect_to(struct verbs_ep *ep, const void *data, size_t len, uint64_t deadline_ns,
		      struct vb_error *err)
{
	struct vb_error why = { .code = VB_OK };
	int rc;

	ep->base.state = VB__EP_CONNECTING;
	ep->tcp.ready = true; /* of what it sends, an answer is all */
	rc = wire_up(ep, data, len, deadline_ns, &why);
	if (rc == 0) {
		verbs_on_established(ep);
		return 0;
	}
	vb__fail_again(&ep->base.down, &why);
	ep->base.state = VB__EP_DOWN;
	disconnect(ep);
	return vb__fail_again(err, &why);
}

/* ---- Accepting ---- */

static uint8_t smaller(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

static int fail_type(struct verbs_tcp_request *request, const char *peer, struct vb_error *err)
{
	request->reason = VB__WIREUP_NOT_TYPE;
	return vb__fail(err,
			&(struct vb__failure){
				.code = VB_ERR_UNSUPPORTED,
				.operation = "accept",
				.object = peer,
				.cause = request->asked.qp_type == VB__QP_UC
						 ? "it has a UC queue pair, and RC is served here"
						 : "it has an RC queue pair, and UC is served here",
			});
}

static int adopt(struct verbs_ep *ep, struct verbs_request *base, struct vb_error *err)
{
	struct verbs_tcp_request *request = (struct verbs_tcp_request *)base;

	if (request->asked.qp_type != ep->type)
		return fail_type(request, request->peer.text, err);
	snprintf(ep->base.peer, sizeof(ep->base.peer), "%s", request->peer.text);
	ep->tcp.fd = request->fd;
	ep->tcp.port = request->port;
	ep->tcp.peer = request->asked;
	ep->context = request->port.context;
	ep->port = request->port.number;
	ep->responder_resources = smaller(ep->responder_resources, request->asked.initiator_depth);
	ep->initiator_depth = smaller(ep->initiator_depth, request->asked.responder_resources);
	return 0;
}

static void refuse(struct verbs_ep *ep)
{
	verbs_tcp_refuse(&ep->log, ep->tcp.fd, VB__WIREUP_NOT_READY, ep->base.refusal.data,
			 ep->base.refusal.len);
}

/* When the peer hears of our queue pair, it is ready. */
static int accept_from(struct verbs_ep *ep, const void *data, size_t len, struct vb_error *err)
{
	struct vb__wireup ours = describe(ep, VB__WIREUP_REPLY, data, len);
	int rc = climb(ep, &ep->tcp.peer, err);

	if (rc)
		return rc;
	rc = verbs_tcp_say(ep->tcp.fd, &ours);
	if (rc)
		return verbs_fail(err, rc, "send", ep->base.peer);
	ep->base.state = VB__EP_CONNECTING;
	return 0;
}

const struct verbs_wireup verbs_tcp = {
	.id = VB_WIREUP_TCP,
	.qp_types = 1u << VB__QP_RC | 1u << VB__QP_UC,
	.find = find,
	.adopt = adopt,
	.create_qp = create_qp,
	.create_qp_call = "ibv_create_qp",
	.destroy_qp = destroy_qp,
	.get_ready = get_ready,
	.connect = connect_to,
	.accept = accept_from,
	.refuse = refuse,
	.look_after = look_after,
	.disconnect = disconnect,
	.close = close_end,
	.listen = verbs_tcp_listen,
	.next_request = verbs_tcp_next_request,
	.unlisten = verbs_tcp_unlisten,
	.reject = verbs_tcp_reject,
};
