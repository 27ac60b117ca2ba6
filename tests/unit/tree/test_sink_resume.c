/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers that were interrupted, and go on where they were. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "sink_kit.h"

#define SIZE (1024 * KIB)
#define BLOCK (256 * KIB)

/* One small file came, and two blocks of a large one, the second and the last. */
static void interrupt(struct kit *kit, const char *target)
{
	kit_open(kit, target);
	offers(kit, offer_directory(1, 0, "dir"));
	offers(kit, offer_file(2, 1, "small", 5));
	offers(kit, offer_file(3, 1, "large", SIZE));
	offers(kit, offer_file(4, 1, "other", 5));
	whole(kit, 2, "hello");
	blocks(kit, 3, BLOCK, BLOCK);
	blocks(kit, 3, 3 * BLOCK, BLOCK);
	kit_close(kit);
}

static void offer_again(struct kit *kit, uint64_t identity)
{
	struct vb__offer large = offer_file(3, 1, "large", SIZE);

	large.identity = identity;
	offers(kit, offer_directory(1, 0, "dir"));
	offers(kit, offer_file(2, 1, "small", 5));
	offers(kit, large);
	offers(kit, offer_file(4, 1, "other", 5));
	offers(kit, offer_listed(1));
}

static void send_rest(struct kit *kit)
{
	blocks(kit, 3, 0, BLOCK);
	blocks(kit, 3, 2 * BLOCK, BLOCK);
	ends(kit, 3, SIZE);
	whole(kit, 4, "there");
	kit_finish(kit);
	kit_assert_bytes(kit, "dir/large", SIZE);
	kit_assert_file(kit, "dir/small", "hello");
	kit_assert_file(kit, "dir/other", "there");
	assert_int_equal(kit_count(kit, "dir"), 3);
	assert_int_equal(kit_leftovers(kit, ""), 0);
}

static void assert_rest_wanted(struct kit *kit)
{
	assert_false(kit->wanted[2] || kit->wanted[3]);
	assert_true(kit->wanted[4]);
	assert_int_equal(kit->part_count, 2);
	assert_int_equal(kit->parts[0].number, 3);
	assert_int_equal(kit->parts[0].offset, 0);
	assert_int_equal(kit->parts[0].length, BLOCK);
	assert_int_equal(kit->parts[1].offset, 2 * BLOCK);
	assert_int_equal(kit->parts[1].length, BLOCK);
}

static void only_what_is_missing_is_asked_for(void **state)
{
	struct kit *kit = *state;

	interrupt(kit, "");
	assert_int_equal(kit_leftovers(kit, ""), 1);
	assert_int_equal(kit_leftovers(kit, "dir"), 1);
	assert_int_equal(kit_mode(kit, "dir/large"), 0);
	kit_run(kit, "test $(stat -c %%a dir/.rdcp-*) = 600; test $(stat -c %%a .rdcp-*) = 600");
	kit_open(kit, "");
	offer_again(kit, 77);
	assert_rest_wanted(kit);
	send_rest(kit);
	assert_int_equal(kit->report.resumed_bytes, 2 * BLOCK);
	assert_int_equal(kit->report.unchanged, 2); /* the directory, and the small file */
	assert_int_equal(kit->report.files, 2);
}

/* The first run has made the target itself: so it is no directory to copy into. */
static void a_target_that_was_made_is_known_again(void **state)
{
	struct kit *kit = *state;

	interrupt(kit, "name");
	assert_true(S_ISDIR(kit_mode(kit, "name")));
	kit_open(kit, "name");
	offer_again(kit, 77);
	assert_rest_wanted(kit);
	blocks(kit, 3, 0, BLOCK);
	blocks(kit, 3, 2 * BLOCK, BLOCK);
	ends(kit, 3, SIZE);
	whole(kit, 4, "there");
	kit_finish(kit);
	kit_assert_bytes(kit, "name/large", SIZE);
	assert_int_equal(kit_count(kit, ""), 1);
	assert_int_equal(kit_count(kit, "name"), 3);
}

