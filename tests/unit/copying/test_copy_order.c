/* SPDX-License-Identifier: Apache-2.0 */
/* Orders: what the far side is told is what was meant. */
#include "copy/order.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "suite.h"

static struct pack sample(void)
{
	struct order order = {
		.role = ROLE_SEND,
		.connects = true,
		.tells = true,
		.verbosity = -1,
		.glances = true,
		.glance_key = { [VB_TREE_KEY_BYTES - 1] = 5 },
		.target = strdup(""),
		.device = strdup("mlx5_0"),
		.tree = { .keep = VB_KEEP_ARCHIVE, .select = VB_SELECT_DIFFERENT, .dry_run = true },
		.transfer = { .connection = { .fabric = VB_FABRIC_OFI,
					      .wireup = VB_WIREUP_TCP,
					      .family = AF_INET6 },
			      .max_bytes_per_second = UINT64_MAX,
			      .fsync = true,
			      .compress = VB_COMPRESS_NEVER,
			      .direct = VB_DIRECT_NEVER,
			      .encrypt = VB_ENCRYPT_REQUIRE },
		.invitation = { .port = 7, .secret = { 9 } },
	};
	struct pack pack = { 0 };

	list_add(&order.paths, "$(touch x)");
	list_add(&order.paths, "-rf");
	list_add(&order.rules, "- *.o");
	order_pack(&pack, &order);
	order_free(&order);
	return pack;
}

static void an_order_survives(void **state)
{
	struct pack pack = sample();
	struct order order;

	(void)state;
	assert_true(order_unpack(&order, pack.bytes, pack.len));
	assert_int_equal(order.role, ROLE_SEND);
	assert_true(order.connects && order.tells && order.tree.dry_run && order.transfer.fsync);
	assert_false(order.tunnelled || order.stream || order.tree.delete_others);
	assert_int_equal(order.verbosity, -1);
	assert_true(order.glances);
	assert_int_equal(order.glance_key[VB_TREE_KEY_BYTES - 1], 5);
	assert_int_equal(order.paths.count, 2);
	assert_string_equal(order.paths.item[0], "$(touch x)");
	assert_string_equal(order.rules.item[0], "- *.o");
	assert_string_equal(order.device, "mlx5_0");
	assert_int_equal(order.tree.keep, VB_KEEP_ARCHIVE);
	assert_int_equal(order.tree.select, VB_SELECT_DIFFERENT);
	assert_int_equal(order.transfer.connection.family, AF_INET6);
	assert_true(order.transfer.max_bytes_per_second == UINT64_MAX);
	assert_int_equal(order.transfer.encrypt, VB_ENCRYPT_REQUIRE);
	assert_int_equal(order.transfer.compress, VB_COMPRESS_NEVER);
	assert_int_equal(order.invitation.secret[0], 9);
	order_free(&order);
	free(pack.bytes);
}

static void a_cut_order_is_none(void **state)
{
	struct pack pack = sample();

	(void)state;
	for (size_t len = 0; len < pack.len; len++) {
		struct order order;

		assert_false(order_unpack(&order, pack.bytes, len));
		order_free(&order);
	}
	free(pack.bytes);
}

static void who_sends_is_told_what(void **state)
{
	struct order order = { .role = ROLE_SEND }, again;
	struct pack pack = { 0 };

	(void)state;
	order_pack(&pack, &order);
	assert_false(order_unpack(&again, pack.bytes, pack.len));
	order_free(&again);
	free(pack.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_order_survives),
		cmocka_unit_test(a_cut_order_is_none),
		cmocka_unit_test(who_sends_is_told_what),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
