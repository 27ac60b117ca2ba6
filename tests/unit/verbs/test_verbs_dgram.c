/* SPDX-License-Identifier: Apache-2.0 */
/* Datagrams on the mocked device: who sent one, who is asked and answered, groups, and bad news. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "fabric/verbs/verbs_dgram.h"
#include "verbs_harness.h"

#define RECEIVES 4u

static struct vb__dg_attr dg_attr(void)
{
	return (struct vb__dg_attr){ .receives = RECEIVES, .settings = &harness_settings };
}

static struct vb__address address(const char *text)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(MOCK_PORT) };
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(MOCK_PORT) };
	struct vb__address at = { .len = 0 };

	if (inet_pton(AF_INET, text, &four.sin_addr) == 1)
		vb__address_from(&at, (struct sockaddr *)&four);
	else if (inet_pton(AF_INET6, text, &six.sin6_addr) == 1)
		vb__address_from(&at, (struct sockaddr *)&six);
	return at;
}

/* What was asked or joined has gone by then, and is not part of the law. */
static void close_dg(struct vb__dg *dg)
{
	harness_teardown_from = mock_calls();
	vb__dg_close(dg);
}

/* ::ffff:10.0.0.1, which the device has as its second GID. */
static void give_gids(void)
{
	static const uint8_t own[16] = { [10] = 0xff, [11] = 0xff, 10, 0, 0, 1 };

	memset(&mock_gids[0].gid, 0xfe, 16);
	memcpy(&mock_gids[2].gid, own, 16);
	mock_gids[2].gid_type = IBV_GID_TYPE_ROCE_V2;
}

static struct vb__dg *open_at(const char *text)
{
	struct vb__address at = address(text);
	struct vb__dg_attr attr = dg_attr();
	struct vb_error err = { .code = VB_OK };
	struct vb__dg *dg = NULL;

	give_gids();
	if (vb__dg_open(&vb__verbs_dgrams, &attr, &at, &dg, &err) != 0)
		fail_msg("open: %s: %s", err.operation, err.cause);
	return dg;
}

static struct vb__dg *open_dg(void)
{
	return open_at("10.0.0.1");
}

static struct verbs_dg *inside(struct vb__dg *dg)
{
	return (struct verbs_dg *)dg;
}

static struct ibv_qp *qp(struct vb__dg *dg)
{
	return inside(dg)->home->qp;
}

/* What a device puts before a datagram over IPv4, from 10.0.0.2 to 10.0.0.1. */
static void put_v4(uint8_t grh[VERBS_GRH])
{
	static const uint8_t header[20] = { 0x45, [12] = 10, 0, 0, 2, 10, 0, 0, 1 };

	memset(grh, 0, VERBS_GRH);
	memcpy(grh + 20, header, sizeof(header));
}

