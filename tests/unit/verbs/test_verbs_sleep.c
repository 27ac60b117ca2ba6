/* SPDX-License-Identifier: Apache-2.0 */
/* Getting ready to sleep, and waking up: nothing is slept over, and little is asked of the system. */
#include "verbs_harness.h"

static void one_event_may_stand_for_many_completions_or_none(void **state)
{
	struct vb__ep *ep = harness_connect();
	struct vb__completion done[8];

	(void)state;
	for (uint64_t id = 1; id <= 4; id++)
		harness_post(ep, VB__OP_RECV, id, 64, NULL);
	assert_true(harness_arm(ep));
	assert_false(harness_readable(ep->wait_fd));
	for (uint32_t i = 1; i <= 4; i++)
		mock_complete_recv(harness_qp(ep), IBV_WC_SUCCESS, i);
	assert_true(harness_readable(ep->wait_fd));
	assert_int_equal(vb__ep_arm(ep), 1); /* not safe to sleep: look first */
	assert_int_equal(vb__ep_poll(ep, done, 8), 4);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(done[i].id, i + 1);
		assert_int_equal(done[i].kind, VB__OP_RECV);
		assert_int_equal(done[i].len, i + 1);
		assert_int_equal(done[i].status, VB_OK);
	}
	assert_int_equal(ep->outstanding, 0);

	mock_empty_completion_event(harness_inside(ep)->cq);
	assert_int_equal(vb__ep_arm(ep), 1);
	assert_int_equal(vb__ep_poll(ep, done, 8), 0);
	assert_true(harness_arm(ep));
	assert_false(harness_readable(ep->wait_fd));

	harness_post(ep, VB__OP_RECV, 5, 64, NULL);
	mock_complete_recv(harness_qp(ep), IBV_WC_SUCCESS, 5);
	assert_true(harness_readable(ep->wait_fd)); /* it was armed again */
	vb__ep_close(ep);
}

static void nothing_that_completes_before_arming_is_slept_over(void **state)
{
	struct vb__ep *ep = harness_connect();
	struct vb__completion done[8];

	(void)state;
	harness_post(ep, VB__OP_RECV, 1, 64, NULL);
	mock_complete_recv(harness_qp(ep), IBV_WC_SUCCESS, 64); /* no event: nobody armed */
	assert_int_equal(vb__ep_arm(ep), 1);
	assert_int_equal(vb__ep_poll(ep, done, 8), 1);
	assert_int_equal(vb__ep_arm(ep), 0);
	vb__ep_close(ep);
}

static void who_waits_for_arrivals_is_not_woken_by_what_he_sent(void **state)
{
	struct vb__ep *ep = harness_connect();
	struct vb__completion done[8];

	(void)state;
	harness_post(ep, VB__OP_RECV, 1, 64, NULL);
	harness_post(ep, VB__OP_SEND, 2, 64, NULL);
	assert_true(mock_qp_last_sent(harness_qp(ep)).flags & IBV_SEND_SOLICITED);
	harness_post(ep, VB__OP_SEND, 3, 64, NULL);
	assert_int_equal(vb__ep_arm_for_arrivals(ep), 1);
	assert_int_equal(vb__ep_arm_for_arrivals(ep), 0);
	mock_complete_send(harness_qp(ep), IBV_WC_SUCCESS);
	assert_false(harness_readable(ep->wait_fd));
	assert_int_equal(vb__ep_poll(ep, done, 8), 1);

	assert_int_equal(vb__ep_arm(ep), 1); /* now for all, and then no less */
	assert_int_equal(vb__ep_arm_for_arrivals(ep), 0);
	mock_complete_send(harness_qp(ep), IBV_WC_SUCCESS);
	assert_true(harness_readable(ep->wait_fd));
	assert_int_equal(vb__ep_arm_for_arrivals(ep), 1); /* which arms it again */
	assert_int_equal(vb__ep_poll(ep, done, 8), 1);

	assert_int_equal(vb__ep_arm_for_arrivals(ep), 0);
	mock_complete_recv(harness_qp(ep), IBV_WC_SUCCESS, 64);
	assert_true(harness_readable(ep->wait_fd));
	vb__ep_close(ep);
}

static void completion_events_are_acknowledged_in_batches(void **state)
{
	struct vb__ep *ep = harness_connect();

	(void)state;
	for (int i = 0; i < 150; i++) {
		mock_empty_completion_event(harness_inside(ep)->cq);
		assert_true(harness_arm(ep));
	}
	assert_int_equal(mock_count("ibv_ack_cq_events"), 2);
	vb__ep_close(ep); /* the mock insists on all of them before the CQ goes */
	assert_int_equal(mock_count("ibv_ack_cq_events"), 3);
}

