/* SPDX-License-Identifier: Apache-2.0 */
/* Peers that are absent, foreign, of another version, silent or hostile. */
#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

#include "core/clock.h"
#include "fabric/fabric.h"
#include "harness.h"
#include "wire/hello.h"
#include "wire/packet.h"

static void nobody(struct side *side)
{
	(void)side;
}

static struct vb__settings settings_of(struct side *side)
{
	struct vb__settings settings;

	CHECK_EQ(vb__settings_from(&settings, &side->options, NULL), 0);
	return settings;
}

/* An endpoint below the channel, towards the listener. */
static struct vb__ep *raw_endpoint(struct side *side, struct vb__settings *settings)
{
	struct vb__ep_attr attr = {
		.send_depth = 16, .recv_depth = 16, .sge = 2, .settings = settings
	};
	struct vb__address found[VB__ADDRESSES_MAX];
	struct vb__ep *ep;

	CHECK(vb__address_resolve(side->address, port_there(side), 0, found, NULL) > 0);
	CHECK_EQ(vb__ep_open(fabric_of(side), &attr, &found[0], vb__now_ns() + vb__ms(5000), &ep,
			     NULL),
		 0);
	return ep;
}

static int raw_connect(struct vb__ep *ep, const struct vb__hello *hello, unsigned ms)
{
	uint8_t bytes[VB__HELLO_BYTES];

	vb__hello_encode(bytes, hello);
	return vb__ep_connect(ep, bytes, sizeof(bytes), vb__now_ns() + vb__ms(ms), NULL);
}

static const struct vb__hello good_hello = { .kind = VB__HELLO_OPEN,
					     .version = VB__PROTOCOL_VERSION,
					     .max_message = 4096,
					     .depth = 2 };

static void absent_client(struct side *side)
{
	struct vb_channel *ch;
	struct vb_error err;
	char line[VB_ERROR_LINE_MAX];

	side->options.connect_timeout_ms = side->slow ? 2000 : 400;
	CHECK_EQ(vb_channel_connect(side->address, "9", &side->options, &ch, &err), VB_ERR_REFUSED);
	vb_error_format(&err, line, sizeof(line));
	CHECK(strstr(line, side->address) && strstr(line, "port 9") && strstr(line, side->fabric));
	CHECK(strstr(line, side->slow ? "after 2 s" : "after 0.4 s"));
	CHECK(strstr(err.hint, "start the receiving side"));
	/* Where it must be up, one refusal is enough: it does not take a minute. */
	side->options.connect_timeout_ms = 60000;
	side->options.listener_is_up = true;
	CHECK_EQ(vb_channel_connect(side->address, "9", &side->options, &ch, &err), VB_ERR_REFUSED);
	CHECK(!strstr(err.cause, "gave up"));
	side->options.listener_is_up = false;
}

static void late_server(struct side *side)
{
	char port[8];
	struct vb_listener *listener;
	struct vb_channel *ch;
	struct vb_error err;

	/* A free port, told to the client before anybody listens there. */
	listener = listen_here(side);
	snprintf(port, sizeof(port), "%d", vb_listener_port(listener));
	vb_listener_close(listener);
	signal_step(side, 0);
	sleep_ms(500);
	CHECK_EQ(vb_listener_open(side->address, port, &side->options, &listener, &err), 0);
	ch = accept_one(side, listener);
	vb_listener_close(listener);
	expect_eof(ch);
	close_well(ch);
}

static void patient_client(struct side *side)
{
	await_step(side, 0);
	close_well(connect_there(side));
}

static void name_client(struct side *side)
{
	struct vb_channel *ch;
	struct vb_error err;

	CHECK_EQ(vb_channel_connect("no-such-host.invalid", "7471", &side->options, &ch, &err),
		 VB_ERR_RESOLVE);
	CHECK(strstr(err.object, "no-such-host.invalid") && err.hint[0]);
}

