/* SPDX-License-Identifier: Apache-2.0 */
/* Bad news: what CM events, failed completions and the device's events make of an endpoint. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "verbs_harness.h"

/* ---- CM events while connecting ---- */

static const struct connect_case {
	enum rdma_cm_event_type event;
	int status;
	enum vb_err code;
	const char *hint;
} connect_cases[] = {
	{ RDMA_CM_EVENT_REJECTED, 8, VB_ERR_REFUSED, "start the receiving side first" },
	{ RDMA_CM_EVENT_CONNECT_ERROR, -ECONNREFUSED, VB_ERR_REFUSED, "start the receiving side" },
	{ RDMA_CM_EVENT_CONNECT_ERROR, -EIO, VB_ERR_UNREACHABLE, "rdma link" },
	{ RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, VB_ERR_UNREACHABLE, "4791" },
	{ RDMA_CM_EVENT_DISCONNECTED, 0, VB_ERR_LOST, "look at the peer" },
	{ RDMA_CM_EVENT_DEVICE_REMOVAL, 0, VB_ERR_NO_DEVICE, "rdma link" },
};

static void connect_fails_with_the_event_and_a_hint(void **state)
{
	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(connect_cases); i++) {
		const struct connect_case *c = &connect_cases[i];
		struct vb_error err = { .code = VB_OK };
		struct vb__ep *ep = harness_open();

		mock_peer.connect = (struct mock_answer){ .event = c->event, .status = c->status };
		assert_int_equal(vb__ep_connect(ep, "hi", 3, harness_deadline(), &err), c->code);
		assert_int_equal(err.code, c->code);
		assert_int_equal(err.native_kind, VB_NATIVE_CM);
		assert_int_equal(err.native, c->event);
		assert_string_equal(err.operation, "connect to");
		assert_string_equal(err.object, "10.0.0.2 port 7471");
		assert_contains(err.hint, c->hint);
		assert_int_equal(ep->state, VB__EP_DOWN);
		vb__ep_close(ep);
	}
}

static void removal_of_the_device_is_a_lost_connection(void **state)
{
	struct vb__ep *ep = harness_connect();

	(void)state;
	harness_cm_event(ep, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	vb__ep_arm(ep);
	assert_int_equal(ep->state, VB__EP_DOWN);
	assert_int_equal(ep->down.code, VB_ERR_LOST);
	assert_int_equal(ep->down.native, RDMA_CM_EVENT_DEVICE_REMOVAL);
	assert_contains(ep->down.cause, "device here was removed");
	assert_contains(ep->down.hint, "dmesg");
	assert_int_equal(mock_count("rdma_disconnect"), 1);
	vb__ep_close(ep);
}

/* An accepting process that dies before its side is established "rejects", and so on. */
static void a_connection_that_was_up_is_lost_whatever_the_event(void **state)
{
	static const enum rdma_cm_event_type events[] = { RDMA_CM_EVENT_REJECTED,
							  RDMA_CM_EVENT_CONNECT_ERROR,
							  RDMA_CM_EVENT_UNREACHABLE,
							  RDMA_CM_EVENT_DISCONNECTED };

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(events); i++) {
		struct vb__ep *ep = harness_connect();

		harness_cm_event(ep, events[i], 28);
		vb__ep_arm(ep);
		assert_int_equal(ep->state, VB__EP_DOWN);
		assert_int_equal(ep->down.code, VB_ERR_LOST);
		assert_int_equal(ep->down.native, events[i]);
		assert_string_equal(ep->down.operation, "connection to");
		assert_contains(ep->down.hint, "look at the peer");
		assert_int_equal(mock_count("rdma_disconnect"), i + 1);
		vb__ep_close(ep);
	}
}

static void refusal_carries_the_private_data_of_the_listener(void **state)
{
	struct vb__ep *ep = harness_open();

	(void)state;
	mock_peer.connect = (struct mock_answer){
		.event = RDMA_CM_EVENT_REJECTED, .status = 28, .data = "version", .len = 8
	};
	assert_int_equal(vb__ep_connect(ep, "hi", 3, harness_deadline(), NULL), VB_ERR_REFUSED);
	assert_int_equal(ep->peer_data_len, 8);
	assert_string_equal((char *)ep->peer_data, "version");
	vb__ep_close(ep);
}

