/* SPDX-License-Identifier: Apache-2.0 */
/* One-sided memory: put, get, the atomics, notices; one at a time, posted, and by several threads. */
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>

#include "channel/channel_state.h"
#include "memory_side.h"

/* ---- Put and get, with an owner who does nothing ---- */

#define ROOM (300 * KIB)

static void idle_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);
	struct vb_region *region = alloc_well(ch, ROOM);
	uint8_t *memory = vb_region_addr(region);

	for (size_t i = 0; i < ROOM; i++)
		CHECK_EQ(memory[i], 0);
	fill(memory, 100 * KIB, 1);
	grant_and_tell(ch, region, 0, ROOM, ALL_BUT_ATOMIC);
	await_step(side, 0); /* outside of the library */
	CHECK(is_filled(memory + 100 * KIB, 200 * KIB, 2));
	CHECK(is_filled(memory + 3, 40, 3));
	vb_region_close(region);
	close_well(ch);
}

static void idle_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	struct vb_token token = token_well(ch);
	uint8_t *data = malloc(ROOM);
	uint64_t len;
	unsigned rights;

	CHECK_EQ(vb_token_read(&token, &len, &rights, NULL), 0);
	CHECK_EQ(len, ROOM);
	CHECK_EQ(rights, ALL_BUT_ATOMIC);
	get_well(ch, &token, 0, data, 100 * KIB);
	CHECK(is_filled(data, 100 * KIB, 1));
	fill(data, 200 * KIB, 2);
	put_well(ch, &token, 100 * KIB, data, 200 * KIB);
	get_well(ch, &token, 299 * KIB, data, 0);
	fill(data, 40, 3);
	put_well(ch, &token, 3, data, 40);
	memset(data, 0, 40);
	get_well(ch, &token, 3, data, 40);
	CHECK(is_filled(data, 40, 3));
	free(data);
	signal_step(side, 0);
	expect_eof(ch);
	close_well(ch);
}

/* ---- Larger than any one operation of the fabric need be ---- */

#define LARGE (9u << 20)

static void large_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);
	struct vb_region *region = alloc_well(ch, LARGE);

	grant_and_tell(ch, region, 0, LARGE, ALL_BUT_ATOMIC);
	CHECK_EQ(notice_well(ch), 7);
	CHECK(is_filled(vb_region_addr(region), LARGE, 9));
	send_well(ch, "go on", 5);
	expect_eof(ch);
	vb_region_close(region);
	close_well(ch);
}

static void large_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	struct vb_token token = token_well(ch);
	uint8_t *data = malloc(LARGE);
	struct vb_error err;
	const void *message;

	fill(data, LARGE, 9);
	if (vb_put_notify(ch, &token, 0, data, LARGE, 7, &err) != 0)
		fail_with(&err, "put and notify");
	CHECK_EQ(recv_well(ch, &message), 5);
	memset(data, 0, LARGE);
	get_well(ch, &token, 0, data, LARGE);
	CHECK(is_filled(data, LARGE, 9));
	free(data);
	close_well(ch);
}

/* ---- Notices ---- */

#define NOTICES 200u

static void notices_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);
	struct vb_region *region = alloc_well(ch, NOTICES * 8);
	const uint64_t *memory = vb_region_addr(region);
	const void *message;

	grant_and_tell(ch, region, 0, NOTICES * 8, VB_RIGHT_WRITE);
	for (uint32_t i = 0; i < NOTICES; i++) {
		CHECK_EQ(notice_well(ch), i);
		CHECK_EQ(memory[i], i + 1);
		if (i % 10 == 0)
			CHECK_EQ(recv_well(ch, &message), i);
	}
	CHECK_EQ(notice_well(ch), UINT32_MAX); /* without any bytes */
	CHECK_EQ(vb_notice_wait(ch, &(uint32_t){ 0 }, NULL), VB_ERR_EOF);
	vb_region_close(region);
	close_well(ch);
}

static void notices_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	struct vb_token token = token_well(ch);
	uint8_t message[NOTICES] = { 0 };
	struct vb_error err;

	for (uint32_t i = 0; i < NOTICES; i++) {
		uint64_t value = i + 1;

		if (vb_put_notify(ch, &token, i * 8, &value, 8, i, &err) != 0)
			fail_with(&err, "put and notify");
		if (i % 10 == 0)
			send_well(ch, message, i);
	}
	if (vb_put_notify(ch, &token, 0, NULL, 0, UINT32_MAX, &err) != 0)
		fail_with(&err, "notify");
	close_well(ch);
}

