/* SPDX-License-Identifier: Apache-2.0 */
/* What the numbers of datagrams tell about those that did not come. */
#include <stdlib.h>
#include <string.h>

#include "dgram/flows.h"
#include "suite.h"

static struct vb__flows flows;

static int begin(void **state)
{
	(void)state;
	memset(&flows, 0, sizeof(flows));
	return 0;
}

static struct vb__flow_news come(uint32_t who, uint16_t flow, uint32_t sequence)
{
	struct vb__number number = { .flow = flow, .sequence = sequence };
	struct vb__origin from = { { 0 } };

	memcpy(from.bytes, &who, sizeof(who));
	return vb__flows_note(&flows, &from, &number);
}

static void assert_news(struct vb__flow_news news, uint32_t lost, bool late)
{
	assert_int_equal(news.lost, lost);
	assert_int_equal(news.late, late);
}

static void nothing_is_missing_while_numbers_follow_each_other(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 5000; i++)
		assert_news(come(1, 0, i), 0, false);
}

static void counting_begins_with_the_first_that_comes(void **state)
{
	(void)state;
	assert_news(come(1, 0, 1000), 0, false);
	assert_news(come(1, 0, 1001), 0, false);
	assert_news(come(1, 0, 1005), 3, false);
}

static void who_is_overtaken_is_late_and_not_lost(void **state)
{
	(void)state;
	come(1, 0, 0);
	assert_news(come(1, 0, 3), 2, false);
	assert_news(come(1, 0, 1), 0, true);
	assert_news(come(1, 0, 2), 0, true);
	assert_news(come(1, 0, 4), 0, false);
}

static void flows_and_senders_are_counted_apart(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 10; i++) {
		assert_news(come(1, 0, i), 0, false);
		assert_news(come(1, 1, i * 2), i > 0, false);
		assert_news(come(2, 0, i * 3), i > 0 ? 2 : 0, false);
	}
}

static void numbers_run_over_their_end(void **state)
{
	(void)state;
	assert_news(come(1, 0, UINT32_MAX - 1), 0, false);
	assert_news(come(1, 0, 1), 2, false);
	assert_news(come(1, 0, UINT32_MAX), 0, true);
	assert_news(come(1, 0, 2), 0, false);
}

static void a_sender_may_begin_anew(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 10; i++)
		come(1, 0, i);
	assert_news(come(1, 0, 0), 0, false);
	assert_news(come(1, 0, 1), 0, false);
	/* Also if some were missing, when it is too far behind to be late. */
	assert_news(come(1, 0, 5000), 4998, false);
	assert_news(come(1, 0, 0), 0, false);
	assert_news(come(1, 0, 1), 0, false);
}

static void of_too_many_the_silent_ones_are_forgotten(void **state)
{
	(void)state;
	for (uint32_t who = 0; who < 20000; who++) {
		assert_news(come(who, 0, 7), 0, false);
		assert_news(come(UINT32_MAX, 0, who), 0, false); /* who is never silent */
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(nothing_is_missing_while_numbers_follow_each_other, begin),
		cmocka_unit_test_setup(counting_begins_with_the_first_that_comes, begin),
		cmocka_unit_test_setup(who_is_overtaken_is_late_and_not_lost, begin),
		cmocka_unit_test_setup(flows_and_senders_are_counted_apart, begin),
		cmocka_unit_test_setup(numbers_run_over_their_end, begin),
		cmocka_unit_test_setup(a_sender_may_begin_anew, begin),
		cmocka_unit_test_setup(of_too_many_the_silent_ones_are_forgotten, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
