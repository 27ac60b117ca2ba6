/* SPDX-License-Identifier: Apache-2.0 */
/* Which ways to a listener are tried, in which order, for how long, and what is told of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <verbatim/channel.h>

#include "channel/inside.h"
#include "core/clock.h"
#include "paper_fabrics.h"

#define NOBODY "nobody listens there"

static int start(void **state)
{
	(void)state;
	unsetenv("VB_FABRIC");
	unsetenv("VB_WIREUP");
	paper_reset();
	return 0;
}

/* The listener is said to be up, so that each way is tried once. */
static struct vb_options options_of(enum vb_fabric fabric)
{
	return (struct vb_options){ .fabric = fabric,
				    .listener_is_up = 1,
				    .connect_timeout_ms = 40000 };
}

static struct vb_channel *connect_by(const struct vb_options *options)
{
	struct vb_error err = { .code = VB_OK };
	struct vb_channel *channel = NULL;

	if (vb_channel_connect("127.0.0.1", "7471", options, &channel, &err) != 0)
		fail_msg("%s: %s", err.operation, err.cause);
	return channel;
}

static int fail_by(const struct vb_options *options, struct vb_error *err)
{
	struct vb_channel *channel = NULL;

	*err = (struct vb_error){ .code = VB_OK };
	return vb_channel_connect("127.0.0.1", "7471", options, &channel, err);
}

static void assert_says(const char *text, const char *words)
{
	if (!strstr(text, words))
		fail_msg("\"%s\" does not say \"%s\"", text, words);
}

/* Within a second below, for a slow machine. */
static void assert_time(uint64_t ns, unsigned ms)
{
	assert_in_range(ns, vb__ms(ms - 1000), vb__ms(ms));
}

/* ---- The second way ---- */

static void where_the_first_way_finds_nobody_the_second_connects(void **state)
{
	struct vb_options options = options_of(VB_FABRIC_AUTO);
	struct vb_channel *channel;

	(void)state;
	paper[PAPER_CM] = (struct paper_answer){ .connect = VB_ERR_REFUSED, .cause = NOBODY };
	channel = connect_by(&options);
	assert_int_equal(vb__channel_wireup(channel), VB_WIREUP_TCP);
	assert_says(vb_channel_description(channel), "rdma_cm: " NOBODY);
	assert_int_equal(paper[PAPER_CM].tries, 1);
	assert_int_equal(paper[PAPER_TCP].tries, 1);
	assert_int_equal(paper[PAPER_OFI].tries, 0);
	vb_channel_abort(channel);
}

static void where_nobody_answers_on_the_first_way_the_second_connects(void **state)
{
	struct vb_options options = options_of(VB_FABRIC_VERBS);

	(void)state;
	paper[PAPER_CM] = (struct paper_answer){ .connect = VB_ERR_TIMEOUT, .cause = "no answer" };
	vb_channel_abort(connect_by(&options));
	assert_int_equal(paper[PAPER_TCP].tries, 1);
}

static void a_first_way_that_connects_needs_no_second(void **state)
{
	struct vb_options options = options_of(VB_FABRIC_AUTO);
	struct vb_channel *channel = connect_by(&options);

	(void)state;
	assert_int_equal(vb__channel_wireup(channel), VB_WIREUP_CM);
	assert_int_equal(paper[PAPER_TCP].tries, 0);
	vb_channel_abort(channel);
}

static void a_listener_that_says_no_is_not_asked_by_the_second_way(void **state)
{
	struct vb_options options = options_of(VB_FABRIC_VERBS);
	struct vb_error err;

	(void)state;
	paper[PAPER_CM] = (struct paper_answer){ .connect = VB_ERR_REFUSED, .heard = true };
	assert_int_equal(fail_by(&options, &err), VB_ERR_REFUSED);
	assert_says(err.cause, "too busy");
	assert_int_equal(paper[PAPER_TCP].tries, 0);
}

