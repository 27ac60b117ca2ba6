/* SPDX-License-Identifier: Apache-2.0 */
/* The rules for finding a way, on recorded systems. See recorded.h for how they are written. */
#include "fabric/path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recorded.h"
#include "suite.h"

struct expectation {
	const char *route; /* a line, and more of the system if need be */
	const char *peer;
	unsigned scope;
	enum vb_fabric fabric; /* what is wished, */
	const char *device;    /* or NULL */

	/* What must come of it. */
	enum vb_fabric found;
	const char *by;	 /* "mlx5_0/1/3": device, port and GID's index; NULL: none */
	const char *why; /* a part of it */
};

static struct vb_path *choose(const struct recorded *recorded, const struct expectation *e,
			      vb__prove_fn prove, void *arg)
{
	const struct vb__system system = {
		.devices = recorded->devices,
		.interfaces = recorded->interfaces,
		.addresses = recorded->addresses,
		.verbs = true,
		.ofi = true,
	};
	const struct vb__wish wish = {
		.peer = recorded_ip(e->peer),
		.scope = e->scope,
		.fabric = e->fabric,
		.device = e->device ? e->device : "",
		.route = recorded->route,
	};
	struct vb_path *path = calloc(1, sizeof(*path));

	assert_non_null(path);
	assert_int_equal(vb__path_choose(path, &system, &wish, prove, arg), 0);
	return path;
}

/* The path on a system, with one more line or several. */
static struct vb_path *path_on(const char *system, const struct expectation *e, vb__prove_fn prove,
			       void *arg)
{
	struct recorded recorded;
	struct vb_path *path;
	char *text;

	assert_true(asprintf(&text, "%s\n%s", system, e->route) > 0);
	recorded_read(&recorded, text);
	path = choose(&recorded, e, prove, arg);
	recorded_free(&recorded);
	free(text);
	return path;
}

static void expect(const char *system, const struct expectation *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct expectation *e = &cases[i];
		struct vb_path *path = path_on(system, e, NULL, NULL);
		unsigned taken = 0;
		char by[100] = "";

		for (const struct vb_candidate *c = path->candidates; c; c = c->next) {
			assert_true(c->reason[0]);
			if (!c->taken)
				continue;
			taken++;
			snprintf(by, sizeof(by), "%s/%u/%d", c->device, c->port, c->gid_index);
			assert_string_equal(path->device, c->device);
			assert_int_equal(path->port, c->port);
			assert_int_equal(path->gid_index, c->gid_index);
		}
		if (path->fabric != e->found || strcmp(by, e->by ? e->by : "") != 0 ||
		    !strstr(path->why, e->why))
			fail_msg("case %zu, to %s: found %d by '%s' because: %s", i, e->peer,
				 path->fabric, by, path->why);
		assert_int_equal(taken, e->by ? 1 : 0);
		vb_path_free(path);
	}
}

/* The reason given for one candidate. */
static void expect_reason(const char *system, const struct expectation *e, const char *device,
			  unsigned port, int gid, const char *reason)
{
	struct vb_path *path = path_on(system, e, NULL, NULL);
	const struct vb_candidate *c = path->candidates;

	while (c && (strcmp(c->device, device) != 0 || c->port != port || c->gid_index != gid))
		c = c->next;
	if (!c)
		fail_msg("%s/%u/%d was not considered", device, port, gid);
	else if (!strstr(c->reason, reason))
		fail_msg("%s/%u/%d: %s", device, port, gid, c->reason);
	vb_path_free(path);
}

/* ---- ConnectX, two ports as two devices, each GID as v1 and v2 ---- */

static const char connectx[] = "if 1 lo lo\n"
			       "if 2 eno1\n"
			       "if 4 ens1f0 mac b8:59:9f:00:00:01\n"
			       "if 5 ens1f1 mac b8:59:9f:00:00:02\n"
			       "addr 1 127.0.0.1\n"
			       "addr 2 192.168.1.10\n"
			       "addr 4 10.1.0.1\n"
			       "addr 4 fd01::1\n"
			       "addr 4 fe80::ba59:9fff:fe00:1\n"
			       "addr 5 10.2.0.1\n"
			       "addr 5 fe80::ba59:9fff:fe00:2\n"
			       "dev mlx5_0\n"
			       "  port 1 active roce 4 mtu 4096\n"
			       "  gid 0 v1 fe80::ba59:9fff:fe00:1 4\n"
			       "  gid 1 v2 fe80::ba59:9fff:fe00:1 4\n"
			       "  gid 2 v1 10.1.0.1 4\n"
			       "  gid 3 v2 10.1.0.1 4\n"
			       "  gid 4 v1 fd01::1 4\n"
			       "  gid 5 v2 fd01::1 4\n"
			       "dev mlx5_1\n"
			       "  port 1 active roce 5 mtu 1024\n"
			       "  gid 0 v1 fe80::ba59:9fff:fe00:2 5\n"
			       "  gid 1 v2 fe80::ba59:9fff:fe00:2 5\n"
			       "  gid 2 v1 10.2.0.1 5\n"
			       "  gid 3 v2 10.2.0.1 5\n";