static void loop_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);
	struct vb_region *region = alloc_well(ch, 8);
	uint32_t number, next = 0;
	int rc;

	grant_and_tell(ch, region, 0, 8, VB_RIGHT_WRITE);
	while ((rc = vb_notice_try(ch, &number, NULL)) != VB_ERR_EOF) {
		struct pollfd p = { .fd = vb_channel_fd(ch, NULL), .events = POLLIN };

		if (rc == VB_ERR_AGAIN)
			CHECK(poll(&p, 1, 20000) > 0);
		else
			CHECK_EQ(number, next++);
	}
	CHECK_EQ(next, 20);
	vb_region_close(region);
	close_well(ch);
}

static void loop_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	struct vb_token token = token_well(ch);
	struct vb_region *region = alloc_well(ch, 8);
	struct iovec piece = { .iov_base = vb_region_addr(region), .iov_len = 8 };

	for (uint32_t i = 0; i < 20; i++) {
		struct vb_access access = { .kind = VB_PUT_NOTIFY,
					    .token = &token,
					    .pieces = &piece,
					    .count = 1,
					    .number = i };
		int64_t handle = vb_access_post(ch, &access, 1, NULL);

		CHECK(handle > 0);
		while (vb_access_try(ch, handle, NULL) == VB_ERR_AGAIN) {
			struct pollfd p = { .fd = vb_channel_fd(ch, NULL), .events = POLLIN };

			CHECK(poll(&p, 1, 20000) > 0);
		}
	}
	vb_region_close(region);
	close_well(ch);
}

/* ---- Posted: more than fit at once, from several pieces, in order ---- */

#define POSTED 150u
#define PIECE 700u
#define BATCH_BYTES (8u << 20)

static void posted_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);
	struct vb_region *region = alloc_well(ch, POSTED * 2 * PIECE);
	uint8_t *memory = vb_region_addr(region);

	grant_and_tell(ch, region, 0, POSTED * 2 * PIECE, ALL_BUT_ATOMIC);
	CHECK_EQ(notice_well(ch), 1);
	for (unsigned i = 0; i < POSTED; i++) {
		CHECK(is_filled(memory + i * 2 * PIECE, PIECE, i));
		CHECK(is_filled(memory + (i * 2 + 1) * PIECE, PIECE, i + 1));
	}
	expect_eof(ch);
	vb_region_close(region);
	close_well(ch);
}

static void posted_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	struct vb_token token = token_well(ch);
	struct vb_region *region = alloc_well(ch, (POSTED + 1) * PIECE);
	uint8_t *data = vb_region_addr(region);
	struct vb_access accesses[POSTED];
	struct iovec pieces[POSTED][2];
	struct vb_error err;
	int64_t handle;

	for (unsigned i = 0; i <= POSTED; i++)
		fill(data + i * PIECE, PIECE, i);
	for (unsigned i = 0; i < POSTED; i++) {
		pieces[i][0] = (struct iovec){ data + i * PIECE, PIECE };
		pieces[i][1] = (struct iovec){ data + (i + 1) * PIECE, PIECE };
		accesses[i] = (struct vb_access){ .kind = VB_PUT,
						  .token = &token,
						  .offset = i * 2 * PIECE,
						  .pieces = pieces[i],
						  .count = 2 };
	}
	handle = vb_access_post(ch, accesses, POSTED, &err);
	if (handle < 0)
		fail_with(&err, "post puts");
	if (vb_access_wait(ch, handle, &err) != 0)
		fail_with(&err, "wait for puts");
	if (vb_put_notify(ch, &token, 0, NULL, 0, 1, &err) != 0)
		fail_with(&err, "notify");
	memset(data, 0, (POSTED + 1) * PIECE);
	for (unsigned i = 0; i < POSTED; i++) {
		accesses[i].kind = VB_GET;
		accesses[i].count = 1;
	}
	handle = vb_access_post(ch, accesses, POSTED, &err);
	if (handle < 0 || vb_access_wait(ch, handle, &err) != 0)
		fail_with(&err, "gets");
	for (unsigned i = 0; i < POSTED; i++)
		CHECK(is_filled(data + i * PIECE, PIECE, i));
	CHECK_EQ(vb_access_wait(ch, handle + 1, &err), VB_ERR_INVALID);
	vb_region_close(region);
	close_well(ch);
}

