/* SPDX-License-Identifier: Apache-2.0 */
/* Passes: whom a listener expects, and what it grants them. */
#include <errno.h>

#include "channel/channel_state.h"
#include "channel/inside.h"
#include "harness.h"

static struct vb__pass pass_of(uint8_t number)
{
	struct vb__pass pass = { .max_message = 50000u + number, .depth = 7 };

	memset(pass.token, number, sizeof(pass.token));
	return pass;
}

/* The listener's own limits are small. */
static struct vb_listener *expecting(struct side *side, const struct vb__pass *passes, unsigned n)
{
	struct vb_listener *listener;

	side->options.max_message_bytes = 4096;
	side->options.depth = 4;
	listener = listen_here(side);
	vb__listener_expect(listener, passes, n);
	return listener;
}

/* With the token that consists of this byte; 0 is none. */
static int connect_by(struct side *side, uint8_t token, enum vb__traffic traffic,
		      struct vb_channel **ch, struct vb_error *err)
{
	struct vb__settings settings;

	side->options.max_message_bytes = 1 << 20;
	side->options.depth = 32;
	CHECK_EQ(vb__settings_from(&settings, &side->options, NULL), 0);
	memset(settings.token, token, sizeof(settings.token));
	settings.traffic = traffic;
	*err = (struct vb_error){ .code = VB_OK };
	return vb__channel_connect(side->address, port_there(side), &settings, ch, err);
}

static struct vb_channel *come_in_by(struct side *side, uint8_t token)
{
	struct vb_channel *ch;
	struct vb_error err;

	if (connect_by(side, token, VB__TRAFFIC_BOTH, &ch, &err) != 0)
		fail_with(&err, "connect with a token");
	return ch;
}

static void expect_refusal(struct side *side, uint8_t token)
{
	uint32_t patience_ms = side->options.connect_timeout_ms;
	struct vb_channel *ch;
	struct vb_error err;
	int rc;

	side->options.connect_timeout_ms = side->slow ? 2000 : 300;
	do /* on a busy machine the time may be over before there is an answer */
		rc = connect_by(side, token, VB__TRAFFIC_BOTH, &ch, &err);
	while (rc == VB_ERR_TIMEOUT);
	CHECK_EQ(rc, VB_ERR_REFUSED);
	CHECK(strstr(err.cause, "does not expect us"));
	CHECK(strstr(err.hint, "begin again"));
	side->options.connect_timeout_ms = patience_ms;
}

/* Answers whoever comes, none of whom may be let in, until the other side says so. */
static void refuse_until_step(struct side *side, struct vb_listener *listener, int step)
{
	struct vb_channel *ch;

	while (sem_trywait(&side->shared->step[step]) != 0) {
		CHECK_EQ(vb_listener_try_accept(listener, &ch, NULL), VB_ERR_AGAIN);
		sleep_ms(1);
	}
}

static void accept_by(struct side *side, struct vb_listener *listener, int pass, uint32_t max,
		      unsigned depth)
{
	struct vb_channel *ch = accept_one(side, listener);

	CHECK_EQ(vb__channel_pass(ch), pass);
	CHECK_EQ(vb_channel_max_message(ch), max);
	CHECK_EQ(vb_channel_depth(ch), depth);
	expect_eof(ch);
	close_well(ch);
}

static void limits_server(struct side *side)
{
	const struct vb__pass passes[] = { pass_of(1), pass_of(2) };
	struct vb_listener *listener = expecting(side, passes, 2);

	accept_by(side, listener, 1, 50002, 7);
	accept_by(side, listener, -1, 4096, 4);
	accept_by(side, listener, 0, 50001, 7);
	vb_listener_close(listener);
}

static void limits_client(struct side *side)
{
	const uint8_t tokens[] = { 2, 0, 1 };
	const uint32_t max[] = { 50002, 4096, 50001 }, depth[] = { 7, 4, 7 };

	for (int i = 0; i < 3; i++) {
		struct vb_channel *ch = come_in_by(side, tokens[i]);

		CHECK_EQ(vb_channel_max_message(ch), max[i]);
		CHECK_EQ(vb_channel_depth(ch), depth[i]);
		close_well(ch);
	}
}

static void once_server(struct side *side)
{
	const struct vb__pass pass = pass_of(5);
	struct vb_listener *listener = expecting(side, &pass, 1);

	accept_by(side, listener, 0, 50005, 7);
	refuse_until_step(side, listener, 0);
	accept_by(side, listener, -1, 4096, 4);
	vb_listener_close(listener);
}

static void once_client(struct side *side)
{
	close_well(come_in_by(side, 5));
	expect_refusal(side, 5);
	signal_step(side, 0);
	close_well(come_in_by(side, 0));
}