static void the_device_of_the_route_is_taken_with_the_source_address_in_roce_v2(void **state)
{
	static const struct expectation cases[] = {
		{ "route 4 10.1.0.1", "10.1.0.2", .found = VB_FABRIC_VERBS, .by = "mlx5_0/1/3",
		  .why = "it belongs to ens1f0, by which the route leaves" },
		{ "route 5 10.2.0.1", "10.2.0.2", .found = VB_FABRIC_VERBS, .by = "mlx5_1/1/3",
		  .why = "ens1f1" },
		{ "route 4 fd01::1", "fd01::2", .found = VB_FABRIC_VERBS, .by = "mlx5_0/1/5",
		  .why = "ens1f0" },
		{ "route 4 10.1.0.1 via 10.1.0.254", "10.77.0.1", .found = VB_FABRIC_VERBS,
		  .by = "mlx5_0/1/3", .why = "ens1f0" },
	};

	(void)state;
	expect(connectx, cases, COUNT(cases));
}

static void link_local_peers_count_with_their_scope_only(void **state)
{
	static const struct expectation cases[] = {
		{ "route 4 fe80::ba59:9fff:fe00:1", "fe80::7", .scope = 4, .found = VB_FABRIC_VERBS,
		  .by = "mlx5_0/1/1", .why = "ens1f0" },
		{ "route 5 fe80::ba59:9fff:fe00:2", "fe80::7", .scope = 5, .found = VB_FABRIC_VERBS,
		  .by = "mlx5_1/1/1", .why = "ens1f1" },
	};

	(void)state;
	expect(connectx, cases, COUNT(cases));
}

static void a_route_without_rdma_is_for_ofi_and_says_so(void **state)
{
	static const struct expectation cases[] = {
		{ "route 2 192.168.1.10", "192.168.1.20", .found = VB_FABRIC_OFI,
		  .why = "leaves through eno1, which has no RDMA device" },
		{ "route 2 192.168.1.10 via 192.168.1.1", "8.8.8.8", .found = VB_FABRIC_OFI,
		  .why = "eno1" },
		{ "route 1 127.0.0.1 local", "127.0.0.1", .found = VB_FABRIC_OFI,
		  .why = "lo, the loopback interface, which has no RDMA device" },
		{ "route error 101", "10.9.0.1", .found = VB_FABRIC_AUTO,
		  .why = "no route to it: Network is unreachable" },
		{ "route 9 10.9.0.2", "10.9.0.1", .found = VB_FABRIC_AUTO, .why = "interface" },
	};

	(void)state;
	expect(connectx, cases, COUNT(cases));
}

static void a_peer_that_is_this_host_goes_by_the_device_with_its_address(void **state)
{
	static const struct expectation cases[] = {
		{ "route 1 10.1.0.1 local", "10.1.0.1", .found = VB_FABRIC_VERBS,
		  .by = "mlx5_0/1/3", .why = "ens1f0" },
		{ "route 1 10.2.0.1 local", "10.2.0.1", .found = VB_FABRIC_VERBS,
		  .by = "mlx5_1/1/3", .why = "ens1f1" },
		{ "route 1 fd01::1 local", "fd01::1", .found = VB_FABRIC_VERBS, .by = "mlx5_0/1/5",
		  .why = "ens1f0" },
		{ "route 1 192.168.1.10 local", "192.168.1.10", .found = VB_FABRIC_OFI,
		  .why = "eno1" },
		{ "route 1 fe80::ba59:9fff:fe00:2 local", "fe80::ba59:9fff:fe00:2", .scope = 5,
		  .found = VB_FABRIC_VERBS, .by = "mlx5_1/1/1", .why = "ens1f1" },
	};

	(void)state;
	expect(connectx, cases, COUNT(cases));
}

static void what_was_asked_for_is_heeded(void **state)
{
	static const struct expectation cases[] = {
		{ "route 4 10.1.0.1", "10.1.0.2", .device = "mlx5_0", .found = VB_FABRIC_VERBS,
		  .by = "mlx5_0/1/3", .why = "ens1f0" },
		{ "route 4 10.1.0.1", "10.1.0.2", .device = "mlx5_1", .found = VB_FABRIC_OFI,
		  .why = "no RDMA device mlx5_1 on ens1f0" },
		{ "route 4 10.1.0.1", "10.1.0.2", .device = "mlx5_1", .fabric = VB_FABRIC_VERBS,
		  .found = VB_FABRIC_AUTO,
		  .why = "verbs was asked for, but no RDMA device mlx5_1" },
		{ "route 4 10.1.0.1", "10.1.0.2", .fabric = VB_FABRIC_OFI, .found = VB_FABRIC_OFI,
		  .why = "it was asked for" },
		{ "route 2 192.168.1.10", "192.168.1.20", .fabric = VB_FABRIC_VERBS,
		  .found = VB_FABRIC_AUTO, .why = "verbs was asked for, but the route" },
		{ "route 4 10.1.0.1", "10.1.0.2", .fabric = VB_FABRIC_VERBS,
		  .found = VB_FABRIC_VERBS, .by = "mlx5_0/1/3", .why = "ens1f0" },
	};

	(void)state;
	expect(connectx, cases, COUNT(cases));
}

