/* SPDX-License-Identifier: Apache-2.0 */
/* Which addresses are tried, and in which order. */
#include "remote/addresses.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "suite.h"

static void the_address_that_ssh_came_to_is_the_third_word(void **state)
{
	char text[INET6_ADDRSTRLEN];

	(void)state;
	assert_true(addresses_asked("10.0.0.1 5000 10.0.0.2 22", text));
	assert_string_equal(text, "10.0.0.2");
	assert_true(addresses_asked("fd00::1 5000 fd00::2 22", text));
	assert_string_equal(text, "fd00::2");
	assert_true(addresses_asked("::ffff:1.2.3.4 5000 ::ffff:10.0.0.2 22", text));
	assert_string_equal(text, "10.0.0.2");
	assert_true(addresses_asked("fe80::1%eth0 5000 fe80::2%eth0 22", text));
	assert_string_equal(text, "fe80::2");
	assert_false(addresses_asked(NULL, text));
	assert_false(addresses_asked("", text));
	assert_false(addresses_asked("UNKNOWN 65535 UNKNOWN 65535", text));
}

static struct invitation sample(void)
{
	return (struct invitation){
		.addresses = { { .text = "10.0.0.2", .asked = true },
			       { .text = "192.168.1.2", .rdma = true },
			       { .text = "fd00::2", .rdma = true },
			       { .text = "172.17.0.1" } },
		.address_count = 4,
	};
}

static bool by_fd00(const char *address)
{
	return strncmp(address, "fd00:", 5) == 0;
}

static void rdma_at_both_ends_goes_first(void **state)
{
	struct invitation invitation = sample();

	(void)state;
	addresses_sort(&invitation, 0, by_fd00);
	assert_int_equal(invitation.address_count, 4);
	assert_string_equal(invitation.addresses[0].text, "fd00::2");
	assert_string_equal(invitation.addresses[1].text, "10.0.0.2");
	assert_string_equal(invitation.addresses[2].text, "192.168.1.2");
	assert_string_equal(invitation.addresses[3].text, "172.17.0.1");
}

static void without_rdma_here_the_order_stays(void **state)
{
	struct invitation invitation = sample();

	(void)state;
	addresses_sort(&invitation, 0, addresses_nowhere);
	assert_string_equal(invitation.addresses[0].text, "10.0.0.2");
	assert_string_equal(invitation.addresses[3].text, "172.17.0.1");
}

static void a_family_leaves_the_other_out(void **state)
{
	struct invitation invitation = sample();

	(void)state;
	addresses_sort(&invitation, AF_INET6, by_fd00);
	assert_int_equal(invitation.address_count, 1);
	assert_string_equal(invitation.addresses[0].text, "fd00::2");
	addresses_sort(&invitation, AF_INET, by_fd00);
	assert_int_equal(invitation.address_count, 0);
}

static void no_address_is_there_twice(void **state)
{
	struct invitation invitation = sample();
	const struct address again = { .text = "10.0.0.2", .rdma = true };

	(void)state;
	addresses_add(&invitation, &again);
	assert_int_equal(invitation.address_count, 4);
	assert_true(invitation.addresses[0].rdma && invitation.addresses[0].asked);
}

static void this_host_has_addresses(void **state)
{
	struct invitation invitation;

	(void)state;
	unsetenv("SSH_CONNECTION");
	addresses_of_host(&invitation);
	assert_true(invitation.address_count >= 1);
	setenv("SSH_CONNECTION", "10.9.9.1 1 10.9.9.2 22", 1);
	addresses_of_host(&invitation);
	assert_string_equal(invitation.addresses[0].text, "10.9.9.2");
	for (size_t i = 0; i < invitation.address_count; i++)
		assert_int_not_equal(strncmp(invitation.addresses[i].text, "127.", 4), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_address_that_ssh_came_to_is_the_third_word),
		cmocka_unit_test(rdma_at_both_ends_goes_first),
		cmocka_unit_test(without_rdma_here_the_order_stays),
		cmocka_unit_test(a_family_leaves_the_other_out),
		cmocka_unit_test(no_address_is_there_twice),
		cmocka_unit_test(this_host_has_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
