/* SPDX-License-Identifier: Apache-2.0 */
/* What a sender proposes by itself. */
#include "suite.h"
#include "transfer/session_state.h"

#define WORKERS 20u

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_is_room_for_all_workers_of_who_may_be_asked_to_compute),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
