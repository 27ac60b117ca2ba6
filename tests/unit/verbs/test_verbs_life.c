/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs endpoint when all goes well: what it asks for, what it gets, and its lawful end. */
#include <string.h>

#include "verbs_harness.h"

static void active_endpoint_connects_and_exchanges_private_data(void **state)
{
	struct vb__ep *ep = harness_open();

	(void)state;
	assert_int_equal(ep->state, VB__EP_NEW);
	assert_string_equal(ep->device, MOCK_DEVICE);
	assert_string_equal(ep->peer, "10.0.0.2 port 7471");
	assert_int_equal(vb__ep_connect(ep, "hello", 6, harness_deadline(), NULL), 0);

	assert_int_equal(ep->state, VB__EP_UP);
	assert_string_equal((char *)mock_said.data, "hello");
	assert_int_equal(ep->peer_data_len, 4);
	assert_string_equal((char *)ep->peer_data, "yes");
	vb__ep_close(ep);
}

static void connection_parameters_bound_the_retries(void **state)
{
	struct vb__ep *ep = harness_connect();

	(void)state;
	assert_int_equal(mock_said.param.retry_count, 6);
	assert_int_equal(mock_said.param.rnr_retry_count, 7);
	assert_int_equal(mock_said.param.initiator_depth, 16);
	assert_int_equal(mock_said.param.responder_resources, 16);
	assert_int_equal(mock_count("rdma_set_option"), 1);
	assert_int_equal(mock_qp_rnr_timer(harness_qp(ep)), 12);
	vb__ep_close(ep);
}

