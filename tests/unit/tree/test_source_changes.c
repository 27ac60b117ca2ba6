/* SPDX-License-Identifier: Apache-2.0 */
/* The sending end, and files that are not what they were when they were offered. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "driven.h"

static void file_that_is_newer_than_its_offer_is_sent_as_it_is(void **state)
{
	struct kit *kit = *state;
	struct driven d = driven_open(kit, kit_path(kit, "file"), VB_KEEP_ARCHIVE);
	struct vb__parcel parcel;

	make_file(kit, "file", 100);
	driven_start(&d);
	driven_take_offers(&d, 1);
	make_file(kit, "file", 40);
	assert_int_equal(driven_want(&d, 1, 1), 0);
	assert_int_equal(driven_settle(&d, 1), 0);
	driven_take(&d, VB__BLOCK_PARCELS);
	parcel = driven_only_parcel(&d);
	assert_int_equal(parcel.kind, VB__PARCEL_WHOLE);
	assert_int_equal(parcel.size, 40);
	assert_int_not_equal(parcel.identity, d.last_file.identity);
	assert_int_equal(driven_next(&d), 0);
	driven_end(&d);
	assert_int_equal(d.report.failed, 0);
}

/* It was packed as a small one; the block must not be empty for that. */
static void file_that_has_grown_too_large_for_a_parcel_comes_in_blocks(void **state)
{
	struct kit *kit = *state;
	struct driven d = driven_open(kit, kit_path(kit, "file"), VB_KEEP_ARCHIVE);
	const uint64_t size = 2 * ROOM + 5;

	make_file(kit, "file", 10);
	driven_start(&d);
	driven_take_offers(&d, 1);
	assert_int_equal(driven_want(&d, 1, 1), 0);
	assert_int_equal(driven_settle(&d, 1), 0);
	assert_int_equal(driven_next(&d), 1);
	make_file(kit, "file", size);
	driven_fill(&d);
	for (uint64_t at = 0; at < size;) {
		assert_int_equal(d.block.flags, 0);
		assert_int_equal(d.block.file, 1);
		assert_int_equal(d.block.offset, at);
		assert_bytes(d.buffer, d.block.length, at);
		at += d.block.length;
		assert_int_equal(driven_next(&d), 1);
		driven_fill(&d);
	}
	assert_int_equal(driven_only_parcel(&d).size, size);
	assert_int_equal(driven_next(&d), 0);
	driven_end(&d);
	assert_int_equal(d.report.files, 1);
	assert_int_equal(d.report.sent_bytes, size);
}

static void one_of_several_that_has_grown_comes_later(void **state)
{
	struct kit *kit = *state;
	struct driven d = driven_open(kit, kit_path(kit, "."), VB_KEEP_ARCHIVE);
	unsigned parcels = 0;

	make_file(kit, "a", 10);
	make_file(kit, "b", 10);
	driven_start(&d);
	driven_take_offers(&d, 3);
	assert_int_equal(driven_want(&d, 2, 2), 0);
	assert_int_equal(driven_settle(&d, 3), 0);
	assert_int_equal(driven_next(&d), 1);
	make_file(kit, "b", 3000);
	do {
		size_t at = 0;

		driven_fill(&d);
		while (at < d.block.length) {
			assert_int_equal(driven_parcel_at(&d, &at).kind, VB__PARCEL_WHOLE);
			parcels++;
		}
	} while (driven_next(&d) > 0);
	assert_int_equal(parcels, 2);
	driven_end(&d);
	assert_int_equal(d.report.sent_bytes, 3010);
}

/* Between two blocks something happens to the file; what its last parcel says then. */
static struct vb__parcel read_while(struct driven *d, void (*meanwhile)(struct kit *kit))
{
	make_file(d->kit, "file", 3 * ROOM);
	driven_start(d);
	driven_take_offers(d, 1);
	assert_int_equal(driven_want(d, 1, 1), 0);
	assert_int_equal(driven_settle(d, 1), 0);
	driven_take(d, 0);
	meanwhile(d->kit);
	do {
		assert_int_equal(driven_next(d), 1);
		driven_fill(d);
	} while (d->block.flags != VB__BLOCK_PARCELS);
	return driven_only_parcel(d);
}

static void cut_off(struct kit *kit)
{
	assert_int_equal(truncate(kit->paths[0], ROOM + 10), 0);
}

