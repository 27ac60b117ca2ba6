/* SPDX-License-Identifier: Apache-2.0 */
/* Wire-up by TCP over real sockets: connecting, accepting, and how it ends. */
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fabric/verbs/verbs_port.h"
#include "tcp_peer.h"

static uint64_t in_good_time(void)
{
	return vb__now_ns() + vb__ms(5000);
}

static struct vb__ep *open_to(enum tcp_manners manners, const struct vb__wireup *answer)
{
	struct vb__address at = tcp_peer_listen(manners, answer);
	struct vb_error err = { .code = VB_OK };
	struct vb__ep *ep = NULL;

	if (vb__ep_open(&vb__verbs_fabric, &harness_attr, &at, in_good_time(), &ep, &err) != 0)
		fail_msg("open: %s: %s", err.operation, err.cause);
	return ep;
}

/* What connecting is answered with; the endpoint and the peer are gone afterwards. */
static int answer_of(enum tcp_manners manners, const struct vb__wireup *answer, unsigned ms,
		     struct vb_error *err)
{
	struct vb__ep *ep = open_to(manners, answer);
	int rc = vb__ep_connect(ep, "hi", 3, vb__now_ns() + vb__ms(ms), err);

	if (rc)
		assert_int_equal(ep->state, VB__EP_DOWN);
	vb__ep_close(ep);
	tcp_peer_end();
	return rc;
}

/* Looks after events until the state is this one, or in vain. */
static void await_state(struct vb__ep *ep, enum vb__ep_state wanted)
{
	for (int i = 0; i < 2000 && ep->state != wanted; i++) {
		vb__waiter_sleep(ep->wait_fd, vb__now_ns() + vb__ms(5));
		vb__ep_arm(ep);
	}
	assert_int_equal(ep->state, wanted);
}

static struct vb__wireup request_of(enum vb__qp_type type)
{
	struct vb__wireup r = tcp_peer_pair;

	r.kind = VB__WIREUP_REQUEST;
	r.qp_type = (uint8_t)type;
	return r;
}

static const struct vb__wireup ready = { .kind = VB__WIREUP_READY, .version = VB__WIREUP_VERSION };

/* ---- Connecting ---- */

static void connecting_exchanges_private_data_and_confirms(void **state)
{
	struct vb__ep *ep = open_to(TCP_POLITE, &tcp_peer_pair);
	struct vb__wireup request, confirmation;

	(void)state;
	assert_int_equal(ep->state, VB__EP_NEW);
	harness_post(ep, VB__OP_RECV, 1, 64, NULL); /* before it is connected */
	assert_int_equal(vb__ep_connect(ep, "hi", 3, in_good_time(), NULL), 0);
	assert_int_equal(ep->state, VB__EP_UP);
	assert_string_equal((char *)ep->peer_data, "yes");
	assert_int_equal(ep->peer_data_len, 4);
	assert_true(tcp_peer_heard(&request, &confirmation));
	assert_int_equal(request.kind, VB__WIREUP_REQUEST);
	assert_string_equal((char *)request.data, "hi");
	assert_int_equal(request.qpn, harness_qp(ep)->qp_num);
	assert_int_equal(request.mtu, 4096);
	assert_int_equal(request.responder_resources, 16);
	assert_memory_equal(request.gid, &mock_device.gids[1].gid, 16);
	assert_int_equal(confirmation.kind, VB__WIREUP_READY);
	vb__ep_close(ep);
	tcp_peer_end();
}

static void refusal_carries_the_private_data_and_the_reason(void **state)
{
	struct vb__wireup no = { .kind = VB__WIREUP_REJECT,
				 .version = VB__WIREUP_VERSION,
				 .reason = VB__WIREUP_NOT_TYPE,
				 .data = "version",
				 .data_len = 8 };
	struct vb__ep *ep = open_to(TCP_POLITE, &no);
	struct vb_error err = { .code = VB_OK };

	(void)state;
	assert_int_equal(vb__ep_connect(ep, "hi", 3, in_good_time(), &err), VB_ERR_REFUSED);
	assert_string_equal((char *)ep->peer_data, "version");
	assert_int_equal(ep->peer_data_len, 8);
	assert_contains(err.cause, "does not serve queue pairs of this type");
	vb__ep_close(ep);
	tcp_peer_end();
}