static const struct resolve_case {
	bool route;
	struct mock_answer answer;
	enum vb_err code;
	const char *operation, *hint;
} resolve_cases[] = {
	{ false,
	  { .event = RDMA_CM_EVENT_ADDR_ERROR, .status = -ENODEV },
	  VB_ERR_NO_DEVICE,
	  "rdma_resolve_addr",
	  "ip route get" },
	{ false,
	  { .event = RDMA_CM_EVENT_ADDR_ERROR, .status = -ETIMEDOUT },
	  VB_ERR_UNREACHABLE,
	  "connect to",
	  "check the address" },
	{ false, { .none = true }, VB_ERR_TIMEOUT, "rdma_resolve_addr", "check the address" },
	{ true,
	  { .event = RDMA_CM_EVENT_ROUTE_ERROR, .status = -EHOSTUNREACH },
	  VB_ERR_UNREACHABLE,
	  "connect to",
	  "check the address" },
	{ true, { .none = true }, VB_ERR_TIMEOUT, "rdma_resolve_route", "check the address" },
};

static void open_fails_with_the_step_that_failed(void **state)
{
	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(resolve_cases); i++) {
		const struct resolve_case *c = &resolve_cases[i];
		struct vb__address peer = harness_peer();
		struct vb_error err = { .code = VB_OK };
		struct vb__ep *ep;

		harness_start(NULL);
		if (c->route)
			mock_peer.resolve_route = c->answer;
		else
			mock_peer.resolve_addr = c->answer;
		assert_int_equal(vb__ep_open(&vb__verbs_fabric, &harness_attr, &peer,
					     harness_deadline(), &ep, &err),
				 c->code);
		assert_int_equal(err.code, c->code);
		assert_string_equal(err.operation, c->operation);
		assert_contains(err.hint, c->hint);
		assert_int_equal(harness_end(NULL), 0);
	}
}

static void route_without_rdma_is_told_at_once(void **state)
{
	struct vb__address peer = harness_peer();
	struct vb_error err = { .code = VB_OK };
	struct vb__ep *ep;

	(void)state;
	mock_fail_call("rdma_resolve_addr", 1, ENODEV);
	assert_int_equal(vb__ep_open(&vb__verbs_fabric, &harness_attr, &peer, harness_deadline(),
				     &ep, &err),
			 VB_ERR_NO_DEVICE);
	assert_int_equal(err.native, ENODEV);
	assert_contains(err.cause, "has no RDMA device");
	assert_contains(err.hint, "ofi");
}

static void connect_gives_up_at_the_deadline_and_sleeps_until_then(void **state)
{
	struct vb_error err = { .code = VB_OK };
	struct vb__ep *ep = harness_open();

	(void)state;
	mock_peer.connect.none = true;
	mock_async_event(IBV_EVENT_GID_CHANGE,
			 NULL); /* news of the device must not keep it awake */
	assert_int_equal(vb__ep_connect(ep, "hi", 3, harness_deadline(), &err), VB_ERR_TIMEOUT);
	assert_string_equal(err.operation, "connect to");
	assert_in_range(mock_count("rdma_get_cm_event"), 1, 20);
	vb__ep_close(ep);
}

static void broken_event_channel_is_told_at_once(void **state)
{
	struct vb_error err = { .code = VB_OK };
	struct vb__ep *ep = harness_open();

	(void)state;
	mock_fail_call("rdma_get_cm_event", 1000000, EIO);
	assert_int_equal(vb__ep_connect(ep, "hi", 3, harness_deadline(), &err), VB_ERR_SYSTEM);
	assert_string_equal(err.operation, "rdma_get_cm_event");
	assert_int_equal(err.native, EIO);
	vb__ep_close(ep);
}

/* ---- CM events afterwards ---- */