/* Even if that was all that it has done. */
static void a_target_that_was_only_made_is_known_again(void **state)
{
	struct kit *kit = *state;

	for (int round = 0; round < 2; round++) {
		kit_open(kit, "name");
		offers(kit, offer_directory(1, 0, "dir"));
		offers(kit, offer_file(2, 1, "file", 1));
		offers(kit, offer_listed(1));
		if (round == 0)
			kit_close(kit);
	}
	whole(kit, 2, "x");
	kit_finish(kit);
	kit_assert_file(kit, "name/file", "x");
	assert_int_equal(kit_count(kit, "name"), 1);
	assert_int_equal(kit_count(kit, ""), 1);
}

static void it_can_be_interrupted_again_and_again(void **state)
{
	struct kit *kit = *state;

	interrupt(kit, "");
	for (int i = 0; i < 3; i++) {
		kit_open(kit, "");
		offer_again(kit, 77);
		assert_rest_wanted(kit);
		kit_close(kit);
	}
	kit_open(kit, "");
	offer_again(kit, 77);
	blocks(kit, 3, 0, BLOCK);
	kit_close(kit);
	kit_open(kit, "");
	offer_again(kit, 77);
	assert_int_equal(kit->part_count, 1);
	assert_int_equal(kit->parts[0].offset, 2 * BLOCK);
	blocks(kit, 3, 2 * BLOCK, BLOCK);
	kit_close(kit); /* all is there but its end */
	kit_open(kit, "");
	offer_again(kit, 77);
	assert_int_equal(kit->part_count, 0);
	assert_false(kit->wanted[3]);
	kit_assert_bytes(kit, "dir/large", SIZE);
	whole(kit, 4, "there");
	kit_finish(kit);
	assert_int_equal(kit_leftovers(kit, "dir"), 0);
}

static void a_changed_source_starts_anew(void **state)
{
	struct kit *kit = *state;

	interrupt(kit, "");
	kit_open(kit, "");
	offer_again(kit, 78);
	assert_true(kit->wanted[3]);
	assert_int_equal(kit->part_count, 0);
	blocks(kit, 3, 0, BLOCK);
	kit_close(kit);
	/* Back to what it was: the parts of then are gone. */
	kit_open(kit, "");
	offer_again(kit, 77);
	assert_true(kit->wanted[3]);
	blocks(kit, 3, BLOCK, BLOCK);
	blocks(kit, 3, 3 * BLOCK, BLOCK);
	send_rest(kit);
	assert_int_equal(kit->report.resumed_bytes, 0);
}

static void a_source_that_changes_meanwhile_is_not_mixed(void **state)
{
	struct kit *kit = *state;
	struct vb__parcel end = {
		.kind = VB__PARCEL_END, .number = 3, .size = SIZE, .identity = 99
	};

	interrupt(kit, "");
	kit_open(kit, "");
	offer_again(kit, 77);
	blocks(kit, 3, 0, BLOCK);
	assert_int_equal(send_parcel(kit, &end), 0);
	blocks(kit, 3, 2 * BLOCK, BLOCK);
	whole(kit, 4, "there");
	kit_finish(kit);
	assert_int_equal(kit->report.failed, 1);
	assert_int_equal(kit_mode(kit, "dir/large"), 0);
	assert_int_equal(kit_leftovers(kit, "dir"), 0);
}

static void a_target_that_was_touched_is_sent_again(void **state)
{
	struct kit *kit = *state;

	interrupt(kit, "");
	kit_make_file(kit, "dir/small", "HELLO");
	kit_run(kit, "touch -d @1000000000.123456789 dir/small");
	kit_open(kit, "");
	offer_again(kit, 77);
	assert_true(kit->wanted[2]);
	whole(kit, 2, "hello");
	send_rest(kit);
}

