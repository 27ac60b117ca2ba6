/* SPDX-License-Identifier: Apache-2.0 */
/* Plain sockets for the other end of a wire-up by TCP. */
#include "tcp_peer.h"

#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

const struct vb__wireup tcp_peer_pair = {
	.kind = VB__WIREUP_REPLY,
	.version = VB__WIREUP_VERSION,
	.link = VB__WIREUP_ETHERNET,
	.mtu = 1024,
	.qpn = 0x4711,
	.psn = 0xabcdef,
	.gid = { [10] = 0xff, 0xff, 127, 0, 0, 1 },
	.responder_resources = 4,
	.initiator_depth = 2,
	.data = "yes",
	.data_len = 4,
};

static pid_t peer;
static int heard = -1; /* a pipe: what it was told */

int tcp_start(void **state)
{
	harness_start(state);
	harness_settings.wireup = VB_WIREUP_TCP;
	mock_device.port.active_mtu = IBV_MTU_4096;
	return 0;
}

static struct sockaddr_in loopback(uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(port),
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

struct vb__address tcp_address(uint16_t port)
{
	struct sockaddr_in sa = loopback(port);
	struct vb__address at;

	vb__address_from(&at, (struct sockaddr *)&sa);
	return at;
}

static bool read_all(int fd, void *to, size_t len)
{
	for (size_t have = 0; have < len;) {
		ssize_t n = read(fd, (uint8_t *)to + have, len - have);

		if (n <= 0)
			return false;
		have += (size_t)n;
	}
	return true;
}

static void write_all(int fd, const void *from, size_t len)
{
	if (write(fd, from, len) != (ssize_t)len)
		_exit(1);
}

/* ---- It listens ---- */

static void await_end(int fd)
{
	char byte;

	while (read(fd, &byte, 1) > 0)
		;
}

static void be_peer(int listener, enum tcp_manners manners, const struct vb__wireup *answer,
		    int report)
{
	uint8_t bytes[VB__WIREUP_BYTES];
	int fd = accept(listener, NULL, NULL);

	if (fd < 0 || !read_all(fd, bytes, sizeof(bytes)))
		_exit(0);
	write_all(report, bytes, sizeof(bytes));
	if (manners == TCP_CLOSES)
		_exit(0);
	memset(bytes, '?', sizeof(bytes));
	if (manners == TCP_POLITE)
		vb__wireup_encode(bytes, answer);
	if (manners != TCP_SILENT)
		write_all(fd, bytes, sizeof(bytes));
	if (manners == TCP_POLITE && read_all(fd, bytes, sizeof(bytes)))
		write_all(report, bytes, sizeof(bytes));
	await_end(fd);
	_exit(0);
}

struct vb__address tcp_peer_listen(enum tcp_manners manners, const struct vb__wireup *answer)
{
	struct sockaddr_in sa = loopback(0);
	socklen_t len = sizeof(sa);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), ends[2];
	struct vb__address at;

	assert_int_equal(bind(listener, (struct sockaddr *)&sa, len), 0);
	assert_int_equal(listen(listener, 8), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&sa, &len), 0);
	assert_int_equal(pipe(ends), 0);
	peer = fork();
	assert_true(peer >= 0);
	if (peer == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		be_peer(listener, manners, answer, ends[1]);
	}
	close(listener);
	close(ends[1]);
	heard = ends[0];
	sa.sin_port = htons((uint16_t)(ntohs(sa.sin_port) - VB__WIREUP_PORT_OFFSET));
	vb__address_from(&at, (struct sockaddr *)&sa);
	return at;
}

static bool next_heard(struct vb__wireup *record)
{
	uint8_t bytes[VB__WIREUP_BYTES];

	return read_all(heard, bytes, sizeof(bytes)) &&
	       vb__wireup_decode(record, bytes) == VB__WIREUP_GOOD;
}

bool tcp_peer_heard(struct vb__wireup *request, struct vb__wireup *ready)
{
	return next_heard(request) && (!ready || next_heard(ready));
}

void tcp_peer_end(void)
{
	kill(peer, SIGKILL);
	waitpid(peer, NULL, 0);
	close(heard);
}

/* ---- It connects ---- */

/* Not those that are made to fail. */
int __real_socket(int domain, int type, int protocol);
int __real_connect(int fd, const struct sockaddr *sa, socklen_t len);
int __real_setsockopt(int fd, int level, int name, const void *value, socklen_t len);

int tcp_peer_call(const struct vb__pep *pep)
{
	struct sockaddr_in sa = loopback((uint16_t)(pep->port + VB__WIREUP_PORT_OFFSET));
	const struct timeval patience = { .tv_sec = 10 };
	int fd = __real_socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(
		__real_setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
	assert_int_equal(__real_connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	return fd;
}

void tcp_peer_say(int fd, const struct vb__wireup *record)
{
	uint8_t bytes[VB__WIREUP_BYTES];

	vb__wireup_encode(bytes, record);
	assert_int_equal(write(fd, bytes, sizeof(bytes)), sizeof(bytes));
}

bool tcp_peer_hear(int fd, struct vb__wireup *record)
{
	uint8_t bytes[VB__WIREUP_BYTES];

	return read_all(fd, bytes, sizeof(bytes)) &&
	       vb__wireup_decode(record, bytes) == VB__WIREUP_GOOD;
}

int tcp_next(struct vb__pep *pep, struct vb__request **request, int fd, struct vb_error *err)
{
	struct pollfd p[] = { { .fd = fd, .events = POLLIN },
			      { .fd = pep->wait_fd, .events = POLLIN } };

	for (int tries = 0; tries < 100; tries++) {
		int rc = vb__pep_next(pep, request, err);

		if (rc || harness_readable(fd))
			return rc;
		assert_true(poll(p, 2, 10000) > 0);
	}
	fail_msg("the listener is awake for nothing");
	return 0;
}

struct vb__ep *tcp_peer_request(struct vb__pep *pep, int fd, const struct vb__wireup *asked)
{
	struct vb_error err = { .code = VB_OK };
	struct vb__request *request;
	struct vb__ep *ep = NULL;

	tcp_peer_say(fd, asked);
	assert_int_equal(tcp_next(pep, &request, fd, &err), 1);
	if (vb__ep_accept_open(request, &harness_attr, &ep, &err) != 0)
		fail_msg("accept_open: %s: %s", err.operation, err.cause);
	return ep;
}

struct vb__pep *tcp_listen(void)
{
	struct vb__address at = tcp_address(0);
	struct vb_error err = { .code = VB_OK };
	struct vb__pep *pep = NULL;

	if (vb__pep_open(&vb__verbs_fabric, &harness_settings, &at, &pep, &err) != 0)
		fail_msg("listen: %s: %s", err.operation, err.cause);
	return pep;
}
