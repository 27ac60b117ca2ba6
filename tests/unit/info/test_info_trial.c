/* SPDX-License-Identifier: Apache-2.0 */
/* What trials of a path tell. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "info/trial.h"
#include "suite.h"

static struct findings judge(const struct trial *trial)
{
	struct findings findings = { .first = NULL };

	trial_judge(&findings, trial, "far");
	return findings;
}

/* The last finding is of this level and says so. */
static void expect_last(const struct trial *trial, enum finding_level level, const char *text,
			const char *remedy)
{
	struct findings findings = judge(trial);

	assert_non_null(findings.last);
	assert_int_equal(findings.last->level, level);
	if (!strstr(findings.last->text, text))
		fail_msg("%s", findings.last->text);
	if (remedy)
		assert_non_null(strstr(findings.last->remedy, remedy));
	findings_free(&findings);
}

/* All sizes up to `good` pass. */
static struct trial trial_up_to(unsigned good)
{
	static const uint32_t bytes[TRIAL_STEPS] = { 64, 1024, 2048, 8192, 65536, 262144 };
	struct trial trial = { .fabric = VB_FABRIC_VERBS,
			       .description = "verbs on mlx5_0",
			       .median_us = 3,
			       .worst_us = 9 };

	for (unsigned i = 0; i < good; i++)
		trial.step[i] = (struct trial_step){
			.bytes = bytes[i], .got_there = true, .rate = 1000000, .came_back = true
		};
	trial.steps = good;
	if (good == TRIAL_STEPS)
		return trial;
	trial.step[good].bytes = bytes[good];
	trial.step[good].failed = (struct vb_error){ .code = VB_ERR_LOST,
						     .native_kind = VB_NATIVE_WC,
						     .native = 12,
						     .cause = "transport retry counter exceeded" };
	trial.steps++;
	return trial;
}

static void a_path_that_carries_all_is_well(void **state)
{
	struct trial trial = trial_up_to(TRIAL_STEPS);
	struct findings findings = judge(&trial);

	(void)state;
	assert_int_equal(findings_worst(&findings), FINDING_OK);
	assert_int_equal(findings.count[FINDING_OK], 3);
	assert_non_null(strstr(findings.last->text, "262144: 1.00 MB/s"));
	findings_free(&findings);
}

static void large_messages_that_vanish_are_a_black_hole(void **state)
{
	struct trial trial = trial_up_to(2);

	(void)state;
	expect_last(&trial, FINDING_PROBLEM,
		    "MTU black hole: messages of 1024 bytes pass, 2048 bytes do not arrive there "
		    "(transport retry counter exceeded)",
		    "compare the MTU");
	trial.step[2].got_there = true;
	expect_last(&trial, FINDING_PROBLEM, "2048 bytes do not arrive from there", "ping -M do");
}

static void large_messages_that_fail_aloud_are_no_black_hole(void **state)
{
	struct trial trial = trial_up_to(2);
	struct vb_error *failed = &trial.step[2].failed;

	(void)state;
	*failed = (struct vb_error){ .code = VB_ERR_LOST,
				     .cause = "the peer ended it without a farewell",
				     .hint = "look there" };
	expect_last(&trial, FINDING_PROBLEM,
		    "messages of 2048 bytes fail: the peer ended it without a farewell",
		    "look there");
	*failed = (struct vb_error){ .code = VB_ERR_PROTOCOL, .cause = "an answer of 3 bytes" };
	expect_last(&trial, FINDING_PROBLEM, "messages of 2048 bytes fail", NULL);
	*failed = (struct vb_error){ .code = VB_ERR_TIMEOUT, .cause = "no answer for 5 seconds" };
	expect_last(&trial, FINDING_PROBLEM, "MTU black hole", NULL);
	*failed = (struct vb_error){ .code = VB_ERR_LOST,
				     .native_kind = VB_NATIVE_ERRNO,
				     .native = ETIMEDOUT };
	expect_last(&trial, FINDING_PROBLEM, "MTU black hole", NULL);
}

static void a_request_begins_with_little_endian_numbers(void **state)
{
	static const uint8_t bytes[TRIAL_HEAD] = { 3, 0, 0, 0, 0x44, 0x33, 0x22, 0x11 };
	uint8_t head[TRIAL_HEAD];
	uint32_t kind, number;

	(void)state;
	trial_head_put(head, TRIAL_GIVE, 0x11223344);
	assert_memory_equal(head, bytes, sizeof(bytes));
	trial_head_get(bytes, &kind, &number);
	assert_int_equal(kind, TRIAL_GIVE);
	assert_int_equal(number, 0x11223344);
}

static void a_burst_that_fails_is_told_apart(void **state)
{
	struct trial trial = trial_up_to(TRIAL_STEPS);

	(void)state;
	trial.step[4].rate = 0;
	trial.step[4].failed = (struct vb_error){ .code = VB_ERR_LOST, .cause = "lost" };
	expect_last(&trial, FINDING_PROBLEM,
		    "single messages pass, but of a burst of 65536 bytes each not all do: lost",
		    NULL);
}

static void small_messages_that_vanish_are_no_matter_of_the_mtu(void **state)
{
	struct trial trial = trial_up_to(0);

	(void)state;
	expect_last(&trial, FINDING_PROBLEM, "messages of 64 bytes fail", NULL);
	trial.steps = 0;
	trial.median_us = 0;
	trial.unmade = (struct vb_error){ .code = VB_ERR_TIMEOUT, .cause = "no answer" };
	expect_last(&trial, FINDING_PROBLEM, "connected, but messages of 8 bytes fail: no answer",
		    NULL);
}

static void where_nobody_serves_the_way_was_not_tried(void **state)
{
	struct trial trial = { .fabric = VB_FABRIC_OFI, .unmade = { .code = VB_ERR_REFUSED } };

	(void)state;
	expect_last(&trial, FINDING_WARNING, "nobody serves there", "rdinfo --serve` at far");
	trial.unmade = (struct vb_error){ .code = VB_ERR_MEMLOCK,
					  .cause = "cannot pin",
					  .hint = "raise it" };
	expect_last(&trial, FINDING_PROBLEM, "cannot connect to far: cannot pin", "raise it");
}

static void a_fabric_that_does_not_lead_there_is_not_tried(void **state)
{
	struct trial trial = { .fabric = VB_FABRIC_VERBS,
			       .pointless = true,
			       .reason = "no device" };

	(void)state;
	expect_last(&trial, FINDING_OK, "not tried: no device", NULL);
}

static void the_other_port_is_the_next_one(void **state)
{
	char next[8];

	(void)state;
	assert_int_equal(trial_next_port("7470", next), 0);
	assert_string_equal(next, "7471");
	assert_int_equal(trial_next_port("0", next), 0);
	assert_string_equal(next, "0");
	assert_int_equal(trial_next_port("65535", next), -1);
	assert_int_equal(trial_next_port("http", next), -1);
	assert_int_equal(trial_next_port("", next), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_that_carries_all_is_well),
		cmocka_unit_test(large_messages_that_vanish_are_a_black_hole),
		cmocka_unit_test(large_messages_that_fail_aloud_are_no_black_hole),
		cmocka_unit_test(a_request_begins_with_little_endian_numbers),
		cmocka_unit_test(a_burst_that_fails_is_told_apart),
		cmocka_unit_test(small_messages_that_vanish_are_no_matter_of_the_mtu),
		cmocka_unit_test(where_nobody_serves_the_way_was_not_tried),
		cmocka_unit_test(a_fabric_that_does_not_lead_there_is_not_tried),
		cmocka_unit_test(the_other_port_is_the_next_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
