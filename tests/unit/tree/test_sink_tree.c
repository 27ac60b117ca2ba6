/* SPDX-License-Identifier: Apache-2.0 */
/* A tree that comes from an honest sender: what stands in the end, and what was told. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "sink_kit.h"
#include "tree/content.h"

static struct stat stat_of(struct kit *kit, const char *name)
{
	struct stat st;

	assert_int_equal(lstat(kit_path(kit, name), &st), 0);
	return st;
}

static void a_small_file_comes_whole(void **state)
{
	struct kit *kit = *state;
	struct stat st;

	kit_open(kit, "");
	offers(kit, offer_file(1, 0, "file", 5));
	assert_true(kit->wanted[1]);
	assert_int_equal(kit->settled, 1);
	assert_int_equal(kit_mode(kit, "file"), 0);
	whole(kit, 1, "hello");
	kit_finish(kit);
	kit_assert_file(kit, "file", "hello");
	st = stat_of(kit, "file");
	assert_int_equal(st.st_mode, S_IFREG | 0644);
	assert_int_equal(st.st_mtim.tv_sec, 1000000000);
	assert_int_equal(st.st_mtim.tv_nsec, 123456789);
	assert_int_equal(kit_count(kit, ""), 1);
	assert_int_equal(kit->report.files, 1);
	assert_int_equal(kit->report.sent_bytes, 5);
	assert_int_equal(kit->events[VB_TREE_COPIED], 1);
	assert_int_equal(kit->happened, 1);
}

static void a_large_file_comes_in_blocks_in_any_order(void **state)
{
	struct kit *kit = *state;

	kit_open(kit, "");
	offers(kit, offer_file(1, 0, "file", 300 * KIB));
	blocks(kit, 1, 200 * KIB, 100 * KIB);
	ends(kit, 1, 300 * KIB);
	assert_int_equal(kit_mode(kit, "file"), 0);
	blocks(kit, 1, 0, 100 * KIB);
	assert_int_equal(kit_mode(kit, "file"), 0);
	blocks(kit, 1, 100 * KIB, 100 * KIB);
	kit_assert_bytes(kit, "file", 300 * KIB);
	kit_finish(kit);
	assert_int_equal(stat_of(kit, "file").st_mode, S_IFREG | 0644);
	assert_int_equal(kit_count(kit, ""), 1);
}

static void holes_are_left_out(void **state)
{
	struct kit *kit = *state;
	struct vb__offer offer = offer_file(1, 0, "file", 64 * MIB);
	struct stat st;

	offer.flags = VB__OFFER_SPARSE;
	kit_open(kit, "");
	offers(kit, offer);
	assert_int_equal(send_hole(kit, 1, 0, 32 * MIB), 0);
	blocks(kit, 1, 32 * MIB, 64 * KIB);
	assert_int_equal(send_hole(kit, 1, 32 * MIB + 64 * KIB, 32 * MIB - 64 * KIB), 0);
	ends(kit, 1, 64 * MIB);
	kit_finish(kit);
	st = stat_of(kit, "file");
	assert_int_equal(st.st_size, 64 * MIB);
	assert_in_range(st.st_blocks * 512, 64 * KIB, MIB);
	assert_int_equal(kit->report.sent_bytes, 64 * KIB);
}

static void a_small_file_keeps_its_holes(void **state)
{
	struct kit *kit = *state;
	struct vb__offer offer = offer_file(1, 0, "file", 100 * KIB);
	struct vb__parcel parcel = { .kind = VB__PARCEL_WHOLE, .number = 1, .size = 100 * KIB };
	uint8_t *data = calloc(1, 100 * KIB);
	struct stat st;

	data[50 * KIB] = 1;
	offer.flags = VB__OFFER_SPARSE;
	parcel.data = (struct vb__slice){ .data = data, .len = 100 * KIB };
	kit_open(kit, "");
	offers(kit, offer);
	assert_int_equal(send_parcel(kit, &parcel), 0);
	kit_finish(kit);
	st = stat_of(kit, "file");
	assert_int_equal(st.st_size, 100 * KIB);
	assert_in_range(st.st_blocks * 512, 1, 16 * KIB);
	free(data);
}

static void directories_get_their_metadata_last(void **state)
{
	struct kit *kit = *state;
	struct vb__offer offer = offer_directory(1, 0, "dir");

	offer.mode = S_IFDIR | 0555;
	kit_open(kit, "");
	offers(kit, offer);
	assert_int_equal(kit_mode(kit, "dir") & 0700, 0700);
	offers(kit, offer_directory(2, 1, "below"));
	offers(kit, offer_file(3, 2, "file", 1));
	offers(kit, offer_listed(2));
	offers(kit, offer_listed(1));
	assert_int_equal(kit_mode(kit, "dir") & 0700, 0700);
	whole(kit, 3, "x");
	assert_int_equal(stat_of(kit, "dir").st_mode, S_IFDIR | 0555);
	assert_int_equal(stat_of(kit, "dir").st_mtim.tv_sec, 1000000000);
	assert_int_equal(stat_of(kit, "dir/below").st_mtim.tv_nsec, 123456789);
	kit_finish(kit);
	assert_int_equal(kit->report.directories, 2);
	kit_assert_file(kit, "dir/below/file", "x");
}

static void without_keeping_modes_the_umask_counts(void **state)
{
	struct kit *kit = *state;
	struct vb__offer file = offer_file(1, 0, "new", 1), dir = offer_directory(3, 0, "dir");

	kit->options.keep = 0;
	kit_make_file(kit, "old", "before");
	assert_int_equal(chmod(kit_path(kit, "old"), 0640), 0);
	file.mode = S_IFREG | 06777;
	dir.mode = S_IFDIR | 0777;
	kit_open(kit, "");
	offers(kit, file);
	file = offer_file(2, 0, "old", 1);
	offers(kit, file);
	offers(kit, dir);
	offers(kit, offer_listed(3));
	whole(kit, 1, "1");
	whole(kit, 2, "2");
	kit_finish(kit);
	assert_int_equal(stat_of(kit, "new").st_mode, S_IFREG | 0755);
	assert_int_equal(stat_of(kit, "old").st_mode, S_IFREG | 0640);
	assert_int_equal(stat_of(kit, "dir").st_mode, S_IFDIR | 0755);
	assert_int_not_equal(stat_of(kit, "new").st_mtim.tv_sec, 1000000000);
	kit_assert_file(kit, "old", "2");
}

static void setuid_is_kept_with_the_mode(void **state)
{
	struct kit *kit = *state;
	struct vb__offer offer = offer_file(1, 0, "file", 1);

	offer.mode = S_IFREG | 06755;
	offer.uid = geteuid() == 0 ? 12 : geteuid();
	kit_open(kit, "");
	offers(kit, offer);
	whole(kit, 1, "x");
	kit_finish(kit);
	assert_int_equal(stat_of(kit, "file").st_mode, S_IFREG | 06755);
	assert_int_equal(stat_of(kit, "file").st_uid, offer.uid);
}

static void owners_go_by_name_first(void **state)
{
	struct kit *kit = *state;
	struct vb__offer offer = offer_file(1, 0, "file", 1);

	if (geteuid() != 0) {
		print_message("# skipped: only root can give files to others\n");
		skip();
	}
	offer.uid = offer.gid = 4321;
	offer.user = (struct vb__slice){ .data = (const uint8_t *)"daemon", .len = 6 };
	offer.group = (struct vb__slice){ .data = (const uint8_t *)"no-such-group", .len = 13 };
	kit_open(kit, "");
	offers(kit, offer);
	whole(kit, 1, "x");
	kit_finish(kit);
	assert_int_equal(stat_of(kit, "file").st_uid, 1);
	assert_int_equal(stat_of(kit, "file").st_gid, 4321);
	kit->options.keep |= VB_KEEP_NUMERIC_IDS;
	kit_open(kit, "");
	offers(kit, offer);
	whole(kit, 1, "x");
	kit_finish(kit);
	assert_int_equal(stat_of(kit, "file").st_uid, 4321);
}

/* Of the file system that the tests run on. */
static bool has_xattrs(struct kit *kit)
{
	bool has;

	kit_make_file(kit, "probe", "");
	has = setxattr(kit_path(kit, "probe"), "user.x", "y", 1, 0) == 0;
	assert_int_equal(unlink(kit_path(kit, "probe")), 0);
	return has;
}

