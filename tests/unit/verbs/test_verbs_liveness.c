/* SPDX-License-Identifier: Apache-2.0 */
/* The keep-alive of an idle connection, and the time-outs that follow from the peer time-out. */
#include <errno.h>
#include <poll.h>

#include "verbs_harness.h"

#define TICK_NS (vb__ms(10000) / VB__TICKS) /* of the peer time-out of 10 s */

/* A connected endpoint, at a time that the test makes pass. */
static struct vb__ep *start_clock(void)
{
	mock_clock_ns = vb__ms(1000000);
	return harness_connect();
}

static void tick(struct vb__ep *ep, uint64_t after_ns)
{
	mock_clock_ns += after_ns;
	verbs_probe_tick(harness_inside(ep));
}

static void an_idle_connection_is_probed_by_an_empty_read(void **state)
{
	struct vb__ep *ep = start_clock();
	struct mock_wr wr;

	(void)state;
	tick(ep, TICK_NS);
	assert_int_equal(mock_count("ibv_post_send"), 1);
	wr = mock_qp_last_sent(harness_qp(ep));
	assert_int_equal(wr.opcode, IBV_WR_RDMA_READ);
	assert_int_equal(wr.num_sge, 1);
	assert_int_equal(wr.sge.length, 0);
	assert_true(wr.flags & IBV_SEND_SIGNALED);
	assert_int_equal(ep->outstanding, 0);
	vb__ep_close(ep);
}

static void a_busy_connection_is_not_probed(void **state)
{
	struct vb__ep *ep = start_clock();
	struct vb__completion done;

	(void)state;
	harness_post(ep, VB__OP_RECV, 1, 64, NULL);
	mock_clock_ns += TICK_NS - vb__ms(100);
	mock_complete_recv(harness_qp(ep), IBV_WC_SUCCESS, 1);
	assert_int_equal(vb__ep_poll(ep, &done, 1), 1);
	tick(ep, vb__ms(100));
	assert_int_equal(mock_count("ibv_post_send"), 0);
	vb__ep_close(ep);
}

static void an_endpoint_that_is_not_up_is_not_probed(void **state)
{
	struct vb__ep *ep;

	(void)state;
	mock_clock_ns = vb__ms(1000000);
	ep = harness_open();
	tick(ep, TICK_NS);
	assert_int_equal(mock_count("ibv_post_send"), 0);
	vb__ep_close(ep);
}

static void one_probe_at_a_time(void **state)
{
	struct vb__ep *ep = start_clock();

	(void)state;
	tick(ep, TICK_NS);
	tick(ep, TICK_NS / 2);
	tick(ep, TICK_NS / 2);
	assert_int_equal(mock_count("ibv_post_send"), 1);
	vb__ep_close(ep);
}

static void an_answered_probe_is_not_reported_and_allows_the_next(void **state)
{
	struct vb__ep *ep = start_clock();
	struct vb__completion done[4];

	(void)state;
	for (unsigned round = 1; round <= 5; round++) {
		tick(ep, TICK_NS);
		assert_int_equal(mock_count("ibv_post_send"), round);
		mock_complete_send(harness_qp(ep), IBV_WC_SUCCESS);
		assert_int_equal(vb__ep_poll(ep, done, 4), 0);
		assert_int_equal(ep->outstanding, 0);
	}
	assert_int_equal(ep->state, VB__EP_UP);
	vb__ep_close(ep);
}

static void the_probe_hides_no_completion_of_the_user(void **state)
{
	struct vb__ep *ep = start_clock();
	struct vb__completion done[4];

	(void)state;
	harness_post(ep, VB__OP_SEND, 1, 1000, NULL);
	tick(ep, TICK_NS);
	harness_post(ep, VB__OP_SEND, 2, 1000, NULL);
	for (int i = 0; i < 3; i++)
		mock_complete_send(harness_qp(ep), IBV_WC_SUCCESS);
	assert_int_equal(vb__ep_poll(ep, done, 4), 2);
	assert_int_equal(done[0].id, 1);
	assert_int_equal(done[1].id, 2);
	assert_int_equal(ep->outstanding, 0);
	vb__ep_close(ep);
}