/* Each is a system call, and whoever sleeps between messages pays for them with every one. */
static void waking_up_takes_one_event_and_one_arming(void **state)
{
	struct vb__ep *ep = harness_connect();
	struct vb__completion done;

	(void)state;
	assert_true(harness_arm(ep));
	for (uint64_t id = 1; id <= 20; id++) {
		unsigned taken = mock_count("ibv_get_cq_event");
		unsigned armed = mock_count("ibv_req_notify_cq");

		harness_post(ep, VB__OP_RECV, id, 64, NULL);
		mock_complete_recv(harness_qp(ep), IBV_WC_SUCCESS, 64);
		assert_int_equal(vb__ep_poll(ep, &done, 1), 1);
		assert_int_equal(vb__ep_poll(ep, &done, 1), 0);
		assert_int_equal(vb__ep_arm(ep), 1);
		assert_int_equal(vb__ep_poll(ep, &done, 1), 0);
		assert_int_equal(vb__ep_arm(ep), 0);
		assert_false(harness_readable(ep->wait_fd));
		assert_int_equal(mock_count("ibv_get_cq_event") - taken, 1);
		assert_int_equal(mock_count("ibv_req_notify_cq") - armed, 1);
	}
	vb__ep_close(ep);
}

/* What is not looked at before sleeping ends the sleep. */
static void an_end_between_arming_and_sleeping_is_not_slept_over(void **state)
{
	struct vb__ep *ep = harness_connect();

	(void)state;
	assert_int_equal(vb__ep_arm(ep), 1);
	harness_cm_event(ep, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(vb__ep_arm(ep), 0);
	assert_true(harness_readable(ep->wait_fd));
	assert_int_equal(vb__ep_arm(ep), 1);
	assert_int_equal(ep->state, VB__EP_DOWN);
	vb__ep_close(ep);
}

static void wake_wakes_once(void **state)
{
	struct vb__ep *ep = harness_connect();

	(void)state;
	assert_true(harness_arm(ep));
	vb__ep_wake(ep);
	assert_true(harness_readable(ep->wait_fd));
	assert_int_equal(vb__ep_arm(ep), 1);
	assert_int_equal(vb__ep_arm(ep), 0);
	assert_false(harness_readable(ep->wait_fd));
	vb__ep_close(ep);
}

/* Whoever polls must not take what is meant for the thread that sleeps. */
static void polling_takes_no_wake_and_no_completion_event(void **state)
{
	struct vb__ep *ep = harness_connect();
	struct vb__completion done;
	unsigned looks;

	(void)state;
	assert_true(harness_arm(ep));
	vb__ep_wake(ep);
	for (int i = 0; i < 200; i++)
		assert_int_equal(vb__ep_poll(ep, &done, 1), 0);
	assert_true(harness_readable(ep->wait_fd));
	assert_int_equal(vb__ep_arm(ep), 1);
	assert_false(harness_readable(ep->wait_fd));
	looks = mock_count("ibv_get_cq_event");

	harness_post(ep, VB__OP_RECV, 1, 64, NULL);
	mock_complete_recv(harness_qp(ep), IBV_WC_SUCCESS, 64);
	assert_int_equal(vb__ep_poll(ep, &done, 1), 1);
	for (int i = 0; i < 200; i++)
		assert_int_equal(vb__ep_poll(ep, &done, 1), 0);
	assert_int_equal(mock_count("ibv_get_cq_event"), looks);
	assert_true(harness_readable(ep->wait_fd));
	assert_int_equal(vb__ep_arm(ep), 1);
	assert_true(harness_arm(ep));
	assert_false(harness_readable(ep->wait_fd));
	vb__ep_close(ep);
}

/* The state is what concerns all threads: a poller learns of it without any sleep. */
static void polling_alone_notices_the_end_of_the_connection(void **state)
{
	struct vb__ep *ep = harness_connect();
	struct vb__completion done;

	(void)state;
	harness_cm_event(ep, RDMA_CM_EVENT_DISCONNECTED, 0);
	for (int i = 0; i < 200 && ep->state == VB__EP_UP; i++)
		vb__ep_poll(ep, &done, 1);
	assert_int_equal(ep->state, VB__EP_DOWN);
	vb__ep_close(ep);
}

static void a_change_of_state_is_no_time_to_sleep(void **state)
{
	struct vb__ep *ep = harness_connect();

	(void)state;
	assert_true(harness_arm(ep));
	harness_cm_event(ep, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(vb__ep_arm(ep), 1);
	assert_int_equal(ep->state, VB__EP_DOWN);
	vb__ep_close(ep);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		VERBS_TEST(one_event_may_stand_for_many_completions_or_none),
		VERBS_TEST(nothing_that_completes_before_arming_is_slept_over),
		VERBS_TEST(who_waits_for_arrivals_is_not_woken_by_what_he_sent),
		VERBS_TEST(completion_events_are_acknowledged_in_batches),
		VERBS_TEST(wake_wakes_once),
		VERBS_TEST(waking_up_takes_one_event_and_one_arming),
		VERBS_TEST(an_end_between_arming_and_sleeping_is_not_slept_over),
		VERBS_TEST(polling_takes_no_wake_and_no_completion_event),
		VERBS_TEST(polling_alone_notices_the_end_of_the_connection),
		VERBS_TEST(a_change_of_state_is_no_time_to_sleep),
	};

	return cmocka_run_group_tests_name("verbs_sleep", tests, NULL, NULL);
}