static void every_candidate_has_its_reason(void **state)
{
	static const struct expectation e = { "route 4 10.1.0.1", "10.1.0.2" };
	static const struct expectation other = { "route 4 10.1.0.1", "10.1.0.2",
						  .device = "mlx5_1" };

	(void)state;
	expect_reason(connectx, &e, "mlx5_0", 1, 0, "not the route's source address 10.1.0.1");
	expect_reason(connectx, &e, "mlx5_0", 1, 2, "RoCE v1");
	expect_reason(connectx, &e, "mlx5_0", 1, 3, "by which the route leaves");
	expect_reason(connectx, &e, "mlx5_0", 1, 5, "not the route's source address");
	expect_reason(connectx, &e, "mlx5_1", 1, 3,
		      "belongs to ens1f1, but the route leaves "
		      "through ens1f0");
	expect_reason(connectx, &other, "mlx5_0", 0, -1, "mlx5_1 was asked for");
}

/* ---- One device, two ports ---- */

static const char two_ports[] = "if 2 eth0\n"
				"if 3 eth1\n"
				"addr 2 10.1.0.1\n"
				"addr 3 10.2.0.1\n"
				"dev mlx4_0\n"
				"  port 1 down roce 2\n"
				"  gid 0 v2 10.1.0.1 2\n"
				"  port 2 active roce 3\n"
				"  gid 0 v1 10.2.0.1 3\n"
				"  gid 1 v2 10.2.0.1 3\n";

static void ports_of_one_device_are_told_apart(void **state)
{
	static const struct expectation cases[] = {
		{ "route 3 10.2.0.1", "10.2.0.2", .found = VB_FABRIC_VERBS, .by = "mlx4_0/2/1",
		  .why = "eth1" },
		{ "route 2 10.1.0.1", "10.1.0.2", .found = VB_FABRIC_OFI,
		  .why = "mlx4_0: the port is down" },
	};

	(void)state;
	expect(two_ports, cases, COUNT(cases));
}

static void a_table_with_v1_only_is_no_way(void **state)
{
	static const char v1_only[] = "if 2 eth0\n"
				      "dev mlx4_0\n"
				      "  port 1 active roce 2\n"
				      "  gid 0 v1 fe80::1 2\n"
				      "  gid 1 v1 10.1.0.1 2\n";
	static const struct expectation cases[] = {
		{ "route 2 10.1.0.1", "10.1.0.2", .found = VB_FABRIC_OFI, .why = "RoCE v1" },
	};

	(void)state;
	expect(v1_only, cases, COUNT(cases));
}

static void an_address_without_a_gid_is_explained(void **state)
{
	static const char system[] = "if 2 eth0\n"
				     "dev mlx5_0\n"
				     "  port 1 active roce 2\n"
				     "  gid 0 v2 fe80::1 2\n"
				     "  gid 1 v2 10.1.0.1 2\n"
				     "dev mlx5_1\n"
				     "  port 1 active roce 2\n";
	static const struct expectation cases[] = {
		{ "route 2 10.1.0.9", "10.1.0.2", .found = VB_FABRIC_OFI,
		  .why = "mlx5_1: the port has no GID" },
		{ "route 2 10.1.0.9", "10.1.0.2", .device = "mlx5_0", .found = VB_FABRIC_OFI,
		  .why = "mlx5_0: of eth0, but not the route's source address 10.1.0.9" },
	};

	(void)state;
	expect(system, cases, COUNT(cases));
}

/* ---- InfiniBand ---- */

static const char infiniband[] = "if 2 eno1\n"
				 "if 3 ib0 ipoib fe80::2:c903:a1:b2c3 pkey ffff\n"
				 "if 4 ib0.8001 ipoib fe80::2:c903:a1:b2c3 pkey 8001\n"
				 "if 5 ib1 ipoib fe80::2:c903:a1:b2c4 pkey ffff\n"
				 "addr 3 10.30.0.1\n"
				 "addr 4 10.31.0.1\n"
				 "dev mlx5_0\n"
				 "  port 1 active ib lid 17\n"
				 "  gid 0 ib fe80::2:c903:a1:b2c3\n"
				 "dev mlx5_1\n"
				 "  port 1 init ib 5 lid 0\n"
				 "  gid 0 ib fe80::2:c903:a1:b2c4\n";

