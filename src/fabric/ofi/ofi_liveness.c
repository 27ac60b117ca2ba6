/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is the peer's host still there? libfabric's tcp provider does not ask; the
 * kernel can. TCP keep-alives on the provider's socket make an idle peer
 * answer, and TCP_INFO tells when it was last heard. This needs no thread, and a stopped or busy peer
 * process still counts as alive, as with RDMA hardware.
 *
 * TCP_USER_TIMEOUT is not used: it also ends connections whose peer is alive
 * but has not read for that long.
 *
 * With a provider that has no such socket, its own notion of liveness stands.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "core/clock.h"
#include "fabric/ofi/ofi.h"
#include "fabric/ofi/ofi_patience.h"

#ifndef TCP_RTO_MAX_MS
#define TCP_RTO_MAX_MS 44 /* Linux 6.15 */
#endif

static void set(const struct ofi_ep *ep, int level, int option, int value)
{
	int rc = setsockopt(ep->socket, level, option, &value, sizeof(value));

	ofi_note(&ep->log, rc ? errno : 0, "setsockopt", ep->base.peer,
		 "a dead host may be noticed late");
}

/* How often the kernel repeats what is not acknowledged, as it was when first asked. -1: it does not tell. */
static int retries(void)
{
	static atomic_int known = -2;
	int count = atomic_load(&known);
	FILE *f = count == -2 ? fopen("/proc/sys/net/ipv4/tcp_retries2", "re") : NULL;

	if (count != -2)
		return count;
	if (!f || fscanf(f, "%d", &count) != 1)
		count = -1;
	if (f)
		fclose(f);
	atomic_store(&known, count);
	return count;
}

/* What goes unanswered is asked again often enough; not if that might end the connection too early. */
static void limit_pause(const struct ofi_ep *ep)
{
	int count = retries();
	uint32_t pause_ms = count < 0 ? 0
				      : ofi_patience_pause_ms(ep->peer_timeout_ms, (unsigned)count);

	if (pause_ms)
		set(ep, IPPROTO_TCP, TCP_RTO_MAX_MS, (int)pause_ms);
}

/*
 * Between two addresses of one host there is no network to be fair to, and pacing (BBR) only
 * takes time: then a plain congestion control, of those that an unprivileged user may have.
 */
static void do_not_pace(const struct ofi_ep *ep, const struct sockaddr *local,
			const struct sockaddr *peer)
{
	static const char *const plain[] = { "cubic", "reno" };

	if (!vb__address_same_host(local, peer))
		return;
	for (unsigned i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
		int rc = setsockopt(ep->socket, IPPROTO_TCP, TCP_CONGESTION, plain[i],
				    (socklen_t)strlen(plain[i]));

		if (!ofi_note(&ep->log, rc ? errno : 0, "setsockopt", ep->base.peer,
			      "its congestion control stays"))
			return;
	}
}

void ofi_liveness_start(struct ofi_ep *ep)
{
	struct sockaddr_storage local = { .ss_family = AF_UNSPEC }, peer = local;
	size_t local_len = sizeof(local), peer_len = sizeof(peer);
	int seconds = (int)(ep->peer_timeout_ms / 4000);
	struct vb__address address;

	if (ofi_note(&ep->log, fi_getname(&ep->ep->fid, &local, &local_len), "fi_getname",
		     ep->base.device, "the provider has to notice a dead host") ||
	    ofi_note(&ep->log, fi_getpeer(ep->ep, &peer, &peer_len), "fi_getpeer", ep->base.device,
		     "the provider has to notice a dead host") ||
	    (peer.ss_family != AF_INET && peer.ss_family != AF_INET6))
		return;
	if (!ep->base.peer[0]) {
		vb__address_from(&address, (struct sockaddr *)&peer);
		memcpy(ep->base.peer, address.text, sizeof(ep->base.peer));
	}
	if (ep->socket < 0) /* the guard would know */
		ep->socket = ofi_socket_find(ep->waiter.epoll, (struct sockaddr *)&local,
					     (struct sockaddr *)&peer);
	if (ep->socket < 0) {
		vb__log(&ep->log, VB_LOG_WARNING,
			"no socket of provider %s found: a dead host will not be noticed",
			ep->base.device);
		return;
	}
	/* Else a child of the application would keep the connection alive after our end. */
	ofi_note(&ep->log, fcntl(ep->socket, F_SETFD, FD_CLOEXEC) ? errno : 0, "fcntl",
		 ep->base.peer, "children keep its socket");
	do_not_pace(ep, (struct sockaddr *)&local, (struct sockaddr *)&peer);
	ep->lively = true;
	/* Idle: ask after a quarter of the time-out, then until it is over. */
	set(ep, IPPROTO_TCP, TCP_KEEPIDLE, seconds ? seconds : 1);
	set(ep, IPPROTO_TCP, TCP_KEEPINTVL, seconds ? seconds : 1);
	set(ep, IPPROTO_TCP, TCP_KEEPCNT, 3);
	set(ep, SOL_SOCKET, SO_KEEPALIVE, 1);
	limit_pause(ep);
}

/* Data waits for an acknowledgement, or probes of a closed window went unanswered. */
static bool is_silent(const struct ofi_ep *ep)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);
	int rc = getsockopt(ep->socket, IPPROTO_TCP, TCP_INFO, &info, &len);

	if (ofi_note(&ep->log, rc ? errno : 0, "getsockopt", ep->base.peer,
		     "its silence is not noticed"))
		return false;
	return info.tcpi_last_ack_recv >= ep->peer_timeout_ms / 4 &&
	       (info.tcpi_unacked || info.tcpi_probes >= 2);
}

/*
 * Comes VB__TICKS times in a peer time-out. Keep-alives are not sent while
 * data waits for an acknowledgement, and the kernel would go on repeating that
 * data for a quarter of an hour.
 */
void ofi_liveness_check(struct ofi_ep *ep)
{
	uint64_t now = vb__now_ns();

	if (ep->socket < 0 || ep->base.state != VB__EP_UP)
		return;
	if (!is_silent(ep)) {
		ep->silent_since_ns = 0;
		return;
	}
	if (!ep->silent_since_ns)
		ep->silent_since_ns = now;
	if (now - ep->silent_since_ns < vb__ms(ep->peer_timeout_ms) / 2)
		return;
	vb__ep_down_silent(&ep->base);
	ofi_lock(ep);
	ofi_note(&ep->log, fi_shutdown(ep->ep, 0), "fi_shutdown", ep->base.peer,
		 "it is down all the same");
	ofi_unlock(ep);
}