static void attributes_come_and_go(void **state)
{
	struct kit *kit = *state;
	struct vb__offer offer = offer_file(1, 0, "file", 5);
	struct vb__xattr xattr = { .name = "user.new", .value = { (const uint8_t *)"v", 1 } };
	uint8_t run[100];
	char value[10];

	if (!has_xattrs(kit)) {
		print_message("# skipped: no attributes here\n");
		skip();
	}
	kit_make_file(kit, "file", "hello");
	assert_int_equal(setxattr(kit_path(kit, "file"), "user.old", "x", 1, 0), 0);
	offer.xattrs.len = vb__xattr_encode(run, sizeof(run), &xattr);
	offer.xattrs.data = run;
	kit->options.select = VB_SELECT_CHANGED;
	kit_run(kit, "touch -d @1000000000.123456789 file");
	kit_open(kit, "");
	offers(kit, offer);
	assert_false(kit->wanted[1]);
	kit_finish(kit);
	assert_int_equal(kit->report.unchanged, 1);
	assert_int_equal(getxattr(kit_path(kit, "file"), "user.new", value, 10), 1);
	assert_int_equal(getxattr(kit_path(kit, "file"), "user.old", value, 10), -1);
	kit->options.keep &= ~(unsigned)VB_KEEP_XATTRS;
	xattr.name[5] = 'X';
	offer.xattrs.len = vb__xattr_encode(run, sizeof(run), &xattr);
	kit->options.select = VB_SELECT_ALL;
	kit_open(kit, "");
	offers(kit, offer);
	whole(kit, 1, "again");
	kit_finish(kit);
	assert_int_equal(listxattr(kit_path(kit, "file"), NULL, 0), 0);
}

