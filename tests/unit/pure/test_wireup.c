/* SPDX-License-Identifier: Apache-2.0 */
/* The record of the wire-up by TCP: what goes in comes out, and what makes no sense is refused. */
#include <string.h>

#include "suite.h"
#include "wire/wireup.h"

static const struct vb__wireup good = {
	.kind = VB__WIREUP_REQUEST,
	.version = VB__WIREUP_VERSION,
	.qp_type = 1,
	.link = VB__WIREUP_ETHERNET,
	.mtu = 1024,
	.qpn = 0xabcdef,
	.psn = 0x123456,
	.lid = 0x1234,
	.gid = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1 },
	.responder_resources = 16,
	.initiator_depth = 128,
	.data = "private",
	.data_len = 48,
};

static enum vb__wireup_verdict pass_on(struct vb__wireup changed, struct vb__wireup *got)
{
	uint8_t wire[VB__WIREUP_BYTES];

	vb__wireup_encode(wire, &changed);
	return vb__wireup_decode(got, wire);
}

static void record_comes_back_as_it_was_encoded(void **state)
{
	struct vb__wireup got;

	(void)state;
	assert_int_equal(pass_on(good, &got), VB__WIREUP_GOOD);
	assert_int_equal(got.kind, good.kind);
	assert_int_equal(got.qp_type, 1);
	assert_int_equal(got.link, VB__WIREUP_ETHERNET);
	assert_int_equal(got.mtu, 1024);
	assert_int_equal(got.qpn, 0xabcdef);
	assert_int_equal(got.psn, 0x123456);
	assert_int_equal(got.lid, 0x1234);
	assert_memory_equal(got.gid, good.gid, sizeof(got.gid));
	assert_int_equal(got.responder_resources, 16);
	assert_int_equal(got.initiator_depth, 128);
	assert_int_equal(got.data_len, 48);
	assert_memory_equal(got.data, good.data, 48);
}

static void numbers_that_no_queue_pair_has_are_garbage(void **state)
{
	struct vb__wireup r, got;

	(void)state;
#define IS_GARBAGE(field, value)                                        \
	do {                                                            \
		r = good;                                               \
		r.field = (value);                                      \
		assert_int_equal(pass_on(r, &got), VB__WIREUP_GARBAGE); \
	} while (0)
	IS_GARBAGE(mtu, 0);
	IS_GARBAGE(mtu, 128);
	IS_GARBAGE(mtu, 1500);
	IS_GARBAGE(mtu, 8192);
	IS_GARBAGE(qpn, 1);
	IS_GARBAGE(qpn, 0xffffff);
	IS_GARBAGE(qpn, 0x1000000);
	IS_GARBAGE(psn, 0x1000000);
	IS_GARBAGE(qp_type, 2);
	IS_GARBAGE(link, 0);
	IS_GARBAGE(link, 3);
	IS_GARBAGE(kind, 0);
	IS_GARBAGE(kind, 5);
}

static void a_length_beyond_the_data_is_garbage(void **state)
{
	uint8_t wire[VB__WIREUP_BYTES];
	struct vb__wireup got;

	(void)state;
	vb__wireup_encode(wire, &good);
	wire[9] = VB__WIREUP_DATA + 1;
	assert_int_equal(vb__wireup_decode(&got, wire), VB__WIREUP_GARBAGE);
}

static void other_bytes_are_garbage(void **state)
{
	uint8_t wire[VB__WIREUP_BYTES];
	struct vb__wireup got;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		vb__wireup_encode(wire, &good);
		wire[i] ^= 1;
		assert_int_equal(vb__wireup_decode(&got, wire), VB__WIREUP_GARBAGE);
	}
}

static void another_version_is_told_from_garbage_whatever_else_it_says(void **state)
{
	struct vb__wireup r = { .kind = VB__WIREUP_REJECT,
				.version = 7,
				.reason = VB__WIREUP_NOT_VERSION },
			  got;

	(void)state;
	assert_int_equal(pass_on(r, &got), VB__WIREUP_OTHER_VERSION);
	assert_int_equal(got.version, 7);
	assert_int_equal(got.reason, VB__WIREUP_NOT_VERSION);
}

static void a_rejection_needs_no_queue_pair(void **state)
{
	struct vb__wireup r = { .kind = VB__WIREUP_REJECT,
				.version = VB__WIREUP_VERSION,
				.data = "no",
				.data_len = 3 },
			  got;

	(void)state;
	assert_int_equal(pass_on(r, &got), VB__WIREUP_GOOD);
	assert_string_equal((char *)got.data, "no");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(record_comes_back_as_it_was_encoded),
		cmocka_unit_test(numbers_that_no_queue_pair_has_are_garbage),
		cmocka_unit_test(a_length_beyond_the_data_is_garbage),
		cmocka_unit_test(other_bytes_are_garbage),
		cmocka_unit_test(another_version_is_told_from_garbage_whatever_else_it_says),
		cmocka_unit_test(a_rejection_needs_no_queue_pair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
