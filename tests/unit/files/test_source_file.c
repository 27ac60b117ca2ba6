/* SPDX-License-Identifier: Apache-2.0 */
/* Files as sources: positions, holes, direct reads, and files that change under us. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file_kit.h"

#define ROOM (64 * KIB)
#define GIB (1024ull * MIB)

/* A file system may keep holes by larger units than these tests make them, or not at all. */
static bool keeps_holes(struct kit *kit)
{
	const char *path = kit_path(kit, "probe");
	int fd = open(path, O_CREAT | O_RDWR, 0600);
	bool keeps;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, MIB), 0);
	assert_int_equal(pwrite(fd, "x", 1, 512 * KIB), 1);
	keeps = lseek(fd, 0, SEEK_DATA) == 512 * KIB;
	close(fd);
	unlink(path);
	return keeps;
}

struct piece {
	uint64_t offset, length;
	bool hole;
};

static const char *make_sparse(struct kit *kit, const struct piece *data, size_t n, uint64_t size)
{
	const char *path = kit_path(kit, "sparse");
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0640);

	assert_true(fd >= 0);
	for (size_t i = 0; i < n; i++) {
		uint8_t *bytes = page_aligned(data[i].length);

		make_bytes(bytes, data[i].length, data[i].offset);
		assert_int_equal(pwrite(fd, bytes, data[i].length, (off_t)data[i].offset),
				 data[i].length);
		free(bytes);
	}
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	close(fd);
	return path;
}

/* The blocks of a source are just these, and hold what they should. */
static void assert_blocks(struct vb__source *source, const struct piece *expected, size_t n)
{
	uint8_t *buffer = page_aligned(ROOM);
	struct vb_error err = { .code = VB_OK };
	struct vb__block block;

	for (size_t i = 0; i < n; i++) {
		assert_int_equal(source->ops->next(source, buffer, ROOM, &block, &err), 1);
		assert_int_equal(block.offset, expected[i].offset);
		assert_int_equal(block.length, expected[i].length);
		assert_int_equal(block.flags & VB__BLOCK_HOLE, expected[i].hole);
		assert_int_equal(source->ops->fill(source, buffer, &block, &err), 0);
		if (!expected[i].hole)
			assert_bytes(buffer, block.length, block.offset);
	}
	assert_int_equal(source->ops->next(source, buffer, ROOM, &block, &err), 0);
	assert_int_equal(source->ops->finish(source, &err), 0);
	source->ops->close(source);
	free(buffer);
}

static void a_file_tells_its_size_and_mode(void **state)
{
	const char *path = kit_path(*state, "file");
	struct vb__source *source;

	make_file(path, ROOM + 5);
	assert_int_equal(chmod(path, 04751), 0);
	source = open_source(*state, &(struct vb_input){ .path = path });
	assert_int_equal(source->total_bytes, ROOM + 5);
	assert_true(source->has_mode);
	assert_int_equal(source->mode, 0751);
	assert_false(source->sparse);
	assert_blocks(source, (struct piece[]){ { 0, ROOM, false }, { ROOM, 5, false } }, 2);
}

static void holes_are_found_wherever_they_are(void **state)
{
	const struct piece data[] = { { 128 * KIB, 4 * KIB }, { 256 * KIB, 100 * KIB } };
	const struct piece blocks[] = {
		{ 0, 128 * KIB, true },		{ 128 * KIB, 4 * KIB, false },
		{ 132 * KIB, 124 * KIB, true }, { 256 * KIB, 64 * KIB, false },
		{ 320 * KIB, 36 * KIB, false }, { 356 * KIB, 644 * KIB, true },
	};
	struct vb__source *source;
	const char *path;

	if (!keeps_holes(*state)) {
		print_message("# skipped: this file system keeps no holes\n");
		skip();
	}
	path = make_sparse(*state, data, COUNT(data), 1000 * KIB);
	source = open_source(*state, &(struct vb_input){ .path = path });
	assert_true(source->sparse);
	assert_int_equal(source->total_bytes, 1000 * KIB);
	assert_blocks(source, blocks, COUNT(blocks));
}

