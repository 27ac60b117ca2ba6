/* SPDX-License-Identifier: Apache-2.0 */
/* The ladder: which attributes each step gets, from both ends and the options, and what is said when it fails. */
#include <errno.h>
#include <string.h>

#include "fabric/verbs/verbs_port.h"
#include "tcp_peer.h"

static struct vb__ep *connect_to(const struct vb__wireup *answer)
{
	struct vb__address at = tcp_peer_listen(TCP_POLITE, answer);
	struct vb_error err = { .code = VB_OK };
	struct vb__ep *ep;

	assert_int_equal(vb__ep_open(&vb__verbs_fabric, &harness_attr, &at,
				     vb__now_ns() + vb__ms(5000), &ep, &err),
			 0);
	if (vb__ep_connect(ep, "hi", 3, vb__now_ns() + vb__ms(5000), &err) != 0)
		fail_msg("connect: %s: %s", err.operation, err.cause);
	return ep;
}

static void close_both(struct vb__ep *ep)
{
	vb__ep_close(ep);
	tcp_peer_end();
}

static void each_step_gets_what_the_other_end_said(void **state)
{
	struct vb__ep *ep = connect_to(&tcp_peer_pair);
	struct ibv_qp_attr init = mock_qp_step(harness_qp(ep), IBV_QPS_INIT, NULL);
	struct ibv_qp_attr rtr = mock_qp_step(harness_qp(ep), IBV_QPS_RTR, NULL);
	struct ibv_qp_attr rts = mock_qp_step(harness_qp(ep), IBV_QPS_RTS, NULL);
	struct vb__wireup request;

	(void)state;
	assert_true(tcp_peer_heard(&request, NULL));
	assert_int_equal(init.port_num, 1);
	assert_int_equal(init.qp_access_flags, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
						       IBV_ACCESS_REMOTE_ATOMIC);
	assert_int_equal(rtr.dest_qp_num, 0x4711);
	assert_int_equal(rtr.rq_psn, 0xabcdef);
	assert_int_equal(rtr.path_mtu, IBV_MTU_1024); /* the smaller one */
	assert_int_equal(rtr.max_dest_rd_atomic, 2);
	assert_int_equal(rtr.min_rnr_timer, 12);
	assert_int_equal(rtr.ah_attr.is_global, 1);
	assert_int_equal(rtr.ah_attr.grh.sgid_index, 3);
	assert_memory_equal(&rtr.ah_attr.grh.dgid, tcp_peer_pair.gid, 16);
	assert_int_equal(rts.sq_psn, request.psn);
	assert_int_equal(rts.max_rd_atomic, 4);
	assert_int_equal(rts.retry_cnt, 6);
	assert_int_equal(rts.rnr_retry, 7);
	assert_int_equal(rts.timeout, verbs_ack_timeout(harness_inside(ep)));
	assert_contains(ep->how, "wired up by TCP");
	assert_contains(ep->how, "MTU 1024");
	close_both(ep);
}

static void options_go_before_the_defaults(void **state)
{
	struct ibv_qp_attr rtr, rts;
	struct vb__wireup request;
	struct vb__ep *ep;

	(void)state;
	harness_settings.qp = (struct vb_qp_options){ .mtu_bytes = 512,
						      .ack_timeout = 14,
						      .retries = 3,
						      .rnr_retries = 2,
						      .min_rnr_timer = 20,
						      .reads = 1 };
	ep = connect_to(&tcp_peer_pair);
	rtr = mock_qp_step(harness_qp(ep), IBV_QPS_RTR, NULL);
	rts = mock_qp_step(harness_qp(ep), IBV_QPS_RTS, NULL);
	assert_true(tcp_peer_heard(&request, NULL));
	assert_int_equal(request.mtu, 512);
	assert_int_equal(rtr.path_mtu, IBV_MTU_512);
	assert_int_equal(rtr.max_dest_rd_atomic, 1);
	assert_int_equal(rtr.min_rnr_timer, 20);
	assert_int_equal(rts.timeout, 14);
	assert_int_equal(rts.retry_cnt, 3);
	assert_int_equal(rts.rnr_retry, 2);
	assert_int_equal(rts.max_rd_atomic, 1);
	close_both(ep);
}

