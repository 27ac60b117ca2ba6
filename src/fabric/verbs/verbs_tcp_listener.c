/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listening for wire-ups by TCP. Who connects has a little time to say what
 * it wants, in one record. Strangers may be silent, babble or come in crowds:
 * there are only so many at once, and the one that came first makes room.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "core/clock.h"
#include "fabric/route.h"
#include "fabric/verbs/verbs_port.h"
#include "fabric/verbs/verbs_tcp.h"

#define BACKLOG 128
#define CALLERS_MAX 64u
#define PATIENCE_MS 5000u
#define NO_DEVICE_MS 1000u

/* Somebody who has not yet said all. */
struct caller {
	int fd;
	uint64_t deadline_ns;
	struct verbs_record said;
};

struct verbs_tcp_listener {
	int fd, timer;
	uint32_t patience_ms;
	struct caller callers[CALLERS_MAX]; /* as they came */
	unsigned count;
	struct verbs_tcp_devices devices;
	struct vb__ip bare; /* an address of ours that had no device when somebody last came to it */
	uint64_t bare_until_ns; /* not looked at again before: discovery is not for strangers to start at will */
};

/* ---- The socket ---- */

static int fail_listen(struct vb_error *err, int errnum, const char *operation, const char *at,
		       uint16_t port)
{
	int rc = verbs_fail(err, errnum, operation, at);

	if (errnum == EADDRINUSE)
		vb__error_hint(err,
			       "TCP port %u, 1000 above, is for the wire-up by TCP: choose another "
			       "port, or find who has it with `ss -ltnp`",
			       port);
	return rc;
}

