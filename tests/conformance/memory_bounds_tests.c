/* SPDX-License-Identifier: Apache-2.0 */
/* One-sided memory's bounds: what was not granted, or not any more, cannot be reached. */
#include <signal.h>
#include <sys/mman.h>

#include "channel/channel_state.h"
#include "core/clock.h"
#ifdef VB_HAVE_VERBS
#include "fabric/verbs/verbs.h"
#endif
#include "memory_side.h"
#include "wire/token.h"

/* The peer's side refuses; where nothing but the end of the connection is heard of it, that may come a little later. */
static void expect_refused(struct vb_channel *ch, const struct vb_token *token, uint64_t offset,
			   uint8_t *data, bool reading)
{
	bool mute = ch->ep->caps & VB__CAP_MUTE;
	struct vb_error err;
	int rc;

	do
		rc = reading ? vb_get(ch, token, offset, data, 4 * KIB, &err)
			     : vb_put(ch, token, offset, data, 4 * KIB, &err);
	while (rc == 0 && mute && !reading);
	CHECK_EQ(rc, mute ? VB_ERR_LOST : VB_ERR_REMOTE_ACCESS);
	CHECK(strstr(err.hint, "granted"));
}

/* ---- What the token tells is refused here, and nothing is broken ---- */

static void told_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);
	struct vb_region *region = alloc_well(ch, 8 * KIB);
	struct vb_error err;
	struct vb_grant *grant;

	CHECK_EQ(vb_grant(region, 4 * KIB, 4 * KIB + 1, VB_RIGHT_READ, &grant, &err),
		 VB_ERR_INVALID);
	CHECK_EQ(vb_grant(region, 0, 0, VB_RIGHT_READ, &grant, &err), VB_ERR_INVALID);
	CHECK_EQ(vb_grant(region, 0, 8, 0, &grant, &err), VB_ERR_INVALID);
	CHECK_EQ(vb_grant(region, 0, 8, 8, &grant, &err), VB_ERR_INVALID);
	grant_and_tell(ch, region, 0, 4 * KIB, VB_RIGHT_READ);
	grant_and_tell(ch, region, 4 * KIB, 4 * KIB, VB_RIGHT_WRITE);
	expect_eof(ch);
	close_well(ch); /* the region goes with it */
}

static void told_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	struct vb_token readable = token_well(ch), writable = token_well(ch), none = { { 0 } };
	uint8_t data[64] = { 0 };
	struct vb_error err;

	CHECK_EQ(vb_put(ch, &readable, 0, data, 1, &err), VB_ERR_REMOTE_ACCESS);
	CHECK_EQ(vb_get(ch, &writable, 0, data, 1, &err), VB_ERR_REMOTE_ACCESS);
	CHECK_EQ(vb_get(ch, &readable, 4 * KIB - 63, data, 64, &err), VB_ERR_REMOTE_ACCESS);
	CHECK(strstr(err.cause, "64 bytes at 4033"));
	CHECK_EQ(vb_get(ch, &readable, UINT64_MAX, data, 64, &err), VB_ERR_REMOTE_ACCESS);
	CHECK_EQ(vb_put(ch, &none, 0, data, 1, &err), VB_ERR_INVALID);
	CHECK_EQ(vb_token_read(&none, NULL, NULL, &err), VB_ERR_INVALID);
	get_well(ch, &readable, 4 * KIB - 64, data, 64);
	put_well(ch, &writable, 4 * KIB - 64, data, 64);
	close_well(ch);
}

/* ---- What the token does not tell is refused over there ---- */

static void revoked_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);
	struct vb_region *region = alloc_well(ch, 64 * KIB);
	struct vb_grant *grant = grant_and_tell(ch, region, 0, 64 * KIB, VB_RIGHT_WRITE);

	CHECK_EQ(notice_well(ch), 1);
	CHECK(is_filled(vb_region_addr(region), 64 * KIB, 1));
	vb_revoke(grant);
	memset(vb_region_addr(region), 0x55, 64 * KIB);
	send_well(ch, "revoked", 7);
	CHECK(await_end(ch) < 0);
	for (size_t i = 0; i < 64 * KIB; i++)
		CHECK_EQ(((uint8_t *)vb_region_addr(region))[i], 0x55);
	vb_region_close(region);
	vb_channel_abort(ch);
}

static void revoked_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	struct vb_token token = token_well(ch);
	uint8_t *data = malloc(64 * KIB);
	struct vb_error err;
	const void *message;

	fill(data, 64 * KIB, 1);
	if (vb_put_notify(ch, &token, 0, data, 64 * KIB, 1, &err) != 0)
		fail_with(&err, "put and notify");
	CHECK_EQ(recv_well(ch, &message), 7);
	expect_refused(ch, &token, 0, data, false);
	expect_refused(ch, &token, 0, data, false); /* it stays so */
	free(data);
	vb_channel_abort(ch);
}

