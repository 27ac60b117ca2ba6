/* SPDX-License-Identifier: Apache-2.0 */
/* Discovery on this machine, whatever it is: what holds everywhere. */
#include "fabric/discovery.h"

#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "fabric/route.h"
#include "suite.h"

static void the_way_to_ourselves_is_by_loopback(void **state)
{
	const struct vb_options four = { .family = AF_INET };
	struct vb_path *path;
	struct vb_error err;

	(void)state;
	assert_int_equal(vb_path_find("127.0.0.1", &four, &path, &err), 0);
	assert_null(path->next);
	assert_string_equal(path->peer, "127.0.0.1");
	assert_string_equal(path->source, "127.0.0.1");
	assert_string_equal(path->interface, "lo");
	assert_string_equal(path->gateway, "");
	assert_true(path->to_ourselves);
	assert_int_equal(path->fabric == VB_FABRIC_VERBS, path->device[0] != '\0');
	assert_true(path->why[0]);
	vb_path_free(path);
}

static void mistakes_are_told(void **state)
{
	const struct vb_options bad = { .device = "a-name-that-is-longer-than-any-device-on-earth-"
						  "has-ever-had-for-good-reasons" };
	struct vb_path *path;
	struct vb_error err;

	(void)state;
	assert_int_equal(vb_path_find(NULL, NULL, &path, &err), VB_ERR_INVALID);
	assert_null(path);
	assert_int_equal(vb_path_find("127.0.0.1", &bad, &path, &err), VB_ERR_INVALID);
	assert_int_equal(vb_path_find("no.such.host.invalid", NULL, &path, &err), VB_ERR_RESOLVE);
	assert_null(path);
	vb_path_free(NULL);
	vb_device_free(NULL);
	vb_provider_free(NULL);
}

static void devices_are_listed_or_there_are_none(void **state)
{
	struct vb_device *devices;
	struct vb_error err;

	(void)state;
	assert_int_equal(vb_device_list(&devices, &err), 0);
	assert_int_equal(err.code, VB_OK);
	for (const struct vb_device *d = devices; d; d = d->next)
		assert_true(d->name[0]);
	if (access("/sys/class/infiniband", F_OK) != 0)
		assert_null(devices);
	vb_device_free(devices);
}

static void interfaces_and_addresses_are_those_of_the_kernel(void **state)
{
	struct vb__interface *interfaces;
	struct vb__own_address *addresses;
	const struct vb__ip here = { .bytes = { [10] = 0xff, 0xff, 127, 0, 0, 1 } };
	const struct vb__own_address *a;
	const struct vb__interface *lo;

	(void)state;
	assert_int_equal(vb__interfaces_read(&interfaces), 0);
	assert_int_equal(vb__own_addresses_read(&addresses), 0);
	for (a = addresses; a && memcmp(&a->ip, &here, sizeof(here)) != 0; a = a->next)
		;
	assert_non_null(a);
	lo = vb__interface_find(interfaces, a->ifindex);
	assert_non_null(lo);
	assert_string_equal(lo->name, "lo");
	assert_int_equal(lo->kind, VB__INTERFACE_LOOPBACK);
	vb__interfaces_free(interfaces);
	vb__own_addresses_free(addresses);
}

static void a_source_that_is_not_ours_leads_nowhere(void **state)
{
	struct sockaddr_in to = { .sin_family = AF_INET }, from = { .sin_family = AF_INET };
	struct vb__address peer, source;
	struct vb__route route;

	(void)state;
	to.sin_addr.s_addr = htonl(0x7f000001);
	from.sin_addr.s_addr = htonl(0xc0000263); /* 192.0.2.99, for documentation */
	vb__address_from(&peer, (const struct sockaddr *)&to);
	vb__address_from(&source, (const struct sockaddr *)&from);
	vb__route_ask(&route, &peer, &source);
	assert_int_not_equal(route.errnum, 0);
	vb__route_ask(&route, &peer, &peer);
	assert_int_equal(route.errnum, 0);
	assert_true(route.local);
	assert_int_equal(route.source.bytes[12], 127);
}

static void states_and_wires_have_names(void **state)
{
	(void)state;
	assert_string_equal(vb_port_state_name(VB_PORT_ACTIVE), "active");
	assert_string_equal(vb_wire_name(VB_WIRE_ROCE_V2), "RoCE v2");
	assert_string_equal(vb_port_state_name((enum vb_port_state)99), "unknown");
	assert_string_equal(vb_wire_name((enum vb_wire)99), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_way_to_ourselves_is_by_loopback),
		cmocka_unit_test(mistakes_are_told),
		cmocka_unit_test(devices_are_listed_or_there_are_none),
		cmocka_unit_test(interfaces_and_addresses_are_those_of_the_kernel),
		cmocka_unit_test(a_source_that_is_not_ours_leads_nowhere),
		cmocka_unit_test(states_and_wires_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