static void a_file_may_have_grown_since_it_was_offered(void **state)
{
	struct kit *kit = *state;

	kit_open(kit, "");
	offers(kit, offer_file(1, 0, "file", 300 * KIB));
	blocks(kit, 1, 0, 301 * KIB);
	ends(kit, 1, 301 * KIB);
	kit_finish(kit);
	assert_int_equal(stat_of(kit, "file").st_size, 301 * KIB);
}

static void further_names_of_links_and_specials_are_links(void **state)
{
	struct kit *kit = *state;
	struct vb__offer fifo = offer_directory(2, 0, "fifo");
	struct vb__offer link = offer_symlink(1, 0, "link", "/nowhere");

	fifo.kind = VB__OFFER_SPECIAL;
	fifo.mode = S_IFIFO | 0640;
	fifo.flags = link.flags = VB__OFFER_LINKED;
	kit->options.keep |= VB_KEEP_HARDLINKS;
	kit_open(kit, "");
	offers(kit, link);
	offers(kit, fifo);
	offers(kit, offer_hardlink(3, 0, "second link", 1));
	offers(kit, offer_hardlink(4, 0, "second fifo", 2));
	kit_finish(kit);
	assert_int_equal(stat_of(kit, "link").st_ino, stat_of(kit, "second link").st_ino);
	assert_int_equal(stat_of(kit, "fifo").st_ino, stat_of(kit, "second fifo").st_ino);
	assert_int_equal(kit->report.hardlinks, 2);
}

static void links_and_specials_are_made(void **state)
{
	struct kit *kit = *state;
	struct vb__offer fifo = offer_directory(2, 0, "fifo");
	char to[20];

	fifo.kind = VB__OFFER_SPECIAL;
	fifo.mode = S_IFIFO | 0640;
	for (int round = 0; round < 2; round++) {
		kit_open(kit, "");
		offers(kit, offer_symlink(1, 0, "link", "/nowhere"));
		offers(kit, fifo);
		kit_finish(kit);
		assert_int_equal(readlink(kit_path(kit, "link"), to, 20), 8);
		assert_int_equal(stat_of(kit, "link").st_mtim.tv_nsec, 123456789);
		assert_int_equal(stat_of(kit, "fifo").st_mode, S_IFIFO | 0640);
		assert_int_equal(kit->report.symlinks, !round);
		assert_int_equal(kit->report.specials, !round);
		assert_int_equal(kit->report.unchanged, 2 * round);
	}
	kit_open(kit, "");
	offers(kit, offer_symlink(1, 0, "link", "/elsewhere"));
	kit_finish(kit);
	assert_int_equal(readlink(kit_path(kit, "link"), to, 20), 10);
	assert_int_equal(kit_count(kit, ""), 2);
}