/* How long after its last word a peer is given up, if ticks begin so late and go on so far apart. */
static uint64_t silence_until_lost_ms(uint64_t first_ns, uint64_t period_ns)
{
	struct vb__ep *ep = start_clock();
	uint64_t heard_ns = mock_clock_ns, silent_ms;
	struct vb__completion done[4];

	harness_post(ep, VB__OP_RECV, 1, 64, NULL);
	tick(ep, first_ns);
	while (ep->state == VB__EP_UP && mock_clock_ns - heard_ns < vb__ms(60000))
		tick(ep, period_ns);
	silent_ms = (mock_clock_ns - heard_ns) / 1000000;
	assert_int_equal(ep->state, VB__EP_DOWN);
	assert_int_equal(mock_count("ibv_post_send"), 1);
	assert_int_equal(ep->down.code, VB_ERR_LOST);
	assert_int_equal(ep->down.native, ETIMEDOUT);
	assert_contains(ep->down.cause, "does not answer");
	assert_int_equal(harness_drain(ep, done, 4), 1);
	assert_int_equal(done[0].status, VB_ERR_FLUSHED);
	vb__ep_close(ep);
	assert_int_equal(harness_end(NULL), 0);
	harness_start(NULL);
	return silent_ms;
}

/* The ticks know nothing of the last word, and are late by what the machine is busy with. */
static void an_unanswered_probe_means_lost_within_the_peer_timeout(void **state)
{
	(void)state;
	for (uint64_t first_ns = 0; first_ns <= TICK_NS; first_ns += TICK_NS / 50)
		for (int late_us = -20; late_us <= 20; late_us += 10) {
			uint64_t period_ns = (uint64_t)((int64_t)TICK_NS + late_us * 1000);

			assert_in_range(silence_until_lost_ms(first_ns, period_ns), 7500, 10000);
		}
}

static void other_signs_of_life_count_while_a_probe_waits(void **state)
{
	struct vb__ep *ep = start_clock();
	struct vb__completion done;

	(void)state;
	for (uint64_t id = 1; id <= 4; id++)
		harness_post(ep, VB__OP_RECV, id, 64, NULL);
	tick(ep, TICK_NS);
	for (int i = 0; i < 4; i++) {
		mock_complete_recv(harness_qp(ep), IBV_WC_SUCCESS, 1);
		assert_int_equal(vb__ep_poll(ep, &done, 1), 1);
		tick(ep, TICK_NS);
	}
	assert_int_equal(ep->state, VB__EP_UP);
	vb__ep_close(ep);
}

