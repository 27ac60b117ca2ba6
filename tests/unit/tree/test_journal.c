/* SPDX-License-Identifier: Apache-2.0 */
/* The journal by itself: what it remembers, and what it does not believe. */
#include <fcntl.h>
#include <glob.h>
#include <string.h>
#include <unistd.h>

#include "sink_kit.h"
#include "tree/journal.h"

static const struct vb__path_hash one = { 1, 2 }, two = { 3, 4 };

static int open_dir(struct kit *kit)
{
	int fd = open(kit->dir, O_RDONLY | O_DIRECTORY);

	assert_true(fd >= 0);
	return fd;
}

static struct vb__block block_at(uint64_t offset, uint64_t length)
{
	return (struct vb__block){ .offset = offset, .length = length, .file = 9, .hash = 5 };
}

static uint64_t parts_of(struct vb__journal *j, const struct vb__path_hash *path, uint64_t identity)
{
	struct vb__extents extents = { .list = NULL };
	uint64_t bytes;

	assert_int_equal(vb__journal_parts(j, path, identity, 1000, -1, &extents), 0);
	bytes = extents.bytes;
	vb__extents_free(&extents);
	return bytes;
}

static void fill(struct kit *kit, int dir_fd)
{
	struct vb__block block = block_at(0, 100);
	struct vb__journal j;

	(void)kit;
	vb__journal_open(&j, dir_fd, 42, VB__JOURNAL_KEEP);
	assert_true(j.fd >= 0);
	assert_false(j.resumed);
	vb__journal_add_done(&j, &one, 7, 8, false);
	vb__journal_add_part(&j, &two, 7, &block);
	block = block_at(500, 500);
	vb__journal_add_part(&j, &two, 7, &block);
	vb__journal_close(&j);
}

static void it_remembers(void **state)
{
	struct kit *kit = *state;
	int dir_fd = open_dir(kit);
	struct vb__journal j;

	fill(kit, dir_fd);
	assert_true(vb__journal_exists(dir_fd, 42));
	assert_false(vb__journal_exists(dir_fd, 43));
	vb__journal_open(&j, dir_fd, 42, VB__JOURNAL_KEEP);
	assert_true(j.resumed && j.same_boot);
	assert_true(vb__journal_has(&j, &one, 7, 8));
	assert_false(vb__journal_has(&j, &one, 6, 8));
	assert_false(vb__journal_has(&j, &one, 7, 9));
	assert_false(vb__journal_has(&j, &two, 7, 8));
	assert_int_equal(parts_of(&j, &two, 7), 600);
	assert_int_equal(parts_of(&j, &two, 8), 0);
	assert_int_equal(parts_of(&j, &one, 7), 0);
	vb__journal_remove(&j);
	vb__journal_close(&j);
	assert_int_equal(kit_count(kit, ""), 0);
	close(dir_fd);
}

static void the_last_word_counts(void **state)
{
	struct kit *kit = *state;
	int dir_fd = open_dir(kit);
	struct vb__block block = block_at(0, 10);
	struct vb__journal j;

	fill(kit, dir_fd);
	vb__journal_open(&j, dir_fd, 42, VB__JOURNAL_KEEP);
	vb__journal_add_done(&j, &one, 70, 80, false);
	vb__journal_restart(&j, &two);
	vb__journal_add_part(&j, &two, 7, &block);
	vb__journal_close(&j);
	vb__journal_open(&j, dir_fd, 42, VB__JOURNAL_KEEP);
	assert_true(vb__journal_has(&j, &one, 70, 80));
	assert_false(vb__journal_has(&j, &one, 7, 8));
	assert_int_equal(parts_of(&j, &two, 7), 10);
	vb__journal_close(&j);
	close(dir_fd);
}

static void parts_that_cannot_be_are_not_believed(void **state)
{
	struct kit *kit = *state;
	struct vb__block beyond = block_at(900, 101), huge = block_at(UINT64_MAX - 5, 4);
	struct vb__block again = block_at(50, 10);
	int dir_fd = open_dir(kit);
	struct vb__journal j;

	fill(kit, dir_fd);
	vb__journal_open(&j, dir_fd, 42, VB__JOURNAL_KEEP);
	vb__journal_add_part(&j, &two, 7, &beyond);
	vb__journal_add_part(&j, &two, 7, &huge);
	vb__journal_add_part(&j, &two, 7, &again);
	assert_int_equal(parts_of(&j, &two, 7), 600);
	vb__journal_close(&j);
	close(dir_fd);
}

