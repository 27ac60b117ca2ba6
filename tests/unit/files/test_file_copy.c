/* SPDX-License-Identifier: Apache-2.0 */
/* From source to sink: whatever the layout, the sizes and the threads, the copy is the original. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dice.h"
#include "file_kit.h"

struct how {
	size_t block;
	unsigned threads;
	enum vb_direct direct;
	bool fsync;
};

static void copy(struct kit *kit, const char *from, const char *to, const struct how *how)
{
	struct vb__sink_options options = { .direct = how->direct,
					    .fsync = how->fsync,
					    .cancel_fd = kit->cancel_fd };
	struct vb_output output = { .path = to };
	struct vb_error err = { .code = VB_OK };
	struct vb__source *source;
	struct vb__origin origin;
	struct vb__sink *sink;

	assert_int_equal(vb__source_open(&(struct vb_input){ .path = from }, how->direct,
					 kit->cancel_fd, &source, &err),
			 0);
	origin = (struct vb__origin){ .total_bytes = source->total_bytes,
				      .has_mode = source->has_mode,
				      .mode = source->mode,
				      .sparse = source->sparse };
	assert_int_equal(vb__sink_open(&output, &origin, &options, &sink, &err), 0);
	assert_int_equal(pump_through(source, sink, how->block, how->threads, &err), 0);
	assert_same_files(from, to);
}

static void copy_sizes(struct kit *kit, const struct how *how)
{
	static const size_t sizes[] = { 0, 1, 4095, 4096, 4097, 8191, 8192, 8193, 65536, 65537 };

	for (size_t i = 0; i < COUNT(sizes); i++) {
		make_file(kit_path(kit, "original"), sizes[i]);
		copy(kit, kit_path(kit, "original"), kit_path(kit, "copy"), how);
	}
}

static void sizes_around_block_boundaries_are_copied(void **state)
{
	copy_sizes(*state, &(struct how){ .block = 4096, .threads = 3 });
}

static void direct_copies_are_the_same(void **state)
{
	struct how how = { .block = 4096, .threads = 3, .direct = VB_DIRECT_ALWAYS };

	copy_sizes(*state, &how);
	how.fsync = true;
	how.block = 8192;
	copy_sizes(*state, &how);
}

/* Large enough for AUTO to choose direct I/O; the original leaves the cache before. */
static void large_synced_files_are_copied(void **state)
{
	const char *path = kit_path(*state, "original");
	int fd;

	make_file(path, 65 * MIB + 777);
	fd = open(path, O_RDONLY);
	assert_int_equal(fsync(fd), 0);
	assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	close(fd);
	copy(*state, path, kit_path(*state, "copy"),
	     &(struct how){ .block = 256 * KIB, .threads = 4, .fsync = true });
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
		     &(struct how){ .block = blocks[dice_throw(&dice, COUNT(blocks))],
				    .threads = 1 + dice_throw(&dice, 8),
				    .direct = dice_throw(&dice, 3) });
	}
	assert_int_equal(kit_count(kit), 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, kit_setup, kit_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(sizes_around_block_boundaries_are_copied),
		TEST(direct_copies_are_the_same),
		TEST(large_synced_files_are_copied),
		TEST(random_layouts_are_copied),
	};

	return cmocka_run_group_tests_name("file_copy", tests, NULL, NULL);
}