static void ipoib_leads_to_the_port_whose_gid_is_in_its_hardware_address(void **state)
{
	static const struct expectation cases[] = {
		{ "route 3 10.30.0.1", "10.30.0.2", .found = VB_FABRIC_VERBS, .by = "mlx5_0/1/0",
		  .why = "ib0" },
		{ "route 4 10.31.0.1", "10.31.0.2", .found = VB_FABRIC_VERBS, .by = "mlx5_0/1/0",
		  .why = "ib0.8001" },
		{ "route 2 192.168.1.10", "192.168.1.20", .found = VB_FABRIC_OFI, .why = "eno1" },
		{ "route 1 10.30.0.1 local\nif 1 lo lo", "10.30.0.1", .found = VB_FABRIC_VERBS,
		  .by = "mlx5_0/1/0", .why = "ib0" },
		{ "route 5 10.32.0.1", "10.32.0.2", .found = VB_FABRIC_OFI,
		  .why = "mlx5_1: the port is initializing" },
	};

	(void)state;
	expect(infiniband, cases, COUNT(cases));
}

static void ipoib_children_have_their_partition(void **state)
{
	static const struct expectation child = { "route 4 10.31.0.1", "10.31.0.2" };
	static const struct expectation parent = { "route 3 10.30.0.1", "10.30.0.2" };
	/* What the wire-up by TCP asks for: whose our own address is. */
	static const struct expectation own = { "route 1 10.31.0.1 local\nif 1 lo lo",
						"10.31.0.1" };
	struct vb_path *path = path_on(infiniband, &child, NULL, NULL);

	(void)state;
	assert_int_equal(path->pkey, 0x8001);
	assert_int_equal(path->lid, 17);
	assert_int_equal(path->wire, VB_WIRE_INFINIBAND);
	vb_path_free(path);
	path = path_on(infiniband, &parent, NULL, NULL);
	assert_int_equal(path->pkey, 0xffff);
	vb_path_free(path);
	path = path_on(infiniband, &own, NULL, NULL);
	assert_true(path->to_ourselves);
	assert_int_equal(path->pkey, 0x8001);
	assert_int_equal(path->lid, 17);
	assert_string_equal(path->gid, "fe80::2:c903:a1:b2c3");
	vb_path_free(path);
}

static void a_port_without_subnet_manager_says_so(void **state)
{
	static const struct expectation e = { "route 3 10.30.0.1", "10.30.0.2" };

	(void)state;
	expect_reason(infiniband, &e, "mlx5_1", 1, -1, "no subnet manager");
	expect_reason(infiniband, &(struct expectation){ "route 2 192.168.1.10", "192.168.1.20" },
		      "mlx5_0", 1, 0, "eno1, which is no IPoIB");
}

static void a_bond_of_ipoib_has_the_address_of_its_active_member(void **state)
{
	static const char system[] = "if 3 ib0 master 9 ipoib fe80::a1 pkey ffff\n"
				     "if 4 ib1 master 9 ipoib fe80::a2 pkey ffff\n"
				     "if 9 bond0 ipoib fe80::a2 pkey ffff\n"
				     "dev mlx5_0\n"
				     "  port 1 active ib lid 1\n"
				     "  gid 0 ib fe80::a1\n"
				     "dev mlx5_1\n"
				     "  port 1 active ib lid 2\n"
				     "  gid 0 ib fe80::a2\n";
	static const struct expectation cases[] = {
		{ "route 9 10.30.0.1", "10.30.0.2", .found = VB_FABRIC_VERBS, .by = "mlx5_1/1/0",
		  .why = "bond0" },
	};

	(void)state;
	expect(system, cases, COUNT(cases));
}

/* ---- VLAN, bond, macvlan, bridge ---- */

static const char vlan[] = "if 2 eth0 mac 02:00:00:00:00:01\n"
			   "if 7 eth0.100 vlan 100 on 2 mac 02:00:00:00:00:01\n"
			   "if 8 eth0.200 vlan 200 on 2 mac 02:00:00:00:00:01\n"
			   "addr 2 10.0.0.1\n"
			   "addr 7 10.100.0.1\n"
			   "addr 8 10.200.0.1\n"
			   "dev mlx5_0\n"
			   "  port 1 active roce 2\n"
			   "  gid 0 v2 fe80::ff:fe00:1 2\n"
			   "  gid 1 v2 10.0.0.1 2\n"
			   "  gid 2 v2 fe80::ff:fe00:1 7\n"
			   "  gid 3 v2 10.100.0.1 7\n";

