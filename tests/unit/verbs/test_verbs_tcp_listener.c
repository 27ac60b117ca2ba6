/* SPDX-License-Identifier: Apache-2.0 */
/* Listening for wire-ups by TCP: strangers at the door, beside rdma_cm and without, and what the devices have to tell. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tcp_peer.h"

static uint64_t in_good_time(void)
{
	return vb__now_ns() + vb__ms(5000);
}

static struct vb__wireup request_of(enum vb__qp_type type)
{
	struct vb__wireup r = tcp_peer_pair;

	r.kind = VB__WIREUP_REQUEST;
	r.qp_type = (uint8_t)type;
	return r;
}

/* ---- Strangers ---- */

static void strangers_disturb_nobody(void **state)
{
	struct vb__wireup asked = request_of(VB__QP_RC), none;
	struct vb__pep *pep = tcp_listen();
	struct vb__request *request;
	int silent[100], rightful, babbling = tcp_peer_call(pep), half = tcp_peer_call(pep);
	char noise[300];

	(void)state;
	memset(noise, 'x', sizeof(noise));
	assert_int_equal(write(babbling, noise, sizeof(noise)), sizeof(noise));
	assert_int_equal(write(half, "VBWU", 4), 4);
	assert_int_equal(tcp_next(pep, &request, babbling, NULL), 0);
	assert_false(tcp_peer_hear(babbling, &none)); /* hung up on */
	for (unsigned i = 0; i < ARRAY_SIZE(silent); i++) {
		silent[i] = tcp_peer_call(pep);
		assert_int_equal(vb__pep_next(pep, &request, NULL), 0);
	}
	assert_int_equal(tcp_next(pep, &request, silent[0], NULL), 0);
	assert_false(tcp_peer_hear(silent[0], &none)); /* made room */
	rightful = tcp_peer_call(pep);
	tcp_peer_say(rightful, &asked);
	assert_int_equal(tcp_next(pep, &request, rightful, NULL), 1);
	vb__request_reject(request, NULL, 0);
	for (unsigned i = 0; i < ARRAY_SIZE(silent); i++)
		close(silent[i]);
	close(babbling);
	close(half);
	close(rightful);
	vb__pep_close(pep);
}

static void patience_with_the_silent_ends(void **state)
{
	struct vb__pep *pep;
	struct vb__request *request;
	struct vb__wireup none;
	int fd;

	(void)state;
	harness_settings.peer_timeout_ms = 200;
	pep = tcp_listen();
	fd = tcp_peer_call(pep);
	vb__waiter_sleep(pep->wait_fd, in_good_time());
	assert_int_equal(vb__pep_next(pep, &request, NULL), 0);
	assert_false(harness_readable(pep->wait_fd));
	vb__waiter_sleep(pep->wait_fd, in_good_time()); /* until the timer rings */
	assert_int_equal(vb__pep_next(pep, &request, NULL), 0);
	assert_false(tcp_peer_hear(fd, &none));
	assert_false(harness_readable(pep->wait_fd));
	close(fd);
	vb__pep_close(pep);
}

static void crowds_are_looked_at_one_by_one_and_devices_are_not(void **state)
{
	struct vb__wireup asked = request_of(VB__QP_RC), reply;
	struct vb__pep *pep = tcp_listen();
	struct vb__request *request;

	(void)state;
	for (int i = 0; i < 6; i++) {
		int fd = tcp_peer_call(pep);
		bool served = i < 3;

		if (i == 3) /* the address goes */
			mock_device.gid_count = 0;
		tcp_peer_say(fd, &asked);
		assert_int_equal(tcp_next(pep, &request, fd, NULL), served);
		if (served)
			vb__request_reject(request, NULL, 0);
		assert_true(tcp_peer_hear(fd, &reply));
		assert_int_equal(reply.reason, served ? 0 : VB__WIREUP_NOT_DEVICE);
		assert_int_equal(mock_count("verbs_devices_read"), served ? 1 : 2);
		close(fd);
	}
	vb__pep_close(pep);
}

/* ---- Listeners that serve both ways ---- */

static void a_listener_serves_both_ways_unless_told_otherwise(void **state)
{
	struct vb__wireup asked = request_of(VB__QP_RC);
	struct vb__request *request;
	struct vb__pep *pep;
	char words[64];
	int fd;

	(void)state;
	harness_settings.wireup = VB_WIREUP_AUTO;
	pep = tcp_listen();
	assert_int_equal(pep->port, MOCK_PORT);
	snprintf(words, sizeof(words), MOCK_DEVICE " (wire-up by TCP: port %u)", MOCK_PORT + 1000);
	assert_string_equal(pep->device, words);
	fd = tcp_peer_call(pep);
	tcp_peer_say(fd, &asked);
	mock_connect_request(((struct verbs_pep *)pep)->cm.id, "hi", 3);
	assert_int_equal(vb__pep_next(pep, &request, NULL), 1);
	assert_string_equal((char *)request->data, "hi");
	vb__request_reject(request, NULL, 0);
	assert_int_equal(tcp_next(pep, &request, fd, NULL), 1);
	assert_string_equal((char *)request->data, "yes");
	vb__request_reject(request, NULL, 0);
	close(fd);
	vb__pep_close(pep);
}

