/* SPDX-License-Identifier: Apache-2.0 */
/* Servers: what one client does, or all of them at once, is no concern of the others. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "core/clock.h"
#include "core/settings.h"
#include "fabric/fabric.h"
#include "server_side.h"
#include "wire/hello.h"

/* ---- The unpleasant ---- */

static void undisturbed_server(struct side *side)
{
	struct vb_server_options options = { .connection.peer_timeout_ms = 20000 };
	struct vb_server *server = server_here(side, &options);
	struct vb_server_event event;
	unsigned lost = 0;

	do {
		event = next_event(server);
		lost += event.kind == VB_CLIENT_LEFT && event.why.code != VB_ERR_EOF;
		/* What strangers say is empty; they are gone before they could be answered. */
		if (event.kind == VB_CLIENT_MESSAGE && event.len)
			send_well(event.client, event.message, event.len);
	} while (event.kind != VB_CLIENT_LEFT || event.why.code != VB_ERR_EOF);
	side->shared->number[0] = lost;
	vb_server_close(server);
}

/* A peer that speaks below the channel: its packets are what it likes. */
static struct vb__ep *stranger(struct side *side, struct vb__settings *settings)
{
	static const struct vb__hello hello = { .kind = VB__HELLO_OPEN,
						.version = VB__PROTOCOL_VERSION,
						.max_message = 4096,
						.depth = 2 };
	struct vb__ep_attr attr = {
		.send_depth = 64, .recv_depth = 16, .sge = 2, .settings = settings
	};
	struct vb__address found[VB__ADDRESSES_MAX];
	uint8_t bytes[VB__HELLO_BYTES];
	struct vb__ep *ep;

	CHECK_EQ(vb__settings_from(settings, &side->options, NULL), 0);
	CHECK(vb__address_resolve(side->address, port_there(side), 0, found, NULL) > 0);
	CHECK_EQ(vb__ep_open(fabric_of(side), &attr, &found[0], vb__now_ns() + vb__ms(5000), &ep,
			     NULL),
		 0);
	make_room(ep);
	vb__hello_encode(bytes, &hello);
	CHECK_EQ(vb__ep_connect(ep, bytes, sizeof(bytes), vb__now_ns() + vb__ms(5000), NULL), 0);
	return ep;
}

static void shout(struct vb__ep *ep, const void *packet, size_t len, unsigned times)
{
	static uint8_t memory[8192];
	struct vb__completion done[16];
	struct vb__mr *mr = NULL;
	struct vb__sge sge = { .addr = memory, .len = len };
	struct vb__op op = { .kind = VB__OP_SEND, .sge = &sge, .sge_count = 1 };

	memcpy(memory, packet, len);
	if (!(ep->caps & VB__CAP_ANY_BUFFER))
		CHECK_EQ(vb__mr_open(ep, memory, sizeof(memory), VB__ACCESS_LOCAL, &mr, NULL), 0);
	sge.mr = mr;
	for (unsigned i = 0; i < times && vb__ep_post(ep, &op, NULL) == 0; i++)
		vb__ep_poll(ep, done, 16);
}

static void garbage_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	uint8_t garbage[100], flood[16] = { 1, 0, 0, 0, 1 };
	struct vb__settings settings;
	struct vb__ep *ep[3];

	talk_once(ch, 0);
	fill(garbage, sizeof(garbage), 3);
	for (int i = 0; i < 3; i++)
		ep[i] = stranger(side, &settings);
	shout(ep[0], garbage, sizeof(garbage), 1);
	shout(ep[1], flood, sizeof(flood), 40); /* good packets, more than it has credits for */
	for (uint32_t i = 1; i < 50; i++)
		talk_once(ch, i);
	for (int i = 0; i < 3; i++)
		vb__ep_close(ep[i]);
	for (uint32_t i = 50; i < 60; i++)
		talk_once(ch, i);
	close_well(ch);
}

/* The same, when all of it is there before the server looks, and more than there are receives for. */
static void late_server(struct side *side)
{
	struct vb_server *server = plain_server(side);
	struct vb_server_event event;
	int came = 0, left = 0;

	while (came < 3)
		came += next_event(server).kind == VB_CLIENT_JOINED;
	signal_step(side, 0);
	await_step(side, 1);
	while (left < 2) {
		event = next_event(server);
		if (event.kind == VB_CLIENT_MESSAGE && event.len)
			send_well(event.client, event.message, event.len);
		left += event.kind == VB_CLIENT_LEFT && event.why.code == VB_ERR_EOF;
	}
	vb_server_close(server);
}