/* The middle of the region is granted; a forged token claims all of it. */
static void forged_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);
	struct vb_region *region = alloc_well(ch, 12 * KIB);

	memset(vb_region_addr(region), 0x55, 12 * KIB);
	grant_and_tell(ch, region, 4 * KIB, 4 * KIB, VB_RIGHT_READ | VB_RIGHT_WRITE);
	CHECK(await_end(ch) < 0);
	for (size_t i = 0; i < 12 * KIB; i++)
		CHECK_EQ(((uint8_t *)vb_region_addr(region))[i], 0x55);
	vb_channel_abort(ch);
}

static void forge(struct vb_token *token, uint64_t len)
{
	struct vb__token_fields fields;

	CHECK(vb__token_decode(&fields, token->bytes));
	fields.len = len;
	vb__token_encode(token->bytes, &fields);
}

static void longer_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	struct vb_token token = token_well(ch);
	uint8_t data[4 * KIB] = { 0 };

	forge(&token, 8 * KIB);
	expect_refused(ch, &token, 4 * KIB, data, false);
	vb_channel_abort(ch);
}

static void reading_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	struct vb_token token = token_well(ch);
	uint8_t data[4 * KIB] = { 0 };

	forge(&token, 8 * KIB);
	expect_refused(ch, &token, 4 * KIB, data, true);
	vb_channel_abort(ch);
}

/* ---- Many grants, given and taken ---- */

static void many_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);
	struct vb_region *region = alloc_well(ch, 64 * KIB);

	grant_well(region, 0, 1, VB_RIGHT_READ); /* goes with its region */
	for (unsigned i = 0; i < 64; i++) {
		struct vb_grant *grant = grant_and_tell(ch, region, i * KIB, KIB, VB_RIGHT_WRITE);

		CHECK_EQ(notice_well(ch), i);
		vb_revoke(grant);
		CHECK(is_filled((uint8_t *)vb_region_addr(region) + i * KIB, KIB, i));
	}
	expect_eof(ch);
	vb_region_close(region);
	close_well(ch);
}

static void many_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	uint8_t data[KIB];
	struct vb_error err;

	for (unsigned i = 0; i < 64; i++) {
		struct vb_token token = token_well(ch);

		fill(data, KIB, i);
		if (vb_put_notify(ch, &token, 0, data, KIB, i, &err) != 0)
			fail_with(&err, "put and notify");
	}
	close_well(ch);
}

#ifdef VB_HAVE_VERBS
/* Soft-RoCE has windows, which are not used there because they do not keep their bounds; all else must work. */
static void windows_server(struct side *side)
{
	verbs_any_windows = true;
	many_server(side);
}

static void revoked_window_server(struct side *side)
{
	verbs_any_windows = true;
	revoked_server(side);
}
#endif

/* ---- Taken back while an access is under way ---- */

#define LARGE (64u * KIB * KIB)
#define SEED 0xaa

static size_t written(const struct vb_region *region)
{
	const volatile uint8_t *at = vb_region_addr(region);
	size_t count = 0;

	for (size_t i = 0; i < LARGE; i += 4 * KIB)
		count += at[i] == SEED;
	return count;
}

/* The first bytes are there: the rest is on its way, or everything has come already. */
static struct vb_region *lend_until_it_is_used(struct vb_channel *ch, struct vb_grant **grant)
{
	struct vb_region *region = alloc_well(ch, LARGE);

	*grant = grant_and_tell(ch, region, 0, LARGE, VB_RIGHT_WRITE);
	while (!written(region))
		sleep_ms(1);
	return region;
}

/* The client has posted and gone away. */
static void underway_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);
	struct vb_grant *grant;
	struct vb_region *region = lend_until_it_is_used(ch, &grant);

	vb_revoke(grant);
	memset(vb_region_addr(region), 0x55, LARGE);
	signal_step(side, 0);
	CHECK(await_end(ch) < 0);
	CHECK_EQ(written(region), 0);
	vb_region_close(region);
	vb_channel_abort(ch);
}