static void a_taken_second_port_is_done_without_unless_it_was_asked_for(void **state)
{
	struct vb__pep *first = tcp_listen(), *second = NULL;
	struct vb_error err = { .code = VB_OK };
	struct vb__address at = harness_peer();

	(void)state;
	at = tcp_address(MOCK_PORT);
	vb__address_set_port(&at, first->port);
	assert_int_equal(vb__pep_open(&vb__verbs_fabric, &harness_settings, &at, &second, &err),
			 VB_ERR_IN_USE);
	assert_string_equal(err.object, at.text);
	assert_contains(err.hint, "1000 above");
	vb__pep_close(first);

	/* rdma_cm gives the mock's port, and above that somebody else is now. */
	vb__address_set_port(&at, MOCK_PORT);
	assert_int_equal(vb__pep_open(&vb__verbs_fabric, &harness_settings, &at, &first, NULL), 0);
	harness_settings.wireup = VB_WIREUP_AUTO;
	assert_int_equal(vb__pep_open(&vb__verbs_fabric, &harness_settings, &at, &second, NULL), 0);
	assert_string_equal(second->device, MOCK_DEVICE);
	vb__pep_close(second);
	vb__address_set_port(&at, 0); /* any port would do: another one is looked for */
	assert_int_equal(vb__pep_open(&vb__verbs_fabric, &harness_settings, &at, &second, NULL),
			 VB_ERR_IN_USE);
	vb__pep_close(first);
}

static void a_listener_without_rdma_cm_says_so_and_serves_by_tcp(void **state)
{
	struct vb__pep *pep;

	(void)state;
	harness_settings.wireup = VB_WIREUP_AUTO;
	harness_without_cm = true;
	pep = tcp_listen();
	assert_contains(pep->device, "/dev/infiniband/rdma_cm: it is not there");
	assert_contains(pep->device, "wire-up by TCP: port");
	assert_int_equal(mock_count("rdma_create_event_channel"), 0);
	vb__pep_close(pep);
}

/* ---- The devices' events ---- */

static struct {
	unsigned lines;
	char last[200];
} heard;

static void hear(void *arg, enum vb_log_level level, const char *line)
{
	(void)arg, (void)level;
	heard.lines++;
	snprintf(heard.last, sizeof(heard.last), "%s", line);
}

static struct vb__pep *listen_and_hear(void)
{
	memset(&heard, 0, sizeof(heard));
	harness_settings.log = (struct vb__log){ .write = hear, .level = VB_LOG_WARNING };
	return tcp_listen();
}

static void a_listener_takes_its_devices_events_while_nobody_is_there(void **state)
{
	struct vb__pep *pep = listen_and_hear();
	struct vb__request *request;

	(void)state;
	mock_async_event(IBV_EVENT_PORT_ERR, (void *)2); /* of any port */
	mock_async_event(IBV_EVENT_DEVICE_FATAL, NULL);
	assert_true(harness_readable(pep->wait_fd));
	assert_int_equal(vb__pep_next(pep, &request, NULL), 0);
	assert_int_equal(mock_async_pending(), 0);
	assert_int_equal(mock_count("ibv_ack_async_event"), 2);
	assert_false(harness_readable(pep->wait_fd));
	assert_int_equal(heard.lines, 2);
	assert_contains(heard.last, MOCK_DEVICE);
	vb__pep_close(pep);
}

static void a_listener_and_its_connections_say_a_notice_once(void **state)
{
	struct vb__wireup asked = request_of(VB__QP_RC);
	struct vb__pep *pep = listen_and_hear();
	int fd = tcp_peer_call(pep);
	struct vb__ep *ep = tcp_peer_request(pep, fd, &asked);
	struct vb__request *request;

	(void)state;
	mock_async_event(IBV_EVENT_PORT_ERR, (void *)1);
	assert_int_equal(vb__pep_next(pep, &request, NULL), 0);
	assert_int_equal(heard.lines, 1);
	assert_contains(heard.last, "the port is down");
	vb__pep_close(pep);
	mock_async_event(IBV_EVENT_PORT_ACTIVE, (void *)1);
	vb__ep_arm(ep);
	assert_int_equal(heard.lines, 2);
	vb__ep_close(ep);
	close(fd);
}

static void a_device_that_is_gone_is_no_busy_loop(void **state)
{
	struct vb__pep *pep = listen_and_hear();
	struct vb__request *request;

	(void)state;
	mock_async_event(IBV_EVENT_PORT_ERR, (void *)1);
	mock_fail_call("ibv_get_async_event", 1000000, EIO);
	assert_int_equal(vb__pep_next(pep, &request, NULL), 0);
	assert_contains(heard.last, "nothing to tell any more");
	assert_false(harness_readable(pep->wait_fd));
	vb__pep_close(pep);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TCP_TEST(strangers_disturb_nobody),
		TCP_TEST(patience_with_the_silent_ends),
		TCP_TEST(crowds_are_looked_at_one_by_one_and_devices_are_not),
		TCP_TEST(a_listener_serves_both_ways_unless_told_otherwise),
		TCP_TEST(a_taken_second_port_is_done_without_unless_it_was_asked_for),
		TCP_TEST(a_listener_without_rdma_cm_says_so_and_serves_by_tcp),
		TCP_TEST(a_listener_takes_its_devices_events_while_nobody_is_there),
		TCP_TEST(a_listener_and_its_connections_say_a_notice_once),
		TCP_TEST(a_device_that_is_gone_is_no_busy_loop),
	};

	return cmocka_run_group_tests_name("verbs_tcp_listener", tests, NULL, NULL);
}