/* As one that is busy: others may leave meanwhile. */
static void a_listener_that_is_short_of_something_is_asked_again_and_its_log_named(void **state)
{
	struct vb_options options = options_of(VB_FABRIC_VERBS);
	struct vb_error err;

	(void)state;
	options.listener_is_up = 0;
	options.connect_timeout_ms = 200;
	paper[PAPER_CM] = (struct paper_answer){ .connect = VB_ERR_REFUSED,
						 .heard = true,
						 .reason = VB__REFUSAL_UNABLE };
	assert_int_equal(fail_by(&options, &err), VB_ERR_REFUSED);
	assert_says(err.cause, "the listener could not make the connection");
	assert_says(err.hint, "its log");
	assert_says(err.hint, "`ulimit -n`");
	assert_true(paper[PAPER_CM].tries > 1);
	assert_int_equal(paper[PAPER_TCP].tries, 0);
}

static void where_verbs_leads_nowhere_there_is_no_second_way_either(void **state)
{
	struct vb_options options = options_of(VB_FABRIC_AUTO);
	struct vb_channel *channel;

	(void)state;
	paper[PAPER_CM] = (struct paper_answer){ .open = VB_ERR_NO_DEVICE, .cause = "no device" };
	channel = connect_by(&options);
	assert_string_equal(vb_channel_fabric(channel), "ofi");
	assert_says(vb_channel_description(channel), "no device");
	assert_int_equal(paper[PAPER_TCP].tries, 0);
	vb_channel_abort(channel);
}

static void no_other_way_is_taken_than_the_one_asked_for(void **state)
{
	struct vb_options options = options_of(VB_FABRIC_VERBS);
	struct vb_error err;

	(void)state;
	options.wireup = VB_WIREUP_CM;
	paper[PAPER_CM] = (struct paper_answer){ .connect = VB_ERR_REFUSED, .cause = NOBODY };
	assert_int_equal(fail_by(&options, &err), VB_ERR_REFUSED);
	assert_int_equal(paper[PAPER_TCP].tries, 0);
}

/* ---- What is told ---- */

static void where_both_ways_fail_the_error_tells_of_both(void **state)
{
	struct vb_options options = options_of(VB_FABRIC_VERBS);
	struct vb_error err;

	(void)state;
	paper[PAPER_CM] = (struct paper_answer){ .connect = VB_ERR_REFUSED, .cause = NOBODY };
	paper[PAPER_TCP] = (struct paper_answer){ .connect = VB_ERR_TIMEOUT,
						  .cause = "no answer at TCP port 8471" };
	assert_int_equal(fail_by(&options, &err), VB_ERR_REFUSED);
	assert_says(err.cause,
		    "over verbs: " NOBODY "; wired up by TCP: no answer at TCP port 8471");
}

static void a_second_way_that_leads_nowhere_is_not_worth_a_word(void **state)
{
	struct vb_options options = options_of(VB_FABRIC_VERBS);
	struct vb_error err;

	(void)state;
	paper[PAPER_CM] = (struct paper_answer){ .connect = VB_ERR_REFUSED, .cause = NOBODY };
	paper[PAPER_TCP] = (struct paper_answer){ .open = VB_ERR_NO_DEVICE, .cause = "iWARP" };
	assert_int_equal(fail_by(&options, &err), VB_ERR_REFUSED);
	assert_null(strstr(err.cause, "TCP"));
}

/* Without a device verbs says no more than where the other fabric leads. */
static void what_a_peer_answers_says_more_than_that_there_is_no_device(void **state)
{
	struct vb_options options = options_of(VB_FABRIC_AUTO);
	struct vb_error err;

	(void)state;
	paper[PAPER_CM] = (struct paper_answer){ .open = VB_ERR_NO_DEVICE, .cause = "no device" };
	paper[PAPER_OFI] = (struct paper_answer){ .connect = VB_ERR_REFUSED, .cause = NOBODY };
	assert_int_equal(fail_by(&options, &err), VB_ERR_REFUSED);
	assert_says(err.cause, "over ofi: " NOBODY);
}