static off_t journal_size(struct kit *kit, off_t resize, uint8_t flip)
{
	struct stat st;
	glob_t found;
	uint8_t byte;
	int fd;

	assert_int_equal(glob(kit_path(kit, ".rdcp-*.journal"), 0, NULL, &found), 0);
	fd = open(found.gl_pathv[0], O_RDWR);
	globfree(&found);
	if (resize >= 0)
		assert_int_equal(ftruncate(fd, resize), 0);
	if (flip) {
		assert_int_equal(pread(fd, &byte, 1, flip), 1);
		byte ^= 1;
		assert_int_equal(pwrite(fd, &byte, 1, flip), 1);
	}
	assert_int_equal(fstat(fd, &st), 0);
	close(fd);
	return st.st_size;
}

/* Header, DONE, PART, PART: 64 bytes each. */
static void torn_records_are_ignored(void **state)
{
	struct kit *kit = *state;
	int dir_fd = open_dir(kit);

	for (off_t size = 0; size <= 256; size += 13) {
		struct vb__journal j;

		fill(kit, dir_fd);
		assert_int_equal(journal_size(kit, -1, 0), 256);
		journal_size(kit, size, 0);
		vb__journal_open(&j, dir_fd, 42, VB__JOURNAL_KEEP);
		assert_int_equal(j.resumed, size >= 64);
		assert_int_equal(vb__journal_has(&j, &one, 7, 8), size >= 128);
		assert_int_equal(parts_of(&j, &two, 7), size == 256 ? 600 : size >= 192 ? 100 : 0);
		vb__journal_remove(&j);
		vb__journal_close(&j);
	}
	close(dir_fd);
}

static void a_flipped_bit_ends_it(void **state)
{
	struct kit *kit = *state;
	static const uint8_t flips[] = { 3, 30, 60, 70, 127, 130, 191, 200, 250 };
	int dir_fd = open_dir(kit);

	for (size_t i = 0; i < COUNT(flips); i++) {
		uint8_t at = flips[i];
		struct vb__journal j;

		fill(kit, dir_fd);
		journal_size(kit, -1, at);
		vb__journal_open(&j, dir_fd, 42, VB__JOURNAL_KEEP);
		assert_int_equal(j.resumed, at >= 64);
		assert_int_equal(vb__journal_has(&j, &one, 7, 8), at >= 128);
		assert_int_equal(parts_of(&j, &two, 7), at >= 192 ? 100 : 0);
		/* What is added now comes instead. */
		vb__journal_add_done(&j, &two, 1, 2, false);
		vb__journal_close(&j);
		vb__journal_open(&j, dir_fd, 42, VB__JOURNAL_KEEP);
		assert_true(vb__journal_has(&j, &two, 1, 2));
		vb__journal_remove(&j);
		vb__journal_close(&j);
	}
	close(dir_fd);
}

static void one_at_a_time(void **state)
{
	struct kit *kit = *state;
	int dir_fd = open_dir(kit);
	struct vb__journal mine, yours;

	vb__journal_open(&mine, dir_fd, 42, VB__JOURNAL_KEEP);
	vb__journal_open(&yours, dir_fd, 42, VB__JOURNAL_KEEP);
	assert_int_equal(yours.fd, -1);
	assert_int_not_equal(yours.tag, 42);
	vb__journal_add_done(&yours, &one, 7, 8, false);
	assert_false(vb__journal_has(&yours, &one, 7, 8));
	vb__journal_remove(&yours);
	vb__journal_close(&yours);
	assert_true(vb__journal_exists(dir_fd, 42));
	vb__journal_close(&mine);
	assert_false(vb__journal_exists(dir_fd, 42)); /* it was empty */
	close(dir_fd);
}