static void overwrite(struct kit *kit)
{
	int fd = openat(kit->dir_fd, "file", O_WRONLY);

	assert_int_equal(pwrite(fd, "x", 1, 0), 1);
	close(fd);
}

static void append(struct kit *kit)
{
	int fd = openat(kit->dir_fd, "file", O_WRONLY | O_APPEND);

	assert_int_equal(write(fd, "more", 4), 4);
	close(fd);
}

static void file_that_becomes_shorter_is_given_up(void **state)
{
	struct kit *kit = *state;
	struct driven d = driven_open(kit, kit_path(kit, "file"), VB_KEEP_ARCHIVE);
	struct vb__parcel parcel = read_while(&d, cut_off);

	assert_words(&parcel, "it changed while it was read");
	assert_int_equal(driven_next(&d), 0);
	driven_end(&d);
	assert_int_equal(d.report.failed, 1);
	assert_int_equal(d.report.files, 0);
	assert_string_equal(kit->told, "failed file: it changed while it was read\n");
}

static void file_that_is_written_to_is_given_up(void **state)
{
	struct kit *kit = *state;
	struct driven d = driven_open(kit, kit_path(kit, "file"), VB_KEEP_ARCHIVE);
	struct vb__parcel parcel = read_while(&d, overwrite);

	assert_words(&parcel, "it changed while it was read");
	assert_int_equal(driven_next(&d), 0);
	driven_end(&d);
	assert_int_equal(d.report.failed, 1);
}

static void file_that_only_grows_is_sent_as_it_was(void **state)
{
	struct kit *kit = *state;
	struct driven d = driven_open(kit, kit_path(kit, "file"), VB_KEEP_ARCHIVE);
	struct vb__parcel parcel = read_while(&d, append);

	assert_int_equal(parcel.kind, VB__PARCEL_END);
	assert_int_equal(parcel.size, 3 * ROOM);
	assert_int_equal(driven_next(&d), 0);
	driven_end(&d);
	assert_int_equal(d.report.failed, 0);
	assert_int_equal(d.report.files, 1);
}

static void what_takes_the_place_of_a_file_is_not_read(void **state)
{
	struct kit *kit = *state;
	struct driven d = driven_open(kit, kit_path(kit, "d"), VB_KEEP_ARCHIVE);
	struct vb__parcel parcel;
	size_t at = 0;

	make_file(kit, "secret", 10);
	make_dir(kit, "d");
	make_dir(kit, "d/sub");
	make_file(kit, "d/sub/secret", 10);
	make_file(kit, "d/a", 10);
	driven_start(&d);
	driven_take_offers(&d, 4);
	/* A symlink for the file, and one for the directory. */
	assert_int_equal(unlinkat(kit->dir_fd, "d/a", 0), 0);
	make_link(kit, "d/a", "../secret");
	assert_int_equal(renameat(kit->dir_fd, "d/sub", kit->dir_fd, "d/old"), 0);
	make_link(kit, "d/sub", "..");
	for (uint32_t n = 2; n <= 4; n++) /* one of them is the directory */
		(void)driven_want(&d, n, 1);
	assert_int_equal(driven_settle(&d, 4), 0);
	driven_take(&d, VB__BLOCK_PARCELS);
	for (unsigned i = 0; i < 2; i++) {
		parcel = driven_parcel_at(&d, &at);
		assert_int_equal(parcel.kind, VB__PARCEL_MISSED);
	}
	assert_int_equal(at, d.block.length);
	assert_int_equal(driven_next(&d), 0);
	driven_end(&d);
	assert_int_equal(d.report.files, 0);
	assert_int_equal(d.report.failed + d.report.vanished, 2);
}

#define IN_KIT(test) cmocka_unit_test_setup_teardown(test, kit_setup, kit_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_KIT(file_that_is_newer_than_its_offer_is_sent_as_it_is),
		IN_KIT(file_that_has_grown_too_large_for_a_parcel_comes_in_blocks),
		IN_KIT(one_of_several_that_has_grown_comes_later),
		IN_KIT(file_that_becomes_shorter_is_given_up),
		IN_KIT(file_that_is_written_to_is_given_up),
		IN_KIT(file_that_only_grows_is_sent_as_it_was),
		IN_KIT(what_takes_the_place_of_a_file_is_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
