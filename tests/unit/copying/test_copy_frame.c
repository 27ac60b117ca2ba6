/* SPDX-License-Identifier: Apache-2.0 */
/* Frames: whole ones, pieces, and what is none. */
#include "remote/frame.h"

#include <string.h>

#include "suite.h"

static void a_frame_is_taken_only_when_it_is_whole(void **state)
{
	uint8_t bytes[FRAME_HEAD + 3 + 1];
	struct frame frame;

	(void)state;
	frame_head(bytes, FRAME_NOTE, 3);
	memcpy(bytes + FRAME_HEAD, "abc!", 4);
	for (size_t len = 0; len < FRAME_HEAD + 3; len++)
		assert_int_equal(frame_take(&frame, bytes, len), 0);
	assert_int_equal(frame_take(&frame, bytes, sizeof(bytes)), FRAME_HEAD + 3);
	assert_int_equal(frame.kind, FRAME_NOTE);
	assert_int_equal(frame.len, 3);
	assert_memory_equal(frame.payload, "abc", 3);
}

static void what_is_too_long_or_unknown_is_no_frame(void **state)
{
	uint8_t bytes[FRAME_HEAD];
	struct frame frame;

	(void)state;
	frame_head(bytes, FRAME_DATA, FRAME_MAX);
	assert_int_equal(frame_take(&frame, bytes, sizeof(bytes)), 0);
	frame_head(bytes, FRAME_DATA, FRAME_MAX + 1);
	assert_int_equal(frame_take(&frame, bytes, sizeof(bytes)), -1);
	frame_head(bytes, FRAME_NONE, 0);
	assert_int_equal(frame_take(&frame, bytes, sizeof(bytes)), -1);
	frame_head(bytes, (enum frame_kind)(FRAME_LAST + 1), 0);
	assert_int_equal(frame_take(&frame, bytes, sizeof(bytes)), -1);
}

static void a_hello_is_known_from_its_first_byte_on(void **state)
{
	uint8_t hello[FRAME_HELLO_BYTES];

	(void)state;
	frame_hello(hello, RDCP);
	for (size_t len = 0; len <= sizeof(hello); len++)
		assert_true(frame_hello_begins(hello, len, RDCP));
	assert_int_equal(frame_hello_version(hello, RDCP), FRAME_VERSION);
	assert_int_equal(frame_hello_version(hello, RDPIPE), 0);
	assert_false(frame_hello_begins(hello, 3, RDPIPE));
	hello[8] = 7;
	assert_int_equal(frame_hello_version(hello, RDCP), 7);
	hello[3] ^= 1;
	assert_true(frame_hello_begins(hello, 3, RDCP));
	assert_false(frame_hello_begins(hello, 4, RDCP));
	assert_int_equal(frame_hello_version(hello, RDCP), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_frame_is_taken_only_when_it_is_whole),
		cmocka_unit_test(what_is_too_long_or_unknown_is_no_frame),
		cmocka_unit_test(a_hello_is_known_from_its_first_byte_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