static void port_taken_client(struct side *side)
{
	struct vb_listener *first = listen_here(side), *second;
	char port[8];
	struct vb_error err;

	snprintf(port, sizeof(port), "%d", vb_listener_port(first));
	CHECK_EQ(vb_listener_open(side->address, port, &side->options, &second, &err),
		 VB_ERR_IN_USE);
	CHECK(strstr(err.object, port) && err.hint[0]);
	vb_listener_close(first);
}

/* Over verbs it may take another address than this to be refused. */
static void expect_no_way_by_ipv4(struct side *side, const char *port)
{
	struct vb_options four = side->options;
	struct vb_channel *ch;

	four.connect_timeout_ms = 500; /* it is tried all that time */
	if (strcmp(side->fabric, "ofi") == 0)
		CHECK_EQ(vb_channel_connect("127.0.0.1", port, &four, &ch, NULL), VB_ERR_REFUSED);
}

static void family_client(struct side *side)
{
	struct vb_options six = side->options, four = side->options;
	struct vb_listener *first, *second;
	struct vb_error err;
	char port[8];

	six.family = AF_INET6;
	four.family = AF_INET;
	if (vb_listener_open(NULL, "0", &six, &first, &err) != 0)
		fail_with(&err, "listening by IPv6");
	snprintf(port, sizeof(port), "%d", vb_listener_port(first));
	expect_no_way_by_ipv4(side, port);
	if (vb_listener_open(NULL, port, &four, &second, &err) != 0)
		fail_with(&err, "listening by IPv4");
	vb_listener_close(second);
	vb_listener_close(first);
}

/* Whatever the strangers do, the rightful peer is served. */
static void serve_rightful(struct side *side, struct vb_listener *listener)
{
	struct vb_channel *ch = accept_one(side, listener);
	const void *message;

	CHECK_EQ(recv_well(ch, &message), 8);
	CHECK(!memcmp(message, "rightful", 8));
	expect_eof(ch);
	close_well(ch);
}

static void steadfast_server(struct side *side)
{
	struct vb_listener *listener;

	side->options.peer_timeout_ms = 2000;
	listener = listen_here(side);
	serve_rightful(side, listener);
	vb_listener_close(listener);
}

/*
 * libfabric 1.17 does not free what it keeps of a connection that never spoke
 * when its listener closes, only when that connection ends: so they end first.
 */
static void tidy_server(struct side *side)
{
	struct vb_listener *listener = listen_here(side);
	struct vb_channel *ch;

	serve_rightful(side, listener);
	await_step(side, 0);
	for (int i = 0; i < 20; i++) {
		CHECK_EQ(vb_listener_try_accept(listener, &ch, NULL), VB_ERR_AGAIN);
		sleep_ms(1);
	}
	vb_listener_close(listener);
}

static void rightful_peer(struct side *side)
{
	struct vb_channel *ch = connect_there(side);

	send_well(ch, "rightful", 8);
	close_well(ch);
}

static void other_version_client(struct side *side)
{
	struct vb__settings settings = settings_of(side);
	struct vb__hello hello = good_hello, answer;
	struct vb__ep *ep = raw_endpoint(side, &settings);

	hello.version = 77;
	CHECK_EQ(raw_connect(ep, &hello, 5000), VB_ERR_REFUSED);
	CHECK_EQ(vb__hello_decode(&answer, ep->peer_data, ep->peer_data_len), VB__HELLO_GOOD);
	CHECK_EQ(answer.kind, VB__HELLO_REFUSE);
	CHECK_EQ(answer.reason, VB__REFUSAL_VERSION);
	vb__ep_close(ep);
	rightful_peer(side);
}

