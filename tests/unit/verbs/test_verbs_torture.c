/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole life of an endpoint and of a listener, again and again, each time
 * with one more call failing: the error names that call, and everything that
 * was made is given back exactly once and in order.
 */
#include <errno.h>
#include <string.h>

#include "verbs_harness.h"

struct life {
	struct vb_error err; /* the first one that the user gets to see */
	const char *culprit; /* the call that had failed until the user ended it all */
	bool connected;
	unsigned left; /* operations that never completed */
	bool request_turned_away;
};

/* Failures that are worked around, or come too late to matter: the log tells them. All others the error must tell. */
static const char *const tolerated[] = {
	"rdma_set_option",   "ibv_modify_qp",	"ibv_query_port", "rdma_disconnect",
	"rdma_ack_cm_event", "ibv_dereg_mr",	"ibv_destroy_cq", "ibv_destroy_comp_channel",
	"ibv_dealloc_pd",    "rdma_destroy_id", "rdma_reject",	  "ibv_get_device_list",
	"rdma_notify",
};

static bool is_tolerated(const char *call)
{
	for (unsigned i = 0; i < ARRAY_SIZE(tolerated); i++)
		if (!strcmp(call, tolerated[i]))
			return true;
	return false;
}

/* ---- The lives ---- */

/* As a caller would: polls, sleeps when told that it is safe, until n completions have come. */
static void progress(struct vb__ep *ep, int n)
{
	struct vb__completion done[8];

	for (int i = 0; i < 100 && n > 0 && ep->state != VB__EP_DOWN; i++) {
		n -= vb__ep_poll(ep, done, 8);
		vb__ep_arm(ep);
	}
}

static void transfer(struct vb__ep *ep, struct vb_error *err)
{
	if (harness_post(ep, VB__OP_SEND, 3, 1000, err) != 0)
		return;
	vb__ep_arm(ep);
	if (ep->state == VB__EP_DOWN)
		return;
	mock_complete_send(harness_qp(ep), IBV_WC_SUCCESS);
	mock_complete_recv(harness_qp(ep), IBV_WC_SUCCESS, 100);
	mock_async_event(IBV_EVENT_PORT_ERR, NULL);
	mock_async_event(IBV_EVENT_COMM_EST, harness_qp(ep));
	progress(ep, 2);
}

static void end(struct life *life, struct vb__ep *ep)
{
	struct vb__completion done[8];

	life->culprit = mock_failed_call();
	vb__fail_again(&life->err, &ep->down);
	vb__ep_disconnect(ep);
	harness_drain(ep, done, 8);
	life->left = ep->outstanding;
	vb__ep_close(ep);
}

static int post_receives(struct vb__ep *ep, struct vb_error *err)
{
	int rc = harness_post(ep, VB__OP_RECV, 1, 100, err);

	return rc ? rc : harness_post(ep, VB__OP_RECV, 2, 100, err);
}

static void live_actively(struct life *life)
{
	struct vb__address peer = harness_peer();
	struct vb__ep *ep = NULL;
	int rc = vb__ep_open(&vb__verbs_fabric, &harness_attr, &peer, harness_deadline(), &ep,
			     &life->err);

	if (rc) {
		life->culprit = mock_failed_call();
		return;
	}
	rc = post_receives(ep, &life->err);
	if (rc == 0)
		rc = vb__ep_connect(ep, "hi", 3, harness_deadline(), &life->err);
	life->connected = rc == 0;
	if (rc == 0)
		transfer(ep, &life->err);
	end(life, ep);
}

static void serve(struct life *life, struct vb__request *request)
{
	struct vb__ep *ep = NULL;
	int rc = vb__ep_accept_open(request, &harness_attr, &ep, &life->err);

	if (rc) {
		life->culprit = mock_failed_call();
		assert_int_equal(mock_count("rdma_reject"), 1); /* the peer is told */
		return;
	}
	rc = post_receives(ep, &life->err);
	if (rc == 0)
		rc = vb__ep_accept(ep, "hi", 3, &life->err);
	life->connected = rc == 0;
	if (rc == 0) {
		harness_cm_event(ep, RDMA_CM_EVENT_ESTABLISHED, 0);
		vb__ep_arm(ep);
	}
	if (ep->state == VB__EP_UP)
		transfer(ep, &life->err);
	end(life, ep);
}

static void live_passively(struct life *life)
{
	struct vb__address at = harness_peer();
	struct vb__request *request = NULL;
	struct vb__pep *pep = NULL;
	int rc = vb__pep_open(&vb__verbs_fabric, &harness_settings, &at, &pep, &life->err);

	if (rc == 0) {
		mock_connect_request(((struct verbs_pep *)pep)->cm.id, "hi", 3);
		rc = vb__pep_next(pep, &request, &life->err);
		life->request_turned_away = rc == 0;
	}
	life->culprit = mock_failed_call();
	if (rc == 1)
		serve(life, request);
	vb__pep_close(pep);
}