static void a_second_name_waits_for_its_file(void **state)
{
	struct kit *kit = *state;
	struct vb__offer first = offer_file(2, 1, "first", 1);

	first.flags = VB__OFFER_LINKED;
	kit_open(kit, "");
	offers(kit, offer_directory(1, 0, "dir"));
	offers(kit, first);
	offers(kit, offer_directory(3, 0, "other"));
	offers(kit, offer_hardlink(4, 3, "second", 2));
	offers(kit, offer_listed(3));
	assert_int_equal(kit_mode(kit, "other/second"), 0);
	whole(kit, 2, "x");
	offers(kit, offer_hardlink(5, 1, "third", 2));
	offers(kit, offer_listed(1));
	kit_finish(kit);
	assert_int_equal(stat_of(kit, "dir/first").st_nlink, 3);
	assert_int_equal(stat_of(kit, "dir/first").st_ino, stat_of(kit, "other/second").st_ino);
	assert_int_equal(stat_of(kit, "dir/first").st_ino, stat_of(kit, "dir/third").st_ino);
	assert_int_equal(stat_of(kit, "other").st_mtim.tv_sec, 1000000000);
	assert_int_equal(kit->report.hardlinks, 2);
}

static void what_is_unchanged_is_not_asked_for(void **state)
{
	struct kit *kit = *state;
	struct vb__offer offer = offer_file(1, 0, "file", 5);

	kit->options.select = VB_SELECT_CHANGED;
	kit_make_file(kit, "file", "hello");
	kit_open(kit, "");
	offers(kit, offer); /* another time */
	assert_true(kit->wanted[1]);
	whole(kit, 1, "hellO");
	kit_finish(kit);
	kit_open(kit, "");
	offer.mode = S_IFREG | 0600;
	offers(kit, offer);
	assert_false(kit->wanted[1]);
	assert_int_equal(kit->settled, 1);
	kit_finish(kit);
	assert_int_equal(kit->report.unchanged, 1);
	assert_int_equal(stat_of(kit, "file").st_mode, S_IFREG | 0600);
	kit_assert_file(kit, "file", "hellO");
}

static void contents_can_be_compared(void **state)
{
	struct kit *kit = *state;
	struct vb__offer offer = offer_file(1, 0, "file", 5);
	int fd;

	kit->options.select = VB_SELECT_DIFFERENT;
	kit_make_file(kit, "file", "hello");
	fd = open(kit_path(kit, "file"), O_RDONLY);
	assert_int_equal(vb__content_hash(fd, offer.content, NULL, -1), 0);
	close(fd);
	offer.flags = VB__OFFER_HASHED;
	assert_int_equal(eventfd_write(kit->cancel_fd, 1), 0);
	kit_open(kit, ""); /* it is given up: nobody reads all of a large file then */
	offers(kit, offer);
	assert_true(kit->wanted[1]);
	kit_close(kit);
	assert_int_equal(eventfd_read(kit->cancel_fd, &(eventfd_t){ 0 }), 0);
	kit_open(kit, "");
	offers(kit, offer);
	assert_false(kit->wanted[1]);
	kit_finish(kit);
	assert_int_equal(stat_of(kit, "file").st_mtim.tv_sec, 1000000000);
	offer.content[3] ^= 1;
	kit_open(kit, "");
	offers(kit, offer);
	assert_true(kit->wanted[1]);
	whole(kit, 1, "hello");
	kit_finish(kit);
}

static void a_dry_run_touches_nothing(void **state)
{
	struct kit *kit = *state;

	kit->options.dry_run = kit->options.delete_others = true;
	kit_run(kit, "mkdir -p dir; echo x > dir/other");
	kit_open(kit, "");
	offers(kit, offer_directory(1, 0, "dir"));
	offers(kit, offer_file(2, 1, "file", 5));
	offers(kit, offer_directory(3, 1, "new"));
	offers(kit, offer_file(4, 3, "file", 5));
	offers(kit, offer_symlink(5, 3, "link", "x"));
	offers(kit, offer_listed(3));
	offers(kit, offer_listed(1));
	assert_false(kit->wanted[2] || kit->wanted[4]);
	kit_finish(kit);
	assert_int_equal(kit->report.files, 2);
	assert_int_equal(kit->report.directories, 1);
	assert_int_equal(kit->report.symlinks, 1);
	assert_int_equal(kit->report.deleted, 1);
	assert_int_equal(kit_count(kit, "dir"), 1);
	assert_int_equal(kit_count(kit, ""), 1);
	kit->options.into_directory = true;
	kit_open(kit, "none");
	offers(kit, offer_file(1, 0, "file", 5));
	kit_finish(kit);
	assert_int_equal(kit->report.files, 1);
	assert_int_equal(kit_mode(kit, "none"), 0);
}