static void put_sum(uint8_t *header)
{
	uint32_t sum = 0;

	header[10] = header[11] = 0;
	for (int i = 0; i < 20; i += 2)
		sum += (uint32_t)header[i] << 8 | header[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	header[10] = (uint8_t)(~sum >> 8);
	header[11] = (uint8_t)~sum;
}

static void put_v6(uint8_t grh[VERBS_GRH], const char *from, const char *to)
{
	memset(grh, 0, VERBS_GRH);
	grh[0] = 0x60;
	inet_pton(AF_INET6, from, grh + 8);
	inet_pton(AF_INET6, to, grh + 24);
}

/* Into the oldest receive. */
static void arrive(struct vb__dg *dg, unsigned slot, const uint8_t *grh, const char *text)
{
	uint8_t *at = inside(dg)->memory + slot * inside(dg)->stride;

	memcpy(at, grh, VERBS_GRH);
	memcpy(at + VERBS_GRH, text, strlen(text));
	mock_complete_recv(qp(dg), IBV_WC_SUCCESS, VERBS_GRH + (uint32_t)strlen(text));
}

/* ---- Opening ---- */

static void open_makes_a_ud_queue_pair_and_posts_what_was_asked_for(void **state)
{
	struct vb__dg *dg = open_dg();

	(void)state;
	assert_int_equal(qp(dg)->qp_type, IBV_QPT_UD);
	assert_int_equal(dg->max_bytes, 1024);
	assert_int_equal(dg->receives, RECEIVES);
	assert_int_equal(mock_qp_pending(qp(dg)), RECEIVES);
	assert_int_equal(mock_qp_asked(qp(dg)).max_recv_wr, RECEIVES);
	assert_int_equal(dg->port, MOCK_PORT);
	assert_string_equal(dg->address, "10.0.0.1 port 7471");
	assert_string_equal(dg->device, MOCK_DEVICE);
	close_dg(dg);
}

static int refused(struct vb_error *err)
{
	struct vb__address at = address("10.0.0.1");
	struct vb__dg_attr attr = dg_attr();
	struct vb__dg *dg;

	*err = (struct vb_error){ .code = VB_OK };
	return vb__dg_open(&vb__verbs_dgrams, &attr, &at, &dg, err);
}

static void what_cannot_be_opened_says_why(void **state)
{
	struct vb_error err;

	(void)state;
	mock_device.no_address = true;
	assert_int_equal(refused(&err), VB_ERR_NO_DEVICE);
	assert_contains(err.cause, "no RDMA device has this address");
	mock_device.no_address = false;
	mock_fail_call("rdma_bind_addr", 1, EADDRNOTAVAIL);
	assert_int_equal(refused(&err), VB_ERR_NO_DEVICE);
	mock_fail_call("rdma_listen", 1, EADDRINUSE);
	assert_int_equal(refused(&err), VB_ERR_IN_USE);
	assert_contains(err.hint, "another program");
	strcpy(harness_settings.device, "mlx5_7");
	assert_int_equal(refused(&err), VB_ERR_NO_DEVICE);
	assert_contains(err.cause, "mlx5_7 is asked for");
	harness_settings.device[0] = '\0';
	mock_context.device->transport_type = IBV_TRANSPORT_IWARP;
	assert_int_equal(refused(&err), VB_ERR_UNSUPPORTED);
	assert_contains(err.cause, "iWARP has no datagrams");
}

/* ---- Who sent it ---- */

static struct vb__dg_arrival take(struct vb__dg *dg)
{
	struct vb__dg_arrival arrival = { .len = 0 };

	assert_int_equal(vb__dg_receive(dg, &arrival), 1);
	return arrival;
}

/* The peer that answers it, in words. */
static void assert_from(struct vb__dg *dg, const struct vb__dg_arrival *arrival, const char *text)
{
	struct vb_error err = { .code = VB_OK };
	struct vb__dg_peer *peer;

	if (vb__dg_peer_of(dg, &arrival->from, &peer, &err) != 0)
		fail_msg("peer_of: %s: %s", err.operation, err.cause);
	assert_string_equal(peer->text, text);
	assert_int_equal(vb__dg_send(dg, peer, "head", 4, "body", 4, &err), 0);
	assert_int_equal(mock_qp_last_sent(qp(dg)).remote_qp, mock_src_qp);
	assert_int_equal(mock_qp_last_sent(qp(dg)).sge.length, 8);
	mock_complete_send(qp(dg), IBV_WC_SUCCESS);
	vb__dg_peer_close(peer);
}

static void sender_over_ipv4_is_told_and_can_be_answered(void **state)
{
	struct vb__dg *dg = open_dg();
	struct vb__dg_arrival arrival;
	uint8_t grh[VERBS_GRH];

	(void)state;
	mock_src_qp = 17;
	put_v4(grh);
	arrive(dg, 0, grh, "hello");
	arrival = take(dg);
	assert_int_equal(arrival.len, 5);
	assert_memory_equal(arrival.bytes, "hello", 5);
	assert_from(dg, &arrival, "10.0.0.2 queue pair 17");
	vb__dg_give_back(dg, arrival.slot);
	assert_int_equal(mock_qp_pending(qp(dg)), RECEIVES);
	close_dg(dg);
}

static void what_stands_before_an_ipv4_header_does_not_matter(void **state)
{
	struct vb__dg *dg = open_dg();
	struct vb__dg_arrival arrival;
	uint8_t grh[VERBS_GRH];

	(void)state;
	mock_src_qp = 17;
	put_v4(grh);
	grh[0] = 0x66; /* as if of IPv6 */
	put_sum(grh + 20);
	arrive(dg, 0, grh, "");
	arrival = take(dg);
	assert_int_equal(arrival.len, 0);
	assert_from(dg, &arrival, "10.0.0.2 queue pair 17");
	close_dg(dg);
}

static void sender_over_ipv6_is_told(void **state)
{
	struct vb__dg *dg = open_at("fd00::1");
	struct vb__dg_arrival arrival;
	uint8_t grh[VERBS_GRH];

	(void)state;
	mock_src_qp = 18;
	inet_pton(AF_INET6, "fd00::1", &mock_gids[3].gid);
	put_v6(grh, "fd00::2", "fd00::1");
	grh[20] = 0x45; /* part of an address that looks like a header */
	arrive(dg, 0, grh, "x");
	arrival = take(dg);
	assert_from(dg, &arrival, "fd00::4500:2 queue pair 18");
	close_dg(dg);
}

static void what_we_sent_to_a_group_is_not_heard(void **state)
{
	struct vb__dg *dg = open_dg();
	struct vb__dg_arrival arrival;
	uint8_t grh[VERBS_GRH];

	(void)state;
	mock_src_qp = qp(dg)->qp_num;
	put_v4(grh);
	memcpy(grh + 32, (uint8_t[]){ 10, 0, 0, 1, 239, 1, 2, 3 }, 8);
	arrive(dg, 0, grh, "own");
	grh[35] = 2; /* another host whose queue pair has the same number */
	arrive(dg, 1, grh, "other");
	arrival = take(dg);
	assert_int_equal(arrival.len, 5);
	memcpy(grh + 32, (uint8_t[]){ 10, 0, 0, 1, 10, 0, 0, 1 }, 8);
	arrive(dg, 2, grh, "to myself");
	arrival = take(dg);
	assert_int_equal(arrival.len, 9);
	close_dg(dg);
}

static void what_is_too_short_for_its_header_is_dropped(void **state)
{
	struct vb__dg *dg = open_dg();
	struct vb__dg_arrival arrival;

	(void)state;
	mock_complete_recv(qp(dg), IBV_WC_SUCCESS, 39);
	assert_int_equal(vb__dg_receive(dg, &arrival), 0);
	assert_int_equal(mock_qp_pending(qp(dg)), RECEIVES);
	close_dg(dg);
}

static void sender_on_infiniband_is_answered_by_its_lid(void **state)
{
	struct vb__dg_arrival arrival;
	uint8_t grh[VERBS_GRH] = { 0 };
	struct vb__dg *dg;

	(void)state;
	mock_device.port.link_layer = IBV_LINK_LAYER_INFINIBAND;
	dg = open_dg();
	mock_src_qp = 19;
	arrive(dg, 0, grh, "x");
	arrival = take(dg);
	assert_from(dg, &arrival, "LID 0 queue pair 19");
	close_dg(dg);
}

static void no_way_back_without_an_address_of_ours(void **state)
{
	struct vb__dg *dg = open_dg();
	struct vb_error err = { .code = VB_OK };
	struct vb__dg_arrival arrival;
	struct vb__dg_peer *peer;
	uint8_t grh[VERBS_GRH];

	(void)state;
	put_v4(grh);
	arrive(dg, 0, grh, "x");
	arrival = take(dg);
	memset(mock_gids, 0, sizeof(mock_gids));
	assert_int_equal(vb__dg_peer_of(dg, &arrival.from, &peer, &err), VB_ERR_UNREACHABLE);
	assert_contains(err.cause, "does not have this address any more");
	close_dg(dg);
}

/* ---- Asking and being asked ---- */

static void whoever_asks_is_told_where_to_send_to(void **state)
{
	struct vb__dg *dg = open_dg();

	(void)state;
	memcpy(dg->greeting, "greeting", 8);
	mock_connect_request(inside(dg)->door, "hi", 3);
	assert_true(harness_readable(dg->wait_fd));
	assert_int_equal(vb__dg_arm(dg, false), 0);
	assert_false(harness_readable(dg->wait_fd));
	assert_int_equal(mock_count("rdma_accept"), 1);
	assert_int_equal(mock_said.param.qp_num, qp(dg)->qp_num);
	assert_int_equal(mock_said.len, 8);
	assert_memory_equal(mock_said.data, "greeting", 8);
	close_dg(dg);
}

static int ask(struct vb__dg *dg, struct vb__dg_peer **peer, uint8_t *greeting,
	       struct vb_error *err)
{
	struct vb__address at = address("10.0.0.2");

	*err = (struct vb_error){ .code = VB_OK };
	return vb__dg_resolve(dg, &at, harness_deadline(), greeting, peer, err);
}

static void who_is_asked_becomes_a_peer(void **state)
{
	struct vb__dg *dg = open_dg();
	uint8_t greeting[VB__GREETING_BYTES] = { 0 };
	struct vb__dg_peer *peer;
	struct vb_error err;

	(void)state;
	mock_peer.connect.data = "greeting";
	mock_peer.connect.len = 9;
	assert_int_equal(ask(dg, &peer, greeting, &err), 0);
	assert_memory_equal(greeting, "greeting", 8);
	assert_string_equal(peer->text, "10.0.0.2 port 7471");
	assert_int_equal(peer->max_bytes, 1024);
	assert_int_equal(vb__dg_send(dg, peer, NULL, 0, "x", 1, &err), 0);
	assert_int_equal(mock_qp_last_sent(qp(dg)).remote_qp, MOCK_UD_QP);
	mock_complete_send(qp(dg), IBV_WC_SUCCESS);
	close_dg(dg);
}

static const struct ask_case {
	struct mock_answer addr, connect;
	enum vb_err code;
	const char *cause;
} ask_cases[] = {
	{ { .event = RDMA_CM_EVENT_ADDR_RESOLVED },
	  { .event = RDMA_CM_EVENT_UNREACHABLE, .status = 1 },
	  VB_ERR_REFUSED,
	  "nobody" },
	{ { .event = RDMA_CM_EVENT_ADDR_RESOLVED },
	  { .event = RDMA_CM_EVENT_UNREACHABLE, .status = -ETIMEDOUT },
	  VB_ERR_UNREACHABLE,
	  "unreachable" },
	{ { .event = RDMA_CM_EVENT_ADDR_RESOLVED }, { .none = true }, VB_ERR_TIMEOUT, "no answer" },
	{ { .event = RDMA_CM_EVENT_ADDR_ERROR, .status = -ENODEV },
	  { .none = true },
	  VB_ERR_NO_DEVICE,
	  "" },
	{ { .none = true }, { .none = true }, VB_ERR_TIMEOUT, "no answer" },
};

static void asking_in_vain_says_why(void **state)
{
	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(ask_cases); i++) {
		struct vb__dg *dg = open_dg();
		uint8_t greeting[VB__GREETING_BYTES];
		struct vb__dg_peer *peer;
		struct vb_error err;

		mock_peer.resolve_addr = ask_cases[i].addr;
		mock_peer.connect = ask_cases[i].connect;
		assert_int_equal(ask(dg, &peer, greeting, &err), ask_cases[i].code);
		assert_int_equal(err.code, ask_cases[i].code);
		assert_contains(err.object, "10.0.0.2");
		assert_contains(err.cause, ask_cases[i].cause);
		assert_true(err.hint[0]);
		assert_int_equal(dg->down.code, VB_OK);
		close_dg(dg);
		mock_peer.resolve_addr =
			(struct mock_answer){ .event = RDMA_CM_EVENT_ADDR_RESOLVED };
	}
}