static void passive_endpoint_is_up_when_the_peer_confirms(void **state)
{
	struct vb__pep *pep = harness_listen();
	struct vb__ep *ep = harness_request(pep);

	(void)state;
	assert_int_equal(pep->port, MOCK_PORT);
	assert_int_equal(ep->state, VB__EP_NEW);
	assert_string_equal(ep->peer, "10.0.0.2 port 40000");
	assert_int_equal(vb__ep_accept(ep, "welcome", 8, NULL), 0);
	assert_int_equal(ep->state, VB__EP_CONNECTING);
	assert_string_equal((char *)mock_said.data, "welcome");
	assert_int_equal(mock_said.param.responder_resources, 4);
	assert_int_equal(mock_said.param.initiator_depth, 2);

	harness_cm_event(ep, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_true(harness_readable(ep->wait_fd));
	vb__ep_arm(ep);
	assert_int_equal(ep->state, VB__EP_UP);
	vb__ep_close(ep);
	vb__pep_close(pep);
}

static void data_that_comes_before_the_confirmation_confirms(void **state)
{
	struct vb__pep *pep = harness_listen();
	struct vb__ep *ep = harness_request(pep);
	struct vb__completion done;

	(void)state;
	harness_post(ep, VB__OP_RECV, 1, 64, NULL);
	vb__ep_accept(ep, NULL, 0, NULL);
	mock_complete_recv(harness_qp(ep), IBV_WC_SUCCESS, 64);
	assert_int_equal(vb__ep_poll(ep, &done, 1), 1);
	assert_int_equal(done.len, 64);
	assert_int_equal(ep->state, VB__EP_UP);
	assert_int_equal(mock_qp_rnr_timer(harness_qp(ep)), 12);

	harness_cm_event(ep, RDMA_CM_EVENT_ESTABLISHED, 0);
	vb__ep_arm(ep);
	assert_int_equal(ep->state, VB__EP_UP);
	vb__ep_close(ep);
	vb__pep_close(pep);
}

static void listener_hands_out_requests_one_by_one(void **state)
{
	struct vb__pep *pep = harness_listen();
	struct rdma_cm_id *listener = ((struct verbs_pep *)pep)->cm.id;
	struct vb__request *first, *second, *none;

	(void)state;
	assert_string_equal(pep->device, MOCK_DEVICE);
	assert_false(harness_readable(pep->wait_fd));
	mock_connect_request(listener, "one", 4);
	mock_connect_request(listener, "two", 4);
	assert_true(harness_readable(pep->wait_fd));
	assert_int_equal(vb__pep_next(pep, &first, NULL), 1);
	assert_int_equal(vb__pep_next(pep, &second, NULL), 1);
	assert_int_equal(vb__pep_next(pep, &none, NULL), 0);
	assert_string_equal((char *)first->data, "one");
	assert_string_equal((char *)second->data, "two");

	vb__request_reject(first, "no", 3);
	assert_string_equal((char *)mock_said.data, "no");
	vb__request_reject(second, NULL, 0);
	mock_connect_request(listener, "never taken", 12);
	vb__pep_close(pep);
}

static void listener_turns_away_requests_on_other_devices(void **state)
{
	struct vb__request *request;
	struct vb__pep *pep;

	(void)state;
	strcpy(harness_settings.device, "mock7");
	pep = harness_listen();
	mock_connect_request(((struct verbs_pep *)pep)->cm.id, "hi", 3);
	assert_int_equal(vb__pep_next(pep, &request, NULL), 0);
	assert_int_equal(mock_count("rdma_reject"), 1);
	vb__pep_close(pep);
}

static void open_on_another_device_than_asked_for_fails(void **state)
{
	struct vb__address peer = harness_peer();
	struct vb_error err = { .code = VB_OK };
	struct vb__ep *ep;

	(void)state;
	strcpy(harness_settings.device, "mock7");
	assert_int_equal(vb__ep_open(&vb__verbs_fabric, &harness_attr, &peer, harness_deadline(),
				     &ep, &err),
			 VB_ERR_NO_DEVICE);
	assert_contains(err.cause, "mock0");
	assert_contains(err.cause, "mock7");
}

static void private_data_longer_than_promised_is_cut(void **state)
{
	char data[200] = { 1, 2, 3 };
	struct vb__ep *ep;

	(void)state;
	mock_peer.connect.data = data;
	mock_peer.connect.len = sizeof(data);
	ep = harness_connect();
	assert_int_equal(ep->peer_data_len, VB__PRIVATE_DATA);
	assert_memory_equal(ep->peer_data, data, VB__PRIVATE_DATA);
	vb__ep_close(ep);
}

/* The order itself is checked after each test; here, that every step is there at all. */
static void close_tears_everything_down_in_the_order_of_the_law(void **state)
{
	static const char *const law[] = {
		"ibv_ack_cq_events", "rdma_destroy_qp",		  "ibv_dereg_mr",
		"ibv_dereg_mr", /* the user's and the probe's */
		"ibv_destroy_cq",    "ibv_destroy_comp_channel",  "ibv_dealloc_pd",
		"rdma_destroy_id",   "rdma_destroy_event_channel"
	};
	struct vb__ep *ep = harness_connect();
	unsigned from, at = 0;

	(void)state;
	harness_post(ep, VB__OP_RECV, 1, 64, NULL);
	assert_true(harness_arm(ep));
	mock_complete_recv(harness_qp(ep), IBV_WC_SUCCESS, 64);
	vb__ep_arm(ep);
	from = mock_calls();
	vb__ep_close(ep);
	for (unsigned i = from; i < mock_calls(); i++)
		if (at < ARRAY_SIZE(law) && !strcmp(mock_call_at(i), law[at]))
			at++;
	assert_int_equal(at, ARRAY_SIZE(law));
}

static void close_is_fine_in_any_state(void **state)
{
	struct vb__pep *pep = harness_listen();
	struct vb__ep *ep;

	(void)state;
	vb__ep_close(NULL);
	vb__ep_close(harness_open());
	vb__ep_close(harness_request(pep));
	ep = harness_request(pep);
	vb__ep_accept(ep, NULL, 0, NULL);
	vb__ep_close(ep);
	ep = harness_connect();
	vb__ep_disconnect(ep);
	assert_int_equal(ep->state, VB__EP_DOWN);
	assert_int_equal(ep->down.code, VB_ERR_CLOSED);
	vb__ep_close(ep);
	vb__pep_close(pep);
}

static void disconnect_before_the_peer_confirmed_is_our_own_doing(void **state)
{
	struct vb__pep *pep = harness_listen();
	struct vb__ep *ep = harness_request(pep);
	struct vb__completion done[4];

	(void)state;
	harness_post(ep, VB__OP_RECV, 1, 64, NULL);
	vb__ep_accept(ep, NULL, 0, NULL);
	vb__ep_disconnect(ep);
	assert_int_equal(harness_drain(ep, done, 4), 1);
	assert_int_equal(ep->state, VB__EP_DOWN);
	assert_int_equal(ep->down.code, VB_ERR_CLOSED);
	vb__ep_close(ep);
	vb__pep_close(pep);
}

/* ---- Capacities ---- */

static void capacities_are_asked_for_as_needed(void **state)
{
	struct vb__ep *ep = harness_open();
	struct ibv_qp_cap cap = mock_qp_asked(harness_qp(ep));

	(void)state;
	assert_int_equal(cap.max_send_wr, 8 + 1); /* one for the probe */
	assert_int_equal(cap.max_recv_wr, 4);
	assert_int_equal(cap.max_send_sge, 2);
	assert_int_equal(cap.max_recv_sge, 2);
	assert_int_equal(cap.max_inline_data, 220);
	assert_true(harness_inside(ep)->cq->cqe >= 8 + 1 + 4);
	vb__ep_close(ep);
}

static void capacities_stay_within_the_device(void **state)
{
	struct ibv_qp_cap cap;
	struct vb__ep *ep;

	(void)state;
	harness_attr.send_depth = harness_attr.recv_depth = 100000;
	harness_attr.sge = 100;
	mock_device.attr.max_sge = 6; /* as on siw */
	ep = harness_open();
	cap = mock_qp_asked(harness_qp(ep));
	assert_int_equal(cap.max_send_wr, 256);
	assert_int_equal(cap.max_recv_wr, 256);
	assert_int_equal(cap.max_send_sge, 6);
	assert_int_equal(ep->send_depth, 255);
	assert_int_equal(ep->recv_depth, 256);
	assert_int_equal(ep->sge, 6);
	assert_int_equal(ep->max_bytes, 1u << 30);
	vb__ep_close(ep);
}

static void completion_queue_stays_within_the_device(void **state)
{
	struct vb__ep *ep;

	(void)state;
	harness_attr.send_depth = harness_attr.recv_depth = 200;
	mock_device.attr.max_cqe = 128;
	ep = harness_open();
	assert_true(ep->send_depth + ep->recv_depth + 1 <= 128);
	assert_true(ep->send_depth > 0 && ep->recv_depth > 0);
	vb__ep_close(ep);
}

static void inline_size_falls_back_to_what_the_device_takes(void **state)
{
	static const struct {
		unsigned device, grants, asked, got;
	} cases[] = {
		{ 512, 256, 220, 256 }, { 220, 0, 220, 220 }, { 219, 0, 128, 128 },
		{ 64, 0, 64, 64 },	{ 63, 0, 32, 32 },    { 31, 0, 0, 0 },
		{ 0, 0, 0, 0 },
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		struct vb__ep *ep;

		mock_device.inline_max = cases[i].device;
		mock_device.inline_grants = cases[i].grants;
		ep = harness_open();
		assert_int_equal(mock_qp_asked(harness_qp(ep)).max_inline_data, cases[i].asked);
		assert_int_equal(ep->inline_bytes, cases[i].got);
		vb__ep_close(ep);
	}
}

static void small_sends_go_inline_and_large_ones_do_not(void **state)
{
	struct vb__ep *ep = harness_connect();
	struct ibv_qp *qp = harness_qp(ep);

	(void)state;
	harness_post(ep, VB__OP_SEND, 1, ep->inline_bytes, NULL);
	assert_true(mock_qp_last_sent(qp).flags & IBV_SEND_INLINE);
	harness_post(ep, VB__OP_SEND, 2, ep->inline_bytes + 1, NULL);
	assert_false(mock_qp_last_sent(qp).flags & IBV_SEND_INLINE);
	harness_post(ep, VB__OP_READ, 3, 8, NULL);
	assert_false(mock_qp_last_sent(qp).flags & IBV_SEND_INLINE);
	vb__ep_close(ep);
}

static void iwarp_has_no_write_with_immediate_and_keeps_its_rnr_timer(void **state)
{
	struct vb_error err = { .code = VB_OK };
	struct vb__ep *ep;

	(void)state;
	mock_context.device->transport_type = IBV_TRANSPORT_IWARP;
	mock_device.attr.atomic_cap = IBV_ATOMIC_NONE;
	ep = harness_connect();
	assert_int_equal(ep->caps & (VB__CAP_IMM | VB__CAP_ATOMIC), 0);
	assert_int_equal(mock_count("ibv_modify_qp"), 0);
	assert_int_equal(harness_post(ep, VB__OP_WRITE_IMM, 1, 8, &err), VB_ERR_UNSUPPORTED);
	assert_contains(err.object, MOCK_DEVICE);
	vb__error_clear(&err);
	assert_int_equal(harness_post(ep, VB__OP_FETCH_ADD, 1, 8, &err), VB_ERR_UNSUPPORTED);
	assert_int_equal(ep->outstanding, 0);
	vb__ep_close(ep);
}

static void too_many_pieces_are_refused_before_posting(void **state)
{
	struct vb__ep *ep = harness_connect();
	struct vb__sge sge[3] = { { .len = 0 } };
	struct vb__op op = { .kind = VB__OP_SEND, .sge = sge, .sge_count = 3 };
	struct vb_error err = { .code = VB_OK };

	(void)state;
	assert_int_equal(vb__ep_post(ep, &op, &err), VB_ERR_INVALID);
	assert_int_equal(mock_count("ibv_post_send"), 0);
	vb__ep_close(ep);
}

/* ---- Completion events ---- */

static void memory_can_be_given_back_before_the_endpoint(void **state)
{
	static uint8_t memory[2][64];
	struct vb__ep *ep = harness_open();
	struct vb__mr *first, *second;

	(void)state;
	assert_int_equal(vb__mr_open(ep, memory[0], 64, VB__ACCESS_LOCAL, &first, NULL), 0);
	assert_int_equal(vb__mr_open(ep, memory[1], 64, VB__ACCESS_REMOTE_READ, &second, NULL), 0);
	assert_int_not_equal(first->remote_key, second->remote_key);
	assert_int_equal(second->remote_addr, (uintptr_t)memory[1]);
	vb__mr_close(second);
	vb__mr_close(first);
	harness_teardown_from = mock_calls();
	vb__ep_close(ep);
}

static void wildcard_of_ipv6_serves_ipv4_by_a_second_listener_unless_that_is_unwanted(void **state)
{
	static const int families[] = { AF_UNSPEC, AF_INET6 };
	const struct sockaddr_in6 any = { .sin6_family = AF_INET6 };
	struct vb__address at;
	struct vb__pep *pep;

	(void)state;
	vb__address_from(&at, (const struct sockaddr *)&any);
	vb__address_set_port(&at, MOCK_PORT);
	for (unsigned i = 0; i < ARRAY_SIZE(families); i++) {
		unsigned before = mock_count("rdma_listen");

		harness_settings.family = families[i];
		assert_int_equal(
			vb__pep_open(&vb__verbs_fabric, &harness_settings, &at, &pep, NULL), 0);
		assert_int_equal(mock_count("rdma_listen") - before, 2 - i);
		vb__pep_close(pep);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		VERBS_TEST(active_endpoint_connects_and_exchanges_private_data),
		VERBS_TEST(connection_parameters_bound_the_retries),
		VERBS_TEST(passive_endpoint_is_up_when_the_peer_confirms),
		VERBS_TEST(data_that_comes_before_the_confirmation_confirms),
		VERBS_TEST(listener_hands_out_requests_one_by_one),
		VERBS_TEST(listener_turns_away_requests_on_other_devices),
		VERBS_TEST(open_on_another_device_than_asked_for_fails),
		VERBS_TEST(private_data_longer_than_promised_is_cut),
		VERBS_TEST(close_tears_everything_down_in_the_order_of_the_law),
		VERBS_TEST(close_is_fine_in_any_state),
		VERBS_TEST(disconnect_before_the_peer_confirmed_is_our_own_doing),
		VERBS_TEST(capacities_are_asked_for_as_needed),
		VERBS_TEST(capacities_stay_within_the_device),
		VERBS_TEST(completion_queue_stays_within_the_device),
		VERBS_TEST(inline_size_falls_back_to_what_the_device_takes),
		VERBS_TEST(small_sends_go_inline_and_large_ones_do_not),
		VERBS_TEST(iwarp_has_no_write_with_immediate_and_keeps_its_rnr_timer),
		VERBS_TEST(too_many_pieces_are_refused_before_posting),
		VERBS_TEST(memory_can_be_given_back_before_the_endpoint),
		VERBS_TEST(
			wildcard_of_ipv6_serves_ipv4_by_a_second_listener_unless_that_is_unwanted),
	};

	return cmocka_run_group_tests_name("verbs_life", tests, NULL, NULL);
}
