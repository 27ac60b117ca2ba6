/* SPDX-License-Identifier: Apache-2.0 */
/* Datagrams: what include/verbatim/dgram.h promises, to one and to a group. */
#include <poll.h>
#include <pthread.h>
#include <time.h>

#include "harness.h"

#define PATIENCE_MS 20000
#define GROUP "239.77.1.2"

/* ---- Beginnings ---- */

static struct vb_dgram_options with(struct side *side, uint32_t receives, bool numbered)
{
	struct vb_dgram_options options = { .connection = side->options,
					    .receives = receives,
					    .numbered = numbered };

	options.connection.connect_timeout_ms = PATIENCE_MS;
	return options;
}

/* NULL: the device has no datagrams, and says so. */
static struct vb_dgram *open_at(struct side *side, const char *port, uint32_t receives,
				bool numbered)
{
	struct vb_dgram_options options = with(side, receives, numbered);
	struct vb_dgram *dgram = NULL;
	struct vb_error err;
	int rc = vb_dgram_open(side->address, port, &options, &dgram, &err);

	if (rc == VB_ERR_UNSUPPORTED) {
		CHECK(err.cause[0] && err.hint[0]);
		skip_test(side, err.cause);
		return NULL;
	}
	if (rc)
		fail_with(&err, "open");
	return dgram;
}

static struct vb_dgram *open_any(struct side *side)
{
	return open_at(side, "0", 0, false);
}

static void publish(struct side *side, const struct vb_dgram *dgram)
{
	side->shared->port = dgram ? vb_dgram_port(dgram) : 0;
	sem_post(&side->shared->listening);
}

static struct vb_dgram *serve(struct side *side, uint32_t receives, bool numbered)
{
	struct vb_dgram *dgram = open_at(side, "0", receives, numbered);

	publish(side, dgram);
	return dgram;
}

static struct vb_dgram_peer *find(struct side *side, struct vb_dgram *dgram)
{
	struct vb_dgram_peer *peer;
	struct vb_error err;

	if (vb_dgram_resolve(dgram, side->address, port_there(side), &peer, &err) != 0)
		fail_with(&err, "resolve");
	return peer;
}

static struct vb_dgram_peer *join(struct vb_dgram *dgram)
{
	struct vb_dgram_peer *peer;
	struct vb_error err;

	if (vb_dgram_join(dgram, GROUP, &peer, &err) != 0)
		fail_with(&err, "join");
	return peer;
}

static void send_it(struct vb_dgram *dgram, struct vb_dgram_peer *peer, const void *bytes,
		    size_t len)
{
	struct vb_error err;

	if (vb_dgram_send(dgram, peer, bytes, len, &err) != 0)
		fail_with(&err, "send");
}

static struct vb_datagram receive(struct vb_dgram *dgram)
{
	struct vb_datagram got;
	struct vb_error err = { .code = VB_OK };

	if (vb_dgram_recv(dgram, PATIENCE_MS, &got, &err) != 0)
		fail_with(&err, "receive");
	return got;
}

static bool says(const struct vb_datagram *got, const char *text)
{
	return got->len == strlen(text) && !memcmp(got->bytes, text, got->len);
}

/* ---- To one ---- */

static size_t sizes_of(const struct vb_dgram *dgram, size_t *sizes)
{
	size_t max = vb_dgram_max(dgram), n = 0;

	for (size_t size = 0; size < 40; size++)
		sizes[n++] = size;
	for (size_t size = 200; size < max; size += 333)
		sizes[n++] = size;
	sizes[n++] = max - 1;
	sizes[n++] = max;
	return n;
}

static void boundaries_server(struct side *side)
{
	struct vb_dgram *dgram = serve(side, 0, false);
	size_t sizes[100], n;

	if (!dgram)
		return;
	n = sizes_of(dgram, sizes);
	for (size_t i = 0; i < n; i++) {
		struct vb_datagram got = receive(dgram);

		CHECK_EQ(got.len, sizes[i]);
		CHECK(is_filled(got.bytes, got.len, (uint32_t)i));
	}
	vb_dgram_close(dgram);
}

