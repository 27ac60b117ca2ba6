/* SPDX-License-Identifier: Apache-2.0 */
/* What a sender proposes by itself, and a receiver takes of it. */
#include <sched.h>

#include "core/memlock.h"
#include "suite.h"
#include "transfer/session_state.h"

#define WORKERS 20u
#define FURTHER_SLOTS 5u /* that a channel receives into, beyond its depth */
#define PARLEY_BYTES (128u << 10)

static uint64_t limit = UINT64_MAX;

__attribute__((used)) uint64_t __wrap_vb__memlock_limit(void); /* by the linker */
uint64_t __wrap_vb__memlock_limit(void)
{
	return limit;
}

static int cpus = 16;

__typeof__(sched_getaffinity) __wrap_sched_getaffinity;

int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
	(void)pid, (void)size;
	CPU_ZERO(set);
	for (int i = 0; i < cpus; i++)
		CPU_SET(i, set);
	return 0;
}

/* Blocks so small that all of the window may be pinned anywhere. */
static uint32_t window_over_rdma(enum vb_encrypt encrypt, uint8_t pack)
{
	struct vb__plan plan = { .block_bytes = VB_BLOCK_MIN,
				 .rails = 1,
				 .workers = WORKERS,
				 .encrypt = encrypt,
				 .pack = pack };
	struct vb__terms terms = { .sends = true };

	vb__plan_propose(&plan, false, &terms);
	return terms.window;
}

static void there_is_room_for_all_workers_of_who_may_be_asked_to_compute(void **state)
{
	uint32_t plain = window_over_rdma(VB_ENCRYPT_NEVER, VB__PACK_NEVER);

	(void)state;
	assert_int_equal(window_over_rdma(VB_ENCRYPT_REQUIRE, VB__PACK_NEVER), plain + WORKERS);
	assert_int_equal(window_over_rdma(VB_ENCRYPT_IF_ASKED, VB__PACK_NEVER), plain + WORKERS);
	assert_int_equal(window_over_rdma(VB_ENCRYPT_NEVER, VB__PACK_IF_ASKED), plain + WORKERS);
}

static struct vb__terms proposal(uint64_t sender_may_pin)
{
	struct vb__plan plan = { .workers = WORKERS };
	struct vb__terms terms = { .sends = true, .total_bytes = UINT64_MAX };

	limit = sender_may_pin;
	vb__plan_propose(&plan, false, &terms);
	limit = UINT64_MAX;
	return terms;
}

static void there_are_two_rails_and_large_blocks_where_memory_is_plentiful(void **state)
{
	(void)state;
	assert_int_equal(proposal(UINT64_MAX).rails, 2);
	assert_int_equal(proposal(UINT64_MAX).block_bytes, 512 << 10);
	assert_int_equal(proposal(UINT64_C(32) << 20).rails, 2);
	assert_int_equal(proposal(UINT64_C(32) << 20).block_bytes, 512 << 10);
	assert_int_equal(proposal(UINT64_C(8) << 20).rails, 1);
	assert_int_equal(proposal(UINT64_C(8) << 20).block_bytes, 256 << 10);
}

static uint64_t slot_bytes(const struct vb__terms *terms)
{
	return terms->block_bytes + VB_BLOCK_MIN;
}

/* From 2 MiB on: by who receives, whatever the sender may do; from 3 on by who also sends to another. */
static void what_is_pinned_stays_below_the_limit(void **state)
{
	struct vb__plan plan = { .workers = WORKERS };

	(void)state;
	for (uint64_t mib = 2; mib <= 64; mib++) {
		struct vb__terms ours = proposal(mib << 20), theirs = proposal(UINT64_MAX);
		uint64_t receives, sends;

		limit = mib << 20;
		vb__plan_restrict(&plan, false, &theirs);
		receives = theirs.rails * (theirs.window + FURTHER_SLOTS) * slot_bytes(&theirs);
		assert_true(receives + PARLEY_BYTES <= limit);

		receives = ours.rails * (ours.window + FURTHER_SLOTS) * slot_bytes(&ours);
		sends = ours.rails * ours.window * slot_bytes(&ours);
		assert_true(receives + PARLEY_BYTES <= limit);
		assert_true(mib < 3 || receives + sends + 2 * PARLEY_BYTES <= limit);
		limit = UINT64_MAX;
	}
}

