/* SPDX-License-Identifier: Apache-2.0 */
/* Receives that several endpoints share, on the mocked device. */
#include <errno.h>
#include <string.h>

#include "verbs_harness.h"

#define RECEIVES 8u

static struct vb__pool_attr pool_attr(void)
{
	return (struct vb__pool_attr){
		.receives = RECEIVES, .bytes = 100, .sends = 8, .log = harness_settings.log
	};
}

/* A listener, a pool, and endpoints that were accepted into it. */
struct stage {
	struct vb__pep *pep;
	struct vb__pool *pools;
	struct vb__ep *ep[3];
};

static struct vb__request *ask(struct vb__pep *pep)
{
	struct vb__request *request = NULL;

	mock_connect_request(((struct verbs_pep *)pep)->cm.id, "hi", 3);
	assert_int_equal(vb__pep_next(pep, &request, NULL), 1);
	return request;
}

static int join(struct stage *stage, unsigned who, struct vb_error *err)
{
	struct vb__request *request = ask(stage->pep);
	struct vb__ep_attr attr = harness_attr;
	struct vb__pool_attr wanted = pool_attr();
	int rc = vb__pool_for(request, &wanted, &stage->pools, &attr.pool, err);

	if (rc) {
		vb__request_reject(request, NULL, 0);
		return rc;
	}
	rc = vb__ep_accept_open(request, &attr, &stage->ep[who], err);
	if (rc)
		return rc;
	rc = vb__ep_accept(stage->ep[who], "hi", 3, err);
	if (rc)
		return rc;
	harness_cm_event(stage->ep[who], RDMA_CM_EVENT_ESTABLISHED, 0);
	vb__ep_arm(stage->ep[who]);
	return 0;
}

static struct stage set_up(unsigned members)
{
	struct stage stage = { .pep = harness_listen() };
	struct vb_error err = { .code = VB_OK };

	for (unsigned i = 0; i < members; i++)
		if (join(&stage, i, &err) != 0)
			fail_msg("join: %s: %s", err.operation, err.cause);
	return stage;
}

static void tear_down(struct stage *stage)
{
	harness_teardown_from = mock_calls();
	for (unsigned i = 0; i < ARRAY_SIZE(stage->ep); i++)
		vb__ep_close(stage->ep[i]);
	vb__pools_close(&stage->pools);
	vb__pep_close(stage->pep);
}

static struct verbs_pool *inside(const struct stage *stage)
{
	return (struct verbs_pool *)stage->pools;
}

static unsigned posted(const struct stage *stage)
{
	return mock_srq_pending(inside(stage)->srq);
}

static void arrive(struct vb__ep *ep, uint32_t len)
{
	mock_complete_recv(harness_qp(ep), IBV_WC_SUCCESS, len);
}

static void members_share_one_domain_and_queue(void **state)
{
	struct stage stage = set_up(3);

	(void)state;
	assert_int_equal(mock_count("ibv_create_srq"), 1);
	assert_int_equal(mock_count("ibv_create_cq"), 1);
	assert_int_equal(mock_count("ibv_alloc_pd"), 1);
	assert_int_equal(posted(&stage), RECEIVES);
	for (int i = 0; i < 3; i++) {
		assert_ptr_equal(harness_qp(stage.ep[i])->srq, inside(&stage)->srq);
		assert_int_equal(mock_qp_asked(harness_qp(stage.ep[i])).max_recv_wr, 0);
	}
	tear_down(&stage);
}

static void what_arrives_goes_to_the_one_it_is_for(void **state)
{
	struct stage stage = set_up(2);
	struct vb__completion done[4];

	(void)state;
	assert_true(harness_arm(stage.ep[0]) && harness_arm(stage.ep[1]));
	arrive(stage.ep[1], 70);
	assert_true(harness_readable(stage.pools->wait_fd));
	assert_false(harness_readable(stage.ep[1]->wait_fd));
	/* The first finds nothing for itself, but wakes the other. */
	assert_int_equal(vb__ep_poll(stage.ep[0], done, 4), 0);
	assert_true(harness_readable(stage.ep[1]->wait_fd));
	assert_int_equal(vb__ep_poll(stage.ep[1], done, 4), 1);
	assert_int_equal(done[0].kind, VB__OP_RECV);
	assert_int_equal(done[0].len, 70);
	assert_non_null(done[0].arrival);
	assert_int_equal(stage.ep[1]->outstanding, 0);
	assert_int_equal(posted(&stage), RECEIVES - 1);
	vb__pool_give_back(stage.pools, done[0].arrival);
	assert_int_equal(posted(&stage), RECEIVES);
	tear_down(&stage);
}