static void garbage_client(struct side *side)
{
	struct vb__settings settings = settings_of(side);
	uint8_t garbage[VB__HELLO_BYTES];

	for (int i = 0; i < 5; i++) {
		struct vb__ep *ep = raw_endpoint(side, &settings);
		size_t len = (size_t)i * 12;

		fill(garbage, sizeof(garbage), (uint32_t)i);
		CHECK_EQ(vb__ep_connect(ep, garbage, len, vb__now_ns() + vb__ms(5000), NULL),
			 VB_ERR_REFUSED);
		vb__ep_close(ep);
	}
	rightful_peer(side);
}

/* Some of the silent ones count as connected (over TCP a hello is enough): ask all of them. */
static void patient_server(struct side *side)
{
	struct vb_channel *channels[8];
	struct vb_listener *listener;
	const void *message;
	struct vb_error err;
	int count = 0, rightful = -1;

	side->options.peer_timeout_ms = 2000;
	listener = listen_here(side);
	while (rightful < 0) {
		if (vb_listener_try_accept(listener, &channels[count], &err) == 0)
			count++;
		for (int i = 0; i < count && rightful < 0; i++)
			if (vb_channel_try_recv(channels[i], &message, &err) == 8) {
				CHECK(!memcmp(message, "rightful", 8));
				expect_eof(channels[i]);
				rightful = i;
			}
		sleep_ms(1);
	}
	signal_step(side, 0);
	close_well(channels[rightful]);
	for (int i = 0; i < count; i++)
		if (i != rightful)
			vb_channel_abort(channels[i]);
	vb_listener_close(listener);
}

/* Asks to connect and never confirms. */
static void half_open_client(struct side *side)
{
	struct vb__settings settings = settings_of(side);
	struct vb__ep *silent[5];

	for (int i = 0; i < 5; i++) {
		silent[i] = raw_endpoint(side, &settings);
		raw_connect(silent[i], &good_hello, 0);
	}
	rightful_peer(side);
	await_step(side, 0);
	for (int i = 0; i < 5; i++)
		vb__ep_close(silent[i]);
}

/* It is accepted all the same, as it may have sent something first. */
static void tardy_server(struct side *side)
{
	struct vb_listener *listener = listen_here(side);
	struct vb_channel *ch;
	const void *message;
	struct vb_error err;

	await_step(side, 0);
	ch = accept_one(side, listener);
	CHECK(strstr(vb_channel_peer(ch), side->address));
	CHECK(strstr(vb_channel_description(ch), side->address));
	CHECK_EQ(vb_channel_recv(ch, &message, &err), VB_ERR_LOST);
	CHECK(strstr(err.object, side->address));
	vb_channel_abort(ch);
	vb_listener_close(listener);
}

static void impatient_client(struct side *side)
{
	struct vb_channel *ch;
	struct vb_error err;

	side->options.connect_timeout_ms = 200;
	CHECK_EQ(vb_channel_connect(side->address, port_there(side), &side->options, &ch, &err),
		 VB_ERR_TIMEOUT);
	CHECK(strstr(err.cause, "somebody listens there, and does not answer"));
	CHECK(strstr(err.hint, "stopped or busy"));
	signal_step(side, 0);
}

/* Any listener of the fabric that answers with something else. */
static void serve_raw(struct side *side, const void *answer, size_t len)
{
	struct vb__settings settings = settings_of(side);
	struct vb__ep_attr attr = {
		.send_depth = 16, .recv_depth = 16, .sge = 2, .settings = &settings
	};
	struct vb__address found[VB__ADDRESSES_MAX];
	struct vb__request *request;
	struct vb__completion done;
	struct vb__pep *pep;
	struct vb__ep *ep;

	CHECK(vb__address_resolve(side->address, "0", 0, found, NULL) > 0);
	CHECK_EQ(vb__pep_open(fabric_of(side), &settings, &found[0], &pep, NULL), 0);
	side->shared->port = pep->port;
	sem_post(&side->shared->listening);
	while (vb__pep_next(pep, &request, NULL) == 0)
		sleep_ms(1);
	CHECK_EQ(vb__ep_accept_open(request, &attr, &ep, NULL), 0);
	CHECK_EQ(vb__ep_accept(ep, answer, len, NULL), 0);
	while (ep->state != VB__EP_DOWN) {
		vb__ep_poll(ep, &done, 1);
		vb__ep_arm(ep);
		sleep_ms(1);
	}
	vb__ep_close(ep);
	vb__pep_close(pep);
}