static void a_limit_makes_no_block_smaller_that_fits(void **state)
{
	uint32_t fits = proposal(UINT64_C(8) << 20).block_bytes;
	struct vb__terms terms = proposal(UINT64_MAX);
	struct vb__plan plan = { .workers = WORKERS };

	(void)state;
	terms.block_bytes = fits;
	limit = UINT64_C(8) << 20;
	vb__plan_restrict(&plan, false, &terms);
	limit = UINT64_MAX;
	assert_int_equal(terms.block_bytes, fits);
}

/* Else the link would stand still while a block is stored. */
static void rather_smaller_blocks_than_a_small_window(void **state)
{
	struct vb__plan plan = { .workers = WORKERS };

	(void)state;
	for (uint64_t mib = 1; mib <= 64; mib++) {
		struct vb__terms terms = proposal(UINT64_MAX);

		limit = mib << 20;
		vb__plan_restrict(&plan, false, &terms);
		limit = UINT64_MAX;
		assert_true(terms.window >= 4);
	}
}

static uint32_t rails_over_tcp(bool tree, uint64_t total_bytes)
{
	struct vb__plan plan = { .rails = 0 };
	struct vb__terms terms = { .sends = true, .tree = tree, .total_bytes = total_bytes };

	vb__plan_propose(&plan, true, &terms);
	return terms.rails;
}

/* One thread at a time reads it, so more than a second are in the way. */
static void a_stream_feeds_few(void **state)
{
	struct vb__plan plan = { .workers = 0 };

	(void)state;
	assert_int_equal(rails_over_tcp(false, 1 << 30), 8);
	assert_int_equal(rails_over_tcp(true, UINT64_MAX), 8);
	assert_int_equal(rails_over_tcp(false, UINT64_MAX), 4);
	assert_int_equal(vb__plan_workers(&plan, VB__LABOUR_IN_TURN), 2);
	assert_int_equal(vb__plan_workers(&plan, VB__LABOUR_MOVE), 4);
	assert_int_equal(vb__plan_workers(&plan, VB__LABOUR_COMPUTE), 16);
	plan.workers = 7;
	assert_int_equal(vb__plan_workers(&plan, VB__LABOUR_IN_TURN), 7);
}

static void there_is_no_more_than_one_for_a_block(void **state)
{
	(void)state;
	assert_int_equal(rails_over_tcp(false, 0), 1);
	assert_int_equal(rails_over_tcp(false, 1), 1);
	assert_int_equal(rails_over_tcp(false, 512 << 10), 1);
	assert_int_equal(rails_over_tcp(false, (512 << 10) + 1), 2);
	assert_int_equal(rails_over_tcp(false, 7 * (512 << 10)), 7);
}

static void there_is_no_more_than_one_for_a_cpu(void **state)
{
	struct vb__plan plan = { .workers = 0 };

	(void)state;
	cpus = 1;
	assert_int_equal(rails_over_tcp(false, 1 << 30), 1);
	assert_int_equal(rails_over_tcp(false, UINT64_MAX), 1);
	assert_int_equal(vb__plan_workers(&plan, VB__LABOUR_IN_TURN), 1);
	assert_int_equal(vb__plan_workers(&plan, VB__LABOUR_MOVE), 1);
	cpus = 16;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_is_room_for_all_workers_of_who_may_be_asked_to_compute),
		cmocka_unit_test(there_are_two_rails_and_large_blocks_where_memory_is_plentiful),
		cmocka_unit_test(what_is_pinned_stays_below_the_limit),
		cmocka_unit_test(a_limit_makes_no_block_smaller_that_fits),
		cmocka_unit_test(rather_smaller_blocks_than_a_small_window),
		cmocka_unit_test(a_stream_feeds_few),
		cmocka_unit_test(there_is_no_more_than_one_for_a_block),
		cmocka_unit_test(there_is_no_more_than_one_for_a_cpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
