/* SPDX-License-Identifier: Apache-2.0 */
/* Senders that break the rules, and others who put links in the way. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sink_kit.h"

static void refused(struct kit *kit, int rc)
{
	assert_int_equal(rc, VB_ERR_PROTOCOL);
	assert_string_not_equal(kit->err.cause, "");
}

static void what_makes_no_sense_is_refused(void **state)
{
	struct kit *kit = *state;
	uint8_t garbage[200];

	memset(garbage, 0x5a, sizeof(garbage));
	kit_open(kit, "");
	refused(kit, send_raw(kit, VB__BLOCK_PARCELS, 0, 0, garbage, sizeof(garbage)));
	refused(kit, send_raw(kit, VB__BLOCK_PARCELS, 3, 0, garbage, sizeof(garbage)));
	refused(kit, send_raw(kit, VB__BLOCK_OFFERS, 0, 0, garbage, sizeof(garbage)));
	/* The first failure is everybody's. */
	refused(kit, send_offer(kit, offer_file(1, 0, "file", 1)));
	kit_close(kit);
}

static void numbers_must_be_known(void **state)
{
	struct kit *kit = *state;

	kit_open(kit, "");
	refused(kit, send_whole(kit, 1, "x"));
	refused(kit, send_end(kit, 1, 0));
	refused(kit, send_missed(kit, 1));
	refused(kit, send_block(kit, 1, 0, 100));
	offers(kit, offer_file(1, 0, "file", 5));
	whole(kit, 1, "hello");
	refused(kit, send_whole(kit, 1, "again"));
	refused(kit, send_missed(kit, 1));
	kit_close(kit);
}

static void one_by_one(struct kit *kit, struct vb__offer offer)
{
	kit_open(kit, "");
	offers(kit, offer_directory(1, 0, "dir"));
	offers(kit, offer_file(2, 1, "file", 5));
	refused(kit, send_offer(kit, offer));
	kit_close(kit);
}

static void offers_must_fit_together(void **state)
{
	struct kit *kit = *state;

	one_by_one(kit, offer_file(2, 1, "again", 1));
	one_by_one(kit, offer_file(1, 0, "again", 1));
	one_by_one(kit, offer_file(4, 2, "in a file", 1));
	one_by_one(kit, offer_file(4, 3, "in nothing", 1));
	one_by_one(kit, offer_listed(2));
	one_by_one(kit, offer_listed(9));
	one_by_one(kit, offer_hardlink(3, 1, "of no linked one", 2));
	one_by_one(kit, offer_hardlink(3, 1, "of a directory", 1));
	one_by_one(kit, offer_missed(7, "nowhere"));
}

static void a_directory_that_is_listed_takes_no_more(void **state)
{
	struct kit *kit = *state;

	kit_open(kit, "");
	offers(kit, offer_directory(1, 0, "dir"));
	offers(kit, offer_listed(1));
	refused(kit, send_offer(kit, offer_file(2, 1, "late", 1)));
	kit_close(kit);
}

static void what_was_not_asked_for_is_refused(void **state)
{
	struct kit *kit = *state;
	struct vb__offer device = offer_directory(1, 0, "device");

	kit->options.keep = 0;
	kit_open(kit, "");
	refused(kit, send_offer(kit, offer_symlink(1, 0, "link", "/etc/passwd")));
	kit_close(kit);
	device.kind = VB__OFFER_SPECIAL;
	device.mode = S_IFCHR | 0666;
	kit_open(kit, "");
	refused(kit, send_offer(kit, device));
	kit_close(kit);
	kit->options.recursive = false;
	kit_open(kit, "");
	refused(kit, send_offer(kit, offer_directory(1, 0, "dir")));
	kit_close(kit);
	kit->options.select = VB_SELECT_CHANGED;
	kit->options.keep = VB_KEEP_TIMES;
	kit_make_file(kit, "same", "hello");
	kit_run(kit, "touch -d @1000000000.123456789 same");
	kit_open(kit, "");
	offers(kit, offer_file(1, 0, "same", 5));
	refused(kit, send_whole(kit, 1, "HELLO"));
	kit_close(kit);
	kit_assert_file(kit, "same", "hello");
}

/* One top of a transfer for which `asked` was asked for. */
static int bring(struct kit *kit, const char *const *asked, struct vb__offer offer)
{
	int rc;

	kit->options.asked = asked;
	kit_open(kit, "");
	rc = send_offer(kit, offer);
	kit_close(kit);
	return rc;
}

