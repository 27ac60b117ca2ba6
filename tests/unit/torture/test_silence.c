/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel says of a connection whose peer's host was silent for too long, and libfabric passes on, or
 * swallows: the channel is lost, in the words that it has for that. The kernel is this test.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>
#include <verbatim/verbatim.h>

static atomic_int sending, receiving; /* what calls fail with; 0: they do not */

__typeof__(recv) __real_recv, __wrap_recv;
__typeof__(recvmsg) __real_recvmsg, __wrap_recvmsg;
__typeof__(send) __real_send, __wrap_send;
__typeof__(sendmsg) __real_sendmsg, __wrap_sendmsg;

static bool fails(atomic_int *with)
{
	int errnum = atomic_load(with);

	if (errnum)
		errno = errnum;
	return errnum;
}

ssize_t __wrap_recv(int fd, void *bytes, size_t len, int flags)
{
	return fails(&receiving) ? -1 : __real_recv(fd, bytes, len, flags);
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags)
{
	return fails(&receiving) ? -1 : __real_recvmsg(fd, msg, flags);
}

ssize_t __wrap_send(int fd, const void *bytes, size_t len, int flags)
{
	return fails(&sending) ? -1 : __real_send(fd, bytes, len, flags);
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	return fails(&sending) ? -1 : __real_sendmsg(fd, msg, flags);
}

static const struct vb_options options = { .fabric = VB_FABRIC_OFI, .connect_timeout_ms = 5000 };

static void *accept_one(void *listener)
{
	struct vb_channel *ch = NULL;

	vb_listener_accept(listener, &ch, NULL);
	return ch;
}

/* Both ends of a channel. */
static void open_pair(struct vb_channel *ends[2])
{
	struct vb_listener *listener;
	void *accepted;
	pthread_t thread;
	char port[8];

	assert_int_equal(vb_listener_open("127.0.0.1", "0", &options, &listener, NULL), 0);
	snprintf(port, sizeof(port), "%d", vb_listener_port(listener));
	assert_int_equal(pthread_create(&thread, NULL, accept_one, listener), 0);
	assert_int_equal(vb_channel_connect("127.0.0.1", port, &options, &ends[0], NULL), 0);
	pthread_join(thread, &accepted);
	assert_non_null(accepted);
	ends[1] = accepted;
	vb_listener_close(listener);
}

static void close_pair(struct vb_channel *ends[2])
{
	sending = receiving = 0;
	vb_channel_abort(ends[0]);
	vb_channel_abort(ends[1]);
}

static void assert_silence(const struct vb_error *err)
{
	assert_int_equal(err->code, VB_ERR_LOST);
	assert_non_null(strstr(err->cause, "host does not answer any more"));
	assert_non_null(strstr(err->hint, "check the peer"));
}

static const int reasons[] = { ETIMEDOUT, EHOSTUNREACH, ENETUNREACH };
#define REASONS (sizeof(reasons) / sizeof(reasons[0]))

static void who_sends_to_a_silent_host_has_lost_it(void **state)
{
	(void)state;
	for (unsigned i = 0; i < REASONS; i++) {
		struct vb_channel *ends[2];
		struct vb_error err;
		int rc;

		open_pair(ends);
		sending = reasons[i];
		do
			rc = vb_channel_send(ends[0], "x", 1, &err);
		while (rc == 0);
		assert_silence(&err);
		close_pair(ends);
	}
}

static void who_receives_from_a_silent_host_has_lost_it(void **state)
{
	(void)state;
	for (unsigned i = 0; i < REASONS; i++) {
		struct vb_channel *ends[2];
		const void *message;
		struct vb_error err;

		open_pair(ends);
		receiving = reasons[i];
		vb_channel_send(ends[1], "x", 1, NULL); /* so that libfabric looks */
		assert_true(vb_channel_recv(ends[0], &message, &err) < 0);
		assert_silence(&err);
		close_pair(ends);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_sends_to_a_silent_host_has_lost_it),
		cmocka_unit_test(who_receives_from_a_silent_host_has_lost_it),
	};

	return cmocka_run_group_tests_name("silence", tests, NULL, NULL);
}