static void a_vlan_has_gids_of_its_own(void **state)
{
	static const struct expectation cases[] = {
		{ "route 7 10.100.0.1", "10.100.0.2", .found = VB_FABRIC_VERBS, .by = "mlx5_0/1/3",
		  .why = "eth0.100, VLAN 100 on eth0, by which" },
		{ "route 2 10.0.0.1", "10.0.0.2", .found = VB_FABRIC_VERBS, .by = "mlx5_0/1/1",
		  .why = "eth0," },
		/* The same address on both interfaces, as they have the same hardware address. */
		{ "route 7 fe80::ff:fe00:1", "fe80::9", .scope = 7, .found = VB_FABRIC_VERBS,
		  .by = "mlx5_0/1/2", .why = "VLAN 100" },
		{ "route 2 fe80::ff:fe00:1", "fe80::9", .scope = 2, .found = VB_FABRIC_VERBS,
		  .by = "mlx5_0/1/0", .why = "eth0" },
		{ "route 8 10.200.0.1", "10.200.0.2", .found = VB_FABRIC_OFI,
		  .why = "mlx5_0: it belongs to eth0, but the route leaves through eth0.200" },
	};

	(void)state;
	expect(vlan, cases, COUNT(cases));
}

static const char bond[] = "if 2 eth0 master 9\n"
			   "if 3 eth1 master 9\n"
			   "if 9 bond0 bond\n"
			   "if 10 bond0.5 vlan 5 on 9\n"
			   "addr 9 10.9.0.1\n"
			   "addr 10 10.5.0.1\n";

static void a_bond_in_the_device_is_found(void **state)
{
	static const char lag[] = "if 9 bond0 bond\n"
				  "if 10 bond0.5 vlan 5 on 9\n"
				  "dev mlx5_bond_0\n"
				  "  port 1 active roce 9\n"
				  "  gid 0 v2 fe80::1 9\n"
				  "  gid 1 v2 10.9.0.1 9\n"
				  "  gid 2 v2 10.5.0.1 10\n";
	static const struct expectation cases[] = {
		{ "route 9 10.9.0.1", "10.9.0.2", .found = VB_FABRIC_VERBS, .by = "mlx5_bond_0/1/1",
		  .why = "bond0, a bond, by which" },
		{ "route 10 10.5.0.1", "10.5.0.2", .found = VB_FABRIC_VERBS,
		  .by = "mlx5_bond_0/1/2", .why = "VLAN 5 on bond0" },
	};

	(void)state;
	expect(lag, cases, COUNT(cases));
}

static void of_a_bond_of_two_devices_the_one_that_has_its_gid_is_taken(void **state)
{
	char *system;
	static const struct expectation cases[] = {
		{ "route 9 10.9.0.1", "10.9.0.2", .found = VB_FABRIC_VERBS, .by = "bnxt_re1/1/2",
		  .why = "bond0" },
	};
	static const struct expectation missing[] = {
		{ "route 9 10.9.0.1", "10.9.0.2", .device = "bnxt_re0", .found = VB_FABRIC_OFI,
		  .why = "bnxt_re0: it belongs to eth0, a member of bond0, but the route" },
	};

	(void)state;
	assert_true(asprintf(&system,
			     "%s"
			     "dev bnxt_re0\n"
			     "  port 1 active roce 2\n"
			     "  gid 0 v2 fe80::1 2\n"
			     "dev bnxt_re1\n"
			     "  port 1 active roce 3\n"
			     "  gid 0 v2 fe80::2 3\n"
			     "  gid 1 v1 10.9.0.1 9\n"
			     "  gid 2 v2 10.9.0.1 9\n",
			     bond) > 0);
	expect(system, cases, COUNT(cases));
	expect(system, missing, COUNT(missing));
	free(system);
}

static void a_macvlan_is_found_by_its_own_gid(void **state)
{
	static const char system[] = "if 2 eth0\n"
				     "if 6 mac0 macvlan on 2\n"
				     "if 7 mac1 macvlan on 2\n"
				     "addr 6 10.6.0.1\n"
				     "dev mlx5_0\n"
				     "  port 1 active roce 2\n"
				     "  gid 0 v2 10.0.0.1 2\n"
				     "  gid 1 v2 10.6.0.1 6\n";
	static const struct expectation cases[] = {
		{ "route 6 10.6.0.1", "10.6.0.2", .found = VB_FABRIC_VERBS, .by = "mlx5_0/1/1",
		  .why = "mac0, a macvlan on eth0" },
		{ "route 7 10.7.0.1", "10.7.0.2", .found = VB_FABRIC_OFI,
		  .why = "it belongs to eth0, but the route leaves through mac1" },
	};

	(void)state;
	expect(system, cases, COUNT(cases));
}