static void what_can_be_mended_here_says_more_than_that_there_is_no_way(void **state)
{
	static const struct {
		enum vb_err verbs, ofi, told;
	} cases[] = {
		{ VB_ERR_NO_DEVICE, VB_ERR_UNSUPPORTED, VB_ERR_UNSUPPORTED },
		{ VB_ERR_NO_DEVICE, VB_ERR_NOMEM, VB_ERR_NOMEM },
		{ VB_ERR_MEMLOCK, VB_ERR_UNSUPPORTED, VB_ERR_MEMLOCK },
	};
	struct vb_options options = options_of(VB_FABRIC_AUTO);
	struct vb_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		paper[PAPER_CM] = (struct paper_answer){ .open = cases[i].verbs, .cause = "v" };
		paper[PAPER_OFI] = (struct paper_answer){ .open = cases[i].ofi, .cause = "o" };
		assert_int_equal(fail_by(&options, &err), cases[i].told);
	}
}

/* ---- Times ---- */

static void an_only_first_way_gets_all_the_time_but_for_its_second(void **state)
{
	struct vb_options options = options_of(VB_FABRIC_VERBS);

	(void)state;
	paper[PAPER_CM] = (struct paper_answer){ .connect = VB_ERR_REFUSED, .cause = NOBODY };
	vb_channel_abort(connect_by(&options));
	assert_time(paper[PAPER_CM].for_ns, 38500);
	assert_time(paper[PAPER_TCP].for_ns, 1500);
	options.wireup = VB_WIREUP_CM;
	paper_reset();
	vb_channel_abort(connect_by(&options));
	assert_time(paper[PAPER_CM].for_ns, 40000);
}

static void of_several_no_way_gets_all_the_time(void **state)
{
	struct vb_options options = options_of(VB_FABRIC_AUTO);

	(void)state;
	paper[PAPER_CM] = (struct paper_answer){ .connect = VB_ERR_REFUSED, .cause = NOBODY };
	paper[PAPER_TCP] = paper[PAPER_CM];
	vb_channel_abort(connect_by(&options));
	assert_time(paper[PAPER_CM].for_ns, 5000);
	assert_time(paper[PAPER_TCP].for_ns, 1500);
	assert_time(paper[PAPER_OFI].for_ns, 5000);
}

/* While the first one is tried again and again. */
static void a_second_way_is_not_tried_in_every_round(void **state)
{
	struct vb_options options = options_of(VB_FABRIC_VERBS);
	struct vb_error err;

	(void)state;
	options.listener_is_up = 0;
	options.connect_timeout_ms = 500;
	paper[PAPER_CM] = (struct paper_answer){ .connect = VB_ERR_REFUSED, .cause = NOBODY };
	paper[PAPER_TCP] = (struct paper_answer){ .connect = VB_ERR_TIMEOUT, .cause = "no answer" };
	assert_int_equal(fail_by(&options, &err), VB_ERR_REFUSED);
	assert_true(paper[PAPER_CM].tries > 1);
	assert_int_equal(paper[PAPER_TCP].tries, 1);
	assert_says(err.cause, "gave up after 0.5 s");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(where_the_first_way_finds_nobody_the_second_connects, start),
		cmocka_unit_test_setup(where_nobody_answers_on_the_first_way_the_second_connects,
				       start),
		cmocka_unit_test_setup(a_first_way_that_connects_needs_no_second, start),
		cmocka_unit_test_setup(a_listener_that_says_no_is_not_asked_by_the_second_way,
				       start),
		cmocka_unit_test_setup(
			a_listener_that_is_short_of_something_is_asked_again_and_its_log_named,
			start),
		cmocka_unit_test_setup(where_verbs_leads_nowhere_there_is_no_second_way_either,
				       start),
		cmocka_unit_test_setup(no_other_way_is_taken_than_the_one_asked_for, start),
		cmocka_unit_test_setup(where_both_ways_fail_the_error_tells_of_both, start),
		cmocka_unit_test_setup(a_second_way_that_leads_nowhere_is_not_worth_a_word, start),
		cmocka_unit_test_setup(what_a_peer_answers_says_more_than_that_there_is_no_device,
				       start),
		cmocka_unit_test_setup(what_can_be_mended_here_says_more_than_that_there_is_no_way,
				       start),
		cmocka_unit_test_setup(an_only_first_way_gets_all_the_time_but_for_its_second,
				       start),
		cmocka_unit_test_setup(of_several_no_way_gets_all_the_time, start),
		cmocka_unit_test_setup(a_second_way_is_not_tried_in_every_round, start),
	};

	return cmocka_run_group_tests_name("connector", tests, NULL, NULL);
}
