/* SPDX-License-Identifier: Apache-2.0 */
/* The doctor: from facts to findings. */
#include <stdio.h>
#include <string.h>

#include "info/doctor.h"
#include "suite.h"

/* A machine on which all is well: one RoCE port. Tests break it. */
struct patient {
	struct facts facts;
	struct vb_device device;
	struct vb_port port;
	struct vb_gid gids[2];
	struct vb_provider provider;
	struct findings findings;
};

static struct patient patient;

static int make_healthy(void **state)
{
	struct patient *p = &patient;

	(void)state;
	*p = (struct patient){
		.device = { .name = "mlx5_0",
			    .node = "/dev/infiniband/uverbs0",
			    .firmware = "20.1",
			    .ports = &p->port },
		.port = { .number = 1,
			  .state = VB_PORT_ACTIVE,
			  .wire = VB_WIRE_ROCE_V2,
			  .rate_mbps = 100000,
			  .rate = "100 Gb/sec (4X EDR)",
			  .mtu_bytes = 4096,
			  .max_mtu_bytes = 4096,
			  .interface = "eth0",
			  .ifindex = 2,
			  .gids = &p->gids[0] },
		.gids = { { .next = &p->gids[1],
			    .wire = VB_WIRE_ROCE_V2,
			    .bytes = { 0xfe, 0x80 },
			    .ifindex = 2,
			    .interface = "eth0" },
			  { .index = 1,
			    .wire = VB_WIRE_ROCE_V2,
			    .bytes = { [10] = 0xff, 0xff, 10, 0, 0, 1 },
			    .ifindex = 2,
			    .interface = "eth0" } },
		.provider = { .name = "tcp", .version = "1.17" },
	};
	p->facts = (struct facts){
		.version = "0.1.0",
		.kernel = "6.1",
		.memlock = FACTS_NO_LIMIT,
		.memlock_hard = FACTS_NO_LIMIT,
		.devices = &p->device,
		.rdma_cm = { .there = true, .allowed = true },
		.nodes = { { .there = true, .allowed = true } },
		.links = { { .device = &p->device,
			     .port = &p->port,
			     .interface_mtu = 9000,
			     .speed_mbps = 100000,
			     .best_mbps = 100000,
			     .pcie_gts = 16,
			     .pcie_max_gts = 16,
			     .pcie_lanes = 16,
			     .pcie_max_lanes = 16,
			     .addresses = 1 } },
		.link_count = 1,
		.netns = NETNS_SHARED,
		.providers = &p->provider,
	};
	return 0;
}

static int end(void **state)
{
	(void)state;
	findings_free(&patient.findings);
	return 0;
}

/* The one finding of this level and topic that says so, with that in its remedy (NULL: no remedy). */
static void expect(enum finding_level level, const char *topic, const char *text,
		   const char *remedy)
{
	const struct finding *f = patient.findings.first;

	if (!f) {
		doctor_judge(&patient.findings, &patient.facts);
		f = patient.findings.first;
	}
	for (; f; f = f->next) {
		if (f->level != level || strcmp(f->topic, topic) != 0 || !strstr(f->text, text))
			continue;
		if (!remedy)
			assert_string_equal(f->remedy, "");
		else
			assert_non_null(strstr(f->remedy, remedy));
		return;
	}
	findings_print(&patient.findings, false);
	fail_msg("no %s of %s: %s", finding_level_name(level), topic, text);
}

static void expect_worst(enum finding_level level, unsigned count)
{
	assert_int_equal(findings_worst(&patient.findings), level);
	assert_int_equal(patient.findings.count[level], count);
}

static void a_healthy_machine_has_nothing_to_mend(void **state)
{
	(void)state;
	expect(FINDING_OK, "memlock", "without limit", NULL);
	expect(FINDING_OK, "mlx5_0", "opens", NULL);
	expect(FINDING_OK, "rdma_cm", "may be read and written", NULL);
	expect(FINDING_OK, "namespaces", "shared", NULL);
	expect(FINDING_OK, "mlx5_0/1", "active, RoCE v2, 100 Gb/sec", NULL);
	expect(FINDING_OK, "mlx5_0/1", "2 GIDs, 1 of RoCE v2 with an address", NULL);
	expect(FINDING_OK, "mlx5_0/1", "MTU 4096, on eth0 9000", NULL);
	expect(FINDING_OK, "libfabric", "tcp", NULL);
	assert_int_equal(findings_worst(&patient.findings), FINDING_OK);
}