/* ---- Groups ---- */

static int join(struct vb__dg *dg, struct vb__dg_peer **peer, struct vb_error *err)
{
	struct vb__address group = address("239.1.2.3");

	*err = (struct vb_error){ .code = VB_OK };
	return vb__dg_join(dg, &group, harness_deadline(), peer, err);
}

static void a_group_is_joined_sent_to_and_left(void **state)
{
	struct vb__dg *dg = open_dg();
	struct vb__dg_peer *peer;
	struct vb_error err;

	(void)state;
	assert_int_equal(join(dg, &peer, &err), 0);
	assert_string_equal(peer->text, "group 239.1.2.3");
	assert_int_equal(vb__dg_send(dg, peer, NULL, 0, "x", 1, &err), 0);
	assert_int_equal(mock_qp_last_sent(qp(dg)).remote_qp, MOCK_GROUP_QP);
	mock_complete_send(qp(dg), IBV_WC_SUCCESS);
	assert_int_equal(mock_count("rdma_leave_multicast"), 0);
	vb__dg_peer_close(peer);
	assert_int_equal(mock_count("rdma_leave_multicast"), 1);
	assert_int_equal(join(dg, &peer, &err), 0);
	close_dg(dg);
	assert_int_equal(mock_count("rdma_leave_multicast"), 2);
}

