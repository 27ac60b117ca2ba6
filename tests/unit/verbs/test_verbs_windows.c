/* SPDX-License-Identifier: Apache-2.0 */
/* Memory windows: bound with a new key each time, unbound, and gone before the memory is. */
#include <errno.h>
#include <string.h>

#include "verbs_harness.h"

static uint8_t memory[4096];

static struct vb__ep *connect_with_windows(void)
{
	mock_device.attr.device_cap_flags = IBV_DEVICE_MEM_WINDOW_TYPE_2B;
	return harness_connect();
}

static int post_bind(struct vb__ep *ep, struct vb__window *window, struct vb__mr *mr, size_t offset,
		     size_t len)
{
	struct vb__sge sge = { .addr = memory + offset, .len = len, .mr = mr };
	struct vb__op op = { .kind = VB__OP_BIND,
			     .sge = &sge,
			     .sge_count = 1,
			     .window = window,
			     .access = VB__ACCESS_REMOTE_WRITE };

	return vb__ep_post(ep, &op, NULL);
}

static int post_unbind(struct vb__ep *ep, struct vb__window *window)
{
	return vb__ep_post(ep, &(struct vb__op){ .kind = VB__OP_UNBIND, .window = window }, NULL);
}

static void window_is_bound_to_the_part_with_the_right_only(void **state)
{
	struct vb__ep *ep = connect_with_windows();
	struct vb__window *window;
	struct vb__mr *mr;
	const struct ibv_mw_bind_info *bound;

	(void)state;
	assert_true(ep->caps & VB__CAP_WINDOW);
	assert_int_equal(vb__mr_open(ep, memory, sizeof(memory), VB__ACCESS_BINDABLE, &mr, NULL),
			 0);
	assert_int_equal(vb__window_open(ep, &window, NULL), 0);
	assert_int_equal(post_bind(ep, window, mr, 100, 50), 0);
	bound = mock_window((uint32_t)window->remote_key);
	assert_non_null(bound);
	assert_int_equal(bound->addr, (uintptr_t)memory + 100);
	assert_int_equal(bound->length, 50);
	assert_int_equal(bound->mw_access_flags, IBV_ACCESS_REMOTE_WRITE);
	vb__ep_close(ep); /* in order: the harness looks */
}

static void every_binding_has_a_key_of_its_own(void **state)
{
	struct vb__ep *ep = connect_with_windows();
	struct vb__window *window;
	struct vb__mr *mr;
	uint64_t before = 0;

	(void)state;
	assert_int_equal(vb__mr_open(ep, memory, sizeof(memory), VB__ACCESS_BINDABLE, &mr, NULL),
			 0);
	assert_int_equal(vb__window_open(ep, &window, NULL), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(post_bind(ep, window, mr, 0, 8), 0);
		assert_int_not_equal(window->remote_key, before);
		before = window->remote_key;
		assert_int_equal(post_unbind(ep, window), 0);
		assert_null(mock_window((uint32_t)before));
		mock_complete_send(harness_qp(ep), IBV_WC_SUCCESS);
		mock_complete_send(harness_qp(ep), IBV_WC_SUCCESS);
	}
	vb__window_close(window);
	harness_teardown_from = mock_calls();
	vb__ep_close(ep);
}

static void failures_name_the_call(void **state)
{
	struct vb__ep *ep = connect_with_windows();
	struct vb__window *window;
	struct vb_error err = { .code = VB_OK };

	(void)state;
	mock_fail_call("ibv_alloc_mw", 1, ENOMEM);
	assert_int_not_equal(vb__window_open(ep, &window, &err), 0);
	assert_contains(err.operation, "ibv_alloc_mw");
	assert_null(ep->windows);
	vb__ep_close(ep);
}

static void windows_without_bounds_are_not_used(void **state)
{
	struct vb__ep *ep;

	(void)state;
	mock_device.attr.vendor_id = 0xffffff; /* Soft-RoCE */
	ep = connect_with_windows();
	assert_false(ep->caps & VB__CAP_WINDOW);
	assert_int_equal(post_unbind(ep, NULL), VB_ERR_UNSUPPORTED);
	vb__ep_close(ep);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		VERBS_TEST(window_is_bound_to_the_part_with_the_right_only),
		VERBS_TEST(every_binding_has_a_key_of_its_own),
		VERBS_TEST(failures_name_the_call),
		VERBS_TEST(windows_without_bounds_are_not_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