static void answers_that_are_none_are_told_apart(void **state)
{
	struct vb__wireup other = tcp_peer_pair;
	struct vb_error err = { .code = VB_OK };

	(void)state;
	assert_int_equal(answer_of(TCP_BABBLES, NULL, 5000, &err), VB_ERR_REFUSED);
	assert_contains(err.cause, "does not wire up queue pairs");
	vb__error_clear(&err);
	assert_int_equal(answer_of(TCP_CLOSES, NULL, 5000, &err), VB_ERR_LOST);
	vb__error_clear(&err);
	assert_int_equal(answer_of(TCP_SILENT, NULL, 50, &err), VB_ERR_TIMEOUT);
	assert_contains(err.cause, "no answer at TCP port");
	vb__error_clear(&err);
	other.version = 2;
	assert_int_equal(answer_of(TCP_POLITE, &other, 5000, &err), VB_ERR_VERSION);
	assert_contains(err.cause, "speaks version 2 of");
	assert_contains(err.cause, "this is version 1");
	vb__error_clear(&err);
	other = tcp_peer_pair;
	other.qp_type = VB__QP_UC;
	assert_int_equal(answer_of(TCP_POLITE, &other, 5000, &err), VB_ERR_REFUSED);
}

static void a_queue_pair_at_another_address_is_not_connected_to(void **state)
{
	struct vb__wireup other = tcp_peer_pair;
	struct vb_error err = { .code = VB_OK };

	(void)state;
	other.gid[15] = 9;
	assert_int_equal(answer_of(TCP_POLITE, &other, 5000, &err), VB_ERR_PROTOCOL);
	assert_contains(err.cause, "another address, ::ffff:127.0.0.9");
	assert_contains(err.hint, "NAT");
	assert_int_equal(mock_count("ibv_modify_qp"), 2); /* INIT, and the error state */
}

static void a_listener_that_sees_another_address_of_ours_is_told_in_words(void **state)
{
	struct vb__wireup no = { .kind = VB__WIREUP_REJECT,
				 .version = VB__WIREUP_VERSION,
				 .reason = VB__WIREUP_NOT_YOURS };
	struct vb_error err = { .code = VB_OK };

	(void)state;
	assert_int_equal(answer_of(TCP_POLITE, &no, 5000, &err), VB_ERR_REFUSED);
	assert_contains(err.hint, "NAT");
}

/* What the device says of it afterwards decides whether it is the same still. */
static void what_was_found_is_found_again_without_looking_at_all_devices(void **state)
{
	struct vb__address at = tcp_address(MOCK_PORT);
	struct ibv_gid_entry *gid = &mock_device.gids[1];
	struct vb__ep *ep;

	(void)state;
	for (int step = 0; step < 4; step++) {
		static const unsigned looked[] = { 1, 1, 2, 3 };

		if (step ==
		    2) /* the address has moved in the table, somebody else's is in its place */
			mock_device.gids[0].gid_index = gid->gid_index++;
		if (step == 2)
			mock_device.gids[0].gid.raw[15] = 9;
		if (step == 3) /* it is another interface's by now, which is none of ours */
			gid->ndev_ifindex = 0x7ffffff0;
		assert_int_equal(vb__ep_open(&vb__verbs_fabric, &harness_attr, &at, in_good_time(),
					     &ep, NULL),
				 step == 3 ? VB_ERR_NO_DEVICE : 0);
		assert_int_equal(mock_count("verbs_devices_read"), looked[step]);
		if (step == 3)
			break;
		assert_int_equal(harness_inside(ep)->tcp.port.gid_index, step == 2 ? 4 : 3);
		vb__ep_close(ep);
	}
}

static void nobody_listening_names_the_second_port(void **state)
{
	struct vb__address at = tcp_peer_listen(TCP_POLITE, &tcp_peer_pair);
	struct vb_error err = { .code = VB_OK };
	char port[16];
	struct vb__ep *ep;

	(void)state;
	tcp_peer_end();
	assert_int_equal(
		vb__ep_open(&vb__verbs_fabric, &harness_attr, &at, in_good_time(), &ep, NULL), 0);
	assert_int_equal(vb__ep_connect(ep, "hi", 3, in_good_time(), &err), VB_ERR_REFUSED);
	snprintf(port, sizeof(port), "port %u", vb__address_port(&at) + 1000u);
	assert_contains(err.cause, port);
	assert_string_equal(err.object, at.text);
	assert_contains(err.hint, "start the receiving side first");
	vb__ep_close(ep);
}