static void a_bridge_over_the_port_is_no_way(void **state)
{
	static const char system[] = "if 2 eth0 master 8\n"
				     "if 8 br0 bridge\n"
				     "addr 8 10.8.0.1\n"
				     "dev mlx5_0\n"
				     "  port 1 active roce 2\n"
				     "  gid 0 v2 fe80::1 2\n";
	static const struct expectation cases[] = {
		{ "route 8 10.8.0.1", "10.8.0.2", .found = VB_FABRIC_OFI,
		  .why = "mlx5_0: it belongs to eth0, a member of br0, but the route leaves "
			 "through br0" },
	};

	(void)state;
	expect(system, cases, COUNT(cases));
}

/* ---- Containers ---- */

static void gids_of_other_namespaces_are_not_mistaken_for_ours(void **state)
{
	/* The number 3 is the host's ens1f0 in the table, and the container's eth0. */
	static const char container[] = "if 1 lo lo\n"
					"if 3 eth0\n"
					"addr 3 172.17.0.2\n"
					"dev mlx5_0\n"
					"  port 1 active roce\n"
					"  gid 0 v2 fe80::1 3 foreign\n"
					"  gid 1 v2 10.1.0.1 3 foreign\n"
					"  gid 2 v2 172.17.0.2 44 foreign\n"
					"  gid 3 v2 10.3.0.1\n";
	static const struct expectation cases[] = {
		{ "route 3 172.17.0.2 via 172.17.0.1", "10.1.0.2", .found = VB_FABRIC_OFI,
		  .why = "mlx5_0: its interface is not in this network namespace" },
		{ "route 3 10.1.0.1", "10.1.0.2", .found = VB_FABRIC_OFI,
		  .why = "not in this network namespace" },
	};

	(void)state;
	expect(container, cases, COUNT(cases));
	expect_reason(container, &cases[0], "mlx5_0", 1, 3, "belongs to no interface");
}

static void a_container_with_an_interface_of_the_device_uses_it(void **state)
{
	static const char sriov[] = "if 1 lo lo\n"
				    "if 3 eth0\n"
				    "if 12 net1\n"
				    "addr 3 172.17.0.2\n"
				    "addr 12 10.1.0.7\n"
				    "dev mlx5_0\n"
				    "  port 1 active roce\n"
				    "  gid 3 v2 10.1.0.1 3 foreign\n"
				    "dev mlx5_4\n"
				    "  port 1 active roce 12\n"
				    "  gid 0 v1 10.1.0.7 12\n"
				    "  gid 1 v2 10.1.0.7 12\n";
	static const struct expectation cases[] = {
		{ "route 12 10.1.0.7", "10.1.0.2", .found = VB_FABRIC_VERBS, .by = "mlx5_4/1/1",
		  .why = "net1" },
		{ "route 3 172.17.0.2 via 172.17.0.1", "10.9.0.2", .found = VB_FABRIC_OFI,
		  .why = "eth0, which has no RDMA device" },
	};

	(void)state;
	expect(sriov, cases, COUNT(cases));
}

/* ---- iWARP ---- */

static void iwarp_is_found_by_interface_or_hardware_address(void **state)
{
	static const char iwarp[] = "if 2 eth0 mac 00:07:43:00:00:01\n"
				    "if 3 eth1 mac 00:07:43:00:00:02\n"
				    "if 4 eth1.7 vlan 7 on 3 mac 00:07:43:00:00:02\n"
				    "if 5 eth2 mac 00:07:43:00:00:03\n"
				    "dev siw0\n"
				    "  port 1 active iwarp 2\n"
				    "  gid 0 iw 1234::\n"
				    "dev cxgb4_0\n"
				    "  port 1 active iwarp\n"
				    "  gid 0 iw 0007:4300:0002::\n";
	static const struct expectation cases[] = {
		{ "route 2 10.2.0.1", "10.2.0.2", .found = VB_FABRIC_VERBS, .by = "siw0/1/0",
		  .why = "eth0" },
		{ "route 3 10.3.0.1", "10.3.0.2", .found = VB_FABRIC_VERBS, .by = "cxgb4_0/1/0",
		  .why = "eth1" },
		{ "route 4 10.7.0.1", "10.7.0.2", .found = VB_FABRIC_VERBS, .by = "cxgb4_0/1/0",
		  .why = "VLAN 7 on eth1" },
		{ "route 2 fd02::1", "fd02::2", .found = VB_FABRIC_VERBS, .by = "siw0/1/0",
		  .why = "eth0" },
		{ "route 5 10.5.0.1", "10.5.0.2", .found = VB_FABRIC_OFI, .why = "eth2" },
	};

	(void)state;
	expect(iwarp, cases, COUNT(cases));
}

/* ---- Others ---- */