static void what_is_not_ours_is_left_alone(void **state)
{
	struct kit *kit = *state;
	int dir_fd = open_dir(kit);
	struct vb__journal j;

	kit_make_file(kit, "victim", "precious");
	kit_run(kit, "ln -s victim .rdcp-000000000000002a.journal");
	vb__journal_open(&j, dir_fd, 42, VB__JOURNAL_KEEP);
	assert_int_equal(j.fd, -1);
	vb__journal_close(&j);
	kit_run(kit, "rm .rdcp-*; ln victim .rdcp-000000000000002a.journal; chmod 600 victim");
	vb__journal_open(&j, dir_fd, 42, VB__JOURNAL_KEEP);
	assert_int_equal(j.fd, -1);
	vb__journal_close(&j);
	kit_assert_file(kit, "victim", "precious");
	kit_run(kit, "rm .rdcp-*; mkfifo .rdcp-000000000000002a.journal");
	vb__journal_open(&j, dir_fd, 42, VB__JOURNAL_KEEP);
	assert_int_equal(j.fd, -1);
	vb__journal_close(&j);
	close(dir_fd);
}

static bool is_believed(int dir_fd, enum vb__journal_wish wish)
{
	struct vb__journal j;
	bool has;

	vb__journal_open(&j, dir_fd, 42, wish);
	has = vb__journal_has(&j, &one, 7, 8);
	if (!has)
		vb__journal_add_done(&j, &one, 7, 8, false);
	vb__journal_close(&j);
	return has;
}

static void what_came_unsealed_is_believed_by_no_sealed_session(void **state)
{
	struct kit *kit = *state;
	int dir_fd = open_dir(kit);

	fill(kit, dir_fd);
	assert_false(is_believed(dir_fd, VB__JOURNAL_KEEP_SEALED));
	assert_true(is_believed(dir_fd, VB__JOURNAL_KEEP_SEALED));
	assert_true(is_believed(dir_fd, VB__JOURNAL_KEEP));
	/* Now some of it may have come unsealed. */
	assert_false(is_believed(dir_fd, VB__JOURNAL_KEEP_SEALED));
	close(dir_fd);
}

static void many_are_remembered(void **state)
{
	struct kit *kit = *state;
	int dir_fd = open_dir(kit);
	struct vb__journal j;

	vb__journal_open(&j, dir_fd, 42, VB__JOURNAL_KEEP);
	for (uint64_t i = 1; i <= 5000; i++)
		vb__journal_add_done(&j, &(struct vb__path_hash){ i, i * i }, i, i + 1, false);
	vb__journal_close(&j);
	vb__journal_open(&j, dir_fd, 42, VB__JOURNAL_KEEP);
	for (uint64_t i = 1; i <= 5000; i++)
		assert_true(vb__journal_has(&j, &(struct vb__path_hash){ i, i * i }, i, i + 1));
	vb__journal_close(&j);
	close(dir_fd);
}

static void names_are_known(void **state)
{
	struct vb__part_name name = vb__part_name(42, &one);

	(void)state;
	assert_true(vb__is_reserved(name.text));
	assert_true(vb__is_part_of(name.text, 42));
	assert_false(vb__is_part_of(name.text, 43));
	assert_true(vb__is_reserved(".rdcp-000000000000002a.journal"));
	assert_false(vb__is_part_of(".rdcp-000000000000002a.journal", 42));
	assert_false(vb__is_reserved(".rdcp-"));
	assert_false(vb__is_reserved(".rdcp-000000000000002a"));
	assert_false(vb__is_reserved(".rdcp-000000000000002a-12"));
	assert_false(vb__is_reserved("file"));
	memmove(name.text + 8, name.text + 7, strlen(name.text + 7) + 1); /* one digit more */
	assert_false(vb__is_reserved(name.text));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, kit_setup, kit_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(it_remembers),
		TEST(the_last_word_counts),
		TEST(parts_that_cannot_be_are_not_believed),
		TEST(torn_records_are_ignored),
		TEST(a_flipped_bit_ends_it),
		TEST(one_at_a_time),
		TEST(what_is_not_ours_is_left_alone),
		TEST(what_came_unsealed_is_believed_by_no_sealed_session),
		TEST(many_are_remembered),
		TEST(names_are_known),
	};

	return cmocka_run_group_tests_name("journal", tests, NULL, NULL);
}