static void boundaries_client(struct side *side)
{
	struct vb_dgram *dgram = open_any(side);
	struct vb_dgram_peer *peer;
	struct vb_error err;
	uint8_t bytes[70000];
	size_t sizes[100], n;

	if (!dgram)
		return;
	peer = find(side, dgram);
	CHECK_EQ(vb_dgram_peer_max(peer), vb_dgram_max(dgram));
	n = sizes_of(dgram, sizes);
	for (size_t i = 0; i < n; i++) {
		fill(bytes, sizes[i], (uint32_t)i);
		send_it(dgram, peer, bytes, sizes[i]);
	}
	CHECK_EQ(vb_dgram_send(dgram, peer, bytes, vb_dgram_max(dgram) + 1, &err), VB_ERR_TOO_BIG);
	CHECK(strstr(err.hint, "channel"));
	vb_dgram_close(dgram);
}

/* Answers until it is told to stop. */
static void echo_server(struct side *side)
{
	struct vb_dgram *dgram = serve(side, 0, false);
	struct vb_dgram_peer *kept;
	struct vb_error err;

	for (bool more = dgram; more;) {
		struct vb_datagram got = receive(dgram);

		more = !says(&got, "stop");
		send_it(dgram, got.from, got.bytes, got.len);
		if (more)
			continue;
		if (vb_dgram_keep(dgram, &got, &kept, &err) != 0)
			fail_with(&err, "keep");
		CHECK_EQ(vb_dgram_recv(dgram, 0, &got, &err), VB_ERR_AGAIN);
		send_it(dgram, kept, "kept", 4);
		vb_dgram_peer_close(kept);
	}
	vb_dgram_close(dgram);
}

static void echo_client(struct side *side)
{
	struct vb_dgram *dgram = open_any(side);
	struct vb_dgram_peer *peer;
	struct vb_datagram got;

	if (!dgram)
		return;
	peer = find(side, dgram);
	CHECK(strstr(vb_dgram_peer_text(peer), side->address));
	for (int i = 0; i < 200; i++) {
		char text[16];

		snprintf(text, sizeof(text), "%d", i);
		send_it(dgram, peer, text, strlen(text));
		got = receive(dgram);
		CHECK(says(&got, text));
	}
	vb_dgram_peer_close(peer);
	peer = find(side, dgram);
	send_it(dgram, peer, "stop", 4);
	got = receive(dgram);
	CHECK(says(&got, "stop"));
	got = receive(dgram);
	CHECK(says(&got, "kept"));
	vb_dgram_close(dgram);
}

/* ---- Many ---- */

#define SENDERS 12
#define EACH 10

static void many_server(struct side *side)
{
	struct vb_dgram *dgram = serve(side, 0, false);
	struct vb_dgram_peer *of[SENDERS] = { NULL };
	struct vb_error err;

	for (int i = 0; dgram && i < SENDERS * EACH; i++) {
		struct vb_datagram got = receive(dgram);
		uint8_t who = *(const uint8_t *)got.bytes;

		CHECK(who < SENDERS);
		if (!of[who] && vb_dgram_keep(dgram, &got, &of[who], &err) != 0)
			fail_with(&err, "keep");
		CHECK(!strcmp(vb_dgram_peer_text(of[who]), vb_dgram_peer_text(got.from)) ||
		      !strcmp(vb_dgram_peer_text(got.from), "a sender"));
	}
	for (uint8_t who = 0; dgram && who < SENDERS; who++)
		send_it(dgram, of[who], &who, 1);
	vb_dgram_close(dgram);
}

static void many_client(struct side *side)
{
	struct vb_dgram *dgrams[SENDERS];
	struct vb_dgram_peer *peers[SENDERS];

	for (int i = 0; i < SENDERS; i++) {
		dgrams[i] = open_at(side, "0", 8, false);
		if (!dgrams[i])
			return;
		peers[i] = find(side, dgrams[i]);
	}
	for (int n = 0; n < EACH; n++)
		for (uint8_t i = 0; i < SENDERS; i++)
			send_it(dgrams[i], peers[i], &i, 1);
	for (uint8_t i = 0; i < SENDERS; i++) {
		struct vb_datagram got = receive(dgrams[i]);

		CHECK(got.len == 1 && *(const uint8_t *)got.bytes == i);
		vb_dgram_close(dgrams[i]);
	}
}

/* ---- Losing ---- */

/* More than there is room for, which over UDP is in the kernel as well. */
static uint32_t burst_of(const struct side *side)
{
	return strcmp(side->fabric, "ofi") ? 200 : 5000;
}