/* After a hole the first block is short, so that the others are aligned. */
static void blocks_stay_aligned_after_a_hole(void **state)
{
	const struct piece data[] = { { 36 * KIB, 128 * KIB } };
	const struct piece blocks[] = {
		{ 0, 36 * KIB, true },
		{ 36 * KIB, 28 * KIB, false },
		{ 64 * KIB, 64 * KIB, false },
		{ 128 * KIB, 36 * KIB, false },
	};
	const char *path;

	if (!keeps_holes(*state)) {
		print_message("# skipped: this file system keeps no holes\n");
		skip();
	}
	path = make_sparse(*state, data, 1, 164 * KIB);
	assert_blocks(open_source(*state, &(struct vb_input){ .path = path }), blocks,
		      COUNT(blocks));
}

static void five_gib_of_nothing_are_one_block(void **state)
{
	const struct piece blocks[] = { { 0, 5 * GIB + 1, true } };
	const char *path = make_sparse(*state, NULL, 0, 5 * GIB + 1);

	if (!keeps_holes(*state)) {
		print_message("# skipped: this file system keeps no holes\n");
		skip();
	}
	assert_blocks(open_source(*state, &(struct vb_input){ .path = path }), blocks, 1);
}

static void offsets_go_beyond_four_gib(void **state)
{
	const struct piece data[] = { { 5 * GIB, 8 * KIB } };
	const struct piece blocks[] = {
		{ 0, 5 * GIB, true },
		{ 5 * GIB, 8 * KIB, false },
		{ 5 * GIB + 8 * KIB, 4 * KIB, true },
	};
	const char *path = make_sparse(*state, data, 1, 5 * GIB + 12 * KIB);

	if (!keeps_holes(*state)) {
		print_message("# skipped: this file system keeps no holes\n");
		skip();
	}
	assert_blocks(open_source(*state, &(struct vb_input){ .path = path }), blocks,
		      COUNT(blocks));
}

/* As after `{ read line; rdsend ...; } < file`. */
static void a_descriptor_is_read_from_where_it_stands(void **state)
{
	const char *path = kit_path(*state, "file");
	uint8_t *buffer = page_aligned(ROOM);
	struct vb_error err = { .code = VB_OK };
	struct vb__source *source;
	struct vb__block block;
	int fd;

	make_file(path, 10000);
	fd = open(path, O_RDONLY);
	assert_int_equal(lseek(fd, 777, SEEK_SET), 777);
	source = open_source(*state, &(struct vb_input){ .fd = fd });
	assert_int_equal(source->total_bytes, 10000 - 777);
	assert_int_equal(source->ops->next(source, buffer, ROOM, &block, &err), 1);
	assert_int_equal(block.offset, 0);
	assert_int_equal(block.length, 10000 - 777);
	assert_int_equal(source->ops->fill(source, buffer, &block, &err), 0);
	assert_bytes(buffer, 10000 - 777, 777);
	assert_int_equal(source->ops->next(source, buffer, ROOM, &block, &err), 0);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 777);
	assert_int_equal(source->ops->finish(source, &err), 0);
	source->ops->close(source);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 10000);
	close(fd);
	free(buffer);
}

static void a_descriptor_beyond_the_end_gives_nothing(void **state)
{
	const char *path = kit_path(*state, "file");
	int fd;

	make_file(path, 100);
	fd = open(path, O_RDONLY);
	lseek(fd, 500, SEEK_SET);
	assert_blocks(open_source(*state, &(struct vb_input){ .fd = fd }), NULL, 0);
	close(fd);
}