static void others_are_deleted(void **state)
{
	struct kit *kit = *state;
	static const char *const rules[] = { "- *.o", NULL };

	kit->options.delete_others = true;
	kit->options.rules = rules;
	kit_run(kit, "mkdir -p dir/sub/deep out; echo 1 > dir/sub/deep/x; echo 2 > dir/keep.o; "
		     "echo 3 > dir/gone; echo 4 > out/safe; ln -s ../out dir/link; "
		     "mkdir dir/part; echo 5 > dir/part/y.o; echo 6 > dir/part/z; echo 7 > top");
	kit_open(kit, "");
	offers(kit, offer_directory(1, 0, "dir"));
	offers(kit, offer_file(2, 1, "file", 1));
	offers(kit, offer_missed(1, "unread"));
	offers(kit, offer_listed(1));
	whole(kit, 2, "x");
	kit_finish(kit);
	assert_int_equal(kit_mode(kit, "dir/sub"), 0);
	assert_int_equal(kit_mode(kit, "dir/gone"), 0);
	assert_int_equal(kit_mode(kit, "dir/link"), 0);
	assert_int_equal(kit_mode(kit, "dir/part/z"), 0);
	kit_assert_file(kit, "dir/part/y.o", "5\n");
	kit_assert_file(kit, "dir/keep.o", "2\n");
	kit_assert_file(kit, "out/safe", "4\n");
	kit_assert_file(kit, "top", "7\n");
	assert_int_equal(kit->report.deleted, 6);
	assert_int_equal(kit->report.failed, 1);
}

static void nothing_is_deleted_where_the_sender_could_not_read(void **state)
{
	struct kit *kit = *state;
	struct vb__offer listed = offer_listed(1);

	kit->options.delete_others = true;
	kit_run(kit, "mkdir dir; echo x > dir/other; echo y > dir/unread");
	listed.flags = VB__OFFER_INCOMPLETE;
	kit_open(kit, "");
	offers(kit, offer_directory(1, 0, "dir"));
	offers(kit, listed);
	kit_finish(kit);
	kit_assert_file(kit, "dir/other", "x\n");
	kit_open(kit, "");
	offers(kit, offer_directory(1, 0, "dir"));
	offers(kit, offer_missed(1, "unread"));
	offers(kit, offer_listed(1));
	kit_finish(kit);
	assert_int_equal(kit_mode(kit, "dir/other"), 0);
	kit_assert_file(kit, "dir/unread", "y\n");
}

static void what_is_in_the_way_is_a_failure_of_its_own(void **state)
{
	struct kit *kit = *state;

	kit_run(kit, "mkdir file; echo x > dir; echo y > file/in");
	kit_open(kit, "");
	offers(kit, offer_file(1, 0, "file", 1));
	offers(kit, offer_directory(2, 0, "dir"));
	offers(kit, offer_file(3, 2, "below", 1));
	offers(kit, offer_listed(2));
	offers(kit, offer_file(4, 0, "good", 1));
	assert_false(kit->wanted[3]);
	assert_int_equal(kit->last_failure.native, ENOTDIR);
	whole(kit, 1, "x");
	assert_int_equal(kit->last_failure.native, EISDIR);
	assert_string_equal(kit->last_path, "file");
	whole(kit, 4, "good");
	kit_finish(kit);
	assert_int_equal(kit->report.failed, 2);
	assert_int_equal(kit->events[VB_TREE_FAILED], 2);
	assert_int_equal(kit->happened, 3);
	kit_assert_file(kit, "good", "good");
	kit_assert_file(kit, "file/in", "y\n");
	kit_assert_file(kit, "dir", "x\n");
	assert_int_equal(kit_count(kit, ""), 3);
}