/* As scp did not know before CVE-2019-6111. */
static void only_names_that_were_asked_for_are_taken(void **state)
{
	static const char *const file[] = { "some/where/file", "other//", NULL };
	static const char *const contents[] = { "dir/.", NULL };
	static const char *const nothing[] = { NULL };
	struct kit *kit = *state;

	assert_int_equal(bring(kit, file, offer_file(1, 0, "file", 1)), 0);
	assert_int_equal(bring(kit, file, offer_directory(1, 0, "other")), 0);
	refused(kit, bring(kit, file, offer_file(1, 0, ".bashrc", 1)));
	refused(kit, bring(kit, file, offer_file(1, 0, "fil", 1)));
	refused(kit, bring(kit, file, offer_file(1, 0, "where", 1)));
	refused(kit, bring(kit, file, offer_symlink(1, 0, "link", "/etc")));
	refused(kit, bring(kit, file, offer_directory(1, 0, "")));
	assert_int_equal(bring(kit, contents, offer_directory(1, 0, "")), 0);
	refused(kit, bring(kit, contents, offer_directory(1, 0, "dir")));
	refused(kit, bring(kit, contents, offer_directory(1, 0, ".")));
	refused(kit, bring(kit, nothing, offer_file(1, 0, "file", 1)));
	kit->options.asked = file;
	kit_open(kit, "");
	offers(kit, offer_directory(1, 0, "other"));
	offers(kit, offer_file(2, 1, "anything below", 1));
	refused(kit, send_offer(kit, offer_file(3, 0, "extra", 1)));
	kit_close(kit);
	assert_int_equal(kit_mode(kit, "extra"), 0);
}

/* Nor as rsync before CVE-2022-29154. */
static void what_is_left_out_must_not_come(void **state)
{
	static const char *const asked[] = { "dir", NULL }, *const all[] = { "dir/.", NULL };
	static const char *const rules[] = { "- *.o", "+ /dir/", "+ /dir/**", "- *", NULL };
	static const char *const one[] = { "+ /in/", "+ /in/one", "- *", NULL };
	struct kit *kit = *state;

	kit->options.asked = asked;
	kit->options.rules = rules;
	kit_open(kit, "as");
	offers(kit, offer_directory(1, 0, "dir"));
	offers(kit, offer_file(2, 1, "a.c", 1));
	refused(kit, send_offer(kit, offer_file(3, 1, "a.o", 1)));
	kit_close(kit);
	kit->options.asked = all;
	kit->options.rules = one;
	kit_open(kit, "");
	offers(kit, offer_directory(1, 0, ""));
	offers(kit, offer_directory(2, 1, "in"));
	offers(kit, offer_file(3, 2, "one", 1));
	refused(kit, send_offer(kit, offer_file(4, 1, "one", 1)));
	kit_close(kit);
}

static void block_by_block(struct kit *kit, uint64_t offset, size_t len)
{
	kit_open(kit, "");
	offers(kit, offer_file(1, 0, "file", 300 * KIB));
	blocks(kit, 1, 100 * KIB, 100 * KIB);
	refused(kit, send_block(kit, 1, offset, len));
	kit_close(kit);
}

static void blocks_must_not_overlap(void **state)
{
	struct kit *kit = *state;

	kit->options.no_resume = true;
	block_by_block(kit, 100 * KIB, 100 * KIB);
	block_by_block(kit, 150 * KIB, 10);
	block_by_block(kit, 50 * KIB, 100 * KIB);
	block_by_block(kit, UINT64_MAX - 10, 5);
	assert_int_equal(kit_count(kit, ""), 0);
}

static void a_file_ends_once(void **state)
{
	struct kit *kit = *state;

	kit_open(kit, "");
	offers(kit, offer_file(1, 0, "file", 300 * KIB));
	blocks(kit, 1, 0, 300 * KIB);
	refused(kit, send_whole(kit, 1, "x"));
	ends(kit, 1, 300 * KIB);
	refused(kit, send_end(kit, 1, 300 * KIB));
	kit_close(kit);
}

static void an_end_that_comes_too_early_is_refused(void **state)
{
	struct kit *kit = *state;

	kit_open(kit, "");
	offers(kit, offer_file(1, 0, "file", 5));
	refused(kit, kit->sink->ops->finish(kit->sink, 0, &kit->err));
	kit_close(kit);
	kit_open(kit, "");
	offers(kit, offer_directory(1, 0, "dir"));
	kit->err = (struct vb_error){ .code = VB_OK };
	refused(kit, kit->sink->ops->finish(kit->sink, 0, &kit->err));
	kit_close(kit);
}