static void the_owner_hands_out_by_the_descriptor(void **state)
{
	struct stage stage = set_up(2);

	(void)state;
	assert_true(harness_arm(stage.ep[0]) && harness_arm(stage.ep[1]));
	arrive(stage.ep[0], 1);
	arrive(stage.ep[1], 1);
	vb__pool_look_after(stage.pools);
	assert_true(harness_readable(stage.ep[0]->wait_fd));
	assert_true(harness_readable(stage.ep[1]->wait_fd));
	assert_false(harness_readable(stage.pools->wait_fd));
	/* It is armed again. */
	arrive(stage.ep[0], 1);
	assert_true(harness_readable(stage.pools->wait_fd));
	tear_down(&stage);
}

static void sends_complete_at_their_own_endpoint(void **state)
{
	struct stage stage = set_up(2);
	struct vb__completion done[4];

	(void)state;
	harness_post(stage.ep[0], VB__OP_SEND, 3, 1000, NULL);
	harness_post(stage.ep[1], VB__OP_SEND, 4, 1000, NULL);
	mock_complete_send(harness_qp(stage.ep[0]), IBV_WC_SUCCESS);
	mock_complete_send(harness_qp(stage.ep[1]), IBV_WC_SUCCESS);
	assert_int_equal(vb__ep_poll(stage.ep[1], done, 4), 1);
	assert_int_equal(done[0].id, 4);
	assert_int_equal(vb__ep_poll(stage.ep[0], done, 4), 1);
	assert_int_equal(done[0].id, 3);
	assert_int_equal(stage.ep[0]->outstanding, 0);
	tear_down(&stage);
}

/* What nobody reads must not keep the pool empty, or a credit could not arrive. */
static void unread_messages_leave_a_pool_that_runs_low(void **state)
{
	struct stage stage = set_up(3);
	struct vb__completion done[4];

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		arrive(stage.ep[0], 10);
		arrive(stage.ep[1], 20);
	}
	assert_int_equal(posted(&stage), 0);
	assert_int_equal(vb__ep_poll(stage.ep[2], done, 4), 0);
	assert_in_range(posted(&stage), RECEIVES / 2 - 1, RECEIVES);
	arrive(stage.ep[2], 30);
	assert_int_equal(vb__ep_poll(stage.ep[2], done, 4), 1);
	vb__pool_give_back(stage.pools, done[0].arrival);
	assert_int_equal(vb__ep_poll(stage.ep[0], done, 4), 4);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(done[i].len, 10);
		vb__pool_give_back(stage.pools, done[i].arrival);
	}
	tear_down(&stage);
}

static void who_sends_more_than_allowed_is_ended_and_costs_no_receives(void **state)
{
	struct stage stage = set_up(2);
	struct vb__completion done[8];
	unsigned more = harness_attr.recv_depth + 1;

	(void)state;
	for (unsigned i = 0; i < more; i++) {
		arrive(stage.ep[0], 10);
		assert_int_equal(vb__ep_poll(stage.ep[1], done, 8), 0);
	}
	assert_int_equal(vb__ep_poll(stage.ep[0], done, 8), more - 1);
	for (unsigned i = 0; i < more - 1; i++)
		vb__pool_give_back(stage.pools, done[i].arrival);
	assert_int_equal(stage.ep[0]->state, VB__EP_DOWN);
	assert_int_equal(stage.ep[0]->down.code, VB_ERR_PROTOCOL);
	assert_int_equal(stage.ep[1]->state, VB__EP_UP);
	assert_int_equal(posted(&stage), RECEIVES);
	tear_down(&stage);
}