static void a_probe_that_fails_tells_why(void **state)
{
	struct vb__ep *ep = start_clock();
	struct vb__completion done[4];

	(void)state;
	tick(ep, TICK_NS);
	mock_complete_send(harness_qp(ep), IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(vb__ep_poll(ep, done, 4), 0);
	assert_int_equal(ep->state, VB__EP_DOWN);
	assert_int_equal(ep->down.native, IBV_WC_RETRY_EXC_ERR);
	vb__ep_close(ep);
}

static void a_probe_that_cannot_be_posted_is_tried_again(void **state)
{
	struct vb__ep *ep = start_clock();

	(void)state;
	mock_fail_call("ibv_post_send", 1, ENOMEM);
	tick(ep, TICK_NS);
	assert_int_equal(ep->state, VB__EP_UP);
	tick(ep, TICK_NS);
	assert_int_equal(mock_qp_last_sent(harness_qp(ep)).opcode, IBV_WR_RDMA_READ);
	vb__ep_close(ep);
}

static void the_probe_fits_beside_a_full_send_queue(void **state)
{
	struct vb__ep *ep = start_clock();

	(void)state;
	for (uint64_t id = 0; id < ep->send_depth; id++)
		harness_post(ep, VB__OP_SEND, id, 1000, NULL);
	tick(ep, TICK_NS);
	assert_int_equal(mock_qp_last_sent(harness_qp(ep)).opcode, IBV_WR_RDMA_READ);
	assert_true(harness_inside(ep)->probe.outstanding);
	vb__ep_close(ep);
}

/* The one test here in real time: the ticks reach somebody who only sleeps on the descriptor. */
static void a_sleeper_learns_that_the_peer_is_lost(void **state)
{
	struct pollfd p = { .events = POLLIN };
	struct vb__ep *ep;

	(void)state;
	harness_settings.peer_timeout_ms = 200;
	ep = harness_connect();
	p.fd = ep->wait_fd;
	while (ep->state == VB__EP_UP) {
		if (vb__ep_arm(ep) == 0)
			assert_int_equal(poll(&p, 1, 10000), 1);
	}
	assert_int_equal(ep->down.code, VB_ERR_LOST);
	vb__ep_close(ep);
}

static void the_device_does_not_give_up_before_the_peer_timeout(void **state)
{
	struct verbs_ep ep = { .tuning.retries = 6 };
	uint8_t last = 0;

	(void)state;
	for (uint32_t ms = 200; ms <= 60000; ms += 100) {
		uint8_t n;

		ep.peer_timeout_ms = ms;
		n = verbs_ack_timeout(&ep);

		assert_true(n >= last);
		assert_true(n < 32); /* five bits */
		assert_true(7 * (UINT64_C(4096) << n) >= vb__ms(ms));
		/* And it is not longer than it must be. */
		assert_true(7 * (UINT64_C(4096) << (n - 1)) < vb__ms(ms));
		last = n;
	}
}

static void what_a_driver_loses_at_the_end_is_given_up(void **state)
{
	struct vb__ep *ep = start_clock();
	struct vb__completion done[8];

	(void)state;
	assert_int_equal(harness_post(ep, VB__OP_SEND, 1, 1000, NULL), 0);
	mock_lose_flushes = true;
	vb__ep_disconnect(ep);
	assert_int_equal(harness_drain(ep, done, 8), 0);
	tick(ep, TICK_NS);
	assert_int_equal(ep->outstanding, 1);
	tick(ep, vb__ms(900));
	assert_int_equal(ep->outstanding, 1);
	tick(ep, vb__ms(200));
	assert_int_equal(ep->outstanding, 0);
	assert_null(harness_qp(ep)); /* so that nothing of it can happen */
	harness_teardown_from = mock_calls();
	vb__ep_close(ep);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		VERBS_TEST(an_idle_connection_is_probed_by_an_empty_read),
		VERBS_TEST(a_busy_connection_is_not_probed),
		VERBS_TEST(an_endpoint_that_is_not_up_is_not_probed),
		VERBS_TEST(one_probe_at_a_time),
		VERBS_TEST(an_answered_probe_is_not_reported_and_allows_the_next),
		VERBS_TEST(the_probe_hides_no_completion_of_the_user),
		VERBS_TEST(an_unanswered_probe_means_lost_within_the_peer_timeout),
		VERBS_TEST(other_signs_of_life_count_while_a_probe_waits),
		VERBS_TEST(a_probe_that_fails_tells_why),
		VERBS_TEST(a_probe_that_cannot_be_posted_is_tried_again),
		VERBS_TEST(the_probe_fits_beside_a_full_send_queue),
		VERBS_TEST(a_sleeper_learns_that_the_peer_is_lost),
		VERBS_TEST(the_device_does_not_give_up_before_the_peer_timeout),
		VERBS_TEST(what_a_driver_loses_at_the_end_is_given_up),
	};

	return cmocka_run_group_tests_name("verbs_liveness", tests, NULL, NULL);
}