/* A batch that fails leaves nothing under way: what is put is what was there when it was posted. */
static void bad_batch_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);
	struct vb_region *region = alloc_well(ch, BATCH_BYTES);

	grant_and_tell(ch, region, 0, BATCH_BYTES, ALL_BUT_ATOMIC);
	CHECK_EQ(notice_well(ch), 1);
	CHECK(is_filled(vb_region_addr(region), BATCH_BYTES, 1));
	expect_eof(ch);
	vb_region_close(region);
	close_well(ch);
}

static void bad_batch_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	struct vb_token token = token_well(ch);
	struct vb_region *region = alloc_well(ch, BATCH_BYTES);
	uint8_t *data = vb_region_addr(region);
	struct iovec piece = { data, BATCH_BYTES };
	struct vb_access good = { .kind = VB_PUT, .token = &token, .pieces = &piece, .count = 1 };
	struct vb_access accesses[2] = { good, good };
	struct vb_error err;

	accesses[1].offset = 1; /* beyond what was granted */
	fill(data, BATCH_BYTES, 1);
	CHECK_EQ(vb_access_post(ch, accesses, 2, &err), VB_ERR_REMOTE_ACCESS);
	memset(data, 0, BATCH_BYTES);
	CHECK_EQ(err.code, VB_ERR_REMOTE_ACCESS);
	if (vb_put_notify(ch, &token, 0, NULL, 0, 1, &err) != 0)
		fail_with(&err, "notify");
	vb_region_close(region);
	close_well(ch);
}

/* Where memory must be registered, posting says so; a call that waits does it itself. */
static void unregistered_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	struct vb_token token = token_well(ch);
	uint8_t *data = malloc(40 * KIB);
	struct iovec piece = { .iov_base = data, .iov_len = 40 * KIB };
	struct vb_access access = { .kind = VB_GET, .token = &token, .pieces = &piece, .count = 1 };
	struct vb_error err;
	int64_t handle = vb_access_post(ch, &access, 1, &err);

	if (ch->ep->caps & VB__CAP_ANY_BUFFER)
		CHECK_EQ(vb_access_wait(ch, handle, &err), 0);
	else
		CHECK_EQ(handle, VB_ERR_INVALID);
	for (int i = 0; i < 3; i++) {
		memset(data, 0, 40 * KIB);
		get_well(ch, &token, 0, data, 40 * KIB);
		CHECK(is_filled(data, 40 * KIB, 1));
	}
	free(data);
	signal_step(side, 0);
	expect_eof(ch);
	close_well(ch);
}

static void lending_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);
	struct vb_region *region = alloc_well(ch, 40 * KIB);

	fill(vb_region_addr(region), 40 * KIB, 1);
	grant_and_tell(ch, region, 0, 40 * KIB, VB_RIGHT_READ);
	await_step(side, 0);
	vb_region_close(region);
	close_well(ch);
}

/* Nobody may write there, and so no device may be asked to be able to. */
static const uint8_t constant[40 * KIB] = { 1, 2, 3 };

static void constant_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);
	struct vb_region *region = alloc_well(ch, sizeof(constant));

	grant_and_tell(ch, region, 0, sizeof(constant), VB_RIGHT_WRITE);
	expect_eof(ch);
	CHECK(memcmp(vb_region_addr(region), constant, sizeof(constant)) == 0);
	vb_region_close(region);
	close_well(ch);
}

static void constant_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	struct vb_token token = token_well(ch);

	put_well(ch, &token, 0, constant, sizeof(constant));
	close_well(ch);
}

/* ---- Atomics ---- */

#define TIMES 100u

static void atomic_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);
	struct vb_region *region = alloc_well(ch, 4 * KIB);
	uint64_t *memory = vb_region_addr(region);
	struct vb_grant *grant;
	struct vb_error err;

	memory[1] = 5;
	if (ch->ep->caps & VB__CAP_ATOMIC) {
		grant_and_tell(ch, region, 0, 4 * KIB, VB_RIGHT_ATOMIC);
		expect_eof(ch);
		CHECK_EQ(memory[1], 1000);
		CHECK_EQ(memory[2], TIMES * 3);
	} else {
		CHECK_EQ(vb_grant(region, 0, 4 * KIB, VB_RIGHT_ATOMIC, &grant, &err),
			 VB_ERR_UNSUPPORTED);
		CHECK(strstr(err.cause, "not supported by"));
		grant_and_tell(ch, region, 0, 4 * KIB, VB_RIGHT_READ);
		expect_eof(ch);
	}
	vb_region_close(region);
	close_well(ch);
}