static void a_bad_receive_ends_its_endpoint_and_goes_back(void **state)
{
	struct stage stage = set_up(2);
	struct vb__completion done[4];

	(void)state;
	mock_complete_recv(harness_qp(stage.ep[0]), IBV_WC_LOC_LEN_ERR, 0);
	assert_int_equal(vb__ep_poll(stage.ep[0], done, 4), 1);
	assert_int_equal(done[0].status, VB_ERR_PROTOCOL);
	assert_null(done[0].arrival);
	assert_int_equal(stage.ep[0]->state, VB__EP_DOWN);
	assert_int_equal(stage.ep[1]->state, VB__EP_UP);
	assert_int_equal(posted(&stage), RECEIVES);
	tear_down(&stage);
}

/* Its members are in one protection domain: what is registered for one peer all could reach. */
static void memory_of_a_member_is_for_no_peer(void **state)
{
	struct stage stage = set_up(1);
	struct vb_error err = { .code = VB_OK };
	uint8_t memory[64];
	struct vb__mr *mr;

	(void)state;
	assert_int_equal(vb__mr_open(stage.ep[0], memory, sizeof(memory), VB__ACCESS_REMOTE_READ,
				     &mr, &err),
			 VB_ERR_UNSUPPORTED);
	assert_int_equal(vb__mr_open(stage.ep[0], memory, sizeof(memory), VB__ACCESS_BINDABLE, &mr,
				     &err),
			 0);
	tear_down(&stage);
}

static void who_leaves_gives_back_what_it_has_not_polled(void **state)
{
	struct stage stage = set_up(2);
	struct vb__completion done[4];

	(void)state;
	arrive(stage.ep[0], 10);
	vb__ep_poll(stage.ep[1], done, 4);
	arrive(stage.ep[0], 10);
	assert_int_equal(posted(&stage), RECEIVES - 2);
	vb__ep_close(stage.ep[0]);
	stage.ep[0] = NULL;
	assert_int_equal(posted(&stage), RECEIVES);
	assert_int_equal(stage.ep[1]->state, VB__EP_UP);
	tear_down(&stage);
}

static void the_completion_queue_grows_with_its_members(void **state)
{
	struct stage stage = set_up(0);
	struct vb__ep *ep[40];
	struct vb_error err = { .code = VB_OK };

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(ep); i++) {
		assert_int_equal(join(&stage, 0, &err), 0);
		ep[i] = stage.ep[0];
	}
	assert_int_equal(mock_count("ibv_create_srq"), 1);
	assert_int_not_equal(mock_count("ibv_resize_cq"), 0);
	assert_true(inside(&stage)->cq->cqe >= (int)(RECEIVES + 40 * 9));
	for (unsigned i = 0; i < ARRAY_SIZE(ep); i++)
		vb__ep_close(ep[i]);
	stage.ep[0] = NULL;
	tear_down(&stage);
}

static void a_second_pool_is_made_when_one_is_full(void **state)
{
	struct stage stage = set_up(0);

	(void)state;
	mock_device.attr.max_cqe = 20;
	assert_int_equal(join(&stage, 0, NULL), 0);
	assert_int_equal(join(&stage, 1, NULL), 0);
	assert_int_equal(mock_count("ibv_create_srq"), 2);
	assert_ptr_not_equal(stage.ep[0]->pool, stage.ep[1]->pool);
	tear_down(&stage);
}

static void a_device_may_give_less_than_it_was_asked_for(void **state)
{
	struct stage stage = set_up(0);

	(void)state;
	mock_device.srq_grants = 5;
	assert_int_equal(join(&stage, 0, NULL), 0);
	assert_int_equal(posted(&stage), 5);
	tear_down(&stage);
}

static void not_shared_where_it_cannot_be(bool iwarp)
{
	struct stage stage = set_up(0);
	struct vb__request *request = ask(stage.pep);
	struct vb__pool_attr wanted = pool_attr();
	struct vb_error err = { .code = VB_OK };
	struct vb__pool *pool;

	if (iwarp)
		mock_context.device->transport_type = IBV_TRANSPORT_IWARP;
	else
		mock_device.attr.max_srq = 0;
	assert_int_equal(vb__pool_for(request, &wanted, &stage.pools, &pool, &err),
			 VB_ERR_UNSUPPORTED);
	assert_null(stage.pools);
	vb__request_reject(request, NULL, 0);
	tear_down(&stage);
}

static void iwarp_has_no_pools(void **state)
{
	(void)state;
	not_shared_where_it_cannot_be(true);
}