static void joining_in_vain_says_why_and_is_called_off(void **state)
{
	struct vb__dg *dg = open_dg();
	struct vb__dg_peer *peer;
	struct vb_error err;

	(void)state;
	mock_peer.join =
		(struct mock_answer){ .event = RDMA_CM_EVENT_MULTICAST_ERROR, .status = -EINVAL };
	assert_int_equal(join(dg, &peer, &err), VB_ERR_LOST);
	assert_contains(err.object, "group 239.1.2.3");
	mock_peer.join.none = true;
	assert_int_equal(join(dg, &peer, &err), VB_ERR_TIMEOUT);
	assert_int_equal(mock_count("rdma_leave_multicast"), 2);
	mock_fail_call("rdma_join_multicast", 1, 524);
	assert_int_equal(join(dg, &peer, &err), VB_ERR_UNSUPPORTED);
	assert_contains(err.hint, "IPv4");
	assert_int_equal(mock_count("rdma_leave_multicast"), 2);
	close_dg(dg);
}

/* ---- Room for sending ---- */

static void a_full_queue_says_so_and_wakes_when_it_is_not(void **state)
{
	struct vb__dg *dg = open_dg();
	uint8_t greeting[VB__GREETING_BYTES];
	struct vb__dg_peer *peer;
	struct vb_error err;
	int rc, n = 0;

	(void)state;
	ask(dg, &peer, greeting, &err);
	while ((rc = vb__dg_send(dg, peer, NULL, 0, "x", 1, &err)) == 0)
		n++;
	assert_int_equal(rc, VB_ERR_AGAIN);
	assert_int_equal(n, 64);
	assert_int_equal(err.code, VB_OK);
	assert_int_equal(vb__dg_arm(dg, true), 0);
	assert_false(harness_readable(dg->wait_fd));
	mock_complete_send(qp(dg), IBV_WC_SUCCESS);
	assert_true(harness_readable(dg->wait_fd));
	assert_int_equal(vb__dg_arm(dg, true), 1);
	assert_int_equal(vb__dg_send(dg, peer, NULL, 0, "x", 1, &err), 0);
	while (n-- > 0)
		mock_complete_send(qp(dg), IBV_WC_SUCCESS);
	close_dg(dg);
}

