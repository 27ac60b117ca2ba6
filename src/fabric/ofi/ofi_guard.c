/* SPDX-License-Identifier: Apache-2.0 */
#include "fabric/ofi/ofi_guard.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fabric/fabric.h"
#include "fabric/ofi/ofi_frames.h"
#include "fabric/ofi/ofi_imports.h"

#define PAGE 4096

/* A socket of ours. libfabric lets one thread at a time work on it, and closes it with its endpoint only. */
struct watched {
	bool listens;
	atomic_bool struck, silent, behind;
	struct ofi_frames frames;
};

struct page {
	_Atomic(struct watched *) sockets[PAGE];
};

/* By descriptor. Pages stay. */
static _Atomic(struct page *) pages[PAGE];

static _Thread_local bool ours, within, only_six;
static _Thread_local int connecting = -1;

void ofi_guard_begin(const struct fi_info *info, bool family_six)
{
	const char *provider = info->fabric_attr->prov_name;

	/* For some versions there are two of it; what both send is the same. */
	ours = strcmp(provider, "tcp") == 0 || strcmp(provider, "net") == 0;
	within = true;
	only_six = family_six;
	connecting = -1;
}

int ofi_guard_end(void)
{
	ours = within = false;
	return connecting;
}

static struct watched *find(int fd)
{
	unsigned n = (unsigned)fd / PAGE;
	struct page *page = fd >= 0 && n < PAGE ? atomic_load(&pages[n]) : NULL;

	return page ? atomic_load(&page->sockets[(unsigned)fd % PAGE]) : NULL;
}

static struct page *page_for(unsigned n)
{
	struct page *page = atomic_load(&pages[n]), *fresh;

	if (page)
		return page;
	fresh = calloc(1, sizeof(*fresh));
	if (fresh && !atomic_compare_exchange_strong(&pages[n], &page, fresh)) {
		free(fresh);
		return page;
	}
	return fresh;
}

static void forget(int fd)
{
	if (find(fd))
		free(atomic_exchange(
			&atomic_load(&pages[(unsigned)fd / PAGE])->sockets[(unsigned)fd % PAGE],
			NULL));
}

static int watch(int fd, bool listens)
{
	unsigned n = (unsigned)fd / PAGE;
	struct page *page = n < PAGE ? page_for(n) : NULL;
	struct watched *w = page ? calloc(1, sizeof(*w)) : NULL;

	forget(fd);
	if (!w) {
		errno = ENOMEM;
		return -1;
	}
	w->listens = listens;
	ofi_frames_start(&w->frames);
	atomic_store(&page->sockets[(unsigned)fd % PAGE], w);
	return 0;
}

bool ofi_guard_has_struck(int socket)
{
	struct watched *w = find(socket);

	return w && atomic_load(&w->struck);
}

bool ofi_guard_saw_silence(int socket)
{
	struct watched *w = find(socket);

	return w && atomic_load(&w->silent);
}

bool ofi_guard_is_behind(int socket)
{
	struct watched *w = find(socket);

	return w && atomic_load_explicit(&w->behind, memory_order_relaxed);
}

/* ---- What goes through ---- */

/* A socket tells only once why it has ended, and libfabric does not tell us. */
static void note_end(struct watched *w, ssize_t n)
{
	if (w && n < 0 && vb__errno_is_silence(errno))
		atomic_store(&w->silent, true);
}

static ssize_t strike(int fd, struct watched *w)
{
	atomic_store(&w->struck, true);
	shutdown(fd, SHUT_RDWR); /* so that it is looked at again, and found to be over */
	errno = ECONNRESET;
	return -1;
}

/* How many of `n` bytes that were received may be seen. */
static ssize_t let_through(int fd, struct watched *w, const struct iovec *iov, ssize_t n)
{
	size_t good = 0;

	for (size_t left = (size_t)n; left; iov++) {
		size_t len = iov->iov_len < left ? iov->iov_len : left;
		size_t seen = ofi_frames_received(&w->frames, iov->iov_base, len);

		good += seen;
		left -= len;
		if (seen < len) {
			strike(fd, w);
			return good ? (ssize_t)good : -1;
		}
	}
	return n;
}

/* What the socket has no room for libfabric keeps, and tries again when it is asked for anything. */
static bool is_short(size_t wanted, ssize_t n)
{
	return n < 0 ? errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR || errno == ENOBUFS
		     : (size_t)n < wanted;
}