static void foreign_server(struct side *side)
{
	uint8_t garbage[VB__HELLO_BYTES];

	fill(garbage, sizeof(garbage), 1);
	serve_raw(side, garbage, sizeof(garbage));
}

static void foreign_client(struct side *side)
{
	struct vb_channel *ch;
	struct vb_error err;

	CHECK_EQ(vb_channel_connect(side->address, port_there(side), &side->options, &ch, &err),
		 VB_ERR_PROTOCOL);
	CHECK(strstr(err.cause, "does not speak") && err.hint[0]);
}

static void newer_server(struct side *side)
{
	struct vb__hello hello = good_hello;
	uint8_t bytes[VB__HELLO_BYTES];

	hello.kind = VB__HELLO_ACCEPT;
	hello.version = 2;
	vb__hello_encode(bytes, &hello);
	serve_raw(side, bytes, sizeof(bytes));
}

static void newer_client(struct side *side)
{
	struct vb_channel *ch;
	struct vb_error err;

	CHECK_EQ(vb_channel_connect(side->address, port_there(side), &side->options, &ch, &err),
		 VB_ERR_VERSION);
	CHECK(strstr(err.cause, "version 2") && strstr(err.hint, "same version"));
}

static void greedy_server(struct side *side)
{
	struct vb__hello hello = good_hello;
	uint8_t bytes[VB__HELLO_BYTES];

	hello.kind = VB__HELLO_ACCEPT;
	hello.depth = 1000; /* more than was asked for */
	vb__hello_encode(bytes, &hello);
	serve_raw(side, bytes, sizeof(bytes));
}

static void greedy_client(struct side *side)
{
	struct vb_channel *ch;
	struct vb_error err;

	CHECK_EQ(vb_channel_connect(side->address, port_there(side), &side->options, &ch, &err),
		 VB_ERR_PROTOCOL);
}

/* A peer with the right hello and wrong packets. */
static void wary_server(struct side *side)
{
	struct vb_listener *listener = listen_here(side);
	const void *message;
	struct vb_error err;

	for (int i = 0; i < 7; i++) {
		struct vb_channel *ch = accept_one(side, listener);

		CHECK_EQ(vb_channel_recv(ch, &message, &err), VB_ERR_PROTOCOL);
		CHECK(err.cause[0] && err.object[0]);
		CHECK_EQ(vb_channel_close(ch, &err), VB_ERR_PROTOCOL);
		signal_step(side, 0);
	}
	vb_listener_close(listener);
}

static void send_raw(struct vb__ep *ep, const uint8_t *bytes, size_t len)
{
	struct vb__sge sge = { .addr = (void *)bytes, .len = len };
	struct vb__op op = { .kind = VB__OP_SEND, .sge = &sge, .sge_count = 1 };

	CHECK(len <= ep->inline_bytes);
	CHECK_EQ(vb__ep_post(ep, &op, NULL), 0);
}