static void atomic_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	struct vb_token token = token_well(ch);
	uint64_t before = 0;
	struct vb_error err;

	if (!(ch->ep->caps & VB__CAP_ATOMIC)) {
		CHECK_EQ(vb_fetch_add(ch, &token, 8, 1, &before, &err), VB_ERR_UNSUPPORTED);
		CHECK(strstr(err.cause, "not supported by"));
		close_well(ch);
		return;
	}
	CHECK_EQ(vb_compare_swap(ch, &token, 8, 4, 999, &before, &err), 0);
	CHECK_EQ(before, 5);
	CHECK_EQ(vb_compare_swap(ch, &token, 8, 5, 1000, &before, &err), 0);
	CHECK_EQ(before, 5);
	for (unsigned i = 0; i < TIMES; i++) {
		CHECK_EQ(vb_fetch_add(ch, &token, 16, 3, &before, &err), 0);
		CHECK_EQ(before, i * 3);
	}
	CHECK_EQ(vb_fetch_add(ch, &token, 12, 3, &before, &err), VB_ERR_INVALID);
	CHECK_EQ(vb_fetch_add(ch, &token, 4 * KIB, 3, &before, &err), VB_ERR_REMOTE_ACCESS);
	close_well(ch);
}

/* ---- Several threads ---- */

#define THREADS 3u

struct putter {
	struct vb_channel *ch;
	const struct vb_token *token;
	unsigned number;
};

static void *put_much(void *arg)
{
	struct putter *p = arg;
	uint8_t data[3 * KIB];

	for (unsigned i = 0; i < 50; i++) {
		fill(data, sizeof(data), p->number);
		put_well(p->ch, p->token, p->number * sizeof(data), data, sizeof(data));
		memset(data, 0, sizeof(data));
		get_well(p->ch, p->token, p->number * sizeof(data), data, sizeof(data));
		CHECK(is_filled(data, sizeof(data), p->number));
	}
	return NULL;
}

static void threads_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);
	struct vb_region *region = alloc_well(ch, THREADS * 3 * KIB);
	const void *message;

	grant_and_tell(ch, region, 0, THREADS * 3 * KIB, ALL_BUT_ATOMIC);
	for (unsigned i = 0; i < 100; i++)
		CHECK_EQ(recv_well(ch, &message), i);
	expect_eof(ch);
	vb_region_close(region);
	close_well(ch);
}

static void threads_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	struct vb_token token = token_well(ch);
	struct putter putters[THREADS];
	pthread_t threads[THREADS];
	uint8_t message[100] = { 0 };

	for (unsigned i = 0; i < THREADS; i++) {
		putters[i] = (struct putter){ .ch = ch, .token = &token, .number = i };
		CHECK_EQ(pthread_create(&threads[i], NULL, put_much, &putters[i]), 0);
	}
	for (unsigned i = 0; i < 100; i++)
		send_well(ch, message, i);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	close_well(ch);
}

const struct test memory_tests[] = {
	{ "puts_and_gets_need_no_call_of_the_owner", idle_server, idle_client },
	{ "put_and_get_may_be_larger_than_one_operation", large_server, large_client },
	{ "notices_come_behind_their_bytes_and_in_order", notices_server, notices_client },
	{ "notices_and_handles_work_in_event_loops", loop_server, loop_client },
	{ "posted_accesses_are_done_in_order", posted_server, posted_client },
	{ "posted_accesses_that_fail_leave_none_under_way", bad_batch_server, bad_batch_client },
	{ "local_memory_in_no_region_is_registered_for_the_call", lending_server,
	  unregistered_client },
	{ "constants_can_be_put", constant_server, constant_client },
	{ "atomics_count_or_say_that_there_are_none", atomic_server, atomic_client },
	{ NULL },
};

const struct test memory_thread_tests[] = {
	{ "several_threads_put_and_get", threads_server, threads_client },
	{ NULL },
};
