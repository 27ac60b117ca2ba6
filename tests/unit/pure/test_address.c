/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses: look-up, words, equality, and the way out. Only what needs no network. */
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "fabric/address.h"
#include "suite.h"

/* The one address that a numeric host has. */
static struct vb__address address_of(const char *host, const char *port)
{
	struct vb__address found[VB__ADDRESSES_MAX];
	struct vb_error err = { .code = VB_OK };

	assert_int_equal(vb__address_resolve(host, port, AF_UNSPEC, found, &err), 1);
	assert_int_equal(err.code, VB_OK);
	return found[0];
}

static void numeric_addresses_resolve_and_read_back(void **state)
{
	static const struct {
		const char *host, *port;
		int family;
		const char *text;
	} cases[] = {
		{ "127.0.0.1", "7471", AF_INET, "127.0.0.1 port 7471" },
		{ "10.0.0.2", "0", AF_INET, "10.0.0.2 port 0" },
		{ "[::1]", "7471", AF_INET6, "::1 port 7471" },
		{ "::1", "65535", AF_INET6, "::1 port 65535" },
		{ "2001:db8:0:0:0:0:0:1", "1", AF_INET6, "2001:db8::1 port 1" },
		{ "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "65535", AF_INET6,
		  "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff port 65535" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct vb__address a = address_of(cases[i].host, cases[i].port);

		assert_int_equal(a.sa.ss_family, cases[i].family);
		assert_int_equal(a.len, cases[i].family == AF_INET ? sizeof(struct sockaddr_in)
								   : sizeof(struct sockaddr_in6));
		assert_string_equal(a.text, cases[i].text);
	}
}

static void no_host_means_every_address_of_this_machine(void **state)
{
	struct vb__address found[VB__ADDRESSES_MAX];
	struct vb_error err = { .code = VB_OK };

	(void)state;
	assert_int_equal(vb__address_resolve(NULL, "7471", AF_INET, found, &err), 1);
	assert_string_equal(found[0].text, "0.0.0.0 port 7471");
	assert_int_equal(vb__address_resolve(NULL, "7471", AF_INET6, found, &err), 1);
	assert_string_equal(found[0].text, ":: port 7471");
}

static void the_family_that_is_asked_for_is_found_or_refused(void **state)
{
	struct vb__address found[VB__ADDRESSES_MAX];
	struct vb_error err = { .code = VB_OK };

	(void)state;
	assert_int_equal(vb__address_resolve("127.0.0.1", "1", AF_INET, found, &err), 1);
	assert_int_equal(vb__address_resolve("127.0.0.1", "1", AF_INET6, found, &err),
			 VB_ERR_RESOLVE);
	assert_string_equal(err.object, "127.0.0.1");
	assert_true(err.hint[0]);
}

static void a_port_may_be_a_service_name(void **state)
{
	(void)state;
	if (!getservbyname("http", "tcp")) {
		print_message("skipped: /etc/services does not know http\n");
		skip();
	}
	assert_string_equal(address_of("127.0.0.1", "http").text, "127.0.0.1 port 80");
}

static void bad_names_and_ports_are_named_with_a_hint(void **state)
{
	static const struct {
		const char *host, *port, *object, *in_hint;
	} cases[] = {
		/* No DNS server is asked for such names: the test needs none. */
		{ "two..dots", "7471", "two..dots", "spelling" },
		{ "10.0.0.1:7471..", "7471", "10.0.0.1:7471..", "spelling" },
		{ "127.0.0.1", "no-such-service", "no-such-service", "1 to 65535" },
		{ "127.0.0.1", "80x", "80x", "1 to 65535" },
		{ "127.0.0.1", "-1", "-1", "1 to 65535" },
		{ NULL, "no-such-service", "no-such-service", "1 to 65535" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct vb__address found[VB__ADDRESSES_MAX];
		struct vb_error err = { .code = VB_OK };

		assert_int_equal(vb__address_resolve(cases[i].host, cases[i].port, AF_UNSPEC, found,
						     &err),
				 VB_ERR_RESOLVE);
		assert_int_equal(err.native_kind, VB_NATIVE_GAI);
		assert_string_equal(err.operation, "resolve");
		assert_string_equal(err.object, cases[i].object);
		assert_non_null(strstr(err.hint, cases[i].in_hint));
		assert_int_equal(vb__address_resolve(cases[i].host, cases[i].port, AF_UNSPEC, found,
						     NULL),
				 VB_ERR_RESOLVE);
	}
}

static void link_local_address_without_its_interface_is_refused_with_a_hint(void **state)
{
	static const char *const hosts[] = { "fe80::1", "[fe80::1]" };

	(void)state;
	for (size_t i = 0; i < COUNT(hosts); i++) {
		struct vb__address found[VB__ADDRESSES_MAX];
		struct vb_error err = { .code = VB_OK };

		assert_int_equal(vb__address_resolve(hosts[i], "1", AF_UNSPEC, found, &err),
				 VB_ERR_INVALID);
		assert_string_equal(err.object, "fe80::1");
		assert_non_null(strstr(err.hint, "fe80::1%eth0"));
	}
	assert_int_equal(address_of("fe80::1%lo", "1").sa.ss_family, AF_INET6);
}

/* glibc cuts such a port down to 16 bits and goes on. */
static void port_out_of_range_is_refused_with_a_hint(void **state)
{
	static const char *const ports[] = { "65536", "70000", "4294967376", "" };

	(void)state;
	for (size_t i = 0; i < COUNT(ports); i++) {
		struct vb__address found[VB__ADDRESSES_MAX];
		struct vb_error err = { .code = VB_OK };

		assert_true(vb__address_resolve("127.0.0.1", ports[i], AF_INET, found, &err) < 0);
		assert_non_null(strstr(err.hint, "1 to 65535"));
	}
}

static void a_missing_port_is_refused(void **state)
{
	struct vb__address found[VB__ADDRESSES_MAX];
	struct vb_error err = { .code = VB_OK };

	(void)state;
	assert_int_equal(vb__address_resolve("127.0.0.1", NULL, AF_UNSPEC, found, &err),
			 VB_ERR_INVALID);
	assert_non_null(strstr(err.cause, "port"));
}

static void a_new_port_shows_in_number_and_words(void **state)
{
	static const char *const hosts[] = { "127.0.0.1", "::1" };

	(void)state;
	for (size_t i = 0; i < COUNT(hosts); i++) {
		struct vb__address a = address_of(hosts[i], "1");

		vb__address_set_port(&a, 65535);
		assert_int_equal(vb__address_port(&a), 65535);
		assert_non_null(strstr(a.text, "port 65535"));
	}
}

static void hosts_and_ports_decide_equality_and_v4_inside_v6_counts(void **state)
{
	static const struct {
		const char *host_a, *port_a, *host_b, *port_b;
		bool equal;
	} cases[] = {
		{ "10.0.0.1", "1", "10.0.0.1", "1", true },
		{ "10.0.0.1", "1", "10.0.0.1", "2", false },
		{ "10.0.0.1", "1", "10.0.0.2", "1", false },
		{ "2001:db8::1", "1", "2001:db8::1", "1", true },
		{ "2001:db8::1", "1", "2001:db8::2", "1", false },
		{ "10.0.0.1", "1", "::ffff:10.0.0.1", "1", true },
		{ "10.0.0.1", "1", "::ffff:10.0.0.1", "2", false },
		{ "10.0.0.1", "1", "::ffff:10.0.0.2", "1", false },
		{ "10.0.0.1", "1", "::10.0.0.1", "1", false },
		{ "127.0.0.1", "1", "::1", "1", false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct vb__address a = address_of(cases[i].host_a, cases[i].port_a);
		struct vb__address b = address_of(cases[i].host_b, cases[i].port_b);
		const struct sockaddr *sa = (struct sockaddr *)&a.sa;
		const struct sockaddr *sb = (struct sockaddr *)&b.sa;

		assert_int_equal(vb__address_equal(sa, sb), cases[i].equal);
		assert_int_equal(vb__address_equal(sb, sa), cases[i].equal);
	}
}

static void egress_of_loopback_is_lo(void **state)
{
	struct vb__address peer = address_of("127.0.0.1", "7471");
	char name[16] = "";

	(void)state;
	assert_true(vb__address_egress(&peer, name));
	assert_string_equal(name, "lo");
}

static void egress_of_a_v4_mapped_peer_is_that_of_the_v4_address(void **state)
{
	struct vb__address peer = address_of("::ffff:127.0.0.1", "7471");
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);
	char name[16] = "";

	(void)state;
	if (fd < 0) {
		print_message("skipped: this machine has no IPv6\n");
		skip();
	}
	close(fd);
	assert_true(vb__address_egress(&peer, name));
	assert_string_equal(name, "lo");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numeric_addresses_resolve_and_read_back),
		cmocka_unit_test(no_host_means_every_address_of_this_machine),
		cmocka_unit_test(the_family_that_is_asked_for_is_found_or_refused),
		cmocka_unit_test(a_port_may_be_a_service_name),
		cmocka_unit_test(bad_names_and_ports_are_named_with_a_hint),
		cmocka_unit_test(link_local_address_without_its_interface_is_refused_with_a_hint),
		cmocka_unit_test(port_out_of_range_is_refused_with_a_hint),
		cmocka_unit_test(a_missing_port_is_refused),
		cmocka_unit_test(a_new_port_shows_in_number_and_words),
		cmocka_unit_test(hosts_and_ports_decide_equality_and_v4_inside_v6_counts),
		cmocka_unit_test(egress_of_loopback_is_lo),
		cmocka_unit_test(egress_of_a_v4_mapped_peer_is_that_of_the_v4_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
