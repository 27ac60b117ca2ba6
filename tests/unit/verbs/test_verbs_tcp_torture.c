/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of an endpoint and of a listener wired up by TCP, each time with
 * one more call failing: the error names that call, the peer is not left
 * waiting, and everything that was made is given back.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "tcp_peer.h"

struct life {
	struct vb_error err; /* the first one that the user gets to see */
	const char *culprit; /* the call that had failed until the user ended it all */
	bool connected;
	bool turned_away; /* the listener itself did so, and goes on */
};

/* Failures that are worked around, or come too late to matter: the log tells them. All others the error must tell. */
static const char *const tolerated[] = {
	"setsockopt",	   "ibv_dereg_mr",     "ibv_destroy_cq", "ibv_destroy_comp_channel",
	"ibv_dealloc_pd",  "ibv_close_device", "ibv_query_port", "ibv_get_device_list",
	"timerfd_settime", "ibv_query_gid_ex",
};

static bool is_tolerated(const char *call)
{
	for (unsigned i = 0; i < ARRAY_SIZE(tolerated); i++)
		if (!strcmp(call, tolerated[i]))
			return true;
	return false;
}

static void transfer(struct vb__ep *ep, struct vb_error *err)
{
	struct vb__completion done[8];

	if (harness_post(ep, VB__OP_SEND, 3, 1000, err) != 0)
		return;
	vb__ep_arm(ep);
	if (ep->state == VB__EP_DOWN)
		return;
	mock_complete_send(harness_qp(ep), IBV_WC_SUCCESS);
	for (int i = 0; i < 4; i++) {
		vb__ep_poll(ep, done, 8);
		vb__ep_arm(ep);
	}
}

static void end(struct life *life, struct vb__ep *ep)
{
	struct vb__completion done[8];

	life->culprit = mock_failed_call();
	vb__fail_again(&life->err, &ep->down);
	vb__ep_disconnect(ep);
	harness_drain(ep, done, 8);
	if (life->connected)
		assert_int_equal(ep->outstanding, 0);
	vb__ep_close(ep);
}

static void live_actively(struct life *life, const struct vb__address *at)
{
	struct vb__ep *ep = NULL;
	uint64_t deadline = vb__now_ns() + vb__ms(5000);
	int rc = vb__ep_open(&vb__verbs_fabric, &harness_attr, at, deadline, &ep, &life->err);

	if (rc) {
		life->culprit = mock_failed_call();
		return;
	}
	rc = harness_post(ep, VB__OP_RECV, 1, 100, &life->err);
	if (rc == 0)
		rc = vb__ep_connect(ep, "hi", 3, deadline, &life->err);
	life->connected = rc == 0;
	if (rc == 0)
		transfer(ep, &life->err);
	end(life, ep);
}

static void serve(struct life *life, struct vb__request *request, int fd)
{
	const struct vb__wireup ready = { .kind = VB__WIREUP_READY, .version = VB__WIREUP_VERSION };
	struct vb__ep *ep = NULL;
	int rc = vb__ep_accept_open(request, &harness_attr, &ep, &life->err);

	life->culprit = mock_failed_call();
	if (rc)
		return;
	rc = harness_post(ep, VB__OP_RECV, 1, 100, &life->err);
	if (rc == 0)
		rc = vb__ep_accept(ep, "hi", 3, &life->err);
	life->connected = rc == 0;
	if (rc == 0) {
		tcp_peer_say(fd, &ready);
		vb__waiter_sleep(ep->wait_fd, vb__now_ns() + vb__ms(1000));
		vb__ep_arm(ep);
	}
	if (ep->state == VB__EP_UP)
		transfer(ep, &life->err);
	end(life, ep);
}

