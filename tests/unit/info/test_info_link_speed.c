/* SPDX-License-Identifier: Apache-2.0 */
/* Speeds of link modes. */
#include <linux/ethtool.h>

#include "info/link_speed.h"
#include "suite.h"

static unsigned best_of(unsigned a, unsigned b)
{
	uint32_t modes[4] = { 0 };

	modes[a / 32] |= 1u << (a % 32);
	modes[b / 32] |= 1u << (b % 32);
	return link_speed_best(modes, COUNT(modes));
}

static void the_fastest_mode_counts(void **state)
{
	(void)state;
	assert_int_equal(best_of(ETHTOOL_LINK_MODE_1000baseT_Full_BIT,
				 ETHTOOL_LINK_MODE_10000baseT_Full_BIT),
			 10000);
	assert_int_equal(best_of(ETHTOOL_LINK_MODE_100000baseCR4_Full_BIT,
				 ETHTOOL_LINK_MODE_25000baseCR_Full_BIT),
			 100000);
	assert_int_equal(best_of(ETHTOOL_LINK_MODE_200000baseCR4_Full_BIT,
				 ETHTOOL_LINK_MODE_400000baseCR4_Full_BIT),
			 400000);
}

static void bits_that_are_no_speeds_do_not_count(void **state)
{
	(void)state;
	assert_int_equal(best_of(ETHTOOL_LINK_MODE_Autoneg_BIT, ETHTOOL_LINK_MODE_FEC_RS_BIT), 0);
	assert_int_equal(best_of(ETHTOOL_LINK_MODE_FIBRE_BIT, ETHTOOL_LINK_MODE_Pause_BIT), 0);
}

static void short_bitmaps_are_not_read_past_their_end(void **state)
{
	const uint32_t one = 1u << ETHTOOL_LINK_MODE_1000baseT_Full_BIT;

	(void)state;
	assert_int_equal(link_speed_best(&one, 1), 1000);
	assert_int_equal(link_speed_best(&one, 0), 0);
}

static void an_interface_that_is_not_there_has_no_speed(void **state)
{
	unsigned now = 1, best = 1;

	(void)state;
	link_speed("no-such-if", &now, &best);
	assert_int_equal(now, 0);
	assert_int_equal(best, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_fastest_mode_counts),
		cmocka_unit_test(bits_that_are_no_speeds_do_not_count),
		cmocka_unit_test(short_bitmaps_are_not_read_past_their_end),
		cmocka_unit_test(an_interface_that_is_not_there_has_no_speed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