static void our_own_mtu_counts_where_it_is_the_smaller_one(void **state)
{
	struct vb__ep *ep;

	(void)state;
	mock_device.port.active_mtu = IBV_MTU_256;
	ep = connect_to(&tcp_peer_pair);
	assert_int_equal(mock_qp_step(harness_qp(ep), IBV_QPS_RTR, NULL).path_mtu, IBV_MTU_256);
	close_both(ep);
}

static void packet_numbers_begin_anywhere(void **state)
{
	struct vb__wireup request[3];

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct vb__ep *ep = connect_to(&tcp_peer_pair);

		assert_true(tcp_peer_heard(&request[i], NULL));
		assert_true(request[i].psn <= 0xffffff);
		close_both(ep);
	}
	assert_true(request[0].psn != request[1].psn || request[1].psn != request[2].psn);
}

/* ---- InfiniBand: no such device is here, so all of it is looked at ---- */

static const uint8_t subnet_gid[16] = {
	0xfe, 0x80, [8] = 0xe4, 0x1d, 0x2d, [13] = 0x50, 0x3e, 0x42
};

/* The IPoIB interface that has the address is in partition 1, as a full member; the port has LID 23. */
static struct vb__wireup start_infiniband(void)
{
	struct vb__wireup answer = tcp_peer_pair;

	mock_device.port.link_layer = IBV_LINK_LAYER_INFINIBAND;
	mock_device.port.lid = 23;
	mock_device.port.active_mtu = IBV_MTU_2048;
	mock_ipoib_pkey = 0x8001;
	mock_device.gids[0] = (struct ibv_gid_entry){ .gid_index = 0, .port_num = 1 };
	memcpy(&mock_device.gids[0].gid, subnet_gid, sizeof(subnet_gid));
	mock_device.gid_count = 1;
	answer.link = VB__WIREUP_INFINIBAND;
	answer.lid = 77;
	answer.mtu = 4096;
	memcpy(answer.gid, subnet_gid, sizeof(subnet_gid));
	answer.gid[15] = 0x99;
	return answer;
}