static void live_passively(struct life *life, const struct vb__address *at)
{
	struct vb__wireup asked = tcp_peer_pair, said;
	struct vb__request *request = NULL;
	struct vb__pep *pep = NULL;
	int fd = -1;
	int rc = vb__pep_open(&vb__verbs_fabric, &harness_settings, at, &pep, &life->err);

	asked.kind = VB__WIREUP_REQUEST;
	if (rc == 0) {
		fd = tcp_peer_call(pep);
		tcp_peer_say(fd, &asked);
		rc = tcp_next(pep, &request, fd, &life->err);
		life->turned_away = rc == 0;
	}
	life->culprit = mock_failed_call();
	if (rc == 1)
		serve(life, request, fd);
	vb__pep_close(pep);
	if (fd < 0)
		return;
	while (tcp_peer_hear(fd, &said)) /* comes to an end: it is not left waiting */
		;
	close(fd);
}

/* The search for a device tells all that went wrong on its way. */
static bool search_tells(const struct vb_error *e, const char *call)
{
	return !strcmp(e->operation, "wire up by TCP from") && strstr(e->cause, call);
}

/* What is asked for the route, and what keeps the picture of the system, goes by the name of that, with the reason. */
static const char *told_as(const char *call, const struct vb_error *e)
{
	if (!strcmp(call, "connect") && !strcmp(e->operation, "look for a route to"))
		return e->operation;
	if (!strcmp(call, "calloc") &&
	    (!strcmp(e->operation, "netlink") || harness_logged("netlink", ENOMEM)))
		return "netlink";
	return call;
}

static void check_told(unsigned n, const struct life *life, int errnum)
{
	const struct vb_error *e = &life->err;
	const char *call = mock_failed_call();

	if (!search_tells(e, call))
		harness_check_told(n, told_as(call, e), harness_told_errno(call, errnum), e);
}

static void check_error(const struct life *life, unsigned n, int errnum)
{
	const struct vb_error *e = &life->err;

	if (e->code == VB_OK) {
		if (!is_tolerated(life->culprit) && !life->turned_away &&
		    !(errnum == ENOMEM && (!strcmp(life->culprit, "ibv_create_qp") ||
					   !strcmp(life->culprit, "accept4"))))
			fail_msg("call %u: the failure of %s was lost", n, life->culprit);
		return;
	}
	if (search_tells(e, life->culprit))
		return;
	if (!harness_names(e, told_as(life->culprit, e)))
		fail_msg("call %u: %s failed, but the error is of %s (%s)", n, life->culprit,
			 e->operation, e->cause);
	if (!e->cause[0])
		fail_msg("call %u: no cause is given for %s", n, life->culprit);
}

static void check_books(unsigned n)
{
	const char *call = mock_failed_call() ? mock_failed_call() : "none";

	if (mock_complaint())
		fail_msg("call %u, %s, failed: %s", n, call, mock_complaint());
	if (mock_leak())
		fail_msg("call %u, %s, failed: leaked a %s", n, call, mock_leak());
	if (harness_unlawful())
		fail_msg("call %u, %s, failed: %s came too late", n, call, harness_unlawful());
}

static void torture(void (*live)(struct life *, const struct vb__address *), bool active,
		    int errnum)
{
	unsigned n = 0;

	for (;;) {
		struct life life = { .culprit = NULL };
		struct vb__address at;

		tcp_start(NULL);
		at = active ? tcp_peer_listen(TCP_POLITE, &tcp_peer_pair) : tcp_address(0);
		mock_fail_nth(++n, errnum, false);
		live(&life, &at);
		if (active)
			tcp_peer_end();
		check_books(n);
		if (!mock_failed_call())
			break;
		check_told(n, &life, errnum);
		if (life.culprit)
			check_error(&life, n, errnum);
	}
	print_message("# %u calls failed in turn\n", n - 1);
	assert_true(n > 30);
}

static void connecting_survives_any_one_failing_call(void **state)
{
	(void)state;
	torture(live_actively, true, EIO);
	torture(live_actively, true, ENOMEM);
}

static void accepting_survives_any_one_failing_call(void **state)
{
	(void)state;
	torture(live_passively, false, EIO);
	torture(live_passively, false, ENOMEM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TCP_TEST(connecting_survives_any_one_failing_call),
		TCP_TEST(accepting_survives_any_one_failing_call),
	};

	return cmocka_run_group_tests_name("verbs_tcp_torture", tests, NULL, NULL);
}