static void open_fails_and_tells_which_devices_were_considered(void **state)
{
	struct vb__address at = harness_peer();
	struct vb_error err = { .code = VB_OK };
	struct vb__ep *ep;

	(void)state;
	at = tcp_address(MOCK_PORT);
	mock_device.gid_count = 1; /* RoCE v1 only */
	assert_int_equal(vb__ep_open(&vb__verbs_fabric, &harness_attr, &at, in_good_time(), &ep,
				     &err),
			 VB_ERR_NO_DEVICE);
	assert_contains(err.cause, MOCK_DEVICE ": RoCE v1, which does not pass routers");
	mock_device.gid_count = 2;
	mock_device.port.state = IBV_PORT_DOWN;
	vb__error_clear(&err);
	assert_int_equal(vb__ep_open(&vb__verbs_fabric, &harness_attr, &at, in_good_time(), &ep,
				     &err),
			 VB_ERR_NO_DEVICE);
	assert_contains(err.cause, MOCK_DEVICE ": the port is down");
	mock_device.port.state = IBV_PORT_ACTIVE;
	mock_context.device->transport_type = IBV_TRANSPORT_IWARP;
	verbs_ports_forget();
	vb__error_clear(&err);
	assert_int_equal(vb__ep_open(&vb__verbs_fabric, &harness_attr, &at, in_good_time(), &ep,
				     &err),
			 VB_ERR_NO_DEVICE);
	assert_contains(err.cause, "iWARP, which rdma_cm alone can wire up");
}

/* Any one but the loopback; 0: there is none. */
static unsigned some_other_interface(void)
{
	struct if_nameindex *all = if_nameindex(), *i = all;
	unsigned index;

	assert_non_null(all);
	while (i->if_index && !strcmp(i->if_name, "lo"))
		i++;
	index = i->if_index;
	if_freenameindex(all);
	return index;
}

static void fail_to_open(const char *why)
{
	struct vb__address at = tcp_address(MOCK_PORT);
	struct vb_error err = { .code = VB_OK };
	struct vb__ep *ep;

	assert_int_equal(vb__ep_open(&vb__verbs_fabric, &harness_attr, &at, in_good_time(), &ep,
				     &err),
			 VB_ERR_NO_DEVICE);
	assert_contains(err.cause, why);
}

static void a_gid_of_another_interface_is_not_taken(void **state)
{
	struct ibv_gid_entry *gid = &mock_device.gids[0];

	(void)state;
	*gid = mock_device.gids[1];
	mock_device.gid_count = 1;
	gid->ndev_ifindex = some_other_interface();
	if (gid->ndev_ifindex)
		fail_to_open("the route to it leaves through lo, which has no RDMA device");
	gid->ndev_ifindex = 0x7ffffff0; /* of another namespace */
	fail_to_open("its interface is not in this network namespace");
	gid->ndev_ifindex = if_nametoindex("lo");
	gid->gid_index = 256;
	fail_to_open("above 255");
}

static void a_port_without_room_above_is_told(void **state)
{
	struct vb__address at = harness_peer();
	struct vb_error err = { .code = VB_OK };
	struct vb__pep *pep;
	struct vb__ep *ep;

	(void)state;
	at = tcp_address(MOCK_PORT);
	vb__address_set_port(&at, 64536);
	assert_int_equal(vb__ep_open(&vb__verbs_fabric, &harness_attr, &at, in_good_time(), &ep,
				     &err),
			 VB_ERR_INVALID);
	assert_contains(err.hint, "64535");
	vb__error_clear(&err);
	assert_int_equal(vb__pep_open(&vb__verbs_fabric, &harness_settings, &at, &pep, &err),
			 VB_ERR_INVALID);
	assert_contains(err.hint, "64535");
}

static void rdma_cm_is_gone_without_where_it_is_missing(void **state)
{
	struct vb__ep *ep;

	(void)state;
	harness_settings.wireup = VB_WIREUP_AUTO;
	harness_without_cm = true;
	ep = open_to(TCP_POLITE, &tcp_peer_pair);
	assert_int_equal(vb__ep_connect(ep, "hi", 3, in_good_time(), NULL), 0);
	assert_contains(ep->how, "wired up by TCP, as /dev/infiniband/rdma_cm: it is not there");
	assert_int_equal(mock_count("rdma_create_event_channel"), 0);
	vb__ep_close(ep);
	tcp_peer_end();
}