static void a_machine_with_nothing_is_well_too(void **state)
{
	(void)state;
	patient.facts.devices = NULL;
	patient.facts.link_count = 0;
	patient.facts.memlock = 0;
	patient.facts.rdma_cm = (struct node_fact){ .there = false };
	expect(FINDING_OK, "devices", "no RDMA device: transfers run over libfabric tcp", NULL);
	assert_int_equal(findings_worst(&patient.findings), FINDING_OK);
}

static void what_does_not_matter_to_the_fabric_is_left_out(void **state)
{
	(void)state;
	patient.facts.fabric = VB_FABRIC_VERBS;
	snprintf(patient.provider.name, sizeof(patient.provider.name), "efa");
	expect(FINDING_OK, "mlx5_0", "opens", NULL);
	assert_int_equal(findings_worst(&patient.findings), FINDING_OK);
	findings_free(&patient.findings);
	patient.facts.devices = NULL;
	patient.facts.link_count = 0;
	expect(FINDING_PROBLEM, "devices", "no RDMA device, and verbs was asked for", "rxe0");
	findings_free(&patient.findings);
	patient.facts.fabric = VB_FABRIC_OFI;
	expect(FINDING_PROBLEM, "libfabric", "no tcp provider", "FI_PROVIDER");
	expect_worst(FINDING_PROBLEM, 1);
}

static void a_low_memlock_limit_is_told_with_need_and_remedy(void **state)
{
	(void)state;
	patient.facts.memlock = patient.facts.memlock_hard = 64 << 10;
	expect(FINDING_PROBLEM, "memlock",
	       "64 KiB of memory may be pinned; a channel needs about 3 MiB", "limits.d");
	expect_worst(FINDING_PROBLEM, 1);
}

static void a_limit_that_is_just_enough_is_a_warning(void **state)
{
	(void)state;
	patient.facts.memlock = 8 << 20;
	patient.facts.memlock_hard = FACTS_NO_LIMIT;
	expect(FINDING_WARNING, "memlock", "8192 KiB", "ulimit -l hard");
	expect_worst(FINDING_WARNING, 1);
}

static void an_effective_capability_lifts_the_limit(void **state)
{
	(void)state;
	patient.facts.memlock = 64 << 10;
	patient.facts.ipc_lock = true;
	expect(FINDING_OK, "memlock", "CAP_IPC_LOCK is effective", NULL);
}

static void a_capability_that_is_only_in_the_bounding_set_does_nothing(void **state)
{
	(void)state;
	patient.facts.memlock = 64 << 10;
	patient.facts.ipc_lock_bounded = true;
	expect(FINDING_PROBLEM, "memlock", "64 KiB", "bounding set only");
}

static void a_capability_in_a_user_namespace_does_nothing(void **state)
{
	(void)state;
	patient.facts.memlock = 64 << 10;
	patient.facts.ipc_lock_inside = true;
	expect(FINDING_PROBLEM, "memlock", "64 KiB", "rootless");
}

static void denied_nodes_are_told_with_their_owner(void **state)
{
	struct node_fact denied = { .there = true, .owner = "root", .group = "rdma", .mode = 0660 };

	(void)state;
	patient.facts.nodes[0] = patient.facts.rdma_cm = denied;
	patient.device.trouble.code = VB_ERR_ACCESS;
	expect(FINDING_PROBLEM, "mlx5_0", "/dev/infiniband/uverbs0 is denied: it is root:rdma 0660",
	       "group rdma");
	expect(FINDING_WARNING, "rdma_cm",
	       "denied: it is root:rdma 0660; RoCE v2 and InfiniBand connect by TCP instead",
	       "group rdma");
	expect_worst(FINDING_PROBLEM, 1);
}

static void nodes_that_only_a_container_denies_are_told_apart(void **state)
{
	struct node_fact denied = {
		.there = true, .ruled_out = true, .owner = "root", .group = "root", .mode = 0666
	};

	(void)state;
	patient.facts.nodes[0] = patient.facts.rdma_cm = denied;
	patient.device.trouble.code = VB_ERR_ACCESS;
	expect(FINDING_PROBLEM, "mlx5_0", "0666, but this container's device rules do not have it",
	       "--device /dev/infiniband/uverbs0, not a volume");
	expect(FINDING_WARNING, "rdma_cm",
	       "device rules do not have it; RoCE v2 and InfiniBand connect",
	       "--device /dev/infiniband/rdma_cm, not a volume");
}

