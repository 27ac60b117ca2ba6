/* SPDX-License-Identifier: Apache-2.0 */
/* Devices and paths as they are shown. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "info/device_view.h"
#include "info/path_view.h"
#include "suite.h"

static struct vb_gid six = { .index = 4,
			     .wire = VB_WIRE_ROCE_V2,
			     .bytes = { 0xfd },
			     .text = "fd00::",
			     .ifindex = 9 };
static struct vb_gid four_v2 = { .next = &six,
				 .index = 3,
				 .wire = VB_WIRE_ROCE_V2,
				 .bytes = { 1 },
				 .text = "::ffff:10.0.0.1",
				 .ifindex = 2,
				 .interface = "eth0" };
static struct vb_gid four_v1 = { .next = &four_v2,
				 .index = 2,
				 .wire = VB_WIRE_ROCE_V1,
				 .bytes = { 1 },
				 .text = "::ffff:10.0.0.1",
				 .ifindex = 2,
				 .interface = "eth0" };
static struct vb_port port = { .number = 1,
			       .state = VB_PORT_ACTIVE,
			       .wire = VB_WIRE_ROCE_V2,
			       .rate = "100 Gb/sec (4X EDR)",
			       .mtu_bytes = 1024,
			       .max_mtu_bytes = 4096,
			       .interface = "eth0",
			       .gids = &four_v1 };
static const struct vb_device denied = { .name = "mlx5_1",
					 .node = "/dev/infiniband/uverbs1",
					 .trouble = { .code = VB_ERR_ACCESS,
						      .operation = "open",
						      .object = "/dev/infiniband/uverbs1",
						      .cause = "Permission denied" } };
static struct vb_device device = { .next = (struct vb_device *)&denied,
				   .name = "mlx5_0",
				   .node = "/dev/infiniband/uverbs0",
				   .driver = "mlx5_core",
				   .can = { .max_qp = 100, .max_sge = 30, .atomics = true },
				   .ports = &port };

/* What a view prints, for the caller to free. */
static char *printed_devices(void (*view)(const struct vb_device *, FILE *),
			     const struct vb_device *devices)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	view(devices, out);
	fclose(out);
	return text;
}

static void expect_parts(char *text, const char *const *parts, size_t count)
{
	const char *at = text;

	for (size_t i = 0; i < count; i++) {
		at = strstr(at, parts[i]);
		if (!at)
			fail_msg("'%s' is not, or not there, in:\n%s", parts[i], text);
	}
	free(text);
}

static void devices_are_shown_with_ports_gids_and_trouble(void **state)
{
	static const char *const parts[] = {
		"mlx5_0  /dev/infiniband/uverbs0, driver mlx5_core\n",
		"  port 1  active, RoCE, 100 Gb/sec (4X EDR), MTU 1024 of 4096, eth0\n",
		"2 v1, 3 v2",
		"10.0.0.1",
		"eth0\n",
		"4 v2",
		"(of another network namespace)\n",
		"  limits  100 queue pairs, 30 pieces",
		"  has     atomics\n",
		"  lacks   shared receives, memory windows, on-demand paging, dmabuf\n",
		"\nmlx5_1",
		"cannot be used: open /dev/infiniband/uverbs1: Permission denied",
	};

	(void)state;
	expect_parts(printed_devices(device_view_print, &device), parts, COUNT(parts));
}

static void devices_as_json_have_the_same(void **state)
{
	static const char *const parts[] = {
		"\"name\": \"mlx5_0\"",	 "\"trouble\": null",	"\"max_qp\": 100",
		"\"state\": \"active\"", "\"mtu\": 1024",	"\"index\": 2",
		"\"type\": \"RoCE v1\"", "\"interface\": null", "\"name\": \"mlx5_1\"",
		"Permission denied",
	};

	(void)state;
	expect_parts(printed_devices(device_view_json, &device), parts, COUNT(parts));
}

static void a_machine_with_nothing_is_told_what_happens(void **state)
{
	char *text = printed_devices(device_view_print, NULL);

	(void)state;
	assert_string_equal(text, "no RDMA device: transfers run over libfabric tcp\n");
	free(text);
}

static void candidates_with_one_reason_make_one_line(void **state)
{
	struct vb_candidate third = { .device = "mlx5_1", .gid_index = -1, .reason = "denied" };
	struct vb_candidate second = {
		.next = &third, .device = "mlx5_0", .port = 1, .gid_index = 2, .reason = "elsewhere"
	};
	struct vb_candidate first = { .next = &second,
				      .device = "mlx5_0",
				      .port = 1,
				      .gid_index = 0,
				      .reason = "elsewhere" };
	struct vb_path path = { .peer = "10.0.0.2",
				.source = "10.0.0.1",
				.interface = "eth0",
				.fabric = VB_FABRIC_OFI,
				.why = "because",
				.candidates = &first };
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	assert_non_null(out);
	path_view_print(&path, out);
	fclose(out);
	assert_string_equal(text, "10.0.0.2: ofi\n"
				  "  why    because\n"
				  "  route  eth0, from 10.0.0.1\n"
				  "  not taken:\n"
				  "    mlx5_0 port 1 gid 0, 2: elsewhere\n"
				  "    mlx5_1: denied\n");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(devices_are_shown_with_ports_gids_and_trouble),
		cmocka_unit_test(devices_as_json_have_the_same),
		cmocka_unit_test(a_machine_with_nothing_is_told_what_happens),
		cmocka_unit_test(candidates_with_one_reason_make_one_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