static void arming_for_room_does_not_put_a_receiver_to_sleep(void **state)
{
	struct vb__dg *dg = open_dg();
	uint8_t grh[VERBS_GRH];

	(void)state;
	assert_int_equal(vb__dg_arm(dg, false), 0);
	put_v4(grh);
	arrive(dg, 0, grh, "x");
	vb__dg_arm(dg, true); /* takes the event that the receiver sleeps for */
	assert_true(harness_readable(dg->wait_fd));
	assert_int_equal(vb__dg_arm(dg, false), 1);
	close_dg(dg);
}

/* ---- Bad news ---- */

static void assert_down(struct vb__dg *dg, enum vb_err code, enum vb_native kind)
{
	struct vb__dg_arrival arrival;

	assert_int_equal(vb__dg_arm(dg, false), 1);
	assert_int_equal(vb__dg_receive(dg, &arrival), code);
	assert_int_equal(dg->down.native_kind, kind);
	assert_true(dg->down.cause[0]);
}

static void the_device_s_end_is_the_endpoint_s_with_words(void **state)
{
	static const enum ibv_event_type fatal[] = { IBV_EVENT_QP_FATAL, IBV_EVENT_DEVICE_FATAL,
						     IBV_EVENT_CQ_ERR };
	struct vb__dg *dg;

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(fatal); i++) {
		dg = open_dg();
		mock_async_event(fatal[i], i == 2 ? (void *)inside(dg)->receives : (void *)qp(dg));
		assert_true(harness_readable(dg->wait_fd));
		assert_down(dg, VB_ERR_LOST, VB_NATIVE_ASYNC);
		assert_contains(dg->down.hint, "dmesg");
		close_dg(dg);
	}
	dg = open_dg();
	mock_cm_event(inside(dg)->home,
		      &(struct mock_answer){ .event = RDMA_CM_EVENT_DEVICE_REMOVAL });
	assert_down(dg, VB_ERR_NO_DEVICE, VB_NATIVE_CM);
	close_dg(dg);
	dg = open_dg();
	mock_complete_recv(qp(dg), IBV_WC_LOC_QP_OP_ERR, 0);
	assert_down(dg, VB_ERR_LOST, VB_NATIVE_WC);
	close_dg(dg);
}