static void a_disconnect_brings_the_endpoint_down_and_flushes(void **state)
{
	struct vb__ep *ep = harness_connect();
	struct vb__completion done[4];

	(void)state;
	harness_post(ep, VB__OP_RECV, 1, 64, NULL);
	harness_post(ep, VB__OP_SEND, 2, 1000, NULL);
	assert_true(harness_arm(ep));
	harness_cm_event(ep, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_true(harness_readable(ep->wait_fd));
	vb__ep_arm(ep);
	assert_int_equal(ep->state, VB__EP_DOWN);
	assert_int_equal(ep->down.code, VB_ERR_LOST);
	assert_int_equal(ep->down.native_kind, VB_NATIVE_CM);
	assert_string_equal(ep->down.operation, "connection to");
	assert_contains(ep->down.hint, "look at the peer");
	assert_int_equal(harness_drain(ep, done, 4), 2);
	assert_int_equal(done[0].status, VB_ERR_FLUSHED);
	assert_int_equal(done[1].status, VB_ERR_FLUSHED);
	vb__ep_close(ep);
}

static void what_arrived_before_the_disconnect_can_still_be_polled(void **state)
{
	struct vb__ep *ep = harness_connect();
	struct vb__completion done[4];

	(void)state;
	harness_post(ep, VB__OP_RECV, 1, 64, NULL);
	mock_complete_recv(harness_qp(ep), IBV_WC_SUCCESS, 33);
	harness_cm_event(ep, RDMA_CM_EVENT_DISCONNECTED, 0);
	vb__ep_arm(ep);
	assert_int_equal(ep->state, VB__EP_DOWN);
	assert_int_equal(vb__ep_poll(ep, done, 4), 1);
	assert_int_equal(done[0].status, VB_OK);
	assert_int_equal(done[0].len, 33);
	vb__ep_close(ep);
}

static void a_peer_that_vanishes_before_confirming_flushes_too(void **state)
{
	static const enum rdma_cm_event_type events[] = { RDMA_CM_EVENT_DISCONNECTED,
							  RDMA_CM_EVENT_UNREACHABLE,
							  RDMA_CM_EVENT_CONNECT_ERROR };

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(events); i++) {
		struct vb__pep *pep = harness_listen();
		struct vb__ep *ep = harness_request(pep);
		struct vb__completion done[4];

		harness_post(ep, VB__OP_RECV, 1, 64, NULL);
		vb__ep_accept(ep, "hi", 3, NULL);
		harness_cm_event(ep, events[i], 0);
		vb__ep_arm(ep);
		assert_int_equal(ep->state, VB__EP_DOWN);
		assert_int_equal(harness_drain(ep, done, 4), 1);
		assert_int_equal(ep->outstanding, 0);
		vb__ep_close(ep);
		vb__pep_close(pep);
	}
}

static void events_without_consequence_are_acknowledged_and_ignored(void **state)
{
	struct vb__ep *ep = harness_connect();

	(void)state;
	harness_cm_event(ep, RDMA_CM_EVENT_ADDR_CHANGE, 0);
	harness_cm_event(ep, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	vb__ep_arm(ep);
	assert_int_equal(ep->state, VB__EP_UP);
	vb__ep_close(ep);
}

static void early_data_does_not_raise_the_dead(void **state)
{
	struct vb__pep *pep = harness_listen();
	struct vb__ep *ep = harness_request(pep);
	struct vb__completion done[4];

	(void)state;
	harness_post(ep, VB__OP_RECV, 1, 64, NULL);
	vb__ep_accept(ep, "hi", 3, NULL);
	mock_complete_recv(harness_qp(ep), IBV_WC_SUCCESS, 33);
	harness_cm_event(ep, RDMA_CM_EVENT_DISCONNECTED, 0);
	vb__ep_arm(ep);
	assert_int_equal(harness_drain(ep, done, 4), 1);
	assert_int_equal(done[0].len, 33);
	assert_int_equal(ep->state, VB__EP_DOWN);
	vb__ep_close(ep);
	vb__pep_close(pep);
}

static void a_flush_before_the_confirmation_does_not_confirm(void **state)
{
	struct vb__pep *pep = harness_listen();
	struct vb__ep *ep = harness_request(pep);
	struct vb__completion done[4];

	(void)state;
	harness_post(ep, VB__OP_RECV, 1, 64, NULL);
	vb__ep_accept(ep, "hi", 3, NULL);
	mock_qp_error(harness_qp(ep));
	assert_int_equal(harness_drain(ep, done, 4), 1);
	assert_int_equal(done[0].status, VB_ERR_FLUSHED);
	assert_int_equal(ep->state, VB__EP_DOWN);
	vb__ep_close(ep);
	vb__pep_close(pep);
}

static void a_late_confirmation_does_not_raise_the_dead(void **state)
{
	struct vb__ep *ep = harness_connect();

	(void)state;
	harness_cm_event(ep, RDMA_CM_EVENT_DISCONNECTED, 0);
	harness_cm_event(ep, RDMA_CM_EVENT_ESTABLISHED, 0);
	vb__ep_arm(ep);
	assert_int_equal(ep->state, VB__EP_DOWN);
	vb__ep_close(ep);
}

static void listener_tells_that_its_device_is_gone(void **state)
{
	struct vb__pep *pep = harness_listen();
	struct vb_error err = { .code = VB_OK };
	struct vb__request *request;

	(void)state;
	mock_cm_event(((struct verbs_pep *)pep)->cm.id,
		      &(struct mock_answer){ .event = RDMA_CM_EVENT_DEVICE_REMOVAL });
	assert_int_equal(vb__pep_next(pep, &request, &err), VB_ERR_NO_DEVICE);
	vb__pep_close(pep);
}

/* ---- Failed completions ---- */

static const struct wc_case {
	enum ibv_wc_status status;
	enum vb_err code;
	const char *hints[2];
} wc_cases[] = {
	{ IBV_WC_RETRY_EXC_ERR, VB_ERR_LOST, { "MTU", "peer" } },
	{ IBV_WC_RNR_RETRY_EXC_ERR, VB_ERR_LOST, { "no receive posted", "version" } },
	{ IBV_WC_REM_ACCESS_ERR, VB_ERR_REMOTE_ACCESS, { "grant", "range" } },
	{ IBV_WC_REM_INV_REQ_ERR, VB_ERR_REMOTE_ACCESS, { "grant", "range" } },
	{ IBV_WC_LOC_PROT_ERR, VB_ERR_LOST, { "registered", "buffer" } },
	{ IBV_WC_LOC_LEN_ERR, VB_ERR_SYSTEM, { "message of this size", "smaller" } },
	{ IBV_WC_LOC_QP_OP_ERR, VB_ERR_LOST, { "peer", "link" } },
	{ IBV_WC_GENERAL_ERR, VB_ERR_LOST, { "peer", "link" } },
};

static void failed_completion_brings_down_with_its_status_and_a_hint(void **state)
{
	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(wc_cases); i++) {
		const struct wc_case *c = &wc_cases[i];
		struct vb__ep *ep = harness_connect();
		struct vb__completion done[4];

		harness_post(ep, VB__OP_WRITE, 7, 1000, NULL);
		mock_complete_send(harness_qp(ep), c->status);
		assert_int_equal(harness_drain(ep, done, 4), 1);
		assert_int_equal(done[0].id, 7);
		assert_int_equal(done[0].kind, VB__OP_WRITE);
		assert_int_equal(done[0].status, c->code);
		assert_int_equal(ep->state, VB__EP_DOWN);
		assert_int_equal(ep->down.code, c->code);
		assert_int_equal(ep->down.native_kind, VB_NATIVE_WC);
		assert_int_equal(ep->down.native, c->status);
		assert_string_equal(ep->down.operation, "write to");
		assert_contains(ep->down.hint, c->hints[0]);
		assert_contains(ep->down.hint, c->hints[1]);
		assert_int_equal(mock_count("rdma_disconnect"), i + 1); /* the peer is told */
		vb__ep_close(ep);
	}
}