static void a_device_without_shared_queues_has_no_pools(void **state)
{
	(void)state;
	not_shared_where_it_cannot_be(false);
}

static void an_error_of_the_shared_queue_ends_all_members(void **state)
{
	struct stage stage = set_up(2);

	(void)state;
	mock_async_event(IBV_EVENT_SRQ_ERR, inside(&stage)->srq);
	for (int i = 0; i < 2; i++)
		vb__ep_arm(stage.ep[i]);
	for (int i = 0; i < 2; i++) {
		vb__ep_arm(stage.ep[i]);
		assert_int_equal(stage.ep[i]->state, VB__EP_DOWN);
	}
	tear_down(&stage);
}

static unsigned notices;

static void count_notice(void *arg, enum vb_log_level level, const char *line)
{
	(void)arg, (void)level;
	notices++;
	assert_contains(line, "run low");
}

static void a_shared_queue_that_runs_low_is_one_notice(void **state)
{
	struct stage stage;

	(void)state;
	notices = 0;
	harness_settings.log.write = count_notice;
	stage = set_up(3);
	mock_async_event(IBV_EVENT_SRQ_LIMIT_REACHED, inside(&stage)->srq);
	vb__pool_look_after(stage.pools);
	assert_int_equal(notices, 1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(stage.ep[i]->state, VB__EP_UP);
	tear_down(&stage);
}

static void the_limit_is_armed_again_after_it_was_reached_but_not_at_once(void **state)
{
	struct stage stage = set_up(1);

	(void)state;
	assert_int_equal(mock_srq_low(inside(&stage)->srq), RECEIVES / 8);
	mock_async_event(IBV_EVENT_SRQ_LIMIT_REACHED, inside(&stage)->srq);
	for (int i = 0; i < 2; i++) { /* the second time the time has come */
		assert_int_equal(mock_count("ibv_modify_srq"), 1);
		arrive(stage.ep[0], 10);
		vb__pool_look_after(stage.pools);
		if (i == 0)
			inside(&stage)->rearm_ns = 0;
	}
	assert_int_equal(mock_count("ibv_modify_srq"), 2);
	tear_down(&stage);
}

static void a_pool_without_members_takes_the_device_s_events_all_the_same(void **state)
{
	struct stage stage = set_up(1);

	(void)state;
	vb__ep_close(stage.ep[0]);
	stage.ep[0] = NULL;
	mock_async_event(IBV_EVENT_PORT_ERR, (void *)1);
	assert_true(harness_readable(stage.pools->wait_fd));
	vb__pool_look_after(stage.pools);
	assert_int_equal(mock_async_pending(), 0);
	assert_false(harness_readable(stage.pools->wait_fd));
	tear_down(&stage);
}

static void a_pool_over_the_memlock_limit_tells_limit_need_and_remedies(void **state)
{
	static const struct {
		const char *call, *need;
	} cases[] = {
		{ "ibv_create_cq", "about 20 KiB of memory for 264 entries" },
		{ "ibv_create_srq", "about 4 KiB of memory for 8 entries" },
		{ "ibv_resize_cq", "about 36 KiB of memory for 528 entries" },
		{ "rdma_create_qp", "about 24 KiB of memory for 256 entries" },
	};

	(void)state;
	harness_limit_memlock();
	harness_attr.send_depth = 255; /* for two members the queue has to grow */
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		struct stage stage = set_up(0);
		struct vb_error err = { .code = VB_OK };

		mock_fail_call(cases[i].call, 10, ENOMEM);
		if (join(&stage, 0, &err) == 0)
			join(&stage, 1, &err);
		assert_tells_memlock(&err, cases[i].call, cases[i].need);
		mock_fail_call(cases[i].call, 0, 0);
		tear_down(&stage);
	}
}

/* ---- Each call fails in turn ---- */

/* Failures that are worked around, or come too late to matter: the log tells them. All others the error must tell. */
static bool is_tolerated(const char *call)
{
	static const char *const tolerated[] = {
		"rdma_set_option", "ibv_modify_qp",
		"ibv_query_port",  "rdma_disconnect",
		"ibv_dereg_mr",	   "ibv_destroy_cq",
		"ibv_dealloc_pd",  "ibv_destroy_comp_channel",
		"rdma_destroy_id", "rdma_ack_cm_event",
		"ibv_destroy_srq", "rdma_reject",
		"ibv_modify_srq",
	};

	for (unsigned i = 0; i < ARRAY_SIZE(tolerated); i++)
		if (!strcmp(call, tolerated[i]))
			return true;
	return false;
}

