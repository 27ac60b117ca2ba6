/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whoever calls at the tcp provider's port and does not go on. The provider
 * takes every connection at once, and waits without end for what the caller
 * has to say: each costs us a descriptor, and half of a request makes it wait
 * inside a read. So the kernel keeps a connection to itself until something
 * has come by it, no read waits long, and when descriptors run short those who
 * have been silent for a while are hung up on. That is a shutdown: the
 * descriptor is the provider's, who sees the end and closes it.
 *
 * With a provider that has no such sockets nothing of this happens.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "fabric/ofi/ofi.h"

/* As the kernel counts; glibc's header has it, but not all of what we ask for. */
#define ESTABLISHED 1
#define FIRST_WORD_S 30
#define READ_US 1000
#define SILENT_MS 2000u
#define LOOK_MS 1000u
/* So many are in use: it is time to look whose they are. */
#define MANY_FDS 4096
/* Of the time, looking may take so little. */
#define LOOK_SHARE 50u

void ofi_callers_start(struct ofi_pep *pep, const struct sockaddr *local)
{
	const struct timeval patience = { .tv_usec = READ_US };
	const int first_word_s = FIRST_WORD_S;
	int fd = ofi_socket_find(pep->base.wait_fd, local, NULL);

	if (fd < 0)
		return;
	ofi_note(&pep->log,
		 setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &first_word_s, sizeof(first_word_s))
			 ? errno
			 : 0,
		 "setsockopt", "listener", "silent callers take a descriptor each");
	/* Those who are accepted inherit it; for where libfabric is not guarded. */
	ofi_note(&pep->log,
		 setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) ? errno : 0,
		 "setsockopt", "listener", "a caller may keep us waiting");
}

/* At one address of a listener at all of them, the port decides. */
static bool is_called_there(const struct sockaddr_storage *at, const struct sockaddr_storage *mine)
{
	struct vb__address listening, accepted;
	struct sockaddr_storage any = { .ss_family = at->ss_family };

	vb__address_from(&listening, (const struct sockaddr *)at);
	vb__address_from(&accepted, (const struct sockaddr *)mine);
	if (vb__address_port(&listening) != vb__address_port(&accepted))
		return false;
	return vb__address_same_host((const struct sockaddr *)at, (struct sockaddr *)&any) ||
	       vb__address_same_host((const struct sockaddr *)at, (const struct sockaddr *)mine);
}

static bool is_caller(int fd, const struct sockaddr_storage *listening)
{
	struct sockaddr_storage mine = { .ss_family = AF_UNSPEC }, peer;
	socklen_t len = sizeof(mine);

	if (getsockname(fd, (struct sockaddr *)&mine, &len) != 0 ||
	    (mine.ss_family != AF_INET && mine.ss_family != AF_INET6) ||
	    !is_called_there(listening, &mine))
		return false;
	len = sizeof(peer);
	return getpeername(fd, (struct sockaddr *)&peer, &len) == 0;
}

/* Nothing has come for a while, all that came was read, and it was not worth an answer. Whoever is in a channel has had one. */
static bool is_silent(int fd)
{
	struct tcp_info info = { .tcpi_state = 0 };
	socklen_t len = sizeof(info);
	int unread;

	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 &&
	       len >= offsetof(struct tcp_info, tcpi_delivery_rate) &&
	       info.tcpi_state == ESTABLISHED && info.tcpi_data_segs_out == 0 &&
	       info.tcpi_last_data_recv >= SILENT_MS && ioctl(fd, FIONREAD, &unread) == 0 &&
	       unread == 0;
}

/* How many descriptors are in use, if they are many: all below the first free one, or all that there may be. */
static int many_in_use(void)
{
	struct rlimit limit = { .rlim_cur = 0 };
	int few, first_free = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);

	getrlimit(RLIMIT_NOFILE, &limit);
	few = limit.rlim_cur / 2 < MANY_FDS ? (int)(limit.rlim_cur / 2) : MANY_FDS;
	if (first_free >= 0)
		close(first_free);
	else if (errno == EMFILE)
		first_free = limit.rlim_cur < INT32_MAX ? (int)limit.rlim_cur : INT32_MAX;
	return first_free > few ? first_free : 0;
}

static unsigned hang_up_on_the_silent(const struct sockaddr_storage *listening, int in_use)
{
	unsigned count = 0;

	for (int fd = 0; fd < in_use; fd++)
		if (is_caller(fd, listening) && is_silent(fd))
			count += shutdown(fd, SHUT_RDWR) == 0;
	return count;
}

void ofi_callers_look_after(struct ofi_pep *pep)
{
	struct sockaddr_storage listening = { .ss_family = AF_UNSPEC };
	size_t len = sizeof(listening);
	uint64_t now = vb__now_ns();
	unsigned count;
	int in_use;

	if (now < pep->look_next_ns)
		return;
	in_use = many_in_use();
	if (in_use && fi_getname(&pep->pep->fid, &listening, &len) == 0) {
		count = hang_up_on_the_silent(&listening, in_use);
		if (count)
			vb__log(&pep->log, VB_LOG_WARNING,
				"descriptors run short: hung up on %u who called and said nothing",
				count);
	}
	pep->look_next_ns = vb__now_ns() + vb__ms(LOOK_MS) + (vb__now_ns() - now) * LOOK_SHARE;
}