static void turn_somebody_away(struct life *life)
{
	struct vb__address at = harness_peer();
	struct vb__request *request = NULL;
	struct vb__pep *pep = NULL;
	int rc = vb__pep_open(&vb__verbs_fabric, &harness_settings, &at, &pep, &life->err);

	if (rc == 0) {
		mock_connect_request(((struct verbs_pep *)pep)->cm.id, "hi", 3);
		rc = vb__pep_next(pep, &request, &life->err);
		life->request_turned_away = rc == 0;
	}
	life->culprit = mock_failed_call();
	if (rc == 1)
		vb__request_reject(request, "no", 3);
	vb__pep_close(pep);
}

/* ---- The torture ---- */

static void check_books(unsigned n, const char *call)
{
	if (mock_complaint())
		fail_msg("call %u, %s, failed: %s", n, call, mock_complaint());
	if (mock_leak())
		fail_msg("call %u, %s, failed: leaked a %s", n, call, mock_leak());
	if (harness_unlawful())
		fail_msg("call %u, %s, failed: %s came too late", n, call, harness_unlawful());
}

static void check_error(const struct life *life, unsigned n, int errnum)
{
	const struct vb_error *e = &life->err;
	int expected = harness_told_errno(life->culprit, errnum);

	if (e->code == VB_OK) {
		if (!is_tolerated(life->culprit) &&
		    !(life->request_turned_away && !strcmp(life->culprit, "calloc")) &&
		    !(errnum == ENOMEM && !strcmp(life->culprit, "rdma_create_qp")))
			fail_msg("call %u: the failure of %s was lost", n, life->culprit);
		return;
	}
	if (!harness_names(e, life->culprit))
		fail_msg("call %u: %s failed, but the error is of %s (%s)", n, life->culprit,
			 e->operation, e->cause);
	if (e->native_kind != VB_NATIVE_ERRNO || e->native != expected ||
	    e->code != vb__err_from_errno(expected))
		fail_msg("call %u: %s failed with errno %d, the error says %s, %d", n,
			 life->culprit, expected, vb_err_name(e->code), e->native);
	if (!e->cause[0])
		fail_msg("call %u: no cause is given for %s", n, life->culprit);
}

static void torture(void (*live)(struct life *life), int errnum, bool and_all_after)
{
	unsigned n = 0;

	for (;;) {
		struct life life = { .connected = false };

		harness_start(NULL);
		mock_fail_nth(++n, errnum, and_all_after);
		live(&life);
		check_books(n, mock_failed_call() ? mock_failed_call() : "none");
		if (!mock_failed_call())
			break;
		if (and_all_after)
			continue;
		harness_check_told(n, mock_failed_call(), errnum, &life.err);
		if (life.connected && life.left)
			fail_msg("call %u, %s, failed: %u operations never completed", n,
				 mock_failed_call(), life.left);
		if (life.culprit)
			check_error(&life, n, errnum);
		else if (life.err.code != VB_OK)
			fail_msg("call %u: error of %s, but nothing failed yet", n,
				 life.err.operation);
	}
	print_message("# %u calls failed in turn\n", n - 1);
	assert_true(n > 10);
}

static void every_call_of_an_active_life_fails_once(void **state)
{
	(void)state;
	torture(live_actively, EIO, false);
}

static void every_call_of_an_active_life_runs_out_of_memory_once(void **state)
{
	(void)state;
	torture(live_actively, ENOMEM, false);
}

static void every_call_of_a_passive_life_fails_once(void **state)
{
	(void)state;
	torture(live_passively, EIO, false);
}

static void every_call_of_a_passive_life_runs_out_of_memory_once(void **state)
{
	(void)state;
	torture(live_passively, ENOMEM, false);
}

static void every_call_of_a_rejection_fails_once(void **state)
{
	(void)state;
	torture(turn_somebody_away, EIO, false);
}

static void nothing_works_any_more_in_the_midst_of_an_active_life(void **state)
{
	(void)state;
	torture(live_actively, ENODEV, true);
}

static void nothing_works_any_more_in_the_midst_of_a_passive_life(void **state)
{
	(void)state;
	torture(live_passively, ENODEV, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		VERBS_TEST(every_call_of_an_active_life_fails_once),
		VERBS_TEST(every_call_of_an_active_life_runs_out_of_memory_once),
		VERBS_TEST(every_call_of_a_passive_life_fails_once),
		VERBS_TEST(every_call_of_a_passive_life_runs_out_of_memory_once),
		VERBS_TEST(every_call_of_a_rejection_fails_once),
		VERBS_TEST(nothing_works_any_more_in_the_midst_of_an_active_life),
		VERBS_TEST(nothing_works_any_more_in_the_midst_of_a_passive_life),
	};

	return cmocka_run_group_tests_name("verbs_torture", tests, NULL, NULL);
}