/* Nobody reads while they come, and there is little room. */
static void slow_server(struct side *side)
{
	struct vb_dgram *dgram = serve(side, 8, true);
	struct vb_dgram_counters counters;
	struct vb_datagram got;
	struct vb_error err;
	uint32_t lost = 0, last;

	if (!dgram)
		return;
	got = receive(dgram);
	CHECK(says(&got, "begin"));
	signal_step(side, 0);
	await_step(side, 1);
	while (vb_dgram_recv(dgram, 100, &got, &err) == 0)
		lost += got.lost;
	signal_step(side, 2); /* there is room again */
	got = receive(dgram);
	lost += got.lost;
	memcpy(&last, got.bytes, sizeof(last));
	CHECK_EQ(last, burst_of(side));
	vb_dgram_counters(dgram, &counters);
	CHECK(lost > 0);
	CHECK_EQ(counters.lost, lost);
	CHECK_EQ(counters.received + lost, burst_of(side) + 2);
	CHECK_EQ(counters.foreign, 0);
	vb_dgram_close(dgram);
}

static void slow_client(struct side *side)
{
	struct vb_dgram *dgram = open_at(side, "0", 0, true);
	struct vb_dgram_peer *peer;
	uint32_t i;

	if (!dgram)
		return;
	peer = find(side, dgram);
	send_it(dgram, peer, "begin", 5);
	await_step(side, 0);
	for (i = 0; i < burst_of(side); i++)
		send_it(dgram, peer, &i, sizeof(i));
	signal_step(side, 1);
	await_step(side, 2);
	send_it(dgram, peer, &i, sizeof(i));
	vb_dgram_close(dgram);
}

/* ---- Asking ---- */

static void numbers_server(struct side *side)
{
	struct vb_dgram *dgram = serve(side, 0, true);
	struct vb_datagram got;

	if (!dgram)
		return;
	CHECK_EQ(vb_dgram_max(dgram) % 8, 0);
	got = receive(dgram);
	CHECK(says(&got, "numbered"));
	vb_dgram_close(dgram);
}

static void numbers_client(struct side *side)
{
	struct vb_dgram *dgram = open_any(side), *numbered;
	struct vb_dgram_peer *peer;
	struct vb_error err;

	if (!dgram)
		return;
	CHECK_EQ(vb_dgram_resolve(dgram, side->address, port_there(side), &peer, &err),
		 VB_ERR_PROTOCOL);
	CHECK(strstr(err.cause, "it numbers its datagrams"));
	CHECK(strstr(err.hint, "both ends"));
	numbered = open_at(side, "0", 0, true);
	CHECK_EQ(vb_dgram_max(numbered), vb_dgram_max(dgram) - 8);
	send_it(numbered, find(side, numbered), "numbered", 8);
	vb_dgram_close(numbered);
	vb_dgram_close(dgram);
}

static void nobody_server(struct side *side)
{
	struct vb_dgram *dgram = serve(side, 0, false);

	vb_dgram_close(dgram);
	signal_step(side, 0);
}

static void nobody_client(struct side *side)
{
	struct vb_dgram_options options = with(side, 0, false);
	bool told = strcmp(side->fabric, "ofi"); /* libfabric hears nothing; rdma_cm, a no */
	struct vb_dgram *dgram = NULL;
	struct vb_dgram_peer *peer;
	struct timespec began, ended;
	struct vb_error err;

	await_step(side, 0);
	options.connection.connect_timeout_ms = told ? 2000 : 300; /* the first may be slow */
	if (vb_dgram_open(side->address, "0", &options, &dgram, &err) == VB_ERR_UNSUPPORTED)
		return;
	clock_gettime(CLOCK_MONOTONIC, &began);
	CHECK_EQ(vb_dgram_resolve(dgram, side->address, port_there(side), &peer, &err),
		 told ? VB_ERR_REFUSED : VB_ERR_TIMEOUT);
	clock_gettime(CLOCK_MONOTONIC, &ended);
	CHECK(ended.tv_sec - began.tv_sec < 6);
	CHECK(strstr(err.cause, "nobody"));
	vb_dgram_close(dgram);
}