/* An honest sender waits for SETTLED, which is held back; one that goes on is stopped. */
static void a_flood_is_stopped(void **state)
{
	struct kit *kit = *state;
	char name[20];
	uint32_t n = 0;
	int rc = 0;

	kit_open(kit, "");
	while (rc == 0 && ++n < 10 * VB__TREE_AHEAD) {
		snprintf(name, sizeof(name), "f%u", n);
		rc = send_offer(kit, offer_file(n, 0, name, 5));
	}
	refused(kit, rc);
	assert_in_range(n, VB__TREE_AHEAD, 5 * VB__TREE_AHEAD);
	assert_int_equal(kit->settled, VB__TREE_AHEAD);
	kit_close(kit);
}

static void settling_goes_on_when_files_have_come(void **state)
{
	struct kit *kit = *state;
	char name[20];

	kit_open(kit, "");
	for (uint32_t n = 1; n <= VB__TREE_AHEAD + 2; n++) {
		snprintf(name, sizeof(name), "f%u", n);
		offers(kit, offer_file(n, 0, name, 1));
	}
	assert_int_equal(kit->settled, VB__TREE_AHEAD);
	whole(kit, 7, "x");
	assert_int_equal(kit->settled, VB__TREE_AHEAD);
	whole(kit, 9, "x");
	assert_int_equal(kit->settled, VB__TREE_AHEAD + 2);
	kit_close(kit);
}

/* Then SETTLED is held back, but what is asked for must be heard: nothing else would ever go on. */
static void heavy_attributes_do_not_keep_wants_back(void **state)
{
	static uint8_t run[6000], value[5900];
	struct vb__xattr xattr = { .name = "user.heavy",
				   .value = { .data = value, .len = sizeof(value) } };
	size_t len = vb__xattr_encode(run, sizeof(run), &xattr);
	struct kit *kit = *state;
	uint32_t n = 0;

	assert_true(len > 0);
	kit_open(kit, "");
	while (n == kit->settled && n < VB__TREE_AHEAD) {
		struct vb__offer offer;
		char name[20];

		snprintf(name, sizeof(name), "f%u", ++n);
		offer = offer_file(n, 0, name, 1);
		offer.xattrs = (struct vb__slice){ .data = run, .len = len };
		offers(kit, offer);
	}
	assert_int_not_equal(n, kit->settled);
	assert_true(n < NUMBERS);
	assert_true(kit->wanted[n]);
	kit_close(kit);
}

static void our_own_names_are_reserved(void **state)
{
	struct kit *kit = *state;

	kit_open(kit, "");
	offers(kit, offer_file(1, 0, ".rdcp-0123456789abcdef.journal", 1));
	offers(kit, offer_file(2, 0, ".rdcp-0123456789abcdef-0123456789abcdef0123456789abcdef", 1));
	offers(kit, offer_file(3, 0, ".rdcp-other", 1));
	assert_false(kit->wanted[1] || kit->wanted[2]);
	assert_true(kit->wanted[3]);
	whole(kit, 3, "x");
	kit_finish(kit);
	assert_int_equal(kit->report.failed, 2);
}

/* Links that were there before are not followed, whatever is to come there. */
static void links_that_are_there_are_not_followed(void **state)
{
	struct kit *kit = *state;

	kit_run(kit, "mkdir out target; echo safe > out/file; ln -s ../out target/dir; "
		     "ln -s ../out/file target/file");
	kit_open(kit, "target");
	offers(kit, offer_directory(1, 0, "dir"));
	offers(kit, offer_file(2, 1, "file", 1));
	offers(kit, offer_listed(1));
	offers(kit, offer_file(3, 0, "file", 1));
	assert_false(kit->wanted[2]);
	whole(kit, 3, "x");
	kit_finish(kit);
	kit_assert_file(kit, "out/file", "safe\n");
	assert_int_equal(kit_count(kit, "out"), 1);
	kit_assert_file(kit, "target/file", "x");
	assert_int_equal(kit->report.failed, 1);
}

/* The sender makes a link, and then wants to go through it. */
static void a_senders_own_link_is_not_followed(void **state)
{
	struct kit *kit = *state;

	kit_run(kit, "mkdir out target");
	kit_open(kit, "target");
	offers(kit, offer_symlink(1, 0, "dir", "../out"));
	offers(kit, offer_directory(2, 0, "dir"));
	offers(kit, offer_file(3, 2, "file", 1));
	offers(kit, offer_listed(2));
	assert_false(kit->wanted[3]);
	kit_finish(kit);
	assert_int_equal(kit_count(kit, "out"), 0);
}