static void tcp_is_a_second_way_only_beside_rdma_cm_that_was_not_asked_for(void **state)
{
	(void)state;
	harness_settings.wireup = VB_WIREUP_AUTO;
	assert_int_equal(vb__verbs_fabric.second_wireup(&harness_settings), VB_WIREUP_TCP);
	harness_without_cm = true;
	assert_int_equal(vb__verbs_fabric.second_wireup(&harness_settings), VB_WIREUP_AUTO);
	harness_without_cm = false;
	harness_settings.wireup = VB_WIREUP_CM;
	assert_int_equal(vb__verbs_fabric.second_wireup(&harness_settings), VB_WIREUP_AUTO);
}

static void uc_by_rdma_cm_is_a_clear_no(void **state)
{
	struct vb__address at = harness_peer();
	struct vb_error err = { .code = VB_OK };
	struct vb__ep *ep;

	(void)state;
	harness_settings.wireup = VB_WIREUP_CM;
	harness_attr.qp_type = VB__QP_UC;
	assert_int_equal(vb__ep_open(&vb__verbs_fabric, &harness_attr, &at, in_good_time(), &ep,
				     &err),
			 VB_ERR_UNSUPPORTED);
	assert_contains(err.hint, "--wireup tcp");
}

/* ---- Accepting ---- */

static void accepting_is_up_when_the_peer_is_ready(void **state)
{
	struct vb__wireup asked = request_of(VB__QP_RC), reply;
	struct vb__pep *pep = tcp_listen();
	int fd = tcp_peer_call(pep);
	struct vb__ep *ep = tcp_peer_request(pep, fd, &asked);

	(void)state;
	harness_post(ep, VB__OP_RECV, 1, 64, NULL);
	assert_int_equal(vb__ep_accept(ep, "welcome", 8, NULL), 0);
	assert_int_equal(ep->state, VB__EP_CONNECTING);
	assert_int_equal(harness_qp(ep)->state, IBV_QPS_RTS); /* before the peer hears of it */
	assert_true(tcp_peer_hear(fd, &reply));
	assert_int_equal(reply.kind, VB__WIREUP_REPLY);
	assert_string_equal((char *)reply.data, "welcome");
	assert_int_equal(reply.qpn, harness_qp(ep)->qp_num);
	assert_int_equal(reply.responder_resources, 2); /* never more than the peer wants */
	tcp_peer_say(fd, &ready);
	await_state(ep, VB__EP_UP);
	vb__ep_close(ep);
	assert_false(tcp_peer_hear(fd, &reply)); /* the end of the stream */
	close(fd);
	vb__pep_close(pep);
}

static void data_that_comes_before_the_confirmation_confirms(void **state)
{
	struct vb__wireup asked = request_of(VB__QP_RC), reply;
	struct vb__pep *pep = tcp_listen();
	int fd = tcp_peer_call(pep);
	struct vb__ep *ep = tcp_peer_request(pep, fd, &asked);
	struct vb__completion done;

	(void)state;
	harness_post(ep, VB__OP_RECV, 1, 64, NULL);
	assert_int_equal(vb__ep_accept(ep, "welcome", 8, NULL), 0);
	mock_complete_recv(harness_qp(ep), IBV_WC_SUCCESS, 64);
	assert_int_equal(vb__ep_poll(ep, &done, 1), 1);
	assert_int_equal(ep->state, VB__EP_UP);
	assert_true(tcp_peer_hear(fd, &reply));
	tcp_peer_say(fd, &ready); /* late, and no harm */
	for (int i = 0; i < 20; i++)
		vb__ep_arm(ep);
	assert_int_equal(ep->state, VB__EP_UP);
	vb__ep_close(ep);
	close(fd);
	vb__pep_close(pep);
}

static void a_request_of_another_type_is_refused_in_words(void **state)
{
	struct vb__wireup asked = request_of(VB__QP_UC), reply;
	struct vb__pep *pep = tcp_listen();
	struct vb_error err = { .code = VB_OK };
	int fd = tcp_peer_call(pep);
	struct vb__request *request;
	struct vb__ep *ep;

	(void)state;
	tcp_peer_say(fd, &asked);
	assert_int_equal(tcp_next(pep, &request, fd, NULL), 1);
	assert_int_equal(request->qp_type, VB__QP_UC);
	assert_int_equal(vb__ep_accept_open(request, &harness_attr, &ep, &err), VB_ERR_UNSUPPORTED);
	assert_contains(err.cause, "UC");
	assert_true(tcp_peer_hear(fd, &reply));
	assert_int_equal(reply.kind, VB__WIREUP_REJECT);
	assert_int_equal(reply.reason, VB__WIREUP_NOT_TYPE);
	close(fd);
	vb__pep_close(pep);
}