static void ports_and_addresses_that_change_end_nothing(void **state)
{
	struct vb__dg *dg = open_dg();

	(void)state;
	mock_async_event(IBV_EVENT_PORT_ERR, (void *)1);
	assert_int_equal(vb__dg_arm(dg, false), 0);
	assert_int_equal(dg->ways_changed, 0);
	mock_async_event(IBV_EVENT_GID_CHANGE, (void *)1);
	assert_int_equal(vb__dg_arm(dg, false), 0);
	assert_int_equal(dg->ways_changed, 1);
	assert_int_equal(dg->down.code, VB_OK);
	close_dg(dg);
}

static struct vb__dg_peer *resolve(struct vb__dg *dg)
{
	uint8_t greeting[VB__GREETING_BYTES];
	struct vb__dg_peer *peer = NULL;
	struct vb_error err;

	assert_int_equal(ask(dg, &peer, greeting, &err), 0);
	return peer;
}

static void send_to(struct vb__dg *dg, struct vb__dg_peer *peer)
{
	assert_int_equal(vb__dg_send(dg, peer, NULL, 0, "x", 1, NULL), 0);
	mock_complete_send(qp(dg), IBV_WC_SUCCESS);
}

/* The mock complains if anything is sent by a handle that is gone. */
static void who_was_asked_before_gids_moved_gets_a_new_way(void **state)
{
	struct vb__dg *dg = open_dg();
	struct vb__dg_peer *peer = resolve(dg);
	struct vb_error err = { .code = VB_OK };

	(void)state;
	send_to(dg, peer);
	assert_int_equal(mock_count("ibv_create_ah"), 1);
	mock_gids[1] = mock_gids[2];
	memset(&mock_gids[2], 0, sizeof(mock_gids[2]));
	mock_async_event(IBV_EVENT_GID_CHANGE, (void *)1);
	assert_int_equal(vb__dg_arm(dg, false), 0);
	send_to(dg, peer);
	assert_int_equal(mock_count("ibv_create_ah"), 2);
	assert_int_equal(mock_count("ibv_destroy_ah"), 1);
	assert_int_equal(mock_way.grh.sgid_index, 1);
	send_to(dg, peer); /* once is enough */
	assert_int_equal(mock_count("ibv_create_ah"), 2);

	memset(mock_gids, 0, sizeof(mock_gids));
	mock_async_event(IBV_EVENT_GID_CHANGE, (void *)1);
	assert_int_equal(vb__dg_arm(dg, false), 0);
	assert_int_equal(vb__dg_send(dg, peer, NULL, 0, "x", 1, &err), VB_ERR_UNREACHABLE);
	assert_contains(err.cause, "does not have this address any more");
	give_gids(); /* the address is back */
	send_to(dg, peer);
	assert_int_equal(mock_way.grh.sgid_index, 2);
	close_dg(dg);
}