/* As many directories as it takes for the first not to be open any more. */
static void push_out(struct kit *kit)
{
	char name[20];

	for (uint32_t n = 10; n < 310; n++) {
		snprintf(name, sizeof(name), "d%u", n);
		offers(kit, offer_directory(n, 0, name));
	}
}

static void list_those(struct kit *kit)
{
	for (uint32_t n = 10; n < 310; n++)
		offers(kit, offer_listed(n));
}

static void swapped(struct kit *kit, const char *command)
{
	kit_run(kit, "mkdir out target");
	kit_open(kit, "target");
	offers(kit, offer_directory(1, 0, "dir"));
	offers(kit, offer_directory(2, 1, "sub"));
	offers(kit, offer_file(3, 2, "small", 1));
	offers(kit, offer_file(4, 2, "large", 300 * KIB));
	blocks(kit, 4, 0, 100 * KIB);
	push_out(kit);
	kit_run(kit, "%s", command);
	whole(kit, 3, "x");
	assert_int_equal(kit->last_failure.native, ESTALE);
	blocks(kit, 4, 100 * KIB, 200 * KIB);
	ends(kit, 4, 300 * KIB);
	offers(kit, offer_file(1000, 2, "late", 1));
	whole(kit, 1000, "x");
	offers(kit, offer_listed(2));
	offers(kit, offer_listed(1));
	list_those(kit);
	kit_finish(kit);
	assert_true(kit->report.failed >= 3);
	assert_int_equal(kit_count(kit, "out"), 0);
	assert_int_equal(kit_mode(kit, "out") & 07777, 0755);
	kit_run(kit, "rm -rf out target moved");
}

static void what_is_swapped_in_meanwhile_is_not_followed(void **state)
{
	struct kit *kit = *state;

	swapped(kit, "mv target/dir moved; ln -s ../out target/dir");
	swapped(kit, "mv target/dir/sub moved; ln -s ../../out target/dir/sub");
	swapped(kit, "mv target/dir/sub moved; mkdir target/dir/sub");
	swapped(kit, "mv target/dir moved");
}

/* A large file that is complete is not looked for elsewhere either. */
static void a_part_that_was_swapped_is_refused(void **state)
{
	struct kit *kit = *state;

	kit_open(kit, "");
	offers(kit, offer_file(1, 0, "large", 300 * KIB));
	blocks(kit, 1, 0, 300 * KIB);
	kit_run(kit, "echo secret > other; for f in .rdcp-*-*; do ln -sf other $f; done");
	ends(kit, 1, 300 * KIB);
	kit_finish(kit);
	assert_int_equal(kit->report.failed, 1);
	assert_int_equal(kit_mode(kit, "large"), 0);
	kit_assert_file(kit, "other", "secret\n");
}

static void a_wait_for_a_turn_can_be_ended(void **state)
{
	struct kit *kit = *state;
	const uint64_t one = 1;

	kit_open(kit, "");
	assert_int_equal(write(kit->cancel_fd, &one, sizeof(one)), sizeof(one));
	kit->offers_at = 1000; /* what is before never comes */
	assert_int_equal(send_offer(kit, offer_file(1, 0, "file", 1)), VB_ERR_INTERRUPTED);
	kit_close(kit);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, kit_setup, kit_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_makes_no_sense_is_refused),
		TEST(numbers_must_be_known),
		TEST(offers_must_fit_together),
		TEST(a_directory_that_is_listed_takes_no_more),
		TEST(what_was_not_asked_for_is_refused),
		TEST(only_names_that_were_asked_for_are_taken),
		TEST(what_is_left_out_must_not_come),
		TEST(blocks_must_not_overlap),
		TEST(a_file_ends_once),
		TEST(an_end_that_comes_too_early_is_refused),
		TEST(a_flood_is_stopped),
		TEST(settling_goes_on_when_files_have_come),
		TEST(heavy_attributes_do_not_keep_wants_back),
		TEST(our_own_names_are_reserved),
		TEST(links_that_are_there_are_not_followed),
		TEST(a_senders_own_link_is_not_followed),
		TEST(what_is_swapped_in_meanwhile_is_not_followed),
		TEST(a_part_that_was_swapped_is_refused),
		TEST(a_wait_for_a_turn_can_be_ended),
	};

	return cmocka_run_group_tests_name("sink_hostile", tests, NULL, NULL);
}