static void who_is_never_accepted_is_refused_in_words(void **state)
{
	struct vb__wireup asked = request_of(VB__QP_RC), reply;
	struct vb__pep *pep = tcp_listen();
	int fd = tcp_peer_call(pep);

	(void)state;
	harness_attr.refusal = (struct vb__private_data){ "sorry", 6 };
	vb__ep_close(tcp_peer_request(pep, fd, &asked));
	assert_true(tcp_peer_hear(fd, &reply));
	assert_int_equal(reply.kind, VB__WIREUP_REJECT);
	assert_int_equal(reply.reason, VB__WIREUP_NOT_READY);
	assert_int_equal(reply.data_len, 6);
	assert_memory_equal(reply.data, "sorry", 6);
	close(fd);
	vb__pep_close(pep);
}

static void a_rejection_carries_data(void **state)
{
	struct vb__wireup asked = request_of(VB__QP_RC), reply;
	struct vb__pep *pep = tcp_listen();
	int fd = tcp_peer_call(pep);
	struct vb__request *request;

	(void)state;
	tcp_peer_say(fd, &asked);
	assert_int_equal(tcp_next(pep, &request, fd, NULL), 1);
	assert_string_equal((char *)request->data, "yes");
	vb__request_reject(request, "no", 3);
	assert_true(tcp_peer_hear(fd, &reply));
	assert_int_equal(reply.kind, VB__WIREUP_REJECT);
	assert_string_equal((char *)reply.data, "no");
	close(fd);
	vb__pep_close(pep);
}

static void what_cannot_be_served_is_told_its_reason(void **state)
{
	struct vb__wireup version = { .kind = VB__WIREUP_REQUEST, .version = 9 };
	struct vb__wireup link = request_of(VB__QP_RC), device = link, elsewhere = link, reply;
	const struct {
		struct vb__wireup *asked;
		enum vb__wireup_reason reason;
	} cases[] = { { &version, VB__WIREUP_NOT_VERSION },
		      { &elsewhere, VB__WIREUP_NOT_YOURS },
		      { &link, VB__WIREUP_NOT_LINK },
		      { &device, VB__WIREUP_NOT_DEVICE } };
	struct vb__pep *pep = tcp_listen();
	struct vb__request *request;

	(void)state;
	link.link = VB__WIREUP_INFINIBAND;
	elsewhere.gid[15] = 9;
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		unsigned listed = mock_count("ibv_get_device_list");
		int fd = tcp_peer_call(pep);

		mock_device.gid_count = cases[i].asked == &device ? 0 : 2;
		tcp_peer_say(fd, cases[i].asked);
		assert_int_equal(tcp_next(pep, &request, fd, NULL), 0);
		assert_true(tcp_peer_hear(fd, &reply));
		assert_int_equal(reply.kind, VB__WIREUP_REJECT);
		assert_int_equal(reply.reason, cases[i].reason);
		if (cases[i].reason == VB__WIREUP_NOT_VERSION ||
		    cases[i].reason == VB__WIREUP_NOT_YOURS) /* no work for strangers */
			assert_int_equal(mock_count("ibv_get_device_list"), listed);
		close(fd);
	}
	vb__pep_close(pep);
}

/* ---- The end ---- */

static void the_end_of_the_socket_is_the_end_of_the_connection(void **state)
{
	struct vb__ep *ep = open_to(TCP_POLITE, &tcp_peer_pair);
	struct vb__completion done[4];

	(void)state;
	harness_post(ep, VB__OP_RECV, 1, 64, NULL);
	harness_post(ep, VB__OP_RECV, 2, 64, NULL);
	assert_int_equal(vb__ep_connect(ep, "hi", 3, in_good_time(), NULL), 0);
	assert_true(harness_arm(ep));
	mock_complete_recv(harness_qp(ep), IBV_WC_SUCCESS, 33);
	tcp_peer_end();
	await_state(ep, VB__EP_DOWN);
	assert_int_equal(ep->down.code, VB_ERR_LOST);
	assert_int_equal(harness_drain(ep, done, 4), 2);
	assert_int_equal(done[0].status, VB_OK); /* what arrived before */
	assert_int_equal(done[0].len, 33);
	assert_int_equal(done[1].status, VB_ERR_FLUSHED);
	vb__ep_arm(ep);
	assert_true(harness_arm(ep)); /* and nothing keeps a sleeper awake */
	assert_false(harness_readable(ep->wait_fd));
	vb__ep_close(ep);
}

