/* SPDX-License-Identifier: Apache-2.0 */
/* Messages: what was packed comes out again, and nothing else does. */
#include "copy/ending.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "suite.h"

static const struct invitation sample = {
	.addresses = { { .text = "10.0.0.2", .asked = true }, { .text = "fd00::1", .rdma = true } },
	.address_count = 2,
	.port = 65535,
	.secret = { 1, 0, 255 },
};

static void an_invitation_survives(void **state)
{
	struct invitation again;
	struct pack pack = { 0 };
	struct unpack unpack;

	(void)state;
	invitation_pack(&pack, &sample);
	unpack = unpack_begin(pack.bytes, pack.len);
	invitation_unpack(&unpack, &again);
	assert_true(unpack_end(&unpack));
	assert_int_equal(again.address_count, 2);
	assert_string_equal(again.addresses[1].text, "fd00::1");
	assert_true(again.addresses[1].rdma && again.addresses[0].asked);
	assert_int_equal(again.port, 65535);
	assert_memory_equal(again.secret, sample.secret, SECRET_BYTES);
	for (size_t len = 0; len < pack.len; len++) {
		unpack = unpack_begin(pack.bytes, len);
		invitation_unpack(&unpack, &again);
		assert_false(unpack_end(&unpack));
	}
	free(pack.bytes);
}

static void an_address_is_a_number(void **state)
{
	struct invitation named = sample, again;
	struct pack pack = { 0 };
	struct unpack unpack;

	(void)state;
	snprintf(named.addresses[0].text, sizeof(named.addresses[0].text), "evil.example");
	invitation_pack(&pack, &named);
	unpack = unpack_begin(pack.bytes, pack.len);
	invitation_unpack(&unpack, &again);
	assert_false(unpack_end(&unpack));
	free(pack.bytes);
}

static void a_glimpse_survives(void **state)
{
	const struct glimpse glimpse = {
		.known = true, .sum = { .digest = { 1, 0, 255 }, .entries = 7, .bytes = UINT64_MAX }
	};
	struct glimpse again;
	struct pack pack = { 0 };
	struct unpack unpack;

	(void)state;
	glimpse_pack(&pack, &glimpse);
	unpack = unpack_begin(pack.bytes, pack.len);
	glimpse_unpack(&unpack, &again);
	assert_true(unpack_end(&unpack));
	assert_true(again.known && again.sum.entries == 7 && again.sum.bytes == UINT64_MAX);
	assert_memory_equal(again.sum.digest, glimpse.sum.digest, sizeof(glimpse.sum.digest));
	for (size_t len = 0; len < pack.len; len++) {
		unpack = unpack_begin(pack.bytes, len);
		glimpse_unpack(&unpack, &again);
		assert_false(unpack_end(&unpack));
	}
	free(pack.bytes);
}

static void an_ending_survives(void **state)
{
	struct ending ending = { .phase = PHASE_TRANSFER,
				 .err = { .code = VB_ERR_IO,
					  .native_kind = VB_NATIVE_ERRNO,
					  .native = 28,
					  .operation = "write",
					  .cause = "No space left on device" },
				 .report = { .files = 3, .elapsed_ns = UINT64_MAX },
				 .missing = 7,
				 .description = "verbs",
				 .cipher = "AES-256-GCM" };
	struct ending again = { .phase = PHASE_CHECK };
	struct pack pack = { 0 };
	struct unpack unpack;

	(void)state;
	ending_pack(&pack, &ending);
	unpack = unpack_begin(pack.bytes, pack.len);
	ending_unpack(&unpack, &again);
	assert_true(unpack_end(&unpack));
	assert_int_equal(again.phase, PHASE_TRANSFER);
	assert_int_equal(again.err.code, VB_ERR_IO);
	assert_int_equal(again.err.native, 28);
	assert_string_equal(again.err.cause, "No space left on device");
	assert_int_equal(again.report.files, 3);
	assert_true(again.report.elapsed_ns == UINT64_MAX);
	assert_true(again.missing == 7);
	assert_string_equal(again.description, "verbs");
	assert_string_equal(again.cipher, "AES-256-GCM");
	free(pack.bytes);
}

static void an_event_survives_and_a_long_path_is_cut(void **state)
{
	static char path[10000];
	static struct happening again;
	struct vb_tree_event event = { .happening = VB_TREE_COPIED, .path = path, .bytes = 5 };
	struct pack pack = { 0 };
	struct unpack unpack;

	(void)state;
	memset(path, 'x', sizeof(path) - 1);
	event_pack(&pack, &event);
	unpack = unpack_begin(pack.bytes, pack.len);
	event_unpack(&unpack, &again);
	assert_true(unpack_end(&unpack));
	assert_int_equal(strlen(again.event.path), sizeof(again.path) - 1);
	assert_int_equal(again.event.bytes, 5);
	assert_null(again.event.failure);
	free(pack.bytes);
}

static void numbers_out_of_range_are_refused(void **state)
{
	const uint8_t note[] = { 3, 0, 0, 0, 0 }, nul[] = { 0, 1, 0, 0, 0, 0 };
	struct unpack unpack = unpack_begin(note, sizeof(note));
	struct note again;

	(void)state;
	note_unpack(&unpack, &again);
	assert_false(unpack_end(&unpack));
	unpack = unpack_begin(nul, sizeof(nul));
	note_unpack(&unpack, &again);
	assert_false(unpack_end(&unpack));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_invitation_survives),
		cmocka_unit_test(an_address_is_a_number),
		cmocka_unit_test(a_glimpse_survives),
		cmocka_unit_test(an_ending_survives),
		cmocka_unit_test(an_event_survives_and_a_long_path_is_cut),
		cmocka_unit_test(numbers_out_of_range_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
