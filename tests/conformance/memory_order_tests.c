/* SPDX-License-Identifier: Apache-2.0 */
/* One-sided memory beside all else: revoked while it is written, notices beside messages, and after the end. */
#include "memory_side.h"

#define MIB (1u << 20)

static struct vb_region *grant_one(struct vb_channel *ch, size_t len, struct vb_grant **grant)
{
	struct vb_region *region = alloc_well(ch, len);

	*grant = grant_and_tell(ch, region, 0, len, VB_RIGHT_WRITE);
	return region;
}

/* Native memory is large enough that the write is under way for a while. */
static size_t much(const struct side *side)
{
	return side->slow ? 2 * MIB : 64 * MIB;
}

static void revoking_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);
	struct vb_grant *grant;
	struct vb_region *region = grant_one(ch, much(side), &grant);
	volatile uint8_t *memory = vb_region_addr(region);

	while (!memory[0])
		;
	vb_revoke(grant);
	memset(vb_region_addr(region), 0, much(side)); /* it is ours alone */
	sleep_ms(300);
	for (size_t i = 0; i < much(side); i += 512)
		CHECK_EQ(memory[i], 0);
	signal_step(side, 0);
	vb_channel_abort(ch);
}

static void revoked_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	struct vb_token token = token_well(ch);
	uint8_t *data = malloc(much(side));
	const void *message;

	memset(data, 7, much(side));
	(void)vb_put(ch, &token, 0, data, much(side),
		     NULL); /* which of the two is first is not told */
	while (vb_channel_recv(ch, &message, NULL) >= 0)
		;
	await_step(side, 0);
	free(data);
	vb_channel_abort(ch);
}

/* As many notices as there are credits, of which the owner takes one, and then wants a message. */
static void mixed_server(struct side *side)
{
	struct vb_grant *grant;
	struct vb_region *region;
	struct vb_channel *ch;
	const void *message;
	uint32_t number;

	side->options.depth = 4;
	ch = serve_one(side);
	region = grant_one(ch, 8, &grant);
	CHECK_EQ(vb_notice_wait(ch, &number, NULL), 0);
	CHECK_EQ(recv_well(ch, &message), 5);
	for (uint32_t i = 1; i < 4; i++) {
		CHECK_EQ(vb_notice_wait(ch, &number, NULL), 0);
		CHECK_EQ(number, i);
	}
	expect_eof(ch);
	vb_region_close(region);
	close_well(ch);
}

static void mixed_client(struct side *side)
{
	struct vb_channel *ch;
	struct vb_token token;

	side->options.depth = 4;
	ch = connect_there(side);
	token = token_well(ch);
	for (uint32_t i = 0; i < 4; i++)
		CHECK_EQ(vb_put_notify(ch, &token, 0, &i, sizeof(i), i, NULL), 0);
	send_well(ch, "hello", 5);
	close_well(ch);
}

static void ended_server(struct side *side)
{
	struct vb_channel *ch = serve_one(side);
	struct vb_grant *grant;
	struct vb_region *region = grant_one(ch, 8, &grant);
	uint32_t number;

	expect_eof(ch);
	CHECK_EQ(vb_notice_wait(ch, &number, NULL), VB_ERR_EOF);
	send_well(ch, "still here", 10);
	vb_region_close(region);
	close_well(ch);
}

static void ended_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);
	struct vb_token token = token_well(ch);
	struct vb_error err;
	const void *message;

	CHECK_EQ(vb_put(ch, &token, 0, NULL, 8, &err), VB_ERR_INVALID);
	CHECK_EQ(vb_channel_finish(ch, &err), 0);
	CHECK_EQ(vb_put_notify(ch, &token, 0, "12345678", 8, 1, &err), VB_ERR_INVALID);
	CHECK_EQ(recv_well(ch, &message), 10);
	expect_eof(ch);
	close_well(ch);
}

const struct test memory_order_tests[] = {
	{ "what_is_revoked_while_it_is_written_is_ours_alone", revoking_server, revoked_client },
	{ "notices_and_messages_do_not_wait_for_each_others_credits", mixed_server, mixed_client },
	{ "notices_after_the_end_are_refused", ended_server, ended_client },
	{ NULL },
};