static void a_part_that_is_gone_is_sent_again(void **state)
{
	struct kit *kit = *state;

	interrupt(kit, "");
	kit_run(kit, "rm dir/.rdcp-*");
	kit_open(kit, "");
	offer_again(kit, 77);
	assert_true(kit->wanted[3]);
	blocks(kit, 3, 0, BLOCK);
	kit_close(kit);
	kit_open(kit, "");
	offer_again(kit, 77);
	assert_int_equal(kit->part_count, 1);
	assert_int_equal(kit->parts[0].offset, BLOCK);
	assert_int_equal(kit->parts[0].length, 3 * BLOCK);
	kit_close(kit);
}

static void somebody_elses_part_is_not_used(void **state)
{
	struct kit *kit = *state;

	interrupt(kit, "");
	kit_run(kit, "echo secret > other; for f in dir/.rdcp-*; do ln -f other $f; done");
	kit_open(kit, "");
	offer_again(kit, 77);
	assert_true(kit->wanted[3]);
	blocks(kit, 3, 0, BLOCK);
	kit_close(kit);
	kit_assert_file(kit, "other", "secret\n");
}

/* The header names the boot. */
static void pretend_reboot(struct kit *kit)
{
	uint8_t header[64];
	glob_t found;
	uint64_t sum;
	int fd;

	assert_int_equal(glob(kit_path(kit, ".rdcp-*.journal"), 0, NULL, &found), 0);
	fd = open(found.gl_pathv[0], O_RDWR);
	globfree(&found);
	assert_int_equal(pread(fd, header, sizeof(header), 0), sizeof(header));
	header[20] ^= 1;
	sum = XXH3_64bits(header, 56);
	memcpy(header + 56, &sum, sizeof(sum));
	assert_int_equal(pwrite(fd, header, sizeof(header), 0), sizeof(header));
	close(fd);
}

static void after_a_reboot_parts_are_read_again(void **state)
{
	struct kit *kit = *state;

	interrupt(kit, "");
	pretend_reboot(kit);
	/* What was not on the disk came back as zeros. */
	kit_run(kit, "dd if=/dev/zero of=$(ls dir/.rdcp-*) bs=1k seek=800 count=1 conv=notrunc "
		     "2>/dev/null");
	kit_open(kit, "");
	offer_again(kit, 77);
	assert_int_equal(kit->part_count, 2);
	assert_int_equal(kit->parts[0].length, BLOCK);
	assert_int_equal(kit->parts[1].offset, 2 * BLOCK);
	assert_int_equal(kit->parts[1].length, 2 * BLOCK);
	assert_true(kit->wanted[2]); /* it was not synced */
	whole(kit, 2, "hello");
	blocks(kit, 3, 3 * BLOCK, BLOCK);
	send_rest(kit);
}

static void without_resume_nothing_is_left_or_used(void **state)
{
	struct kit *kit = *state;

	kit->options.no_resume = true;
	interrupt(kit, "");
	assert_int_equal(kit_leftovers(kit, ""), 0);
	assert_int_equal(kit_leftovers(kit, "dir"), 0);
	kit->options.no_resume = false;
	interrupt(kit, "");
	kit->options.no_resume = true;
	kit_open(kit, "");
	offer_again(kit, 77);
	assert_true(kit->wanted[2] && kit->wanted[3]);
	whole(kit, 2, "hello");
	blocks(kit, 3, BLOCK, BLOCK);
	blocks(kit, 3, 3 * BLOCK, BLOCK);
	send_rest(kit);
}

/* The source is gone when it goes on: its part goes too. */
static void parts_that_nobody_wants_go(void **state)
{
	struct kit *kit = *state;

	interrupt(kit, "");
	kit_open(kit, "");
	offers(kit, offer_directory(1, 0, "dir"));
	offers(kit, offer_listed(1));
	kit_finish(kit);
	assert_int_equal(kit_count(kit, "dir"), 1);
	assert_int_equal(kit_leftovers(kit, ""), 0);
}