/* Our own address moves to that place in the table of GIDs. */
static void move_gid(struct vb__dg *dg, unsigned from, unsigned to)
{
	mock_gids[to] = mock_gids[from];
	memset(&mock_gids[from], 0, sizeof(mock_gids[from]));
	mock_async_event(IBV_EVENT_GID_CHANGE, (void *)1);
	assert_int_equal(vb__dg_arm(dg, false), 0);
}

static void a_change_that_does_not_concern_the_way_makes_no_new_one(void **state)
{
	struct vb__dg *dg = open_dg();
	struct vb__dg_peer *peer = resolve(dg);
	unsigned asked;

	(void)state;
	move_gid(dg, 2, 1);
	send_to(dg, peer);
	assert_int_equal(mock_count("ibv_create_ah"), 2);
	mock_async_event(IBV_EVENT_GID_CHANGE, (void *)1); /* somebody else's */
	assert_int_equal(vb__dg_arm(dg, false), 0);
	send_to(dg, peer);
	asked = mock_count("ibv_query_gid_ex");
	send_to(dg, peer);
	assert_int_equal(mock_count("ibv_query_gid_ex"), asked);
	assert_int_equal(mock_count("ibv_create_ah"), 2);
	assert_int_equal(mock_count("ibv_destroy_ah"), 1);
	close_dg(dg);
}

static void a_new_way_that_cannot_be_had_is_tried_again_later(void **state)
{
	struct vb__dg *dg = open_dg();
	struct vb__dg_peer *peer = resolve(dg);

	(void)state;
	move_gid(dg, 2, 1);
	mock_fail_call("ibv_create_ah", 1, ETIMEDOUT);
	mock_clock_ns = vb__now_ns();
	send_to(dg, peer); /* by the old one, which stays */
	send_to(dg, peer); /* at once would be too often */
	assert_int_equal(mock_count("ibv_create_ah"), 2);
	assert_int_equal(mock_count("ibv_destroy_ah"), 0);
	mock_clock_ns += vb__ms(5000);
	send_to(dg, peer);
	assert_int_equal(mock_count("ibv_create_ah"), 3);
	assert_int_equal(mock_count("ibv_destroy_ah"), 1);
	assert_int_equal(mock_way.grh.sgid_index, 1);
	close_dg(dg);
}