static void devices_of_other_namespaces_are_told(void **state)
{
	(void)state;
	patient.facts.devices = NULL;
	patient.facts.link_count = 0;
	patient.facts.elsewhere = true;
	expect(FINDING_WARNING, "devices",
	       "in other network namespaces: transfers run over libfabric tcp", "--network host");
	findings_free(&patient.findings);
	patient.facts.fabric = VB_FABRIC_VERBS;
	expect(FINDING_PROBLEM, "devices", "in other network namespaces", "--network host");
}

static void missing_nodes_are_told_with_the_module(void **state)
{
	(void)state;
	patient.facts.nodes[0] = patient.facts.rdma_cm = (struct node_fact){ .there = false };
	patient.device.trouble.code = VB_ERR_ACCESS;
	expect(FINDING_PROBLEM, "mlx5_0", "there is no /dev/infiniband/uverbs0", "ib_uverbs");
	expect(FINDING_WARNING, "rdma_cm",
	       "there is no /dev/infiniband/rdma_cm: RoCE v2 and InfiniBand connect by TCP instead; iWARP",
	       "rdma_ucm");
}

static void a_device_that_does_not_open_tells_why(void **state)
{
	(void)state;
	patient.device.trouble = (struct vb_error){ .code = VB_ERR_NO_DEVICE,
						    .operation = "ibv_get_device_list",
						    .cause = "libibverbs does not list the device",
						    .hint = "install the library" };
	expect(FINDING_PROBLEM, "mlx5_0", "does not list", "install the library");
}

static void namespaces_can_be_exclusive(void **state)
{
	(void)state;
	patient.facts.netns = NETNS_EXCLUSIVE;
	expect(FINDING_OK, "namespaces", "exclusive", NULL);
}

/* ---- Links ---- */

static void a_port_that_is_down_is_a_warning(void **state)
{
	(void)state;
	patient.port.state = VB_PORT_DOWN;
	expect(FINDING_WARNING, "mlx5_0/1", "the port is down", "cable");
	expect_worst(FINDING_WARNING, 1);
}

static void a_port_without_subnet_manager_is_a_problem(void **state)
{
	(void)state;
	patient.port.state = VB_PORT_INIT;
	patient.port.wire = VB_WIRE_INFINIBAND;
	expect(FINDING_PROBLEM, "mlx5_0/1", "no subnet manager", "opensm");
}

static void an_empty_gid_table_is_a_problem(void **state)
{
	(void)state;
	patient.port.gids = NULL;
	expect(FINDING_PROBLEM, "mlx5_0/1", "GID table is empty", "ip address add");
}

static void gids_of_v1_only_are_a_problem(void **state)
{
	(void)state;
	patient.gids[0].wire = patient.gids[1].wire = VB_WIRE_ROCE_V1;
	expect(FINDING_PROBLEM, "mlx5_0/1", "no GID is of RoCE v2", "cma_roce_mode");
}

static void gids_of_other_namespaces_are_a_warning(void **state)
{
	(void)state;
	patient.gids[0].interface[0] = patient.gids[1].interface[0] = '\0';
	expect(FINDING_WARNING, "mlx5_0/1", "all 2 GIDs belong to interfaces of other", "SR-IOV");
}

static void an_interface_without_address_is_a_warning(void **state)
{
	(void)state;
	patient.gids[0].next = NULL;
	patient.facts.links[0].addresses = 0;
	expect(FINDING_WARNING, "mlx5_0/1", "eth0 has no address", "ip address add");
}

static void an_address_that_is_no_gid_is_a_problem(void **state)
{
	(void)state;
	patient.gids[0].next = NULL;
	expect(FINDING_PROBLEM, "mlx5_0/1", "eth0 has 1 addresses, but none is in the GID table",
	       "down and up");
}

static void a_small_interface_mtu_holds_roce_back(void **state)
{
	(void)state;
	patient.port.mtu_bytes = 1024;
	patient.facts.links[0].interface_mtu = 1500;
	expect(FINDING_WARNING, "mlx5_0/1",
	       "1024 bytes a packet of 4096, as the MTU of eth0 is 1500",
	       "ip link set eth0 mtu 9000");
}