static void an_ipv6_only_fabric_works(void **state)
{
	static const char six[] = "if 2 eth0\n"
				  "addr 2 fd00:1::5\n"
				  "dev rocep1\n"
				  "  port 1 active roce 2\n"
				  "  gid 0 v1 fe80::5 2\n"
				  "  gid 1 v2 fe80::5 2\n"
				  "  gid 2 v1 fd00:1::5 2\n"
				  "  gid 3 v2 fd00:1::5 2\n";
	static const struct expectation cases[] = {
		{ "route 2 fd00:1::5 via fe80::254", "fd00:2::7", .found = VB_FABRIC_VERBS,
		  .by = "rocep1/1/3", .why = "eth0" },
		{ "route 2 fe80::5", "fe80::7", .scope = 2, .found = VB_FABRIC_VERBS,
		  .by = "rocep1/1/1", .why = "eth0" },
		{ "route error 101", "10.0.0.1", .found = VB_FABRIC_AUTO, .why = "unreachable" },
	};

	(void)state;
	expect(six, cases, COUNT(cases));
}

static void a_machine_without_devices_says_that(void **state)
{
	static const struct expectation cases[] = {
		{ "route 2 10.0.0.1", "10.0.0.2", .found = VB_FABRIC_OFI,
		  .why = "this machine has no RDMA device" },
		{ "route 2 10.0.0.1", "10.0.0.2", .fabric = VB_FABRIC_VERBS,
		  .found = VB_FABRIC_AUTO,
		  .why = "verbs was asked for, but this machine has no RDMA device" },
	};

	(void)state;
	expect("if 2 eth0\n", cases, COUNT(cases));
}

static void a_denied_device_is_the_reason_only_where_it_would_be_the_way(void **state)
{
	static const char denied[] = "if 2 eth0\n"
				     "if 3 eth1\n"
				     "if 4 eth0.9 vlan 9 on 2\n"
				     "dev mlx5_0 denied\n"
				     "  port 1 active roce 2\n";
	static const struct expectation cases[] = {
		{ "route 2 10.0.0.1", "10.0.0.2", .found = VB_FABRIC_OFI,
		  .why = "mlx5_0: it cannot be used: open /dev/infiniband/uverbs0: Permission" },
		{ "route 4 10.0.9.1", "10.0.9.2", .found = VB_FABRIC_OFI,
		  .why = "mlx5_0: it cannot be used" },
		{ "route 3 10.1.0.1", "10.1.0.2", .found = VB_FABRIC_OFI,
		  .why = "eth1, which has no RDMA device" },
	};

	(void)state;
	expect(denied, cases, COUNT(cases));
}

static void builds_without_a_fabric_say_so(void **state)
{
	static const struct expectation e = { "", "10.0.0.2" };
	struct vb__system system = { .ofi = true };
	struct vb__wish wish = { .peer = recorded_ip(e.peer), .device = "" };
	struct recorded recorded;
	struct vb_path path = { .next = NULL };

	(void)state;
	recorded_read(&recorded, "if 2 eth0\nroute 2 10.0.0.1");
	system.interfaces = recorded.interfaces;
	wish.route = recorded.route;
	assert_int_equal(vb__path_choose(&path, &system, &wish, NULL, NULL), 0);
	assert_int_equal(path.fabric, VB_FABRIC_OFI);
	assert_string_equal(path.why, "this build has no verbs");
	system.ofi = false;
	system.verbs = true;
	path = (struct vb_path){ .next = NULL };
	assert_int_equal(vb__path_choose(&path, &system, &wish, NULL, NULL), 0);
	assert_int_equal(path.fabric, VB_FABRIC_AUTO);
	assert_string_equal(path.why, "this build has no ofi, and this machine has no RDMA device");
	recorded_free(&recorded);
}

/* ---- Proofs ---- */

/* Two devices on one interface: both are right. */
static const char twins[] = "if 2 eth0\n"
			    "dev rxe0\n"
			    "  port 1 active roce 2\n"
			    "  gid 1 v2 10.0.0.1 2\n"
			    "dev rxe1\n"
			    "  port 1 active roce 2\n"
			    "  gid 4 v2 10.0.0.1 2\n";
static const struct expectation to_twins = { "route 2 10.0.0.1", "10.0.0.2" };

/* `arg` is the device that works; none if it is empty. */
static enum vb__proof prove_one(void *arg, struct vb_path *path, const struct vb__ip *peer)
{
	assert_int_equal(peer->bytes[15], 2);
	if (!strcmp(path->device, arg)) {
		snprintf(path->proof, sizeof(path->proof), "it works");
		return VB__PROOF_GIVEN;
	}
	snprintf(path->proof, sizeof(path->proof), "%s is broken", path->device);
	return VB__PROOF_FAILED;
}