/* A part that stands beside its file in the target itself. */
static void parts_in_the_base_go_too(void **state)
{
	struct kit *kit = *state;

	kit_run(kit, "mkdir target");
	kit_open(kit, "target");
	offers(kit, offer_file(1, 0, "top", 1));
	offers(kit, offer_file(2, 0, "large", SIZE));
	whole(kit, 1, "x");
	blocks(kit, 2, 0, BLOCK);
	kit_close(kit);
	assert_int_equal(kit_leftovers(kit, "target"), 2);
	kit_open(kit, "target");
	offers(kit, offer_file(1, 0, "top", 1));
	kit_finish(kit);
	assert_int_equal(kit_count(kit, "target"), 1);
}

static void two_into_one_directory_do_not_disturb_each_other(void **state)
{
	struct kit *kit = *state, other = *kit;

	kit_open(kit, "");
	offers(kit, offer_file(1, 0, "a", SIZE));
	blocks(kit, 1, 0, BLOCK);
	kit_open(&other, ""); /* the same again: it has no journal, and other names */
	offers(&other, offer_file(1, 0, "a", SIZE));
	blocks(&other, 1, 0, BLOCK);
	blocks(&other, 1, BLOCK, 3 * BLOCK);
	ends(&other, 1, SIZE);
	kit_finish(&other);
	kit_assert_bytes(kit, "a", SIZE);
	assert_int_equal(kit_leftovers(kit, ""), 2);
	blocks(kit, 1, BLOCK, 3 * BLOCK);
	ends(kit, 1, SIZE);
	kit_finish(kit);
	kit_assert_bytes(kit, "a", SIZE);
	assert_int_equal(kit_count(kit, ""), 1);
}

static void linked_files_are_known_again(void **state)
{
	struct kit *kit = *state;
	struct vb__offer first = offer_file(1, 0, "first", 5);

	first.flags = VB__OFFER_LINKED;
	for (int round = 0; round < 2; round++) {
		kit_open(kit, "");
		offers(kit, first);
		offers(kit, offer_file(2, 0, "never", 5));
		if (round == 0)
			whole(kit, 1, "hello");
		assert_int_equal(kit->wanted[1], round == 0);
		offers(kit, offer_hardlink(3, 0, "second", 1));
		kit_close(kit);
		assert_int_equal(kit->report.hardlinks, round == 0);
	}
	assert_int_equal(kit_mode(kit, "second"), S_IFREG | 0644);
}

static void nothing_is_left_where_nothing_came(void **state)
{
	struct kit *kit = *state;

	kit_open(kit, "");
	offers(kit, offer_file(1, 0, "a", SIZE));
	offers(kit, offer_file(2, 0, "b", 5));
	kit_close(kit);
	assert_int_equal(kit_count(kit, ""), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, kit_setup, kit_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(only_what_is_missing_is_asked_for),
		TEST(a_target_that_was_made_is_known_again),
		TEST(a_target_that_was_only_made_is_known_again),
		TEST(it_can_be_interrupted_again_and_again),
		TEST(a_changed_source_starts_anew),
		TEST(a_source_that_changes_meanwhile_is_not_mixed),
		TEST(a_target_that_was_touched_is_sent_again),
		TEST(a_part_that_is_gone_is_sent_again),
		TEST(somebody_elses_part_is_not_used),
		TEST(after_a_reboot_parts_are_read_again),
		TEST(without_resume_nothing_is_left_or_used),
		TEST(parts_that_nobody_wants_go),
		TEST(parts_in_the_base_go_too),
		TEST(two_into_one_directory_do_not_disturb_each_other),
		TEST(linked_files_are_known_again),
		TEST(nothing_is_left_where_nothing_came),
	};

	return cmocka_run_group_tests_name("sink_resume", tests, NULL, NULL);
}