static void a_port_mtu_over_that_of_the_interface_is_a_problem(void **state)
{
	(void)state;
	patient.facts.links[0].interface_mtu = 1500;
	expect(FINDING_PROBLEM, "mlx5_0/1", "packets of 4096 bytes do not fit through eth0",
	       "mtu 9000");
}

static void a_link_below_what_the_adapter_can_is_a_warning(void **state)
{
	(void)state;
	patient.facts.links[0].speed_mbps = 25000;
	expect(FINDING_WARNING, "mlx5_0/1", "runs at 25000 Mb/s, the adapter can do 100000",
	       "cable");
}

static void infiniband_with_one_lane_is_a_warning(void **state)
{
	(void)state;
	patient.port.wire = VB_WIRE_INFINIBAND;
	snprintf(patient.port.rate, sizeof(patient.port.rate), "25 Gb/sec (1X EDR)");
	patient.facts.links[0].best_mbps = 0;
	expect(FINDING_WARNING, "mlx5_0/1", "25 Gb/sec (1X EDR)", "iblinkinfo");
}

static void a_slot_that_is_slower_than_the_port_is_a_warning(void **state)
{
	(void)state;
	patient.facts.links[0].pcie_gts = 8;
	patient.facts.links[0].pcie_lanes = 4;
	expect(FINDING_WARNING, "mlx5_0/1", "PCIe x4 at 8 GT/s carries 32 Gb/s, the port 100",
	       "lspci");
}

static void a_slot_that_is_fast_enough_is_no_matter(void **state)
{
	(void)state;
	patient.facts.links[0].pcie_lanes = 8;
	expect(FINDING_OK, "mlx5_0/1", "PCIe x8 of x16", NULL);
}

/* ---- libfabric ---- */

static void without_tcp_provider_is_a_problem(void **state)
{
	(void)state;
	snprintf(patient.provider.name, sizeof(patient.provider.name), "efa");
	expect(FINDING_PROBLEM, "libfabric", "no tcp provider; it has: efa", "FI_PROVIDER");
}

static void without_libfabric_it_depends_on_the_devices(void **state)
{
	(void)state;
	patient.facts.providers = NULL;
	patient.facts.providers_failed = (struct vb_error){ .code = VB_ERR_UNSUPPORTED,
							    .cause = "cannot open it",
							    .hint = "install libfabric" };
	expect(FINDING_WARNING, "libfabric", "cannot open it", "install libfabric");
	findings_free(&patient.findings);
	patient.facts.devices = NULL;
	patient.facts.link_count = 0;
	expect(FINDING_PROBLEM, "libfabric", "cannot open it", "install libfabric");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_healthy, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_healthy_machine_has_nothing_to_mend),
		TEST(a_machine_with_nothing_is_well_too),
		TEST(what_does_not_matter_to_the_fabric_is_left_out),
		TEST(a_low_memlock_limit_is_told_with_need_and_remedy),
		TEST(a_limit_that_is_just_enough_is_a_warning),
		TEST(an_effective_capability_lifts_the_limit),
		TEST(a_capability_that_is_only_in_the_bounding_set_does_nothing),
		TEST(a_capability_in_a_user_namespace_does_nothing),
		TEST(denied_nodes_are_told_with_their_owner),
		TEST(nodes_that_only_a_container_denies_are_told_apart),
		TEST(devices_of_other_namespaces_are_told),
		TEST(missing_nodes_are_told_with_the_module),
		TEST(a_device_that_does_not_open_tells_why),
		TEST(namespaces_can_be_exclusive),
		TEST(a_port_that_is_down_is_a_warning),
		TEST(a_port_without_subnet_manager_is_a_problem),
		TEST(an_empty_gid_table_is_a_problem),
		TEST(gids_of_v1_only_are_a_problem),
		TEST(gids_of_other_namespaces_are_a_warning),
		TEST(an_interface_without_address_is_a_warning),
		TEST(an_address_that_is_no_gid_is_a_problem),
		TEST(a_small_interface_mtu_holds_roce_back),
		TEST(a_port_mtu_over_that_of_the_interface_is_a_problem),
		TEST(a_link_below_what_the_adapter_can_is_a_warning),
		TEST(infiniband_with_one_lane_is_a_warning),
		TEST(a_slot_that_is_slower_than_the_port_is_a_warning),
		TEST(a_slot_that_is_fast_enough_is_no_matter),
		TEST(without_tcp_provider_is_a_problem),
		TEST(without_libfabric_it_depends_on_the_devices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