/* Each asks for the other at the same time, so both have to answer while they wait. */
static void mutual(struct side *side, bool first)
{
	struct vb_dgram *dgram = open_any(side);
	struct vb_dgram_peer *peer;
	struct vb_datagram got;
	struct vb_error err;
	char port[16];

	side->shared->number[first] = dgram ? (uint64_t)vb_dgram_port(dgram) : 0;
	signal_step(side, first);
	await_step(side, !first);
	if (!dgram)
		return;
	snprintf(port, sizeof(port), "%d", (int)side->shared->number[!first]);
	if (vb_dgram_resolve(dgram, side->address, port, &peer, &err) != 0)
		fail_with(&err, "resolve");
	send_it(dgram, peer, "hi", 2);
	got = receive(dgram);
	CHECK(says(&got, "hi"));
	vb_dgram_close(dgram);
}
static void mutual_server(struct side *side)
{
	mutual(side, true);
}
static void mutual_client(struct side *side)
{
	mutual(side, false);
}

/* The other one opens later. */
static void late_server(struct side *side)
{
	struct vb_dgram *dgram = serve(side, 0, false);
	struct vb_datagram got;
	char port[16];

	if (!dgram)
		return;
	snprintf(port, sizeof(port), "%d", vb_dgram_port(dgram));
	vb_dgram_close(dgram);
	signal_step(side, 0);
	await_step(side, 1);
	sleep_ms(200); /* most likely it has asked in vain by then */
	dgram = open_at(side, port, 0, false);
	got = receive(dgram);
	CHECK(says(&got, "at last"));
	vb_dgram_close(dgram);
}

static void late_client(struct side *side)
{
	struct vb_dgram *dgram = open_any(side);

	if (!dgram)
		return;
	await_step(side, 0);
	signal_step(side, 1);
	send_it(dgram, find(side, dgram), "at last", 7);
	vb_dgram_close(dgram);
}

/* ---- Waiting ---- */

static void waiting_server(struct side *side)
{
	struct vb_dgram *dgram = serve(side, 0, false);
	struct vb_datagram got;
	struct vb_error err = { .code = VB_OK };
	struct pollfd p;

	if (!dgram)
		return;
	/* Being asked makes the descriptor readable, and nothing to receive. */
	while (vb_dgram_recv(dgram, 30, &got, &err) == VB_ERR_AGAIN && !side->shared->note)
		;
	CHECK_EQ(vb_dgram_recv(dgram, 0, &got, &err), VB_ERR_AGAIN);
	CHECK_EQ(err.code, VB_OK);
	p = (struct pollfd){ .fd = vb_dgram_fd(dgram), .events = POLLIN };
	CHECK_EQ(poll(&p, 1, 0), 0);
	signal_step(side, 0);
	CHECK_EQ(poll(&p, 1, PATIENCE_MS), 1);
	while (vb_dgram_recv(dgram, 0, &got, &err) == VB_ERR_AGAIN)
		CHECK_EQ(poll(&p, 1, PATIENCE_MS), 1);
	CHECK(says(&got, "wake up"));
	vb_dgram_close(dgram);
}

static void waiting_client(struct side *side)
{
	struct vb_dgram *dgram = open_any(side);
	struct vb_dgram_peer *peer;
	struct vb_error err;
	int rc;

	if (!dgram)
		return;
	peer = find(side, dgram);
	side->shared->note = 1;
	await_step(side, 0);
	while ((rc = vb_dgram_try_send(dgram, peer, "wake up", 7, &err)) == VB_ERR_AGAIN)
		;
	CHECK_EQ(rc, 0);
	vb_dgram_close(dgram);
}

/* ---- To a group ---- */

static void group_server(struct side *side)
{
	struct vb_dgram *dgram = serve(side, 0, false);
	struct vb_dgram_peer *group, *again;
	struct vb_datagram got;
	struct vb_error err;

	if (!dgram)
		return;
	group = join(dgram);
	CHECK(strstr(vb_dgram_peer_text(group), "group"));
	CHECK_EQ(vb_dgram_join(dgram, GROUP, &again, &err), VB_ERR_INVALID);
	signal_step(side, 0);
	got = receive(dgram);
	CHECK(says(&got, "to all"));
	send_it(dgram, got.from, "to you", 6);
	send_it(dgram, group, "from the other", 14);
	got = receive(dgram);
	CHECK(says(&got, "go"));
	vb_dgram_peer_close(group);
	signal_step(side, 1);
	got = receive(dgram); /* not what went to the group before it */
	CHECK(says(&got, "to you alone"));
	vb_dgram_close(dgram);
}