static void flooding_client(struct side *side)
{
	uint8_t flood[16] = { 1, 0, 0, 0, 1 };
	struct vb_channel *ch[2];
	struct vb__settings settings;
	struct vb__ep *ep;

	ch[0] = connect_there(side);
	ep = stranger(side, &settings);
	ch[1] = connect_there(side);
	await_step(side, 0);
	shout(ep, flood, sizeof(flood), 20);
	for (int i = 0; i < 2; i++)
		send_well(ch[i], "hello", 5);
	signal_step(side, 1);
	for (int i = 0; i < 2; i++) {
		const void *message;

		CHECK_EQ(recv_well(ch[i], &message), 5);
		close_well(ch[i]);
	}
	vb__ep_close(ep);
}

/* One that never takes its messages: only what is sent to it waits. */
static void deaf_server(struct side *side)
{
	struct vb_server *server = plain_server(side);
	struct vb_channel *deaf = NULL;
	struct vb_server_event event;
	struct vb_error err;
	int rc;

	for (;;) {
		event = next_event(server);
		if (event.kind == VB_CLIENT_LEFT)
			break;
		if (event.kind == VB_CLIENT_MESSAGE && event.len == 4)
			deaf = event.client;
		else if (event.kind == VB_CLIENT_MESSAGE)
			send_well(event.client, event.message, event.len);
		if (!deaf)
			continue;
		while ((rc = vb_channel_try_send(deaf, "listen!", 7, &err)) == 0)
			;
		CHECK_EQ(rc, VB_ERR_AGAIN);
	}
	CHECK_EQ(event.why.code, VB_ERR_EOF);
	CHECK(event.client != deaf);
	vb_server_close(server);
}

static void deaf_client(struct side *side)
{
	struct vb_channel *deaf = connect_there(side), *ch = connect_there(side);

	send_well(deaf, "deaf", 4);
	for (uint32_t i = 0; i < 20; i++)
		talk_once(ch, i);
	close_well(ch);
	vb_channel_abort(deaf);
}

static void count_low(void *arg, enum vb_log_level level, const char *line)
{
	if (level == VB_LOG_WARNING && strstr(line, "the receives that clients share run low"))
		++*(unsigned *)arg;
}

/* Pools are of verbs, and iWARP has none. */
static bool has_pools(const char *device)
{
	struct vb_device *list, *d;
	bool found;

	CHECK_EQ(vb_device_list(&list, NULL), 0);
	for (d = list; d && strcmp(d->name, device) != 0;)
		d = d->next;
	found = d && d->ports && d->ports->wire != VB_WIRE_IWARP;
	vb_device_free(list);
	return found;
}

/* All send all they may before anybody is heard, and the pool has room for a few only: of which the device tells. */
static void small_pool_server(struct side *side)
{
	unsigned told = 0;
	struct vb_server_options options = {
		.connection = { .depth = 8, .log = count_low, .log_arg = &told },
		.shared_receives = 16,
	};
	struct vb_server *server = server_here(side, &options);
	bool pools = false;

	for (unsigned i = 0; i < crowd_size(side); i++) {
		struct vb_server_event event = expect_event(server, VB_CLIENT_JOINED);

		pools = has_pools(vb_channel_device(event.client));
	}
	signal_step(side, 0);
	await_step(side, 1);
	echo_until_left(server, crowd_size(side));
	nobody_is_left(server);
	CHECK_EQ(told > 0, pools);
	CHECK(told < 10); /* a crowd is one notice in a while */
}

static void small_pool_client(struct side *side)
{
	struct vb_channel *ch[CROWD_MAX];
	unsigned n = crowd_size(side);

	side->options.depth = 8;
	connect_crowd(side, ch, n);
	for (unsigned i = 0; i < n; i++) /* where the side that accepts waits for a word */
		CHECK_EQ(vb_channel_depth(ch[i]), 8);
	await_step(side, 0);
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t r = 0; r < 8; r++)
			send_marked(ch[i], i, r, length_of(i, r));
	signal_step(side, 1);
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t r = 0; r < 8; r++)
			take_marked(ch[i], i, r, length_of(i, r));
	close_crowd(ch, n);
}