/* A peer that is not ours: after "too big" a channel would go on. */
static void a_message_over_what_was_agreed_on_breaks_the_protocol(void **state)
{
	struct vb__ep *ep = harness_connect();
	struct vb__completion done[4];

	(void)state;
	harness_post(ep, VB__OP_RECV, 7, 64, NULL);
	mock_complete_recv(harness_qp(ep), IBV_WC_LOC_LEN_ERR, 0);
	assert_int_equal(harness_drain(ep, done, 4), 1);
	assert_int_equal(done[0].status, VB_ERR_PROTOCOL);
	assert_int_equal(ep->state, VB__EP_DOWN);
	assert_int_equal(ep->down.code, VB_ERR_PROTOCOL);
	assert_int_equal(ep->down.native, IBV_WC_LOC_LEN_ERR);
	assert_string_equal(ep->down.operation, "receive from");
	assert_contains(ep->down.cause, "larger message than was agreed on");
	assert_contains(ep->down.hint, "broken or foreign program");
	vb__ep_close(ep);
}

static void the_first_error_wins_over_flushes_and_disconnect(void **state)
{
	struct vb__ep *ep = harness_connect();
	struct vb__completion done[8];
	int n;

	(void)state;
	for (uint64_t id = 1; id <= 3; id++)
		harness_post(ep, VB__OP_RECV, id, 64, NULL);
	for (uint64_t id = 4; id <= 6; id++)
		harness_post(ep, VB__OP_SEND, id, 1000, NULL);
	mock_complete_send(harness_qp(ep), IBV_WC_RETRY_EXC_ERR);
	n = harness_drain(ep, done, 8);
	harness_cm_event(ep, RDMA_CM_EVENT_DISCONNECTED, 0);
	mock_async_event(IBV_EVENT_QP_FATAL, harness_qp(ep));
	vb__ep_arm(ep);

	assert_int_equal(n, 6);
	assert_int_equal(ep->outstanding, 0);
	assert_int_equal(done[0].id, 4);
	assert_int_equal(done[0].status, VB_ERR_LOST);
	for (int i = 1; i < n; i++)
		assert_int_equal(done[i].status, VB_ERR_FLUSHED);
	assert_int_equal(ep->down.code, VB_ERR_LOST);
	assert_int_equal(ep->down.native_kind, VB_NATIVE_WC);
	assert_int_equal(ep->down.native, 12);
	assert_string_equal(ep->down.operation, "send to");
	vb__ep_close(ep);
}