static void with_delete_it_goes(void **state)
{
	struct kit *kit = *state;

	kit->options.delete_others = true;
	kit_run(kit, "mkdir file; echo x > dir; echo y > file/in");
	kit_open(kit, "");
	offers(kit, offer_file(1, 0, "file", 1));
	offers(kit, offer_directory(2, 0, "dir"));
	offers(kit, offer_listed(2));
	whole(kit, 1, "x");
	kit_finish(kit);
	kit_assert_file(kit, "file", "x");
	assert_true(S_ISDIR(kit_mode(kit, "dir")));
}

static void what_the_sender_misses_is_told(void **state)
{
	struct kit *kit = *state;

	kit_open(kit, "");
	offers(kit, offer_missed(0, "secret"));
	assert_string_equal(kit->last_path, "secret");
	assert_string_equal(kit->last_failure.cause, "Permission denied");
	offers(kit, offer_file(1, 0, "file", 300 * KIB));
	blocks(kit, 1, 0, 100 * KIB);
	assert_int_equal(send_missed(kit, 1), 0);
	assert_int_equal(kit->last_failure.native, EIO);
	/* It may be said twice, and late blocks do no harm. */
	assert_int_equal(send_missed(kit, 1), 0);
	blocks(kit, 1, 100 * KIB, 100 * KIB);
	kit_finish(kit);
	assert_int_equal(kit->report.failed, 2);
	assert_int_equal(kit->happened, 0);
	assert_int_equal(kit_count(kit, ""), 0);
}

static void the_same_name_twice_is_a_failure(void **state)
{
	struct kit *kit = *state;

	kit_open(kit, "");
	offers(kit, offer_file(1, 0, "file", 1));
	offers(kit, offer_file(2, 0, "file", 1));
	assert_true(kit->wanted[1]);
	assert_false(kit->wanted[2]);
	whole(kit, 1, "1");
	kit_finish(kit);
	assert_int_equal(kit->report.failed, 1);
	kit_assert_file(kit, "file", "1");
}

static void progress_is_known(void **state)
{
	struct kit *kit = *state;
	struct vb_progress progress = { .bytes = 99 };

	kit_open(kit, "");
	offers(kit, offer_directory(1, 0, "dir"));
	offers(kit, offer_file(2, 1, "file", 5));
	kit->sink->ops->progress(kit->sink, &progress);
	assert_int_equal(progress.total_bytes, 5);
	assert_int_equal(progress.bytes, 0);
	assert_int_equal(progress.total_files, 1);
	assert_true(progress.counting);
	offers(kit, offer_listed(1));
	whole(kit, 2, "hello");
	kit->sink->ops->progress(kit->sink, &progress);
	assert_int_equal(progress.bytes, 5);
	assert_int_equal(progress.files, 1);
	assert_false(progress.counting);
	assert_string_equal(progress.name, "file");
	kit_finish(kit);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, kit_setup, kit_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_small_file_comes_whole),
		TEST(a_large_file_comes_in_blocks_in_any_order),
		TEST(holes_are_left_out),
		TEST(a_small_file_keeps_its_holes),
		TEST(directories_get_their_metadata_last),
		TEST(without_keeping_modes_the_umask_counts),
		TEST(setuid_is_kept_with_the_mode),
		TEST(owners_go_by_name_first),
		TEST(attributes_come_and_go),
		TEST(a_file_may_have_grown_since_it_was_offered),
		TEST(further_names_of_links_and_specials_are_links),
		TEST(links_and_specials_are_made),
		TEST(a_second_name_waits_for_its_file),
		TEST(what_is_unchanged_is_not_asked_for),
		TEST(contents_can_be_compared),
		TEST(a_dry_run_touches_nothing),
		TEST(others_are_deleted),
		TEST(nothing_is_deleted_where_the_sender_could_not_read),
		TEST(what_is_in_the_way_is_a_failure_of_its_own),
		TEST(with_delete_it_goes),
		TEST(what_the_sender_misses_is_told),
		TEST(the_same_name_twice_is_a_failure),
		TEST(progress_is_known),
	};

	return cmocka_run_group_tests_name("sink_tree", tests, NULL, NULL);
}