/* A member joins, something arrives and goes back, it leaves. */
static void live(struct stage *stage, struct vb_error *err)
{
	struct vb__completion done[4];
	int n;

	if (join(stage, 0, err) != 0)
		return;
	if (stage->ep[0]->state == VB__EP_UP) {
		harness_post(stage->ep[0], VB__OP_SEND, 3, 1000, err);
		arrive(stage->ep[0], 10);
	}
	for (int i = 0; i < 3 && stage->ep[0]->state != VB__EP_DOWN; i++) {
		n = vb__ep_poll(stage->ep[0], done, 4);
		for (int k = 0; k < n; k++)
			if (done[k].arrival)
				vb__pool_give_back(stage->pools, done[k].arrival);
		vb__ep_arm(stage->ep[0]);
	}
	vb__ep_poll(stage->ep[0], done, 4);
	vb__fail_again(err, &stage->ep[0]->down);
}

static void torture(int errnum)
{
	unsigned n = 0;

	for (;;) {
		struct vb_error err = { .code = VB_OK };
		struct stage stage;
		const char *culprit;

		harness_start(NULL);
		stage = set_up(0);
		mock_fail_nth(++n + 3, errnum, false); /* the request itself is another test's */
		live(&stage, &err);
		culprit = mock_failed_call();
		tear_down(&stage);
		if (mock_complaint() || mock_leak() || harness_unlawful())
			fail_msg("call %u, %s: %s %s %s", n, mock_failed_call(), mock_complaint(),
				 mock_leak(), harness_unlawful());
		if (!mock_failed_call())
			break;
		harness_check_told(n, mock_failed_call(), errnum, &err);
		if (!culprit || is_tolerated(culprit))
			continue;
		if (errnum == ENOMEM && !strcmp(culprit, "rdma_create_qp"))
			continue; /* tried again with less */
		if (!harness_names(&err, culprit))
			fail_msg("call %u: %s failed, but the error is of %s (%s)", n, culprit,
				 err.operation, err.cause);
	}
	print_message("# %u calls failed in turn\n", n - 1);
	assert_true(n > 30);
}

static void every_call_fails_once(void **state)
{
	(void)state;
	torture(EIO);
}

static void every_call_runs_out_of_memory_once(void **state)
{
	(void)state;
	torture(ENOMEM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		VERBS_TEST(members_share_one_domain_and_queue),
		VERBS_TEST(what_arrives_goes_to_the_one_it_is_for),
		VERBS_TEST(the_owner_hands_out_by_the_descriptor),
		VERBS_TEST(sends_complete_at_their_own_endpoint),
		VERBS_TEST(unread_messages_leave_a_pool_that_runs_low),
		VERBS_TEST(who_sends_more_than_allowed_is_ended_and_costs_no_receives),
		VERBS_TEST(a_bad_receive_ends_its_endpoint_and_goes_back),
		VERBS_TEST(memory_of_a_member_is_for_no_peer),
		VERBS_TEST(who_leaves_gives_back_what_it_has_not_polled),
		VERBS_TEST(the_completion_queue_grows_with_its_members),
		VERBS_TEST(a_second_pool_is_made_when_one_is_full),
		VERBS_TEST(a_device_may_give_less_than_it_was_asked_for),
		VERBS_TEST(iwarp_has_no_pools),
		VERBS_TEST(a_device_without_shared_queues_has_no_pools),
		VERBS_TEST(an_error_of_the_shared_queue_ends_all_members),
		VERBS_TEST(a_shared_queue_that_runs_low_is_one_notice),
		VERBS_TEST(the_limit_is_armed_again_after_it_was_reached_but_not_at_once),
		VERBS_TEST(a_pool_without_members_takes_the_device_s_events_all_the_same),
		VERBS_TEST(a_pool_over_the_memlock_limit_tells_limit_need_and_remedies),
		VERBS_TEST(every_call_fails_once),
		VERBS_TEST(every_call_runs_out_of_memory_once),
	};

	return cmocka_run_group_tests_name("verbs_pool", tests, NULL, NULL);
}