static void a_way_stays_while_the_device_does_not_complete_what_went_by_it(void **state)
{
	struct vb__dg *dg = open_dg();
	struct vb__dg_peer *peer = resolve(dg);

	(void)state;
	assert_int_equal(vb__dg_send(dg, peer, NULL, 0, "x", 1, NULL), 0);
	move_gid(dg, 2, 1);
	assert_int_equal(vb__dg_send(dg, peer, NULL, 0, "x", 1, NULL), 0);
	assert_int_equal(mock_count("ibv_create_ah"), 2);
	assert_int_equal(mock_count("ibv_destroy_ah"), 1); /* the new one */
	assert_true(inside(dg)->stuck);
	mock_complete_send(qp(dg), IBV_WC_SUCCESS); /* it was only slow */
	mock_complete_send(qp(dg), IBV_WC_SUCCESS);
	mock_clock_ns = vb__now_ns() + vb__ms(5000);
	send_to(dg, peer);
	assert_int_equal(mock_count("ibv_create_ah"), 3);
	assert_int_equal(mock_count("ibv_destroy_ah"), 2);
	assert_false(inside(dg)->stuck); /* from now on it is waited for again */
	close_dg(dg);
}

static void datagrams_over_the_memlock_limit_tell_limit_need_and_remedies(void **state)
{
	static const struct {
		const char *call, *need;
	} cases[] = {
		{ "ibv_create_cq", "about 4 KiB of memory for 64 entries" },
		{ "rdma_create_qp", "about 8 KiB of memory for 68 entries" },
		{ "ibv_reg_mr", "KiB of memory:" },
	};
	struct vb__dg_attr attr = dg_attr();
	struct vb__address at = address("10.0.0.1");

	(void)state;
	harness_limit_memlock();
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		struct vb_error err = { .code = VB_OK };
		struct vb__dg *dg;

		mock_fail_call(cases[i].call, 10, ENOMEM);
		vb__dg_open(&vb__verbs_dgrams, &attr, &at, &dg, &err);
		assert_tells_memlock(&err, cases[i].call, cases[i].need);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		VERBS_TEST(open_makes_a_ud_queue_pair_and_posts_what_was_asked_for),
		VERBS_TEST(what_cannot_be_opened_says_why),
		VERBS_TEST(sender_over_ipv4_is_told_and_can_be_answered),
		VERBS_TEST(what_stands_before_an_ipv4_header_does_not_matter),
		VERBS_TEST(sender_over_ipv6_is_told),
		VERBS_TEST(what_we_sent_to_a_group_is_not_heard),
		VERBS_TEST(what_is_too_short_for_its_header_is_dropped),
		VERBS_TEST(sender_on_infiniband_is_answered_by_its_lid),
		VERBS_TEST(no_way_back_without_an_address_of_ours),
		VERBS_TEST(whoever_asks_is_told_where_to_send_to),
		VERBS_TEST(who_is_asked_becomes_a_peer),
		VERBS_TEST(asking_in_vain_says_why),
		VERBS_TEST(a_group_is_joined_sent_to_and_left),
		VERBS_TEST(joining_in_vain_says_why_and_is_called_off),
		VERBS_TEST(a_full_queue_says_so_and_wakes_when_it_is_not),
		VERBS_TEST(arming_for_room_does_not_put_a_receiver_to_sleep),
		VERBS_TEST(the_device_s_end_is_the_endpoint_s_with_words),
		VERBS_TEST(ports_and_addresses_that_change_end_nothing),
		VERBS_TEST(who_was_asked_before_gids_moved_gets_a_new_way),
		VERBS_TEST(a_change_that_does_not_concern_the_way_makes_no_new_one),
		VERBS_TEST(a_new_way_that_cannot_be_had_is_tried_again_later),
		VERBS_TEST(a_way_stays_while_the_device_does_not_complete_what_went_by_it),
		VERBS_TEST(datagrams_over_the_memlock_limit_tell_limit_need_and_remedies),
	};

	return cmocka_run_group_tests_name("verbs_dgram", tests, NULL, NULL);
}