static void a_file_that_shrinks_is_an_error(void **state)
{
	const char *path = kit_path(*state, "file");
	struct vb_error err = { .code = VB_OK };
	struct vb__source *source;

	make_file(path, 2 * ROOM);
	source = open_source(*state, &(struct vb_input){ .path = path });
	assert_int_equal(truncate(path, ROOM + 10), 0);
	assert_int_equal(pump_through(source, NULL, ROOM, 1, &err), VB_ERR_IO);
	assert_string_equal(err.cause, "the file became shorter while it was being read");
	assert_string_equal(err.object, path);
}

static void a_hole_that_shrinks_is_an_error(void **state)
{
	const char *path = make_sparse(*state, NULL, 0, 100 * MIB);
	struct vb_error err = { .code = VB_OK };
	struct vb__source *source = open_source(*state, &(struct vb_input){ .path = path });

	assert_int_equal(truncate(path, MIB), 0);
	assert_int_equal(pump_through(source, NULL, ROOM, 1, &err), VB_ERR_IO);
}

static void a_file_that_grows_is_sent_as_it_was(void **state)
{
	const char *path = kit_path(*state, "file");
	struct vb__source *source;

	make_file(path, 100);
	source = open_source(*state, &(struct vb_input){ .path = path });
	assert_int_equal(truncate(path, ROOM), 0);
	assert_blocks(source, (struct piece[]){ { 0, 100, false } }, 1);
}

/* Reads all of it, by several threads; what is read is checked by a copy. */
static void read_directly(struct kit *kit, const char *path, enum vb_direct direct, size_t block)
{
	const char *to = kit_path(kit, "copy");
	struct vb_error err = { .code = VB_OK };
	struct vb__source *source;

	assert_int_equal(vb__source_open(&(struct vb_input){ .path = path }, direct, kit->cancel_fd,
					 &source, &err),
			 0);
	assert_int_equal(pump_through(source, open_sink(kit, to, UINT64_MAX), block, 4, &err), 0);
	assert_same_files(path, to);
}

static void direct_reads_give_the_same(void **state)
{
	static const size_t sizes[] = { 1, 511, 4096, 100000, 1 * MIB, 1 * MIB + 4095 };
	const char *path = kit_path(*state, "file");

	for (size_t i = 0; i < COUNT(sizes); i++) {
		make_file(path, sizes[i]);
		read_directly(*state, path, VB_DIRECT_ALWAYS, 4096);
		read_directly(*state, path, VB_DIRECT_ALWAYS, 4096 + 512);
		read_directly(*state, path, VB_DIRECT_NEVER, 64 * KIB);
	}
}

/* Large enough to be looked at, and half of it not in the cache. */
static void a_file_half_in_the_cache_is_read_whole(void **state)
{
	const char *path = kit_path(*state, "file");
	int fd;

	make_file(path, 65 * MIB + 123);
	fd = open(path, O_RDONLY);
	assert_int_equal(fsync(fd), 0);
	assert_int_equal(posix_fadvise(fd, 20 * MIB + 4096, 30 * MIB, POSIX_FADV_DONTNEED), 0);
	close(fd);
	read_directly(*state, path, VB_DIRECT_AUTO, 256 * KIB);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, kit_setup, kit_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_file_tells_its_size_and_mode),
		TEST(holes_are_found_wherever_they_are),
		TEST(blocks_stay_aligned_after_a_hole),
		TEST(five_gib_of_nothing_are_one_block),
		TEST(offsets_go_beyond_four_gib),
		TEST(a_descriptor_is_read_from_where_it_stands),
		TEST(a_descriptor_beyond_the_end_gives_nothing),
		TEST(a_file_that_shrinks_is_an_error),
		TEST(a_hole_that_shrinks_is_an_error),
		TEST(a_file_that_grows_is_sent_as_it_was),
		TEST(direct_reads_give_the_same),
		TEST(a_file_half_in_the_cache_is_read_whole),
	};

	return cmocka_run_group_tests_name("source_file", tests, NULL, NULL);
}