static void the_first_that_can_be_proven_is_taken(void **state)
{
	static const struct {
		const char *works, *taken, *first, *second;
		bool proven;
	} cases[] = {
		{ "rxe0", "rxe0", "by which the route leaves", "right as well, but rxe0", true },
		{ "rxe1", "rxe1", "right, but rxe0 is broken", "by which the route leaves", true },
		{ "", "rxe0", "by which the route leaves", "right, but rxe1 is broken", false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		char works[8];
		struct vb_path *path;

		snprintf(works, sizeof(works), "%s", cases[i].works);
		path = path_on(twins, &to_twins, prove_one, works);
		assert_int_equal(path->fabric, VB_FABRIC_VERBS);
		assert_string_equal(path->device, cases[i].taken);
		assert_int_equal(path->gid_index, strcmp(path->device, "rxe0") ? 4 : 1);
		assert_int_equal(path->proven, cases[i].proven);
		assert_non_null(strstr(path->candidates->reason, cases[i].first));
		assert_non_null(strstr(path->candidates->next->reason, cases[i].second));
		assert_true(!cases[i].proven == !!strstr(path->why, "but rxe0 is broken"));
		vb_path_free(path);
	}
}

static enum vb__proof nothing_to_prove(void *arg, struct vb_path *path, const struct vb__ip *peer)
{
	(void)peer;
	++*(int *)arg;
	snprintf(path->proof, sizeof(path->proof), "not tried: there is no need");
	return VB__PROOF_NOT_TRIED;
}

static void where_nothing_can_be_proven_the_first_is_taken(void **state)
{
	int asked = 0;
	struct vb_path *path = path_on(twins, &to_twins, nothing_to_prove, &asked);

	(void)state;
	assert_int_equal(asked, 1);
	assert_string_equal(path->device, "rxe0");
	assert_false(path->proven);
	assert_null(strstr(path->why, "not tried"));
	vb_path_free(path);
}

static void source_gateway_and_interface_are_told(void **state)
{
	static const struct expectation e = { "route 4 fe80::ba59:9fff:fe00:1", "fe80::7",
					      .scope = 4 };
	static const struct expectation routed = { "route 4 10.1.0.1 via 10.1.0.254", "10.7.0.1" };
	struct vb_path *path = path_on(connectx, &e, NULL, NULL);

	(void)state;
	assert_string_equal(path->peer, "fe80::7%ens1f0");
	assert_string_equal(path->source, "fe80::ba59:9fff:fe00:1%ens1f0");
	assert_string_equal(path->gateway, "");
	vb_path_free(path);
	path = path_on(connectx, &routed, NULL, NULL);
	assert_string_equal(path->peer, "10.7.0.1");
	assert_string_equal(path->source, "10.1.0.1");
	assert_string_equal(path->gateway, "10.1.0.254");
	assert_string_equal(path->interface, "ens1f0");
	assert_int_equal(path->mtu_bytes, 4096);
	assert_string_equal(path->gid, "::ffff:10.1.0.1");
	assert_int_equal(path->pkey, 0xffff);
	vb_path_free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			the_device_of_the_route_is_taken_with_the_source_address_in_roce_v2),
		cmocka_unit_test(link_local_peers_count_with_their_scope_only),
		cmocka_unit_test(a_route_without_rdma_is_for_ofi_and_says_so),
		cmocka_unit_test(a_peer_that_is_this_host_goes_by_the_device_with_its_address),
		cmocka_unit_test(what_was_asked_for_is_heeded),
		cmocka_unit_test(every_candidate_has_its_reason),
		cmocka_unit_test(ports_of_one_device_are_told_apart),
		cmocka_unit_test(a_table_with_v1_only_is_no_way),
		cmocka_unit_test(an_address_without_a_gid_is_explained),
		cmocka_unit_test(ipoib_leads_to_the_port_whose_gid_is_in_its_hardware_address),
		cmocka_unit_test(ipoib_children_have_their_partition),
		cmocka_unit_test(a_port_without_subnet_manager_says_so),
		cmocka_unit_test(a_bond_of_ipoib_has_the_address_of_its_active_member),
		cmocka_unit_test(a_vlan_has_gids_of_its_own),
		cmocka_unit_test(a_bond_in_the_device_is_found),
		cmocka_unit_test(of_a_bond_of_two_devices_the_one_that_has_its_gid_is_taken),
		cmocka_unit_test(a_macvlan_is_found_by_its_own_gid),
		cmocka_unit_test(a_bridge_over_the_port_is_no_way),
		cmocka_unit_test(gids_of_other_namespaces_are_not_mistaken_for_ours),
		cmocka_unit_test(a_container_with_an_interface_of_the_device_uses_it),
		cmocka_unit_test(iwarp_is_found_by_interface_or_hardware_address),
		cmocka_unit_test(an_ipv6_only_fabric_works),
		cmocka_unit_test(a_machine_without_devices_says_that),
		cmocka_unit_test(a_denied_device_is_the_reason_only_where_it_would_be_the_way),
		cmocka_unit_test(builds_without_a_fabric_say_so),
		cmocka_unit_test(the_first_that_can_be_proven_is_taken),
		cmocka_unit_test(where_nothing_can_be_proven_the_first_is_taken),
		cmocka_unit_test(source_gateway_and_interface_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
