/* SPDX-License-Identifier: Apache-2.0 */
/* What a channel makes of an endpoint that fails: on one whose peer is this test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "channel/channel_state.h"

#define DEPTH 4u
#define QUEUE 64u

struct frail_ep {
	struct vb__ep base;
	enum vb_err post_fails; /* VB_OK: it does not */
	struct vb__op receives[QUEUE];
	uint8_t *memory[QUEUE]; /* of these */
	unsigned posted, arrived, polled;
	struct vb__completion done[QUEUE];
};

static struct frail_ep frail;

static int post(struct vb__ep *ep, const struct vb__op *op, struct vb_error *err)
{
	if (frail.post_fails != VB_OK)
		return vb__fail(err, &(struct vb__failure){ .code = frail.post_fails,
							    .operation = "post" });
	(void)ep;
	if (op->kind == VB__OP_RECV) {
		frail.memory[frail.posted] = op->sge->addr;
		frail.receives[frail.posted++] = *op;
	}
	return 0;
}

static int poll_one(struct vb__ep *ep, struct vb__completion *done, int max)
{
	(void)ep, (void)max;
	if (frail.polled == frail.arrived)
		return 0;
	*done = frail.done[frail.polled++];
	return 1;
}

static int arm(struct vb__ep *ep, bool arrivals_only)
{
	(void)ep, (void)arrivals_only;
	return 0;
}

static void disconnect(struct vb__ep *ep)
{
	vb__ep_down_closed(ep);
}

static void nothing(struct vb__ep *ep)
{
	(void)ep;
}

static const struct vb__fabric fabric = {
	.name = "frail",
	.post = post,
	.poll = poll_one,
	.arm = arm,
	.disconnect = disconnect,
	.wake = nothing,
	.close = nothing,
};

static struct vb_channel *open_channel(void)
{
	const struct vb__settings settings = { .depth = DEPTH, .max_message = 1000 };
	const struct vb__ep_attr attr = vb__channel_ep_attr(&settings);
	struct vb_channel *ch;

	frail = (struct frail_ep){
		.base = { .fabric = &fabric,
			  .state = VB__EP_UP,
			  .wait_fd = -1,
			  .caps = VB__CAP_ANY_BUFFER,
			  .send_depth = attr.send_depth,
			  .recv_depth = attr.recv_depth,
			  .sge = attr.sge,
			  .max_bytes = 1u << 20 },
	};
	assert_int_equal(vb__channel_create(&frail.base, &settings, &ch, NULL), 0);
	vb__channel_agree(ch, 1000, DEPTH);
	return ch;
}

/* It has completed, and nobody has polled. */
static void arrives(const char *message)
{
	struct vb__packet packet = { .kind = VB__PACKET_DATA,
				     .messages = 1,
				     .payload = (uint32_t)strlen(message) };
	uint8_t *to = frail.memory[frail.arrived];

	memcpy(to, message, packet.payload);
	vb__packet_encode(to + packet.payload, &packet);
	frail.done[frail.arrived] =
		(struct vb__completion){ .id = frail.receives[frail.arrived].id,
					 .kind = VB__OP_RECV,
					 .len = packet.payload + VB__PACKET_TRAILER };
	frail.arrived++;
}

static void what_had_arrived_is_received_after_a_post_has_failed(void **state)
{
	struct vb_channel *ch = open_channel();
	const void *message;

	(void)state;
	arrives("one");
	arrives("two");
	frail.post_fails = VB_ERR_LOST;
	assert_int_equal(vb_channel_send(ch, "x", 1, NULL), VB_ERR_LOST);
	assert_int_equal(vb_channel_recv(ch, &message, NULL), 3);
	assert_memory_equal(message, "one", 3);
	assert_int_equal(vb_channel_recv(ch, &message, NULL), 3);
	assert_memory_equal(message, "two", 3);
	assert_int_equal(vb_channel_recv(ch, &message, NULL), VB_ERR_LOST);
	vb_channel_abort(ch);
}

static const enum vb_err going_on[] = { VB_ERR_EOF, VB_ERR_TOO_BIG, VB_ERR_INVALID, VB_ERR_AGAIN,
					VB_ERR_TIMEOUT };

static void no_failed_post_tells_to_go_on(void **state)
{
	(void)state;
	for (unsigned i = 0; i < sizeof(going_on) / sizeof(going_on[0]); i++) {
		struct vb_channel *ch = open_channel();

		frail.post_fails = going_on[i];
		assert_int_equal(vb_channel_send(ch, "x", 1, NULL), VB_ERR_SYSTEM);
		assert_int_equal(vb_channel_send(ch, "x", 1, NULL), VB_ERR_SYSTEM);
		vb_channel_abort(ch);
	}
}

static void no_end_of_the_endpoint_tells_to_go_on(void **state)
{
	(void)state;
	for (unsigned i = 0; i < sizeof(going_on) / sizeof(going_on[0]); i++) {
		struct vb_channel *ch = open_channel();
		const void *message;

		vb__ep_down(&frail.base, &(struct vb__failure){ .code = going_on[i] });
		assert_int_equal(vb_channel_recv(ch, &message, NULL), VB_ERR_SYSTEM);
		assert_int_equal(vb_channel_send(ch, "x", 1, NULL), VB_ERR_SYSTEM);
		vb_channel_abort(ch);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_had_arrived_is_received_after_a_post_has_failed),
		cmocka_unit_test(no_failed_post_tells_to_go_on),
		cmocka_unit_test(no_end_of_the_endpoint_tells_to_go_on),
	};

	return cmocka_run_group_tests_name("channel_failure", tests, NULL, NULL);
}
