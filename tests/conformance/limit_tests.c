/* SPDX-License-Identifier: Apache-2.0 */
/* Limits in time: a peer that is alive, but whose program does not go on. */
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <verbatim/memory.h>

#include "core/clock.h"
#include "harness.h"

/* A peer that is there, but takes and says nothing until it is told to. */
static void idle_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);
	const void *message;

	await_step(side, 0);
	while (recv_well(ch, &message) != 1)
		;
	vb_channel_send(ch, "now", 3, NULL);
	await_step(side, 1);
	while (vb_channel_recv(ch, &message, NULL) >= 0)
		;
	await_step(side, 2);
	vb_channel_abort(ch);
}

#define LIMIT_MS 50u

/* Not before the limit, and soon after it: the machine may be busy. */
static void expect_timeout(int64_t rc, const struct vb_error *err, uint64_t began)
{
	uint64_t took = vb__now_ns() - began;

	CHECK_EQ(rc, VB_ERR_TIMEOUT);
	CHECK_EQ(err->code, VB_ERR_TIMEOUT);
	CHECK(strstr(err->cause, "its program does not go on"));
	CHECK(err->operation[0] && err->object[0] && strstr(err->hint, "50 ms"));
	CHECK(took >= vb__ms(LIMIT_MS) && took < vb__ms(5000));
}

static void limited_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	static uint8_t buffer[60000];
	struct iovec piece = { buffer, sizeof(buffer) };
	struct vb_counters counters;
	const void *message;
	struct vb_error err;
	uint32_t number;
	uint64_t began;
	int rc;

	vb_channel_set_timeout(ch, LIMIT_MS);
	began = vb__now_ns();
	expect_timeout(vb_channel_recv(ch, &message, &err), &err, began);
	began = vb__now_ns();
	expect_timeout(vb_notice_wait(ch, &number, &err), &err, began);
	do
		began = vb__now_ns();
	while ((rc = vb_channel_send(ch, buffer, sizeof(buffer), &err)) == 0);
	expect_timeout(rc, &err, began);
	vb_channel_counters(ch, &counters);
	CHECK(counters.messages_sent >= 2); /* as many as are buffered */
	CHECK_EQ(counters.bytes_copied, counters.bytes_sent);
	began = vb__now_ns();
	expect_timeout(vb_channel_post(ch, &piece, 1, &err), &err, began);
	signal_step(side, 0);
	vb_channel_set_timeout(ch, 0);
	CHECK_EQ(vb_channel_send(ch, buffer, 1, &err), 0); /* nothing is lost, and it goes on */
	CHECK_EQ(recv_well(ch, &message), 3);
	vb_channel_set_timeout(ch, LIMIT_MS);
	while ((rc = vb_channel_send(ch, buffer, 100, &err)) == 0)
		;
	CHECK_EQ(rc, VB_ERR_TIMEOUT);
	began = vb__now_ns();
	expect_timeout(vb_channel_finish(ch, &err), &err, began);
	CHECK_EQ(vb_channel_send(ch, buffer, 1, &err), VB_ERR_INVALID);
	signal_step(side, 1);
	vb_channel_set_timeout(ch, 0);
	CHECK_EQ(vb_channel_finish(ch, &err), 0);
	vb_channel_set_timeout(ch, LIMIT_MS);
	expect_timeout(vb_channel_recv(ch, &message, &err), &err, vb__now_ns() - vb__ms(LIMIT_MS));
	signal_step(side, 2);
	vb_channel_abort(ch);
}

static void unwilling_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);

	await_step(side, 0);
	vb_channel_abort(ch);
}

static void limited_close_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	struct vb_error err;
	uint64_t began;

	vb_channel_set_timeout(ch, LIMIT_MS);
	while (vb_channel_send(ch, "unwanted", 8, NULL) == 0)
		;
	began = vb__now_ns();
	expect_timeout(vb_channel_close(ch, &err), &err, began);
	signal_step(side, 0);
}

static double cpu_ms(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e3;
}

/* By default; to poll is an option. */
static void sleeping_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	const void *message;
	struct vb_error err;
	double before;

	vb_channel_set_timeout(ch, 1000);
	before = cpu_ms();
	CHECK_EQ(vb_channel_recv(ch, &message, &err), VB_ERR_TIMEOUT);
	while (vb_channel_send(ch, "unwanted", 8, NULL) == 0)
		;
	CHECK(cpu_ms() - before < 500); /* of two seconds */
	signal_step(side, 0);
	vb_channel_abort(ch);
}

static void late_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);

	await_step(side, 0);
	send_well(ch, "now", 3);
	expect_eof(ch);
	close_well(ch);
}

/* The message came in time; we are late, as we were stopped. */
static void stopped_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	const void *message;
	pid_t helper, self = getpid();

	vb_channel_set_timeout(ch, 500);
	helper = fork();
	if (helper == 0) {
		sleep_ms(50);
		kill(self, SIGSTOP);
		signal_step(side, 0);
		sleep_ms(1000);
		kill(self, SIGCONT);
		_exit(0);
	}
	CHECK_EQ(recv_well(ch, &message), 3);
	waitpid(helper, NULL, 0);
	vb_channel_set_timeout(ch, 0);
	close_well(ch);
}

struct limited {
	struct vb_channel *channel;
	bool sends;
};

static void *wait_in_vain(void *arg)
{
	struct limited *l = arg;
	const void *message;
	struct vb_error err;
	uint64_t began = vb__now_ns();

	if (l->sends)
		expect_timeout(vb_channel_send(l->channel, "more", 4, &err), &err, began);
	else
		expect_timeout(vb_channel_recv(l->channel, &message, &err), &err, began);
	return NULL;
}

/* One sleeps at the descriptor, the others beside it: each has its own limit. */
static void limited_threads_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	struct limited each[] = { { ch, false }, { ch, true }, { ch, true } };
	pthread_t threads[3];

	vb_channel_set_timeout(ch, LIMIT_MS);
	while (vb_channel_send(ch, "unwanted", 8, NULL) == 0)
		;
	for (unsigned i = 0; i < 3; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, wait_in_vain, &each[i]), 0);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	signal_step(side, 0);
	vb_channel_abort(ch);
}

const struct test limit_tests[] = {
	{ "peer_that_does_not_go_on_is_waited_for_as_long_as_wanted", idle_server, limited_client },
	{ "peer_that_takes_nothing_is_left_when_it_is_time", unwilling_server,
	  limited_close_client },
	{ "waiting_takes_no_cpu", unwilling_server, sleeping_client },
	{ "message_that_came_in_time_is_received_by_who_is_late", late_server, stopped_client },
	{ NULL },
};

const struct test limit_thread_tests[] = {
	{ "every_thread_has_its_own_time_limit", unwilling_server, limited_threads_client },
	{ NULL },
};