static void a_flush_alone_asks_the_cm_for_the_reason(void **state)
{
	struct vb__ep *ep = harness_connect();
	struct vb__completion done[4];

	(void)state;
	harness_post(ep, VB__OP_RECV, 1, 64, NULL);
	mock_qp_error(harness_qp(ep));
	harness_cm_event(ep, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(harness_drain(ep, done, 4), 1);
	assert_int_equal(ep->down.native_kind, VB_NATIVE_CM);
	assert_int_equal(ep->down.native, RDMA_CM_EVENT_DISCONNECTED);
	vb__ep_close(ep);
}

static void a_flush_that_nobody_explains_means_lost(void **state)
{
	struct vb__ep *ep = harness_connect();
	struct vb__completion done[4];

	(void)state;
	harness_post(ep, VB__OP_RECV, 1, 64, NULL);
	mock_qp_error(harness_qp(ep));
	assert_int_equal(harness_drain(ep, done, 4), 1);
	assert_int_equal(ep->state, VB__EP_DOWN);
	assert_int_equal(ep->down.code, VB_ERR_LOST);
	assert_non_null(strstr(ep->down.cause, "without a farewell"));
	vb__ep_close(ep);
}

static void what_cannot_be_posted_any_more_asks_the_cm_for_the_reason(void **state)
{
	static const struct {
		const char *call;
		enum vb__op_kind kind;
	} posts[] = { { "ibv_post_send", VB__OP_SEND }, { "ibv_post_recv", VB__OP_RECV } };

	(void)state;
	mock_post_by_errno = true;
	for (unsigned i = 0; i < ARRAY_SIZE(posts); i++) {
		struct vb__ep *ep = harness_connect();
		struct vb_error err = { .code = VB_OK };

		harness_cm_event(ep, RDMA_CM_EVENT_DISCONNECTED, 0);
		mock_fail_call(posts[i].call, 1, ENOTCONN);
		assert_int_equal(harness_post(ep, posts[i].kind, 1, 64, &err), VB_ERR_LOST);
		assert_int_equal(err.native_kind, VB_NATIVE_CM);
		assert_int_equal(err.native, RDMA_CM_EVENT_DISCONNECTED);
		assert_int_equal(ep->state, VB__EP_DOWN);
		vb__ep_close(ep);
	}
}

static void what_cannot_be_posted_for_a_reason_in_errno_tells_it(void **state)
{
	struct vb__ep *ep = harness_connect();
	struct vb_error err = { .code = VB_OK };

	(void)state;
	mock_post_by_errno = true;
	mock_fail_call("ibv_post_send", 1, ENOTCONN);
	assert_int_equal(harness_post(ep, VB__OP_SEND, 1, 64, &err), VB_ERR_LOST);
	assert_int_equal(err.native, ENOTCONN);
	assert_contains(err.hint, "look at the peer");
	vb__ep_close(ep);
}

static void nothing_is_posted_once_down(void **state)
{
	struct vb__ep *ep = harness_connect();
	struct vb_error err = { .code = VB_OK };
	unsigned posted;

	(void)state;
	harness_post(ep, VB__OP_SEND, 1, 1000, NULL);
	posted = mock_count("ibv_post_send");
	harness_cm_event(ep, RDMA_CM_EVENT_DISCONNECTED, 0);
	vb__ep_arm(ep);
	assert_int_equal(harness_post(ep, VB__OP_SEND, 2, 1000, &err), VB_ERR_LOST);
	assert_int_equal(mock_count("ibv_post_send"), posted);
	vb__ep_close(ep);
}

static void poll_that_fails_without_errno_does_not_say_again(void **state)
{
	struct vb__ep *ep = harness_connect();
	struct vb__completion done[4];

	(void)state;
	mock_fail_call("ibv_poll_cq", 1, EAGAIN); /* as left over from a non-blocking read */
	vb__ep_poll(ep, done, 4);
	assert_int_equal(ep->state, VB__EP_DOWN);
	assert_string_equal(ep->down.operation, "ibv_poll_cq");
	assert_int_not_equal(ep->down.code, VB_ERR_AGAIN);
	vb__ep_close(ep);
}

/* ---- The device's events ---- */

static void fatal_events_bring_the_endpoint_down_and_flush(void **state)
{
	static const enum ibv_event_type fatal[] = {
		IBV_EVENT_QP_FATAL, IBV_EVENT_QP_REQ_ERR,   IBV_EVENT_QP_ACCESS_ERR,
		IBV_EVENT_CQ_ERR,   IBV_EVENT_DEVICE_FATAL,
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(fatal); i++) {
		struct vb__ep *ep = harness_connect();
		struct vb__completion done[4];

		harness_post(ep, VB__OP_RECV, 1, 64, NULL);
		assert_true(harness_arm(ep));
		mock_async_event(fatal[i], fatal[i] == IBV_EVENT_CQ_ERR
						   ? (void *)harness_inside(ep)->cq
						   : harness_qp(ep));
		assert_true(harness_readable(ep->wait_fd));
		vb__ep_arm(ep);
		assert_int_equal(ep->state, VB__EP_DOWN);
		assert_int_equal(ep->down.code, VB_ERR_LOST);
		assert_int_equal(ep->down.native_kind, VB_NATIVE_ASYNC);
		assert_int_equal(ep->down.native, fatal[i]);
		assert_contains(ep->down.hint, "dmesg");
		assert_int_equal(harness_drain(ep, done, 4), 1);
		assert_int_equal(mock_count("ibv_ack_async_event"), i + 1);
		vb__ep_close(ep);
	}
}

static void fatal_event_counts_before_the_peer_confirmed(void **state)
{
	struct vb__pep *pep = harness_listen();
	struct vb__ep *ep = harness_request(pep);

	(void)state;
	vb__ep_accept(ep, "hi", 3, NULL);
	mock_async_event(IBV_EVENT_QP_FATAL, harness_qp(ep));
	vb__ep_arm(ep);
	assert_int_equal(ep->state, VB__EP_DOWN);
	vb__ep_close(ep);
	vb__pep_close(pep);
}

static void a_fatal_event_is_not_hidden_by_later_ones(void **state)
{
	struct vb__ep *ep = harness_connect();

	(void)state;
	mock_async_event(IBV_EVENT_QP_FATAL, harness_qp(ep));
	mock_async_event(IBV_EVENT_PORT_ERR, NULL);
	vb__ep_arm(ep);
	assert_int_equal(mock_async_pending(), 0);
	assert_int_equal(ep->state, VB__EP_DOWN);
	assert_int_equal(ep->down.native, IBV_EVENT_QP_FATAL);
	vb__ep_close(ep);
}

/* What the log was told: the lines, and the last of them with its level. */
static struct {
	unsigned lines;
	char last[200];
	enum vb_log_level level;
} heard;

static void hear(void *arg, enum vb_log_level level, const char *line)
{
	(void)arg;
	heard.lines++;
	heard.level = level;
	snprintf(heard.last, sizeof(heard.last), "%s", line);
}

static void begin_hearing(void)
{
	memset(&heard, 0, sizeof(heard));
	harness_settings.log = (struct vb__log){ .write = hear, .level = VB_LOG_DEBUG };
}

static void port_event(enum ibv_event_type type, int port)
{
	mock_async_event(type, (void *)(uintptr_t)port);
}

static const struct notice_case {
	enum ibv_event_type type;
	bool of_port; /* else of the queue pair */
	enum vb_log_level level;
	const char *who, *says;
} notice_cases[] = {
	{ IBV_EVENT_PORT_ERR, true, VB_LOG_WARNING, "mock0 port 1: ", "the port is down" },
	{ IBV_EVENT_PORT_ACTIVE, true, VB_LOG_WARNING, "mock0 port 1: ", "the port is up" },
	{ IBV_EVENT_GID_CHANGE, true, VB_LOG_INFO, "mock0 port 1: ", "GIDs changed" },
	{ IBV_EVENT_LID_CHANGE, true, VB_LOG_WARNING, "mock0 port 1: ", "LID changed" },
	{ IBV_EVENT_PKEY_CHANGE, true, VB_LOG_INFO, "mock0 port 1: ", "partition keys" },
	{ IBV_EVENT_SM_CHANGE, true, VB_LOG_DEBUG, "mock0 port 1: ", "event" },
	{ IBV_EVENT_CLIENT_REREGISTER, true, VB_LOG_DEBUG, "mock0 port 1: ", "event" },
	{ IBV_EVENT_PATH_MIG, false, VB_LOG_WARNING, "10.0.0.2 port 7471: ", "its other path" },
	{ IBV_EVENT_PATH_MIG_ERR, false, VB_LOG_WARNING, "10.0.0.2 port 7471: ", "could not" },
	{ IBV_EVENT_SQ_DRAINED, false, VB_LOG_DEBUG, "10.0.0.2 port 7471: ", "event" },
	{ IBV_EVENT_QP_LAST_WQE_REACHED, false, VB_LOG_DEBUG, "10.0.0.2 port 7471: ", "event" },
	{ IBV_EVENT_WQ_FATAL, false, VB_LOG_WARNING, "mock0: ", "event" }, /* not ours to know */
};

static void what_need_not_end_a_connection_is_a_notice(void **state)
{
	(void)state;
	begin_hearing();
	for (unsigned i = 0; i < ARRAY_SIZE(notice_cases); i++) {
		const struct notice_case *c = &notice_cases[i];
		struct vb__ep *ep = harness_connect();

		if (c->of_port)
			port_event(c->type, 1);
		else
			mock_async_event(c->type, harness_qp(ep));
		assert_true(harness_readable(ep->wait_fd));
		vb__ep_arm(ep);
		assert_int_equal(mock_async_pending(), 0);
		assert_int_equal(mock_count("ibv_ack_async_event"), i + 1);
		assert_int_equal(heard.lines, i + 1);
		assert_int_equal(heard.level, c->level);
		assert_contains(heard.last, c->who);
		assert_contains(heard.last, c->says);
		assert_int_equal(ep->state, VB__EP_UP);
		vb__ep_close(ep);
	}
}

static void a_notice_for_all_is_one_line_in_a_log_that_they_share(void **state)
{
	struct vb__ep *eps[3];

	(void)state;
	begin_hearing();
	for (unsigned i = 0; i < ARRAY_SIZE(eps); i++)
		eps[i] = harness_connect();
	port_event(IBV_EVENT_PORT_ERR, 1);
	vb__ep_arm(eps[1]);
	assert_int_equal(heard.lines, 1);
	mock_async_event(IBV_EVENT_PATH_MIG, harness_qp(eps[2]));
	vb__ep_arm(eps[0]);
	assert_int_equal(heard.lines, 2);
	for (unsigned i = 0; i < ARRAY_SIZE(eps); i++)
		vb__ep_close(eps[i]);
}

/* As where rdma_cm and the wire-up by TCP have each opened it. */
static void a_device_that_is_opened_twice_says_a_notice_once(void **state)
{
	struct ibv_context twin = mock_context;
	struct verbs_watcher both[2] = { { .device = MOCK_DEVICE, .log = &harness_settings.log },
					 { .device = MOCK_DEVICE, .log = &harness_settings.log } };
	struct ibv_context *contexts[] = { &mock_context, &twin };

	(void)state;
	begin_hearing();
	for (int i = 0; i < 2; i++)
		assert_int_equal(verbs_watch(&both[i], contexts[i], NULL), 0);
	for (int times = 1; times <= 2; times++)
		for (int i = 0; i < 2; i++) {
			mock_async_event(IBV_EVENT_PORT_ERR, (void *)1);
			assert_int_equal(verbs_take_device_events(contexts[i]), 0);
			assert_int_equal(heard.lines, times);
		}
	mock_async_event(IBV_EVENT_PORT_ERR, (void *)2); /* is not the same */
	assert_int_equal(verbs_take_device_events(&twin), 0);
	assert_int_equal(heard.lines, 3);
	for (int i = 0; i < 2; i++)
		verbs_unwatch(&both[i]);
}

static void the_device_s_other_port_is_nobody_s_business(void **state)
{
	struct vb__ep *ep;

	(void)state;
	begin_hearing();
	ep = harness_connect();
	port_event(IBV_EVENT_PORT_ERR, 2);
	vb__ep_arm(ep);
	assert_int_equal(mock_async_pending(), 0);
	assert_int_equal(heard.lines, 0);
	vb__ep_close(ep);
}

static void what_happened_before_anybody_was_there_is_dropped(void **state)
{
	struct vb__ep *ep;

	(void)state;
	begin_hearing();
	mock_async_event(IBV_EVENT_DEVICE_FATAL, NULL);
	port_event(IBV_EVENT_PORT_ERR, 1);
	ep = harness_connect();
	assert_int_equal(mock_async_pending(), 0);
	assert_int_equal(mock_count("ibv_ack_async_event"), 2);
	assert_int_equal(heard.lines, 0);
	assert_int_equal(ep->state, VB__EP_UP);
	vb__ep_close(ep);
}

static void early_data_is_told_to_the_cm(void **state)
{
	struct vb__pep *pep = harness_listen();
	struct vb__ep *ep = harness_request(pep);

	(void)state;
	vb__ep_accept(ep, "hi", 3, NULL);
	mock_async_event(IBV_EVENT_COMM_EST, harness_qp(ep));
	vb__ep_arm(ep);
	assert_int_equal(mock_count("rdma_notify"), 1);
	assert_int_equal(mock_count("ibv_ack_async_event"), 1);
	assert_int_equal(ep->state, VB__EP_CONNECTING);
	vb__ep_close(ep);
	vb__pep_close(pep);
}

static void events_of_another_endpoint_wake_that_one(void **state)
{
	struct vb__ep *finder = harness_connect(), *other = harness_connect();

	(void)state;
	assert_true(harness_arm(finder));
	assert_true(harness_arm(other));
	mock_async_event(IBV_EVENT_QP_FATAL, harness_qp(other));
	vb__ep_arm(finder);
	assert_int_equal(mock_async_pending(), 0);
	assert_int_equal(finder->state, VB__EP_UP);
	assert_true(harness_readable(other->wait_fd));
	vb__ep_arm(other);
	assert_int_equal(other->state, VB__EP_DOWN);
	assert_true(harness_arm(finder));
	assert_false(harness_readable(finder->wait_fd));
	vb__ep_close(finder);
	vb__ep_close(other);
}

static void events_for_an_endpoint_that_was_closed_go_nowhere(void **state)
{
	struct vb__ep *gone = harness_connect(), *ep = harness_connect();

	(void)state;
	mock_async_event(IBV_EVENT_QP_FATAL, harness_qp(gone));
	vb__ep_close(gone);
	vb__ep_arm(ep);
	assert_int_equal(ep->state, VB__EP_UP);
	vb__ep_close(ep);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		VERBS_TEST(connect_fails_with_the_event_and_a_hint),
		VERBS_TEST(removal_of_the_device_is_a_lost_connection),
		VERBS_TEST(a_connection_that_was_up_is_lost_whatever_the_event),
		VERBS_TEST(refusal_carries_the_private_data_of_the_listener),
		VERBS_TEST(open_fails_with_the_step_that_failed),
		VERBS_TEST(route_without_rdma_is_told_at_once),
		VERBS_TEST(connect_gives_up_at_the_deadline_and_sleeps_until_then),
		VERBS_TEST(broken_event_channel_is_told_at_once),
		VERBS_TEST(a_disconnect_brings_the_endpoint_down_and_flushes),
		VERBS_TEST(what_arrived_before_the_disconnect_can_still_be_polled),
		VERBS_TEST(a_peer_that_vanishes_before_confirming_flushes_too),
		VERBS_TEST(events_without_consequence_are_acknowledged_and_ignored),
		VERBS_TEST(early_data_does_not_raise_the_dead),
		VERBS_TEST(a_flush_before_the_confirmation_does_not_confirm),
		VERBS_TEST(a_late_confirmation_does_not_raise_the_dead),
		VERBS_TEST(listener_tells_that_its_device_is_gone),
		VERBS_TEST(failed_completion_brings_down_with_its_status_and_a_hint),
		VERBS_TEST(a_message_over_what_was_agreed_on_breaks_the_protocol),
		VERBS_TEST(the_first_error_wins_over_flushes_and_disconnect),
		VERBS_TEST(a_flush_alone_asks_the_cm_for_the_reason),
		VERBS_TEST(a_flush_that_nobody_explains_means_lost),
		VERBS_TEST(what_cannot_be_posted_any_more_asks_the_cm_for_the_reason),
		VERBS_TEST(what_cannot_be_posted_for_a_reason_in_errno_tells_it),
		VERBS_TEST(nothing_is_posted_once_down),
		VERBS_TEST(poll_that_fails_without_errno_does_not_say_again),
		VERBS_TEST(fatal_events_bring_the_endpoint_down_and_flush),
		VERBS_TEST(fatal_event_counts_before_the_peer_confirmed),
		VERBS_TEST(a_fatal_event_is_not_hidden_by_later_ones),
		VERBS_TEST(what_need_not_end_a_connection_is_a_notice),
		VERBS_TEST(a_notice_for_all_is_one_line_in_a_log_that_they_share),
		VERBS_TEST(a_device_that_is_opened_twice_says_a_notice_once),
		VERBS_TEST(the_device_s_other_port_is_nobody_s_business),
		VERBS_TEST(what_happened_before_anybody_was_there_is_dropped),
		VERBS_TEST(early_data_is_told_to_the_cm),
		VERBS_TEST(events_of_another_endpoint_wake_that_one),
		VERBS_TEST(events_for_an_endpoint_that_was_closed_go_nowhere),
	};

	return cmocka_run_group_tests_name("verbs_events", tests, NULL, NULL);
}