static void wrong_server(struct side *side)
{
	const struct vb__pass pass = pass_of(5);
	struct vb_listener *listener = expecting(side, &pass, 1);

	refuse_until_step(side, listener, 0);
	accept_by(side, listener, 0, 50005, 7);
	vb_listener_close(listener);
}

static void wrong_client(struct side *side)
{
	expect_refusal(side, 6);
	signal_step(side, 0);
	close_well(come_in_by(side, 5));
}

static void replaced_server(struct side *side)
{
	const struct vb__pass first = pass_of(1), second = pass_of(2);
	struct vb_listener *listener = expecting(side, &first, 1);

	vb__listener_expect(listener, &second, 1);
	refuse_until_step(side, listener, 0);
	accept_by(side, listener, 0, 50002, 7);
	vb__listener_expect(listener, &second, 1); /* it is good for once more */
	accept_by(side, listener, 0, 50002, 7);
	vb__listener_expect(listener, NULL, 0);
	refuse_until_step(side, listener, 1);
	vb_listener_close(listener);
}

static void replaced_client(struct side *side)
{
	expect_refusal(side, 1);
	signal_step(side, 0);
	close_well(come_in_by(side, 2));
	close_well(come_in_by(side, 2));
	expect_refusal(side, 2);
	signal_step(side, 1);
}

#define MESSAGES 20u

static void send_all(struct vb_channel *ch)
{
	struct vb_error err = { .code = VB_OK };
	struct vb__loan loan;

	for (uint32_t i = 0; i < MESSAGES; i++) {
		CHECK_EQ(vb__channel_borrow(ch, &loan, &err), 0);
		fill(loan.data, 50000, i);
		CHECK_EQ(vb__channel_send_loan(ch, &loan, 50000, &err), 0);
	}
	CHECK_EQ(vb_channel_finish(ch, &err), 0);
}

static void receive_all(struct vb_channel *ch)
{
	struct vb_error err = { .code = VB_OK };
	struct vb__loan loan;

	for (uint32_t i = 0; i < MESSAGES; i++) {
		CHECK_EQ(vb__channel_recv_loan(ch, &loan, &err), 0);
		CHECK(loan.bytes == 50000 && is_filled(loan.data, 50000, i));
		vb__channel_give_back(ch, &loan);
	}
	CHECK_EQ(vb__channel_recv_loan(ch, &loan, &err), VB_ERR_EOF);
}

/* Where no messages go there is a page for each packet at most. */
static void carry(struct vb_channel *ch, enum vb__traffic traffic)
{
	struct vb__slots *idle = traffic == VB__TRAFFIC_OUT ? &ch->rx : &ch->tx;
	struct vb__slots *busy = traffic == VB__TRAFFIC_OUT ? &ch->tx : &ch->rx;

	CHECK(idle->memory_bytes <= idle->count * 4096u);
	CHECK(busy->memory_bytes >= vb_channel_depth(ch) * 50000u);
	(traffic == VB__TRAFFIC_OUT ? send_all : receive_all)(ch);
	close_well(ch); /* aborted, it might not confirm the end */
}

static void one_way_server(struct side *side)
{
	struct vb__pass passes[] = { pass_of(1), pass_of(2) };
	struct vb_listener *listener;

	passes[0].traffic = VB__TRAFFIC_IN;
	passes[1].traffic = VB__TRAFFIC_OUT;
	listener = expecting(side, passes, 2);
	carry(accept_one(side, listener), VB__TRAFFIC_IN);
	carry(accept_one(side, listener), VB__TRAFFIC_OUT);
	vb_listener_close(listener);
}

static void one_way_client(struct side *side)
{
	struct vb_channel *ch;
	struct vb_error err;

	CHECK_EQ(connect_by(side, 1, VB__TRAFFIC_OUT, &ch, &err), 0);
	carry(ch, VB__TRAFFIC_OUT);
	CHECK_EQ(connect_by(side, 2, VB__TRAFFIC_IN, &ch, &err), 0);
	carry(ch, VB__TRAFFIC_IN);
}

const struct test pass_tests[] = {
	{ "token_of_a_pass_gets_its_limits_and_none_the_listeners", limits_server, limits_client },
	{ "token_is_good_for_one_connection", once_server, once_client },
	{ "wrong_token_is_refused_and_the_wait_goes_on", wrong_server, wrong_client },
	{ "new_expectations_replace_the_old", replaced_server, replaced_client },
	{ "one_way_channels_carry_messages_and_take_less_memory", one_way_server, one_way_client },
	{ NULL },
};