static void posting_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	struct vb_token token = token_well(ch);
	struct vb_region *region = alloc_well(ch, LARGE);
	struct iovec piece = { .iov_base = vb_region_addr(region), .iov_len = LARGE };
	struct vb_access put = { .kind = VB_PUT, .token = &token, .pieces = &piece, .count = 1 };
	struct vb_error err;
	int64_t handle;

	memset(vb_region_addr(region), SEED, LARGE);
	handle = vb_access_post(ch, &put, 1, &err);
	CHECK(handle > 0);
	await_step(side, 0);
	sleep_ms(100); /* as long as it likes to be away */
	(void)vb_access_wait(ch, handle, &err);
	vb_channel_abort(ch);
}

/* The client is stopped, and may stay so for longer than the peer time-out. */
static void stopping_server(struct side *side)
{
	struct vb_channel *ch;
	struct vb_region *region;
	struct vb_grant *grant;
	struct vb_error err;
	uint8_t *addr, *next;

	side->options.peer_timeout_ms = 1000;
	ch = serve_one(side);
	region = lend_until_it_is_used(ch, &grant);
	kill(side->shared->client, SIGSTOP);
	addr = vb_region_addr(region);
	vb_region_close(region);
	next = mmap(addr, LARGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	CHECK(next == addr);
	kill(side->shared->client, SIGCONT);
	if (vb_channel_send(ch, "go on", 5, &err) != 0)
		CHECK_EQ(err.code, VB_ERR_LOST);
	while (vb_channel_recv(ch, &(const void *){ NULL }, NULL) >= 0)
		;
	for (size_t i = 0; i < LARGE; i += 4 * KIB)
		CHECK_EQ(next[i], 0);
	vb_channel_abort(ch);
}

static void putting_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	struct vb_token token = token_well(ch);
	uint8_t *data = malloc(LARGE);
	struct vb_error err;

	memset(data, SEED, LARGE);
	while (vb_put(ch, &token, 0, data, LARGE, &err) == 0)
		;
	free(data);
	vb_channel_abort(ch);
}

/* Who was granted memory and does not care is waited for by nobody. */
static void idle_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);
	struct vb_region *region = alloc_well(ch, 64 * KIB);
	uint64_t before;

	grant_and_tell(ch, region, 0, KIB, VB_RIGHT_WRITE);
	before = vb__now_ns();
	for (unsigned i = 0; i < 100; i++)
		vb_revoke(grant_well(region, 0, KIB, VB_RIGHT_WRITE));
	vb_region_close(region);
	CHECK(vb__now_ns() - before < vb__ms(5000)); /* a hundred seconds, if it were */
	signal_step(side, 0);
	expect_eof(ch);
	close_well(ch);
}

static void idle_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);

	token_well(ch);
	await_step(side, 0);
	close_well(ch);
}

/* ---- The owner dies ---- */

static void dying_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);
	struct vb_region *region = alloc_well(ch, 64 * KIB);

	grant_and_tell(ch, region, 0, 64 * KIB, VB_RIGHT_WRITE);
	notice_well(ch);
	raise(SIGKILL);
}

static void survivor_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	struct vb_token token = token_well(ch);
	uint8_t data[64] = { 0 };
	struct vb_error err;
	int rc = vb_put_notify(ch, &token, 0, data, sizeof(data), 1, &err);

	while (rc == 0)
		rc = vb_put(ch, &token, 0, data, sizeof(data), &err);
	/* Its memory may be seen to go before the connection does. */
	CHECK(rc == VB_ERR_LOST || rc == VB_ERR_REMOTE_ACCESS);
	CHECK_EQ(vb_get(ch, &token, 0, data, 1, &err), VB_ERR_REMOTE_ACCESS); /* no such right */
	vb_channel_abort(ch);
}

const struct test memory_bounds_tests[] = {
	{ "what_the_token_tells_is_refused_before_it_is_posted", told_server, told_client },
	{ "revoked_memory_cannot_be_written", revoked_server, revoked_client },
	{ "memory_behind_the_grant_cannot_be_written", forged_server, longer_client },
	{ "memory_behind_the_grant_cannot_be_read", forged_server, reading_client },
	{ "many_grants_are_given_and_taken", many_server, many_client },
	{ "nothing_is_written_after_the_revoke_by_a_peer_that_is_elsewhere", underway_server,
	  posting_client },
	{ "nothing_is_written_after_the_close_by_a_peer_that_is_stopped", stopping_server,
	  putting_client },
	{ "revoking_what_was_never_used_takes_no_time", idle_server, idle_client },
	{ "dead_owner_is_noticed", dying_server, survivor_client, .server_fate = DIES },
#ifdef VB_HAVE_VERBS
	{ "windows_are_bound_and_unbound", windows_server, many_client, .only = "verbs" },
	{ "revoked_window_cannot_be_written", revoked_window_server, revoked_client,
	  .only = "verbs" },
#endif
	{ NULL },
};