static void lying_client(struct side *side)
{
	struct vb__settings settings = settings_of(side);
	uint8_t bytes[64], *trailer = bytes + sizeof(bytes) - VB__PACKET_TRAILER;
	/* A trailer, and how many bytes of the packet that ends with it are sent. */
	const struct {
		struct vb__packet packet;
		size_t sent;
	} lies[] = {
		{ { .kind = 9 }, 16 },
		{ { .kind = VB__PACKET_DATA, .messages = 1, .payload = 1000 }, 32 },
		{ { .kind = VB__PACKET_CREDIT, .credits = VB_DEPTH_MAX + 1 }, 16 },
		{ { .kind = VB__PACKET_CREDIT, .seen = 1 }, 16 },
		{ { .kind = VB__PACKET_END_SEEN }, 16 },
		{ { .kind = VB__PACKET_DATA,
		    .flags = VB__PACKET_FRAMED,
		    .messages = 2,
		    .payload = 16 },
		  32 },
		{ { .kind = VB__PACKET_DATA, .messages = 1 }, 7 },
	};

	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct vb__ep *ep = raw_endpoint(side, &settings);

		make_room(ep);
		CHECK_EQ(raw_connect(ep, &good_hello, 5000), 0);
		memset(bytes, 0xff, sizeof(bytes));
		vb__packet_encode(trailer, &lies[i].packet);
		send_raw(ep, bytes + sizeof(bytes) - lies[i].sent, lies[i].sent);
		await_step(side, 0);
		vb__ep_close(ep);
	}
}

static bool is_sent(struct vb__ep *ep)
{
	struct vb__completion done;
	bool found = vb__ep_poll(ep, &done, 1) == 1;

	if (!found) {
		vb__ep_arm(ep);
		sleep_ms(1);
	}
	return found && done.kind == VB__OP_SEND && done.status == VB_OK;
}

/* Nothing is given out, and after that nothing goes. */
static void overwhelmed_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);
	const void *message;
	struct vb_error err;

	signal_step(side, 0);
	CHECK_EQ(vb_channel_recv(ch, &message, &err), VB_ERR_PROTOCOL);
	CHECK(strstr(err.hint, "broken or foreign program"));
	CHECK_EQ(vb_channel_send(ch, "x", 1, &err), VB_ERR_PROTOCOL);
	CHECK_EQ(vb_channel_close(ch, &err), VB_ERR_PROTOCOL);
	signal_step(side, 1);
}

/* Far more than the largest message, in one packet. Of verbs the mocks tell: Soft-RoCE has another status for it. */
static void overwhelming_client(struct side *side)
{
	static uint8_t bytes[1 << 20];
	struct vb__packet packet = { .kind = VB__PACKET_DATA,
				     .messages = 1,
				     .payload = sizeof(bytes) - VB__PACKET_TRAILER };
	struct vb__settings settings = settings_of(side);
	struct vb__ep *ep = raw_endpoint(side, &settings);
	struct vb__sge sge = { .addr = bytes, .len = sizeof(bytes) };
	struct vb__op op = { .kind = VB__OP_SEND, .sge = &sge, .sge_count = 1 };

	CHECK_EQ(vb__mr_open(ep, bytes, sizeof(bytes), VB__ACCESS_LOCAL, &sge.mr, NULL), 0);
	make_room(ep);
	CHECK_EQ(raw_connect(ep, &good_hello, 5000), 0);
	vb__packet_encode(bytes + packet.payload, &packet);
	await_step(side, 0); /* else it is broken before it stands */
	CHECK_EQ(vb__ep_post(ep, &op, NULL), 0);
	while (ep->state != VB__EP_DOWN)
		is_sent(ep);
	await_step(side, 1);
	vb__ep_close(ep);
}

/* More packets than there are credits. */
static void flooded_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);
	const void *message;
	struct vb_error err;
	ssize_t n;

	await_step(side, 0);
	while ((n = vb_channel_recv(ch, &message, &err)) >= 0)
		sleep_ms(50);
	CHECK(n == VB_ERR_PROTOCOL || n == VB_ERR_LOST);
	vb_channel_abort(ch);
}