static void note_sent(int fd, const struct iovec *iov, size_t count, ssize_t n)
{
	struct watched *w = find(fd);
	size_t wanted = 0;

	if (!w)
		return;
	for (size_t i = 0; i < count; i++)
		wanted += iov[i].iov_len;
	atomic_store_explicit(&w->behind, is_short(wanted, n), memory_order_relaxed);
	note_end(w, n);
	for (size_t left = n > 0 ? (size_t)n : 0; left; iov++) {
		size_t len = iov->iov_len < left ? iov->iov_len : left;

		ofi_frames_sent(&w->frames, iov->iov_base, len);
		left -= len;
	}
}

/* ---- In place of the C library's ---- */

static ssize_t guarded_recv(int fd, void *bytes, size_t len, int flags)
{
	struct iovec iov = { .iov_base = bytes, .iov_len = len };
	struct watched *w = find(fd);
	ssize_t n;

	if (w && atomic_load(&w->struck))
		return strike(fd, w);
	/* The provider reads a hello from a socket that blocks, as if it had come in one piece. */
	n = recv(fd, bytes, len, w ? flags | MSG_DONTWAIT : flags);
	note_end(w, n);
	return w && n > 0 && !(flags & MSG_PEEK) ? let_through(fd, w, &iov, n) : n;
}

/* The queue of errors has none of the peer's bytes. */
static ssize_t guarded_recvmsg(int fd, struct msghdr *msg, int flags)
{
	struct watched *w = find(fd);
	ssize_t n;

	if (w && atomic_load(&w->struck))
		return strike(fd, w);
	n = recvmsg(fd, msg, flags);
	note_end(w, n);
	return w && n > 0 && !(flags & (MSG_PEEK | MSG_ERRQUEUE))
		       ? let_through(fd, w, msg->msg_iov, n)
		       : n;
}

static ssize_t guarded_send(int fd, const void *bytes, size_t len, int flags)
{
	struct iovec iov = { .iov_base = (void *)bytes, .iov_len = len };
	ssize_t n = send(fd, bytes, len, flags);

	note_sent(fd, &iov, 1, n);
	return n;
}

static ssize_t guarded_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	ssize_t n = sendmsg(fd, msg, flags);

	note_sent(fd, msg->msg_iov, msg->msg_iovlen, n);
	return n;
}

static int guarded_connect(int fd, const struct sockaddr *sa, socklen_t len)
{
	forget(fd);
	if (ours && watch(fd, false) != 0)
		return -1;
	connecting = ours ? fd : -1;
	return connect(fd, sa, len);
}

/* libfabric leaves it to the system whether an address of IPv6 serves IPv4 as well. */
static int guarded_bind(int fd, const struct sockaddr *sa, socklen_t len)
{
	int only = only_six;

	if (within && sa->sa_family == AF_INET6 &&
	    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof(only)) != 0)
		return -1;
	return bind(fd, sa, len);
}

static int guarded_listen(int fd, int backlog)
{
	forget(fd);
	if (ours && watch(fd, true) != 0)
		return -1;
	return listen(fd, backlog);
}

static int guarded_accept(int fd, struct sockaddr *sa, socklen_t *len)
{
	struct watched *listener = find(fd);
	int accepted = accept(fd, sa, len);

	if (accepted < 0)
		return accepted;
	forget(accepted);
	if (listener && listener->listens && watch(accepted, false) != 0) {
		close(accepted);
		errno = ECONNABORTED;
		return -1;
	}
	return accepted;
}

static int guarded_close(int fd)
{
	forget(fd);
	return close(fd);
}

bool ofi_guard_install(void *library)
{
	static const struct ofi_import imports[] = {
		{ "recv", (ofi_function)guarded_recv },
		{ "recvmsg", (ofi_function)guarded_recvmsg },
		{ "send", (ofi_function)guarded_send },
		{ "sendmsg", (ofi_function)guarded_sendmsg },
		{ "connect", (ofi_function)guarded_connect },
		{ "bind", (ofi_function)guarded_bind },
		{ "listen", (ofi_function)guarded_listen },
		{ "accept", (ofi_function)guarded_accept },
		{ "close", (ofi_function)guarded_close },
	};

	return ofi_imports_replace(library, imports, sizeof(imports) / sizeof(imports[0]));
}
