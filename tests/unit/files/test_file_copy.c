/* SPDX-License-Identifier: Apache-2.0 */
/* From source to sink: whatever the layout, the sizes and the threads, the copy is the original. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dice.h"
#include "file_kit.h"

static void copy(struct kit *kit, const char *from, const char *to, size_t block, unsigned threads)
{
	struct vb__source *source = open_source(kit, &(struct vb_input){ .path = from });
	struct vb__sink_options options = { .cancel_fd = kit->cancel_fd };
	struct vb__origin origin = { .total_bytes = source->total_bytes,
				     .mode = source->mode,
				     .sparse = source->sparse };
	struct vb_error err = { .code = VB_OK };
	struct vb__sink *sink;

	assert_int_equal(vb__sink_open(&(struct vb_output){ .path = to }, &origin, &options, &sink,
				       &err),
			 0);
	assert_int_equal(pump_through(source, sink, block, threads, &err), 0);
	assert_same_files(from, to);
}

static void sizes_around_block_boundaries_are_copied(void **state)
{
	static const size_t sizes[] = { 0, 1, 4095, 4096, 4097, 8191, 8192, 8193, 65536, 65537 };
	struct kit *kit = *state;

	for (size_t i = 0; i < COUNT(sizes); i++) {
		make_file(kit_path(kit, "original"), sizes[i]);
		copy(kit, kit_path(kit, "original"), kit_path(kit, "copy"), 4096, 3);
	}
}

/* Data and holes in turn, each of any length, mostly not aligned to anything. */
static void make_random(const char *path, struct dice *dice)
{
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0640);
	unsigned pieces = 1 + dice_throw(dice, 12);
	uint8_t *data = page_aligned(256 * KIB);
	off_t at = 0;

	assert_true(fd >= 0);
	for (unsigned i = 0; i < pieces; i++) {
		size_t len = 1 + dice_throw(dice, 200 * KIB);

		if (dice_throw(dice, 2)) {
			make_bytes(data, len, (uint64_t)at);
			assert_int_equal(pwrite(fd, data, len, at), len);
		}
		at += (off_t)len;
	}
	assert_int_equal(ftruncate(fd, at), 0);
	close(fd);
	free(data);
}

static void random_layouts_are_copied(void **state)
{
	static const size_t blocks[] = { 4096, 8192, 12288, 65536, 262144, 1048576 };
	struct dice dice = { .state = 7 };
	struct kit *kit = *state;

	for (int i = 0; i < 60; i++) {
		make_random(kit_path(kit, "original"), &dice);
		copy(kit, kit_path(kit, "original"), kit_path(kit, "copy"),
		     blocks[dice_throw(&dice, COUNT(blocks))], 1 + dice_throw(&dice, 8));
	}
	assert_int_equal(kit_count(kit), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(sizes_around_block_boundaries_are_copied, kit_setup,
						kit_teardown),
		cmocka_unit_test_setup_teardown(random_layouts_are_copied, kit_setup, kit_teardown),
	};

	return cmocka_run_group_tests_name("file_copy", tests, NULL, NULL);
}