static void flooding_client(struct side *side)
{
	struct vb__settings settings = settings_of(side);
	struct vb__packet packet = { .kind = VB__PACKET_DATA, .messages = 1 };
	struct vb__ep *ep = raw_endpoint(side, &settings);
	uint8_t bytes[16];
	int sent = 0;

	make_room(ep);
	CHECK_EQ(raw_connect(ep, &good_hello, 5000), 0);
	vb__packet_encode(bytes, &packet);
	for (int i = 0; i < 4; i++)
		send_raw(ep, bytes, sizeof(bytes));
	/* One that comes late, as a lost packet does, comes when there is a credit for it again. */
	while (sent < 4 && ep->state != VB__EP_DOWN)
		sent += is_sent(ep);
	CHECK_EQ(sent, 4);
	sleep_ms(100); /* sent is not there with all fabrics */
	signal_step(side, 0);
	while (ep->state != VB__EP_DOWN)
		is_sent(ep);
	vb__ep_close(ep);
}

static int tcp_connect(struct side *side)
{
	struct vb__address found[VB__ADDRESSES_MAX];
	int fd;

	CHECK(vb__address_resolve(side->address, port_there(side), 0, found, NULL) > 0);
	fd = socket(found[0].sa.ss_family, SOCK_STREAM, 0);
	CHECK_EQ(connect(fd, (struct sockaddr *)&found[0].sa, found[0].len), 0);
	return fd;
}

/* Plain TCP at the port: silence, noise, half a header, a web browser, port scanners. */
static void tcp_stranger_client(struct side *side)
{
	uint8_t noise[4096];
	int fds[8];

	fill(noise, sizeof(noise), 42);
	for (int i = 0; i < 8; i++)
		fds[i] = tcp_connect(side);
	CHECK(send(fds[1], noise, sizeof(noise), MSG_NOSIGNAL) > 0);
	CHECK(send(fds[2], noise, 3, MSG_NOSIGNAL) > 0);
	CHECK(send(fds[3], "GET / HTTP/1.0\r\n\r\n", 18, MSG_NOSIGNAL) > 0);
	close(fds[4]);
	shutdown(fds[5], SHUT_WR);
	send(fds[6], noise, 1, MSG_NOSIGNAL);
	close(fds[6]);
	rightful_peer(side);
	for (int i = 0; i < 8; i++)
		if (i != 4 && i != 6)
			close(fds[i]);
	signal_step(side, 0);
}

const struct test stranger_tests[] = {
	{ "connecting_to_nobody_tells_who_was_tried_and_what_to_do", nobody, absent_client },
	{ "connect_goes_on_until_somebody_listens", late_server, patient_client },
	{ "unknown_name_is_told", nobody, name_client },
	{ "taken_port_is_told", nobody, port_taken_client },
	{ "listener_for_ipv6_only_leaves_ipv4_to_others", nobody, family_client },
	{ "other_version_is_refused_and_the_wait_goes_on", steadfast_server, other_version_client },
	{ "garbage_is_refused_and_the_wait_goes_on", steadfast_server, garbage_client },
	{ "half_open_peers_do_not_disturb_the_wait", patient_server, half_open_client },
	{ "tcp_strangers_do_not_disturb_the_wait", tidy_server, tcp_stranger_client, RETURNS,
	  RETURNS, "ofi" },
	{ "peer_that_left_before_it_was_accepted_has_its_name", tardy_server, impatient_client,
	  RETURNS, RETURNS, "ofi" },
	{ "foreign_listener_is_recognised", foreign_server, foreign_client },
	{ "version_of_a_newer_listener_is_told", newer_server, newer_client },
	{ "listener_that_grants_more_than_asked_is_not_trusted", greedy_server, greedy_client },
	{ "peer_that_breaks_the_protocol_is_told_apart_from_a_lost_one", wary_server,
	  lying_client },
	{ "peer_that_sends_more_than_was_agreed_on_breaks_the_protocol", overwhelmed_server,
	  overwhelming_client, RETURNS, RETURNS, "ofi" },
	{ "peer_that_sends_without_credits_is_stopped", flooded_server, flooding_client },
	{ NULL },
};