/* `at` is the address of the socket, `name` the listener's. */
static int open_socket(struct verbs_pep *pep, struct vb__address *at, bool only_six,
		       const char *name, struct vb_error *err)
{
	struct verbs_tcp_listener *l = pep->tcp;
	struct sockaddr *sa = (struct sockaddr *)&at->sa;

	l->fd = socket(sa->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (l->fd < 0)
		return verbs_fail(err, errno, "socket", name);
	verbs_tcp_option(&pep->log, l->fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (sa->sa_family == AF_INET6)
		verbs_tcp_option(&pep->log, l->fd, IPPROTO_IPV6, IPV6_V6ONLY, only_six);
	if (bind(l->fd, sa, at->len) != 0)
		return fail_listen(err, errno, "bind", name, vb__address_port(at));
	if (listen(l->fd, BACKLOG) != 0)
		return fail_listen(err, errno, "listen", name, vb__address_port(at));
	if (getsockname(l->fd, sa, &at->len) != 0)
		return verbs_fail(err, errno, "getsockname", name);
	return 0;
}

/* At 1000 above the port; of a listener that may choose, the port follows from the one that is found. */
static int start(struct verbs_pep *pep, const struct vb__settings *settings,
		 const struct vb__address *at, struct vb_error *err)
{
	struct vb__address there = *at;
	uint16_t port = pep->base.port ? pep->base.port : vb__address_port(at);
	int rc;

	if (port && !verbs_tcp_port(port))
		return vb__fail(
			err, &(struct vb__failure){
				     .code = vb__address_port(at) ? VB_ERR_INVALID : VB_ERR_IN_USE,
				     .operation = "listen on",
				     .object = at->text,
				     .cause = "the wire-up by TCP needs the port 1000 above "
					      "this one, which does not exist",
				     .hint = "use a port up to 64535",
			     });
	vb__address_set_port(&there, port ? verbs_tcp_port(port) : 0);
	rc = open_socket(pep, &there, settings->family == AF_INET6, at->text, err);
	if (rc == 0)
		pep->base.port = (uint16_t)(vb__address_port(&there) - VB__WIREUP_PORT_OFFSET);
	return rc;
}

static int open_timer(struct verbs_tcp_listener *l, struct vb_error *err)
{
	l->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	return l->timer < 0 ? verbs_fail(err, errno, "timerfd_create", NULL) : 0;
}

int verbs_tcp_listen(struct verbs_pep *pep, const struct vb__settings *settings,
		     const struct vb__address *at, struct vb_error *err)
{
	struct verbs_tcp_listener *l = calloc(1, sizeof(*l));
	int rc;

	if (!l)
		return verbs_fail(err, ENOMEM, "calloc", NULL);
	pep->tcp = l;
	l->fd = l->timer = -1;
	l->patience_ms = settings->peer_timeout_ms < PATIENCE_MS ? settings->peer_timeout_ms
								 : PATIENCE_MS;
	rc = verbs_preflight("", false, err);
	if (rc == 0)
		rc = verbs_tcp_devices_open(&l->devices, pep, err);
	if (rc == 0)
		rc = open_timer(l, err);
	if (rc == 0)
		rc = start(pep, settings, at, err);
	if (rc == 0)
		rc = vb__waiter_add(&pep->waiter, l->fd, VERBS_PEP_TCP, err);
	if (rc == 0)
		rc = vb__waiter_add(&pep->waiter, l->timer, VERBS_PEP_TCP, err);
	if (rc)
		verbs_tcp_unlisten(pep);
	return rc;
}

void verbs_tcp_unlisten(struct verbs_pep *pep)
{
	struct verbs_tcp_listener *l = pep->tcp;

	if (!l)
		return;
	while (l->count)
		close(l->callers[--l->count].fd);
	verbs_tcp_devices_close(&l->devices, pep);
	if (l->fd >= 0)
		close(l->fd);
	if (l->timer >= 0)
		close(l->timer);
	free(l);
	pep->tcp = NULL;
}

/* ---- Callers ---- */

/* The timer rings when the patience with the one that has waited longest is over. */
static void set_timer(const struct verbs_pep *pep)
{
	const struct verbs_tcp_listener *l = pep->tcp;
	uint64_t at = l->count ? l->callers[0].deadline_ns : 0;
	struct itimerspec spec = { .it_value = { .tv_sec = (time_t)(at / 1000000000u),
						 .tv_nsec = (long)(at % 1000000000u) } };

	verbs_note(&pep->log, timerfd_settime(l->timer, TFD_TIMER_ABSTIME, &spec, NULL),
		   "timerfd_settime", "listener", "who is silent stays until somebody else comes");
}

/* Takes one from the list; its socket stays open. */
static void forget(struct verbs_pep *pep, unsigned index)
{
	struct verbs_tcp_listener *l = pep->tcp;

	vb__waiter_remove(&pep->waiter, l->callers[index].fd);
	l->count--;
	memmove(&l->callers[index], &l->callers[index + 1],
		(l->count - index) * sizeof(*l->callers));
}

static void hang_up(struct verbs_pep *pep, unsigned index)
{
	int fd = pep->tcp->callers[index].fd;

	forget(pep, index);
	close(fd);
}

/* Anybody can be the cause of this, again and again: so it is no warning. */
static uint8_t turn_away(const struct verbs_pep *pep, const char *peer, const struct vb_error *why,
			 uint8_t reason)
{
	char line[VB_ERROR_LINE_MAX];

	vb__log(&pep->log, VB_LOG_INFO, "%s could not be wired up: %s", peer,
		vb_error_format(why, line, sizeof(line)));
	return reason;
}

static void add_caller(struct verbs_pep *pep, int fd)
{
	struct verbs_tcp_listener *l = pep->tcp;
	struct vb_error why = { .code = VB_OK };

	verbs_tcp_option(&pep->log, fd, IPPROTO_TCP, TCP_NODELAY, 1);
	if (l->count == CALLERS_MAX)
		hang_up(pep, 0);
	if (vb__waiter_add(&pep->waiter, fd, VERBS_PEP_TCP, &why) != 0) {
		turn_away(pep, "somebody", &why, VB__WIREUP_NOT_READY);
		close(fd);
		return;
	}
	l->callers[l->count++] =
		(struct caller){ .fd = fd, .deadline_ns = vb__now_ns() + vb__ms(l->patience_ms) };
}

/* For want of memory or descriptors, later: whoever waits on the listener sees to it that this is no busy loop. */
static bool is_for_later(int errnum)
{
	return errnum == EMFILE || errnum == ENFILE || errnum == ENOBUFS || errnum == ENOMEM;
}

/* These are about one caller that has gone again, see accept(2). */
static bool is_of_the_caller(int errnum)
{
	return errnum == ECONNABORTED || errnum == EINTR || errnum == ENETDOWN ||
	       errnum == EPROTO || errnum == ENOPROTOOPT || errnum == EHOSTDOWN ||
	       errnum == ENONET || errnum == EHOSTUNREACH || errnum == EOPNOTSUPP ||
	       errnum == ENETUNREACH || errnum == EPERM;
}

/* As many as there is room for at most, so that a crowd keeps nobody else waiting. */
static int let_in(struct verbs_pep *pep, struct vb_error *err)
{
	for (unsigned i = 0; i < CALLERS_MAX; i++) {
		int fd = accept4(pep->tcp->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		int errnum = errno;

		if (fd >= 0) {
			add_caller(pep, fd);
			continue;
		}
		if (errnum == EAGAIN)
			return 0;
		if (!is_for_later(errnum) && !is_of_the_caller(errnum))
			return verbs_fail(err, errnum, "accept4", "listener");
		verbs_note(&pep->log, errnum, "accept4", "listener",
			   is_for_later(errnum) ? "it is tried again" : "a caller has gone");
		if (is_for_later(errnum))
			return 0;
	}
	return 0;
}

static uint8_t turn_elsewhere_away(const struct verbs_pep *pep, const struct vb__address *peer)
{
	struct vb_error why = { .code = VB_OK };

	vb__fail(&why, &(struct vb__failure){
			       .code = VB_ERR_PROTOCOL,
			       .operation = "accept",
			       .object = peer->text,
			       .cause = "its queue pair is at another address than it called from",
			       .hint = "no address may be translated on the way (NAT)",
		       });
	return turn_away(pep, peer->text, &why, VB__WIREUP_NOT_YOURS);
}

static bool is_bare(const struct verbs_tcp_listener *l, const struct vb__address *local)
{
	struct vb__ip ip = vb__ip_of(local);

	return vb__now_ns() < l->bare_until_ns && !memcmp(&l->bare, &ip, sizeof(ip));
}

static void note_bare(struct verbs_tcp_listener *l, const struct vb__address *local)
{
	l->bare = vb__ip_of(local);
	l->bare_until_ns = vb__now_ns() + vb__ms(NO_DEVICE_MS);
}

/* The reason to refuse, or 0 and the port. */
static uint8_t find_port(const struct verbs_pep *pep, const struct vb__address *peer, int fd,
			 uint8_t link, struct verbs_port *port)
{
	struct vb_error why = { .code = VB_OK };
	struct sockaddr_storage sa = { .ss_family = AF_UNSPEC };
	socklen_t len = sizeof(sa);
	struct vb__address local;
	int rc;

	if (getsockname(fd, (struct sockaddr *)&sa, &len) != 0) {
		verbs_fail(&why, errno, "getsockname", NULL);
		return turn_away(pep, peer->text, &why, VB__WIREUP_NOT_READY);
	}
	vb__address_from(&local, (struct sockaddr *)&sa);
	if (is_bare(pep->tcp, &local))
		return VB__WIREUP_NOT_DEVICE;
	rc = verbs_port_find(&local, pep->only_device, &pep->log, port, &why);
	if (rc == VB_ERR_NO_DEVICE)
		note_bare(pep->tcp, &local);
	if (rc)
		return turn_away(pep, peer->text, &why, VB__WIREUP_NOT_DEVICE);
	if (port->link == link)
		return 0;
	verbs_device_release(port->context, &pep->log);
	return VB__WIREUP_NOT_LINK;
}

/* The reason to refuse, or 0 and whom it came from and the port. What costs little is looked at first. */
static uint8_t examine(const struct verbs_pep *pep, int fd, const struct vb__wireup *asked,
		       struct vb__address *peer, struct verbs_port *port)
{
	struct vb_error why = { .code = VB_OK };
	struct sockaddr_storage sa = { .ss_family = AF_UNSPEC };
	socklen_t len = sizeof(sa);

	if (getpeername(fd, (struct sockaddr *)&sa, &len) != 0) {
		verbs_fail(&why, errno, "getpeername", NULL);
		return turn_away(pep, "somebody", &why, VB__WIREUP_NOT_READY);
	}
	vb__address_from(peer, (struct sockaddr *)&sa);
	if (!verbs_tcp_is_at(asked, peer))
		return turn_elsewhere_away(pep, peer);
	return find_port(pep, peer, fd, asked->link, port);
}

static struct vb__request *make_request(const struct verbs_pep *pep, int fd,
					const struct vb__wireup *asked,
					const struct vb__address *peer,
					const struct verbs_port *port)
{
	struct verbs_tcp_request *request = calloc(1, sizeof(*request));
	struct vb__request *base = request ? &request->base.base : NULL;

	if (!request) {
		verbs_note(&pep->log, ENOMEM, "calloc", peer->text, "it is turned away");
		return NULL;
	}
	base->fabric = &vb__verbs_fabric;
	base->qp_type = (enum vb__qp_type)asked->qp_type;
	memcpy(base->data, asked->data, asked->data_len);
	base->data_len = asked->data_len;
	request->base.wireup = &verbs_tcp;
	request->base.context = port->context;
	request->base.log = pep->log;
	request->fd = fd;
	request->peer = *peer;
	request->port = *port;
	request->asked = *asked;
	return base;
}

/* What a caller has said makes a request of it, or it is turned away. */
static struct vb__request *judge(struct verbs_pep *pep, const struct caller *caller)
{
	struct vb__wireup asked;
	enum vb__wireup_verdict verdict = vb__wireup_decode(&asked, caller->said.bytes);
	struct vb__request *request = NULL;
	struct verbs_port port = { .context = NULL };
	struct vb__address peer;
	uint8_t reason;

	if (verdict == VB__WIREUP_GARBAGE ||
	    (verdict == VB__WIREUP_GOOD && asked.kind != VB__WIREUP_REQUEST)) {
		close(caller->fd); /* not worth an answer */
		return NULL;
	}
	reason = verdict == VB__WIREUP_OTHER_VERSION
			 ? VB__WIREUP_NOT_VERSION
			 : examine(pep, caller->fd, &asked, &peer, &port);
	if (!reason) {
		request = make_request(pep, caller->fd, &asked, &peer, &port);
		if (request)
			return request;
		verbs_device_release(port.context, &pep->log);
		reason = VB__WIREUP_NOT_READY;
	}
	verbs_tcp_refuse(&pep->log, caller->fd, reason, NULL, 0);
	close(caller->fd);
	return NULL;
}

/* The first request among the callers, if any; who is gone or was silent for too long is forgotten. */
static struct vb__request *hear_callers(struct verbs_pep *pep)
{
	struct verbs_tcp_listener *l = pep->tcp;
	uint64_t now = vb__now_ns();
	unsigned i = 0;

	while (i < l->count) {
		struct caller *caller = &l->callers[i];
		int rc = verbs_tcp_hear(caller->fd, &caller->said);

		if (rc > 0) {
			struct caller done = *caller;
			struct vb__request *request;

			forget(pep, i);
			request = judge(pep, &done);
			if (request)
				return request;
		} else if (rc < 0 || now >= caller->deadline_ns) {
			verbs_note(&pep->log, -rc, "recv", "a caller", "it is forgotten");
			hang_up(pep, i);
		} else {
			i++;
		}
	}
	return NULL;
}

void verbs_tcp_look_after_devices(struct verbs_pep *pep)
{
	if (pep->tcp)
		verbs_tcp_devices_look_after(&pep->tcp->devices, pep);
}

int verbs_tcp_next_request(struct verbs_pep *pep, struct vb__request **request,
			   struct vb_error *err)
{
	int rc;

	if (!pep->tcp)
		return 0;
	rc = let_in(pep, err);
	if (rc)
		return rc;
	*request = hear_callers(pep);
	set_timer(pep);
	return *request ? 1 : 0;
}

void verbs_tcp_reject(struct verbs_request *base, const void *data, size_t len)
{
	struct verbs_tcp_request *request = (struct verbs_tcp_request *)base;

	verbs_tcp_refuse(&base->log, request->fd, request->reason, data, len);
	close(request->fd);
	verbs_device_release(request->port.context, &base->log);
	free(request);
}