/* ---- Children ---- */

/* It holds all that is open here, and is gone with this process at the latest. */
static pid_t bear_child(void)
{
	pid_t parent = getpid(), child = fork();

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (getppid() == parent)
			pause();
		_exit(0);
	}
	CHECK(child > 0);
	return child;
}

/* Whoever has left does not wake it any more; what is on its way may do so, for a while. */
static void expect_quiet(struct vb_server *server)
{
	struct pollfd fd = { .fd = vb_server_fd(server), .events = POLLIN };
	struct vb_server_event event;
	int in_vain = 0;

	do {
		CHECK_EQ(vb_server_wait(server, 0, &event, NULL), VB_ERR_AGAIN);
		CHECK(in_vain++ < 1000);
	} while (poll(&fd, 1, 100) > 0);
}

/* The child has copies of the descriptors: those of a client that left stay open. */
static void parent_server(struct side *side)
{
	struct vb_server *server = plain_server(side);
	pid_t child;

	expect_event(server, VB_CLIENT_JOINED);
	expect_event(server, VB_CLIENT_MESSAGE);
	child = bear_child();
	signal_step(side, 0);
	expect_event(server, VB_CLIENT_LEFT);
	expect_quiet(server);
	signal_step(side, 1);
	echo_until_left(server, 1);
	nobody_is_left(server);
	kill(child, SIGKILL);
	CHECK_EQ(waitpid(child, NULL, 0), child);
}

static void visiting_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);

	send_well(ch, "hello", 5);
	await_step(side, 0);
	close_well(ch);
	await_step(side, 1);
	ch = connect_there(side);
	for (uint32_t i = 0; i < 10; i++)
		talk_once(ch, i);
	close_well(ch);
}

const struct test server_trouble_tests[] = {
	{ "server_is_not_disturbed_by_garbage", undisturbed_server, garbage_client },
	{ "server_is_not_disturbed_by_a_flood", late_server, flooding_client },
	{ "server_is_not_held_up_by_one_that_takes_nothing", deaf_server, deaf_client },
	{ "server_with_a_child_forgets_who_has_left", parent_server, visiting_client },
	{ "server_with_a_small_pool_gets_everything", small_pool_server, small_pool_client },
	{ NULL },
};

/* ---- Threads ---- */

struct answering {
	struct vb_channel *client;
	unsigned messages;
};

static void *answer(void *arg)
{
	struct answering *a = arg;

	for (uint32_t i = 0; i < a->messages; i++)
		send_marked(a->client, 0, i, length_of(0, i));
	return NULL;
}

/* One thread waits, others send to the clients that it hears. */
static void threads_server(struct side *side)
{
	struct vb_server *server = plain_server(side);
	struct answering answering[4];
	unsigned started = 0, heard = 0, left = 0, messages = side->slow ? 50 : 500;
	struct vb_server_event event;
	pthread_t threads[4];

	while (left < 4) {
		event = next_event(server);
		heard += event.kind == VB_CLIENT_MESSAGE;
		if (event.kind == VB_CLIENT_JOINED) {
			answering[started] = (struct answering){ event.client, messages };
			*event.user = &threads[started];
			CHECK_EQ(pthread_create(&threads[started], NULL, answer,
						&answering[started]),
				 0);
			started++;
		}
		if (event.kind == VB_CLIENT_LEFT) {
			pthread_join(*(pthread_t *)*event.user, NULL);
			left++;
		}
	}
	CHECK_EQ(heard, 4 * messages);
	nobody_is_left(server);
}

static void threads_client(struct side *side)
{
	unsigned messages = side->slow ? 50 : 500;
	struct vb_channel *ch[4];

	connect_crowd(side, ch, 4);
	for (uint32_t i = 0; i < messages; i++)
		for (int k = 0; k < 4; k++) {
			send_marked(ch[k], 0, i, length_of(1, i));
			take_marked(ch[k], 0, i, length_of(0, i));
		}
	close_crowd(ch, 4);
}

const struct test server_thread_tests[] = {
	{ "server_waits_in_one_thread_while_others_send", threads_server, threads_client },
	{ NULL },
};