static void a_peer_that_goes_before_it_is_ready_never_was_up(void **state)
{
	struct vb__wireup asked = request_of(VB__QP_RC);
	struct vb__pep *pep = tcp_listen();
	int fd = tcp_peer_call(pep);
	struct vb__ep *ep = tcp_peer_request(pep, fd, &asked);

	(void)state;
	assert_int_equal(vb__ep_accept(ep, "welcome", 8, NULL), 0);
	close(fd);
	await_state(ep, VB__EP_DOWN);
	assert_false(ep->was_up);
	vb__ep_close(ep);
	vb__pep_close(pep);
}

static void words_that_are_not_due_end_the_connection(void **state)
{
	struct vb__wireup asked = request_of(VB__QP_RC), reply;

	(void)state;
	for (int early = 0; early < 2; early++) {
		struct vb__pep *pep = tcp_listen();
		int fd = tcp_peer_call(pep);
		struct vb__ep *ep = tcp_peer_request(pep, fd, &asked);

		assert_int_equal(vb__ep_accept(ep, "welcome", 8, NULL), 0);
		assert_true(tcp_peer_hear(fd, &reply));
		if (!early)
			tcp_peer_say(fd, &ready);
		tcp_peer_say(fd, &asked);
		await_state(ep, VB__EP_DOWN);
		assert_int_equal(ep->down.code, VB_ERR_PROTOCOL);
		vb__ep_close(ep);
		close(fd);
		vb__pep_close(pep);
	}
}

static void disconnecting_flushes_and_ends_the_socket(void **state)
{
	struct vb__wireup asked = request_of(VB__QP_RC), reply;
	struct vb__pep *pep = tcp_listen();
	int fd = tcp_peer_call(pep);
	struct vb__ep *ep = tcp_peer_request(pep, fd, &asked);
	struct vb__completion done[4];

	(void)state;
	harness_post(ep, VB__OP_RECV, 1, 64, NULL);
	vb__ep_accept(ep, NULL, 0, NULL);
	vb__ep_disconnect(ep);
	assert_int_equal(ep->down.code, VB_ERR_CLOSED);
	assert_int_equal(harness_drain(ep, done, 4), 1);
	assert_true(tcp_peer_hear(fd, &reply));
	assert_false(tcp_peer_hear(fd, &reply));
	vb__ep_disconnect(ep);
	vb__ep_close(ep);
	close(fd);
	vb__pep_close(pep);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TCP_TEST(connecting_exchanges_private_data_and_confirms),
		TCP_TEST(refusal_carries_the_private_data_and_the_reason),
		TCP_TEST(answers_that_are_none_are_told_apart),
		TCP_TEST(a_queue_pair_at_another_address_is_not_connected_to),
		TCP_TEST(a_listener_that_sees_another_address_of_ours_is_told_in_words),
		TCP_TEST(what_was_found_is_found_again_without_looking_at_all_devices),
		TCP_TEST(nobody_listening_names_the_second_port),
		TCP_TEST(open_fails_and_tells_which_devices_were_considered),
		TCP_TEST(a_gid_of_another_interface_is_not_taken),
		TCP_TEST(a_port_without_room_above_is_told),
		TCP_TEST(rdma_cm_is_gone_without_where_it_is_missing),
		TCP_TEST(tcp_is_a_second_way_only_beside_rdma_cm_that_was_not_asked_for),
		TCP_TEST(uc_by_rdma_cm_is_a_clear_no),
		TCP_TEST(accepting_is_up_when_the_peer_is_ready),
		TCP_TEST(data_that_comes_before_the_confirmation_confirms),
		TCP_TEST(a_request_of_another_type_is_refused_in_words),
		TCP_TEST(who_is_never_accepted_is_refused_in_words),
		TCP_TEST(a_rejection_carries_data),
		TCP_TEST(what_cannot_be_served_is_told_its_reason),
		TCP_TEST(the_end_of_the_socket_is_the_end_of_the_connection),
		TCP_TEST(a_peer_that_goes_before_it_is_ready_never_was_up),
		TCP_TEST(words_that_are_not_due_end_the_connection),
		TCP_TEST(disconnecting_flushes_and_ends_the_socket),
	};

	return cmocka_run_group_tests_name("verbs_tcp", tests, NULL, NULL);
}