static void group_client(struct side *side)
{
	struct vb_dgram *dgram = open_any(side);
	struct vb_dgram_peer *group, *peer;
	struct vb_datagram got;
	bool heard_answer = false, heard_all = false;

	if (!dgram)
		return;
	await_step(side, 0);
	group = join(dgram);
	peer = find(side, dgram);
	send_it(dgram, group, "to all", 6);
	for (int i = 0; i < 2; i++) {
		got = receive(dgram); /* never what was sent here */
		heard_answer |= says(&got, "to you");
		heard_all |= says(&got, "from the other");
	}
	CHECK(heard_answer && heard_all);
	send_it(dgram, peer, "go", 2);
	await_step(side, 1);
	send_it(dgram, group, "to all who are left", 19);
	send_it(dgram, peer, "to you alone", 12);
	vb_dgram_close(dgram);
}

/* Numbers are counted for each destination, so a group's and one's own do not get mixed up; others' are known as such. */
static void group_numbers_server(struct side *side)
{
	struct vb_dgram *dgram = serve(side, 0, true);
	struct vb_dgram_counters counters;
	struct vb_datagram got;

	if (!dgram)
		return;
	join(dgram);
	signal_step(side, 0);
	for (int i = 0; i < 20; i++) {
		got = receive(dgram);
		CHECK(says(&got, i % 2 ? "one" : "all"));
		CHECK_EQ(got.lost, 0);
		CHECK(!got.late);
	}
	vb_dgram_counters(dgram, &counters);
	CHECK_EQ(counters.foreign, 1);
	CHECK_EQ(counters.received, 20);
	CHECK_EQ(counters.lost, 0);
	vb_dgram_close(dgram);
}

static void group_numbers_client(struct side *side)
{
	struct vb_dgram *dgram = open_at(side, "0", 0, true), *other = open_any(side);
	struct vb_dgram_peer *group, *peer;

	if (!dgram)
		return;
	await_step(side, 0);
	send_it(other, join(other), "who is that", 11);
	group = join(dgram);
	peer = find(side, dgram);
	for (int i = 0; i < 10; i++) {
		send_it(dgram, group, "all", 3);
		send_it(dgram, peer, "one", 3);
	}
	vb_dgram_close(other);
	vb_dgram_close(dgram);
}

static void nonsense_server(struct side *side)
{
	struct vb_dgram *dgram = serve(side, 0, false), *other;
	struct vb_dgram_peer *peer;
	struct vb_error err;

	if (!dgram)
		return;
	CHECK_EQ(vb_dgram_join(dgram, side->address, &peer, &err), VB_ERR_INVALID);
	CHECK(strstr(err.cause, "no multicast address"));
	CHECK_EQ(vb_dgram_join(dgram, "nonsense.invalid", &peer, &err), VB_ERR_RESOLVE);
	CHECK_EQ(vb_dgram_resolve(dgram, side->address, "99999", &peer, &err), VB_ERR_RESOLVE);
	other = open_any(side);
	CHECK_EQ(vb_dgram_send(other, find(side, dgram), "x", 1, &err), VB_ERR_INVALID);
	vb_dgram_close(other);
	if (!strcmp(side->fabric, "ofi")) {
		CHECK_EQ(vb_dgram_join(dgram, GROUP, &peer, &err), VB_ERR_UNSUPPORTED);
		CHECK(strstr(err.hint, "verbs"));
	}
	vb_dgram_close(dgram);
}
static void idle_client(struct side *side)
{
	(void)side;
}

/* ---- Threads ---- */

#define THREADS 3
#define PER_THREAD 300u

struct thread {
	struct vb_dgram *dgram;
	struct vb_dgram_peer *peer;
	pthread_t id;
};

static void *send_many(void *arg)
{
	struct thread *t = arg;

	for (uint32_t i = 0; i < PER_THREAD; i++)
		send_it(t->dgram, t->peer, &i, sizeof(i));
	return NULL;
}

/* The answer to what is said last tells how many answers there were. */
static void threads_server(struct side *side)
{
	struct vb_dgram *dgram = serve(side, 1000, true);
	struct vb_dgram_counters counters;
	struct vb_datagram got;
	struct vb_error err;
	char text[32];
	unsigned ends;

	while (dgram && !side->shared->note) {
		int rc = vb_dgram_recv(dgram, 100, &got, &err);

		if (rc == VB_ERR_AGAIN)
			continue;
		CHECK_EQ(rc, 0);
		vb_dgram_counters(dgram, &counters);
		snprintf(text, sizeof(text), "%.*s", (int)got.len, (const char *)got.bytes);
		if (sscanf(text, "end %u", &ends) == 1)
			CHECK_EQ(counters.received + counters.lost, THREADS * PER_THREAD + ends);
		snprintf(text, sizeof(text), "answer %llu", (unsigned long long)counters.sent + 1);
		send_it(dgram, got.from, text, strlen(text) + 1);
	}
	vb_dgram_close(dgram);
}