static void within_a_subnet_of_infiniband_the_lid_is_enough(void **state)
{
	struct vb__wireup answer = start_infiniband(), request;
	struct ibv_qp_attr init, rtr, rts;
	struct vb__ep *ep;
	int mask;

	(void)state;
	harness_settings.qp.service_level = 5;
	ep = connect_to(&answer);
	init = mock_qp_step(harness_qp(ep), IBV_QPS_INIT, &mask);
	assert_int_equal(mask,
			 IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	assert_int_equal(init.pkey_index, 2);
	assert_int_equal(init.port_num, 1);
	rtr = mock_qp_step(harness_qp(ep), IBV_QPS_RTR, &mask);
	assert_int_equal(mask, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				       IBV_QP_MIN_RNR_TIMER);
	assert_int_equal(rtr.path_mtu, IBV_MTU_2048);
	assert_int_equal(rtr.dest_qp_num, 0x4711);
	assert_int_equal(rtr.rq_psn, 0xabcdef);
	assert_int_equal(rtr.ah_attr.dlid, 77);
	assert_int_equal(rtr.ah_attr.sl, 5);
	assert_int_equal(rtr.ah_attr.src_path_bits, 0);
	assert_int_equal(rtr.ah_attr.static_rate, 0);
	assert_int_equal(rtr.ah_attr.is_global, 0);
	assert_int_equal(rtr.ah_attr.port_num, 1);
	assert_int_equal(rtr.max_dest_rd_atomic, 2);
	rts = mock_qp_step(harness_qp(ep), IBV_QPS_RTS, &mask);
	assert_int_equal(mask, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				       IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
	assert_int_equal(rts.max_rd_atomic, 4);
	assert_true(tcp_peer_heard(&request, NULL));
	assert_int_equal(request.link, VB__WIREUP_INFINIBAND);
	assert_int_equal(request.lid, 23);
	assert_int_equal(request.mtu, 2048);
	assert_memory_equal(request.gid, subnet_gid, 16);
	close_both(ep);
}

static void beyond_a_subnet_of_infiniband_the_gid_goes_along(void **state)
{
	struct vb__wireup answer = start_infiniband();
	struct ibv_qp_attr rtr;
	struct vb__ep *ep;

	(void)state;
	answer.gid[7] = 1;
	ep = connect_to(&answer);
	rtr = mock_qp_step(harness_qp(ep), IBV_QPS_RTR, NULL);
	assert_int_equal(rtr.ah_attr.is_global, 1);
	assert_int_equal(rtr.ah_attr.dlid, 77);
	assert_memory_equal(&rtr.ah_attr.grh.dgid, answer.gid, 16);
	assert_int_equal(rtr.ah_attr.grh.sgid_index, 0);
	assert_int_equal(rtr.ah_attr.grh.hop_limit, 64);
	close_both(ep);
}

static void a_limited_member_is_of_the_partition_and_none_is_told(void **state)
{
	struct vb__wireup answer = start_infiniband();
	struct vb_error err = { .code = VB_OK };
	struct vb__address at;
	struct vb__ep *ep;

	(void)state;
	mock_ipoib_pkey = 0xffff; /* there both as a limited member and, behind, as a full one */
	ep = connect_to(&answer);
	assert_int_equal(mock_qp_step(harness_qp(ep), IBV_QPS_INIT, NULL).pkey_index, 1);
	close_both(ep);
	mock_ipoib_pkey = 0x8001;
	mock_pkeys[2] = 0x0001;
	verbs_ports_forget();
	ep = connect_to(&answer);
	assert_int_equal(mock_qp_step(harness_qp(ep), IBV_QPS_INIT, NULL).pkey_index, 2);
	close_both(ep);
	mock_pkeys[2] = 0x8002;
	verbs_ports_forget();
	at = tcp_address(MOCK_PORT);
	assert_int_not_equal(vb__ep_open(&vb__verbs_fabric, &harness_attr, &at,
					 vb__now_ns() + vb__ms(5000), &ep, &err),
			     0);
	assert_string_equal(err.operation, "find partition");
	assert_string_equal(err.object, "0x8001 on " MOCK_DEVICE " port 1");
}

/* The mock insists on the attributes that a UC queue pair has, and on no others. */
static void uc_goes_up_the_same_ladder_and_can_send_and_write_only(void **state)
{
	struct vb__wireup answer = tcp_peer_pair;
	struct vb_error err = { .code = VB_OK };
	struct vb__ep *ep;

	(void)state;
	answer.qp_type = VB__QP_UC;
	harness_attr.qp_type = VB__QP_UC;
	ep = connect_to(&answer);
	assert_int_equal(harness_qp(ep)->qp_type, IBV_QPT_UC);
	assert_int_equal(mock_qp_step(harness_qp(ep), IBV_QPS_INIT, NULL).qp_access_flags,
			 IBV_ACCESS_REMOTE_WRITE);
	assert_int_equal(ep->caps & (VB__CAP_READ | VB__CAP_ATOMIC | VB__CAP_WINDOW), 0);
	assert_true(ep->caps & VB__CAP_IMM);
	assert_int_equal(harness_post(ep, VB__OP_READ, 1, 8, &err), VB_ERR_UNSUPPORTED);
	assert_string_equal(err.operation, "reads");
	assert_contains(err.cause, "a UC queue pair can send and write only");
	assert_contains(err.hint, "use RC");
	vb__error_clear(&err);
	assert_int_equal(harness_post(ep, VB__OP_FETCH_ADD, 1, 8, &err), VB_ERR_UNSUPPORTED);
	assert_string_equal(err.operation, "atomics");
	assert_int_equal(harness_post(ep, VB__OP_SEND, 2, 8, NULL), 0);
	assert_int_equal(harness_post(ep, VB__OP_WRITE, 3, 8, NULL), 0);
	assert_int_equal(harness_post(ep, VB__OP_WRITE_IMM, 4, 8, NULL), 0);
	close_both(ep);
}

/* ---- What a device says no to ---- */

static void a_refused_first_step_shows_its_attributes(void **state)
{
	struct vb__address at = tcp_peer_listen(TCP_POLITE, &tcp_peer_pair);
	struct vb_error err = { .code = VB_OK };
	struct vb__ep *ep;

	(void)state;
	mock_fail_call("ibv_modify_qp", 1, EINVAL);
	assert_int_equal(vb__ep_open(&vb__verbs_fabric, &harness_attr, &at, harness_deadline(), &ep,
				     &err),
			 VB_ERR_INVALID);
	assert_string_equal(err.operation, "ibv_modify_qp");
	assert_string_equal(err.object, MOCK_DEVICE " port 1");
	assert_int_equal(err.native, EINVAL);
	assert_contains(err.cause, "RESET to INIT: Invalid argument");
	assert_contains(err.cause, "port_num 1");
	assert_contains(err.cause, "pkey_index 0");
	assert_contains(err.cause, "qp_access_flags 0x");
	tcp_peer_end();
}

static struct vb_error refused_at_step(unsigned step)
{
	struct vb__address at = tcp_peer_listen(TCP_POLITE, &tcp_peer_pair);
	struct vb_error err = { .code = VB_OK };
	struct vb__ep *ep;

	assert_int_equal(vb__ep_open(&vb__verbs_fabric, &harness_attr, &at,
				     vb__now_ns() + vb__ms(5000), &ep, &err),
			 0);
	harness_post(ep, VB__OP_RECV, 1, 64, NULL);
	mock_fail_after("ibv_modify_qp", step, ENETUNREACH);
	assert_int_equal(vb__ep_connect(ep, "hi", 3, vb__now_ns() + vb__ms(5000), &err),
			 VB_ERR_UNREACHABLE);
	assert_int_equal(ep->state, VB__EP_DOWN);
	assert_int_equal(ep->down.code, VB_ERR_UNREACHABLE);
	close_both(ep);
	return err;
}

static void a_refused_second_step_shows_its_attributes(void **state)
{
	struct vb_error err = refused_at_step(0);

	(void)state;
	assert_contains(err.cause, "INIT to RTR: Network is unreachable");
	assert_contains(err.cause, "path_mtu 1024");
	assert_contains(err.cause, "dest_qp_num 0x4711");
	assert_contains(err.cause, "rq_psn 0xabcdef");
	assert_contains(err.cause, "dgid ::ffff:127.0.0.1");
	assert_contains(err.cause, "sgid_index 3");
	assert_contains(err.cause, "max_dest_rd_atomic 2");
	assert_contains(err.cause, "min_rnr_timer 12");
	assert_contains(err.hint, "rdma link");
}

static void a_refused_third_step_shows_its_attributes(void **state)
{
	struct vb_error err = refused_at_step(1);

	(void)state;
	assert_contains(err.cause, "RTR to RTS: Network is unreachable");
	assert_contains(err.cause, "timeout ");
	assert_contains(err.cause, "retry_cnt 6");
	assert_contains(err.cause, "rnr_retry 7");
	assert_contains(err.cause, "max_rd_atomic 4");
	assert_contains(err.hint, "vb_qp_options");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TCP_TEST(each_step_gets_what_the_other_end_said),
		TCP_TEST(options_go_before_the_defaults),
		TCP_TEST(our_own_mtu_counts_where_it_is_the_smaller_one),
		TCP_TEST(packet_numbers_begin_anywhere),
		TCP_TEST(within_a_subnet_of_infiniband_the_lid_is_enough),
		TCP_TEST(beyond_a_subnet_of_infiniband_the_gid_goes_along),
		TCP_TEST(a_limited_member_is_of_the_partition_and_none_is_told),
		TCP_TEST(uc_goes_up_the_same_ladder_and_can_send_and_write_only),
		TCP_TEST(a_refused_first_step_shows_its_attributes),
		TCP_TEST(a_refused_second_step_shows_its_attributes),
		TCP_TEST(a_refused_third_step_shows_its_attributes),
	};

	return cmocka_run_group_tests_name("verbs_ladder", tests, NULL, NULL);
}
