/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole life of an endpoint for datagrams, again and again, each time with
 * one more call failing: whatever fails, everything is given back once and in order, and
 * what fails while opening is told.
 */
#include <errno.h>
#include <string.h>

#include "fabric/verbs/verbs_dgram.h"
#include "verbs_harness.h"

struct life {
	struct vb_error err; /* the first one that the user gets to see */
	const char *culprit; /* the call that had failed until the user ended it all */
	bool opened;
};

/* Failures that are worked around, or come too late to matter: the log tells them. All others the error must tell. */
static bool is_tolerated(const char *call)
{
	static const char *const tolerated[] = {
		"rdma_ack_cm_event",	"rdma_accept",	  "rdma_destroy_id",
		"rdma_leave_multicast", "ibv_destroy_ah", "ibv_query_gid_ex",
	};

	for (unsigned i = 0; i < ARRAY_SIZE(tolerated); i++)
		if (!strcmp(call, tolerated[i]))
			return true;
	return false;
}

static void give_gids(void)
{
	static const uint8_t own[16] = { [10] = 0xff, [11] = 0xff, 10, 0, 0, 2 };

	/* Twice, so that one of them may fail to be read. */
	for (int i = 0; i < 2; i++)
		memcpy(&mock_gids[i].gid, own, 16);
}

static int answer(struct vb__dg *dg, struct vb_error *err)
{
	static const uint8_t header[20] = { 0x45, [12] = 10, 0, 0, 3, 10, 0, 0, 2 };
	struct verbs_dg *in = (struct verbs_dg *)dg;
	struct vb__dg_arrival arrival;
	struct vb__dg_peer *peer;
	int rc;

	memcpy(in->memory + 20, header, sizeof(header));
	mock_complete_recv(in->home->qp, IBV_WC_SUCCESS, 50);
	rc = vb__dg_receive(dg, &arrival);
	if (rc <= 0)
		return vb__fail_again(err, &dg->down);
	rc = vb__dg_peer_of(dg, &arrival.from, &peer, err);
	if (rc == 0)
		rc = vb__dg_send(dg, peer, "head", 4, "body", 4, err);
	if (rc == 0)
		mock_complete_send(in->home->qp, IBV_WC_SUCCESS);
	vb__dg_give_back(dg, arrival.slot);
	if (rc == 0)
		vb__dg_peer_close(peer);
	return rc;
}

static int use(struct vb__dg *dg, struct vb_error *err)
{
	struct vb__address at = harness_peer();
	uint8_t greeting[VB__GREETING_BYTES];
	struct vb__dg_peer *peer;
	int rc;

	mock_connect_request(((struct verbs_dg *)dg)->door, "hi", 3);
	rc = vb__dg_resolve(dg, &at, harness_deadline(), greeting, &peer, err);
	if (rc == 0)
		rc = vb__dg_join(dg, &at, harness_deadline(), &peer, err);
	if (rc == 0)
		rc = answer(dg, err);
	if (rc == 0) {
		mock_async_event(IBV_EVENT_PORT_ERR, (void *)1);
		vb__dg_arm(dg, false);
		vb__dg_arm(dg, true);
		vb__fail_again(err, &dg->down);
	}
	return rc;
}

static void live(struct life *life)
{
	struct vb__dg_attr attr = { .receives = 3, .settings = &harness_settings };
	struct vb__address at = harness_peer();
	struct vb__dg *dg = NULL;

	give_gids();
	if (vb__dg_open(&vb__verbs_dgrams, &attr, &at, &dg, &life->err) == 0) {
		life->opened = true;
		use(dg, &life->err);
		harness_teardown_from = mock_calls(); /* what was asked has gone before */
	}
	life->culprit = mock_failed_call();
	vb__dg_close(dg);
}

static void check_books(unsigned n, const char *call)
{
	if (mock_complaint())
		fail_msg("call %u, %s, failed: %s", n, call, mock_complaint());
	if (mock_leak())
		fail_msg("call %u, %s, failed: leaked a %s", n, call, mock_leak());
	if (harness_unlawful())
		fail_msg("call %u, %s, failed: %s came too late", n, call, harness_unlawful());
}

static void check_told(unsigned n, const struct life *life, int errnum)
{
	const char *call = life->culprit;

	if (life->err.code == VB_OK) {
		if (!is_tolerated(call) && !(errnum == ENOMEM && !strcmp(call, "rdma_create_qp")))
			fail_msg("call %u: the failure of %s was lost", n, call);
		return;
	}
	if (!harness_names(&life->err, call))
		fail_msg("call %u: %s failed, but the error is of %s (%s)", n, call,
			 life->err.operation, life->err.cause);
}

static void torture(int errnum, bool and_all_after)
{
	unsigned n = 0;

	for (;;) {
		struct life life = { .opened = false };

		harness_start(NULL);
		mock_fail_nth(++n, errnum, and_all_after);
		live(&life);
		check_books(n, mock_failed_call() ? mock_failed_call() : "none");
		if (!mock_failed_call())
			break;
		if (and_all_after)
			continue;
		harness_check_told(n, mock_failed_call(), errnum, &life.err);
		if (life.culprit)
			check_told(n, &life, errnum);
	}
	print_message("# %u calls failed in turn\n", n - 1);
	assert_true(n > 40);
}

static void every_call_fails_once(void **state)
{
	(void)state;
	torture(EIO, false);
}

static void every_call_runs_out_of_memory_once(void **state)
{
	(void)state;
	torture(ENOMEM, false);
}

static void nothing_works_any_more_in_the_midst_of_it(void **state)
{
	(void)state;
	torture(ENODEV, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		VERBS_TEST(every_call_fails_once),
		VERBS_TEST(every_call_runs_out_of_memory_once),
		VERBS_TEST(nothing_works_any_more_in_the_midst_of_it),
	};

	return cmocka_run_group_tests_name("verbs_dgram_torture", tests, NULL, NULL);
}