/* Says that it is the end until there is an answer that comes after it. */
static void end_it(struct vb_dgram *dgram, struct vb_dgram_peer *peer)
{
	struct vb_dgram_counters counters;
	unsigned long long answers = 0;
	struct vb_datagram got;
	struct vb_error err;
	char text[32];

	for (unsigned i = 1; !answers; i++) {
		snprintf(text, sizeof(text), "end %u", i);
		send_it(dgram, peer, text, strlen(text));
		while (vb_dgram_recv(dgram, 500, &got, &err) == 0)
			CHECK_EQ(sscanf(got.bytes, "answer %llu", &answers), 1);
	}
	vb_dgram_counters(dgram, &counters);
	CHECK_EQ(counters.received + counters.lost, answers);
}

/* They send while this one receives the answers. */
static void threads_client(struct side *side)
{
	struct vb_dgram *dgram = open_at(side, "0", 1000, true);
	struct thread threads[THREADS];
	struct vb_dgram_peer *peer;
	struct vb_datagram got;
	struct vb_error err;

	if (!dgram)
		return;
	peer = find(side, dgram);
	for (int i = 0; i < THREADS; i++) {
		threads[i] = (struct thread){ .dgram = dgram, .peer = peer };
		CHECK_EQ(pthread_create(&threads[i].id, NULL, send_many, &threads[i]), 0);
	}
	for (unsigned i = 0; i < PER_THREAD && vb_dgram_recv(dgram, 500, &got, &err) == 0; i++)
		;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i].id, NULL);
	end_it(dgram, peer);
	side->shared->note = 1;
	vb_dgram_close(dgram);
}

/* ---- Where there are none ---- */

/* Some devices have none. */
static void says_so_server(struct side *side)
{
	struct vb_dgram_options options = with(side, 0, false);
	struct vb_dgram *dgram;
	struct vb_error err;
	int rc = vb_dgram_open(side->address, "0", &options, &dgram, &err);

	if (rc) {
		CHECK_EQ(rc, VB_ERR_UNSUPPORTED);
		CHECK(strstr(err.cause, "iWARP has no datagrams"));
		CHECK(strstr(err.hint, "hannels"));
		CHECK(!dgram);
	}
	vb_dgram_close(dgram);
}

const struct test dgram_tests[] = {
	{ "datagrams_keep_their_boundaries", boundaries_server, boundaries_client, 0, 0, NULL },
	{ "datagrams_can_be_answered", echo_server, echo_client, 0, 0, NULL },
	{ "datagrams_of_many_senders_are_told_apart", many_server, many_client, 0, 0, NULL },
	{ "datagrams_that_a_slow_receiver_loses_are_counted", slow_server, slow_client, 0, 0,
	  NULL },
	{ "datagrams_are_numbered_by_both_or_neither", numbers_server, numbers_client, 0, 0, NULL },
	{ "datagrams_to_nobody_are_refused_in_time", nobody_server, nobody_client, 0, 0, NULL },
	{ "datagrams_find_who_is_looking_for_them", mutual_server, mutual_client, 0, 0, NULL },
	{ "datagrams_find_who_comes_later", late_server, late_client, 0, 0, NULL },
	{ "datagrams_wake_whoever_waits_for_them", waiting_server, waiting_client, 0, 0, NULL },
	{ "datagrams_to_a_group_reach_all_others_until_they_leave", group_server, group_client, 0,
	  0, "verbs" },
	{ "datagrams_to_a_group_have_numbers_of_their_own", group_numbers_server,
	  group_numbers_client, 0, 0, "verbs" },
	{ "datagrams_refuse_what_makes_no_sense", nonsense_server, idle_client, 0, 0, NULL },
	{ "it_is_told_where_there_are_no_datagrams", says_so_server, idle_client, 0, 0, NULL },
	{ .name = NULL },
};

const struct test dgram_thread_tests[] = {
	{ "datagrams_of_several_threads_are_all_accounted_for", threads_server, threads_client, 0,
	  0, NULL },
	{ .name = NULL },
};
