/* SPDX-License-Identifier: Apache-2.0 */
/* Offers, answers and parcels: what goes in comes out, and what breaks a rule is not believed. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <verbatim/tree.h>

#include "suite.h"
#include "wire/offer.h"

#define ROOM 8192u

static struct vb__slice slice(const char *text)
{
	return (struct vb__slice){ .data = (const uint8_t *)text, .len = strlen(text) };
}

static void assert_slice(struct vb__slice got, struct vb__slice want)
{
	assert_int_equal(got.len, want.len);
	if (want.len)
		assert_memory_equal(got.data, want.data, want.len);
}

static struct vb__offer some_file(void)
{
	return (struct vb__offer){
		.kind = VB__OFFER_FILE,
		.number = 7,
		.parent = 3,
		.mode = S_IFREG | 04755,
		.uid = 1000,
		.gid = UINT32_MAX,
		.size = INT64_MAX,
		.mtime_s = -5,
		.mtime_ns = 999999999,
		.identity = 0x0102030405060708,
		.name = slice("a name"),
	};
}

static struct vb__offer some_missed(void)
{
	return (struct vb__offer){
		.kind = VB__OFFER_MISSED,
		.parent = 3,
		.name = slice("gone"),
		.target = slice("No such file or directory"),
		.error = VB_ERR_IO,
		.native = 2,
	};
}

static struct vb__offer some_link(void)
{
	return (struct vb__offer){
		.kind = VB__OFFER_SYMLINK,
		.number = 7,
		.mode = S_IFLNK | 0777,
		.name = slice("link"),
		.target = slice("../there"),
	};
}

static struct vb__offer some_special(mode_t type)
{
	return (struct vb__offer){
		.kind = VB__OFFER_SPECIAL, .number = 7, .mode = type | 0600, .name = slice("dev")
	};
}

/* One record, which also must not be understood if any of its end is missing. */
static size_t offer_there_and_back(const struct vb__offer *offer, struct vb__offer *got)
{
	static uint8_t bytes[ROOM];
	size_t len = vb__offer_encode(bytes, sizeof(bytes), offer), at = 0;

	assert_true(len > 0);
	for (size_t room = 0; room < len; room++) {
		uint8_t *exact = malloc(room + 1);

		assert_int_equal(vb__offer_encode(exact, room, offer), 0);
		free(exact);
	}
	for (size_t cut = 0; cut < len; cut++) {
		assert_false(vb__offer_decode(got, bytes, cut, &at));
		assert_int_equal(at, 0);
	}
	assert_true(vb__offer_decode(got, bytes, len, &at));
	assert_int_equal(at, len);
	assert_int_equal(got->kind, offer->kind);
	assert_int_equal(got->flags, offer->flags);
	assert_int_equal(got->number, offer->number);
	assert_int_equal(got->parent, offer->parent);
	assert_slice(got->name, offer->name);
	return len;
}

static bool offer_is_believed(const struct vb__offer *offer)
{
	uint8_t bytes[ROOM];
	struct vb__offer got;
	size_t at = 0, len = vb__offer_encode(bytes, sizeof(bytes), offer);

	assert_true(len > 0);
	return vb__offer_decode(&got, bytes, len, &at);
}

static void file_comes_back_in_about_sixty_bytes(void **state)
{
	struct vb__offer offer = some_file(), got;
	size_t len = offer_there_and_back(&offer, &got);

	(void)state;
	assert_in_range(len - offer.name.len, 1, 60);
	assert_int_equal(got.mode, offer.mode);
	assert_int_equal(got.uid, 1000);
	assert_int_equal(got.gid, UINT32_MAX);
	assert_int_equal(got.size, INT64_MAX);
	assert_true(got.mtime_s == -5);
	assert_int_equal(got.mtime_ns, 999999999);
	assert_int_equal(got.identity, offer.identity);
	assert_int_equal(got.user.len + got.group.len + got.xattrs.len, 0);
}

static void file_comes_back_with_all_that_it_can_have(void **state)
{
	struct vb__xattr acl = { .name = "system.posix_acl_access", .value = slice("who may") };
	struct vb__xattr empty = { .name = "user.empty" }, got_xattr;
	struct vb__offer offer = some_file(), got;
	uint8_t xattrs[200];
	size_t len, at = 0;

	(void)state;
	len = vb__xattr_encode(xattrs, sizeof(xattrs), &acl);
	len += vb__xattr_encode(xattrs + len, sizeof(xattrs) - len, &empty);
	offer.flags = VB__OFFER_LINKED | VB__OFFER_SPARSE | VB__OFFER_HASHED;
	memset(offer.content, 0xc5, sizeof(offer.content));
	offer.user = slice("wiebke");
	offer.group = slice("staff");
	offer.xattrs = (struct vb__slice){ .data = xattrs, .len = len };
	offer_there_and_back(&offer, &got);
	assert_memory_equal(got.content, offer.content, sizeof(got.content));
	assert_slice(got.user, offer.user);
	assert_slice(got.group, offer.group);
	assert_slice(got.xattrs, offer.xattrs);
	assert_true(vb__xattr_decode(&got_xattr, got.xattrs.data, got.xattrs.len, &at));
	assert_string_equal(got_xattr.name, acl.name);
	assert_slice(got_xattr.value, acl.value);
	assert_true(vb__xattr_decode(&got_xattr, got.xattrs.data, got.xattrs.len, &at));
	assert_string_equal(got_xattr.name, "user.empty");
	assert_int_equal(got_xattr.value.len, 0);
	assert_int_equal(at, len);
}

static void other_kinds_come_back(void **state)
{
	struct vb__offer link = some_link(), device = some_special(S_IFBLK), got;
	struct vb__offer missed = some_missed();
	struct vb__offer hardlink = {
		.kind = VB__OFFER_HARDLINK, .number = 9, .parent = 2, .first = 8, .name = slice("x")
	};
	struct vb__offer listed = { .kind = VB__OFFER_LISTED,
				    .flags = VB__OFFER_INCOMPLETE,
				    .number = 4 };
	struct vb__offer top = { .kind = VB__OFFER_DIRECTORY,
				 .number = 1,
				 .mode = S_IFDIR | 01777 };

	(void)state;
	offer_there_and_back(&link, &got);
	assert_slice(got.target, link.target);
	device.device_major = 4095;
	device.device_minor = 1048575;
	offer_there_and_back(&device, &got);
	assert_int_equal(got.device_major, 4095);
	assert_int_equal(got.device_minor, 1048575);
	offer_there_and_back(&missed, &got);
	assert_int_equal(got.error, VB_ERR_IO);
	assert_int_equal(got.native, 2);
	assert_slice(got.target, missed.target);
	offer_there_and_back(&hardlink, &got);
	assert_int_equal(got.first, 8);
	offer_there_and_back(&listed, &got);
	offer_there_and_back(&top, &got);
	assert_int_equal(got.mode, S_IFDIR | 01777);
}

static void records_are_taken_one_after_another(void **state)
{
	struct vb__offer file = some_file(), missed = some_missed(), got;
	uint8_t bytes[ROOM];
	size_t len = vb__offer_encode(bytes, sizeof(bytes), &file), at = 0;

	(void)state;
	len += vb__offer_encode(bytes + len, sizeof(bytes) - len, &missed);
	assert_true(vb__offer_decode(&got, bytes, len, &at));
	assert_int_equal(got.kind, VB__OFFER_FILE);
	assert_true(vb__offer_decode(&got, bytes, len, &at));
	assert_int_equal(got.kind, VB__OFFER_MISSED);
	assert_int_equal(at, len);
	assert_false(vb__offer_decode(&got, bytes, len, &at));
	at = len + 1;
	assert_false(vb__offer_decode(&got, bytes, len, &at));
}

static void names_that_lead_elsewhere_are_refused(void **state)
{
	static const struct {
		const char *name;
		size_t len;
	} bad[] = { { ".", 1 },	   { "..", 2 }, { "/", 1 },    { "a/b", 3 },
		    { "../x", 4 }, { "\0", 1 }, { "a\0b", 3 }, { "", 0 } };
	struct vb__offer offer = some_file();

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++) {
		offer.name.data = (const uint8_t *)bad[i].name;
		offer.name.len = bad[i].len;
		assert_false(offer_is_believed(&offer));
	}
	/* These are as good as any. */
	offer.name = slice("...");
	assert_true(offer_is_believed(&offer));
	offer.name = slice("\n\x1b[31m$(touch x) \xff");
	assert_true(offer_is_believed(&offer));
}

static void empty_name_is_for_a_directory_in_the_target(void **state)
{
	struct vb__offer offer = some_file();

	(void)state;
	offer.name.len = 0;
	offer.parent = 0;
	assert_false(offer_is_believed(&offer));
	offer = (struct vb__offer){ .kind = VB__OFFER_DIRECTORY, .number = 7, .mode = S_IFDIR };
	assert_true(offer_is_believed(&offer));
	offer.parent = 1;
	assert_false(offer_is_believed(&offer));
}

static void names_that_are_too_long_are_not_sent(void **state)
{
	char text[VB__LINK_MAX + 2];
	struct vb__offer offer = some_file(), link = some_link();
	uint8_t bytes[ROOM];

	(void)state;
	memset(text, 'n', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	offer.name = (struct vb__slice){ .data = (uint8_t *)text, .len = VB__NAME_MAX };
	assert_true(offer_is_believed(&offer));
	offer.name.len++;
	assert_int_equal(vb__offer_encode(bytes, sizeof(bytes), &offer), 0);
	link.target = (struct vb__slice){ .data = (uint8_t *)text, .len = VB__LINK_MAX };
	assert_true(offer_is_believed(&link));
	link.target.len++;
	assert_int_equal(vb__offer_encode(bytes, sizeof(bytes), &link), 0);
}

static void file_offers_that_break_a_rule_are_refused(void **state)
{
	struct vb__offer bad[10];

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		bad[i] = some_file();
	bad[0].number = 0;
	bad[1].parent = 7;
	bad[2].mode = S_IFDIR | 0755;
	bad[3].mode |= 1u << 20;
	bad[4].mtime_ns = 1000000000;
	bad[5].size = (uint64_t)INT64_MAX + 1;
	bad[6].flags = VB__OFFER_INCOMPLETE;
	bad[7].flags = VB__OFFER_VANISHED;
	bad[8].flags = 32;
	bad[9].xattrs = slice("\x01\x01no xattrs");
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_false(offer_is_believed(&bad[i]));
}

static void other_offers_that_break_a_rule_are_refused(void **state)
{
	struct vb__offer bad[] = {
		some_special(S_IFREG),
		some_special(S_IFIFO),
		some_link(),
		some_link(),
		some_link(),
		some_missed(),
		some_missed(),
		some_missed(),
		{ .kind = VB__OFFER_HARDLINK, .number = 9, .first = 9, .name = slice("x") },
		{ .kind = VB__OFFER_HARDLINK, .number = 9, .first = 0, .name = slice("x") },
		{ .kind = VB__OFFER_LISTED, .number = 0 },
		{ .kind = VB__OFFER_LISTED, .number = 2, .parent = 1 },
		{ .kind = VB__OFFER_LISTED, .number = 2, .name = slice("x") },
		{ .kind = 0, .number = 2, .name = slice("x") },
		{ .kind = 8, .number = 2, .name = slice("x") },
	};

	(void)state;
	bad[1].device_minor = 1;
	bad[2].target.len = 0;
	bad[3].target = (struct vb__slice){ .data = (const uint8_t *)"a\0b", .len = 3 };
	bad[4].flags = VB__OFFER_LINKED;
	bad[5].number = 1;
	bad[6].error = 0;
	bad[7].native = -1;
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_false(offer_is_believed(&bad[i]));
}

static void words_about_a_failure_are_cut_and_cleaned(void **state)
{
	struct vb__offer missed = some_missed(), got;
	uint8_t bytes[ROOM];
	char text[1000];
	size_t at = 0, len;

	(void)state;
	memset(text, 'w', sizeof(text));
	memcpy(text, "\x1b[31m\n", 6);
	missed.target = (struct vb__slice){ .data = (uint8_t *)text, .len = sizeof(text) };
	len = vb__offer_encode(bytes, sizeof(bytes), &missed);
	assert_true(vb__offer_decode(&got, bytes, len, &at));
	assert_in_range(got.target.len, 100, sizeof(((struct vb_error *)0)->cause) - 1);
	assert_memory_equal(got.target.data, "?[31m?w", 7);
}

static void other_versions_are_refused(void **state)
{
	struct vb__offer offer = some_file(), got;
	struct vb__answer want = { .kind = VB__ANSWER_WANT, .number = 1, .count = 1 };
	uint8_t bytes[ROOM];
	size_t len = vb__offer_encode(bytes, sizeof(bytes), &offer), at = 0;

	(void)state;
	bytes[0] ^= 0x20;
	assert_false(vb__offer_decode(&got, bytes, len, &at));
	len = vb__answer_encode(bytes, sizeof(bytes), &want);
	bytes[0] ^= 0x20;
	assert_false(vb__answer_decode(&want, bytes, len, &at));
}

static void answer_there_and_back(const struct vb__answer *answer, struct vb__answer *got)
{
	static uint8_t bytes[VB__ANSWER_MAX];
	size_t len = vb__answer_encode(bytes, sizeof(bytes), answer), at = 0;

	assert_true(len > 0);
	assert_int_equal(vb__answer_encode(bytes, len - 1, answer), 0);
	for (size_t cut = 0; cut < len; cut++)
		assert_false(vb__answer_decode(got, bytes, cut, &at));
	assert_int_equal(at, 0);
	assert_true(vb__answer_decode(got, bytes, len, &at));
	assert_int_equal(at, len);
	assert_int_equal(got->kind, answer->kind);
	assert_int_equal(got->number, answer->number);
}

static void answers_come_back(void **state)
{
	struct vb__answer want = { .kind = VB__ANSWER_WANT, .number = 1, .count = UINT32_MAX };
	struct vb__answer part = {
		.kind = VB__ANSWER_PART, .number = 5, .offset = 1, .length = INT64_MAX - 1
	};
	struct vb__answer settled = { .kind = VB__ANSWER_SETTLED, .number = UINT32_MAX };
	struct vb__answer happened = {
		.kind = VB__ANSWER_HAPPENED,
		.happening = VB_TREE_FAILED,
		.mode = S_IFREG | 0644,
		.bytes = 1234567890123,
		.error = VB_ERR_IO,
		.native = 28,
		.path = slice("dir/\x1b file"),
		.cause = slice("No space left on device"),
	};
	struct vb__answer got;

	(void)state;
	answer_there_and_back(&want, &got);
	assert_int_equal(got.count, UINT32_MAX);
	answer_there_and_back(&part, &got);
	assert_int_equal(got.offset, 1);
	assert_int_equal(got.length, INT64_MAX - 1);
	answer_there_and_back(&settled, &got);
	answer_there_and_back(&happened, &got);
	assert_int_equal(got.happening, VB_TREE_FAILED);
	assert_int_equal(got.mode, happened.mode);
	assert_int_equal(got.bytes, happened.bytes);
	assert_int_equal(got.error, VB_ERR_IO);
	assert_int_equal(got.native, 28);
	assert_slice(got.path, happened.path);
	assert_slice(got.cause, happened.cause);
}

static void answers_that_break_a_rule_are_refused(void **state)
{
	struct vb__answer bad[] = {
		{ .kind = VB__ANSWER_WANT, .number = 0, .count = 1 },
		{ .kind = VB__ANSWER_WANT, .number = 1, .count = 0 },
		{ .kind = VB__ANSWER_WANT, .number = 2, .count = UINT32_MAX },
		{ .kind = VB__ANSWER_PART, .number = 0, .length = 1 },
		{ .kind = VB__ANSWER_PART, .number = 1, .length = 0 },
		{ .kind = VB__ANSWER_PART, .number = 1, .offset = 2, .length = INT64_MAX - 1 },
		{ .kind = VB__ANSWER_PART, .number = 1, .offset = UINT64_MAX, .length = 1 },
		{ .kind = VB__ANSWER_SETTLED, .number = 0 },
		{ .kind = VB__ANSWER_HAPPENED, .happening = 0 },
		{ .kind = VB__ANSWER_HAPPENED, .happening = 6 },
		{ .kind = VB__ANSWER_HAPPENED, .happening = VB_TREE_FAILED },
		{ .kind = VB__ANSWER_HAPPENED, .happening = VB_TREE_COPIED, .error = VB_ERR_IO },
		{ .kind = VB__ANSWER_HAPPENED,
		  .happening = VB_TREE_COPIED,
		  .path = { .data = (const uint8_t *)"a\0b", .len = 3 } },
		{ .kind = 0, .number = 1 },
		{ .kind = 5, .number = 1 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++) {
		uint8_t bytes[VB__ANSWER_MAX];
		size_t len = vb__answer_encode(bytes, sizeof(bytes), &bad[i]), at = 0;

		assert_true(len > 0);
		assert_false(vb__answer_decode(&bad[i], bytes, len, &at));
	}
}

static void longest_answer_fits_and_its_path_is_cut_at_the_front(void **state)
{
	static char path[5000], cause[5000];
	struct vb__answer answer = {
		.kind = VB__ANSWER_HAPPENED,
		.happening = VB_TREE_VANISHED,
		.error = VB_ERR_IO,
		.path = { .data = (uint8_t *)path, .len = sizeof(path) },
		.cause = { .data = (uint8_t *)cause, .len = sizeof(cause) },
	};
	struct vb__answer got;

	(void)state;
	memset(path, 'p', sizeof(path));
	path[sizeof(path) - 1] = 'e';
	memset(cause, 'c', sizeof(cause));
	answer_there_and_back(&answer, &got);
	assert_in_range(got.path.len, 512, VB__ANSWER_MAX);
	assert_int_equal(got.path.data[got.path.len - 1], 'e');
}

static bool parcel_is_believed(const struct vb__parcel *parcel, struct vb__parcel *got)
{
	static uint8_t bytes[ROOM];
	size_t at = 0;

	vb__parcel_encode(bytes, parcel);
	if (parcel->data.len)
		memcpy(bytes + VB__PARCEL_HEADER, parcel->data.data, parcel->data.len);
	for (size_t cut = 0; cut < VB__PARCEL_HEADER + parcel->data.len; cut++)
		assert_false(vb__parcel_decode(got, bytes, cut, &at));
	if (!vb__parcel_decode(got, bytes, VB__PARCEL_HEADER + parcel->data.len, &at))
		return false;
	assert_int_equal(at, VB__PARCEL_HEADER + parcel->data.len);
	assert_int_equal(got->kind, parcel->kind);
	assert_int_equal(got->number, parcel->number);
	assert_slice(got->data, parcel->data);
	return true;
}

static void parcels_come_back(void **state)
{
	struct vb__parcel whole = {
		.kind = VB__PARCEL_WHOLE,
		.number = 3,
		.size = 5,
		.mtime_s = INT64_MIN,
		.mtime_ns = 1,
		.identity = UINT64_MAX,
		.data = slice("hello"),
	};
	struct vb__parcel end = { .kind = VB__PARCEL_END, .number = 1, .size = INT64_MAX };
	struct vb__parcel missed = {
		.kind = VB__PARCEL_MISSED,
		.number = 9,
		.vanished = true,
		.error = VB_ERR_IO,
		.native = 2,
		.data = slice("it changed while it was read"),
	};
	struct vb__parcel got;

	(void)state;
	assert_true(parcel_is_believed(&whole, &got));
	assert_int_equal(got.size, 5);
	assert_true(got.mtime_s == INT64_MIN);
	assert_int_equal(got.mtime_ns, 1);
	assert_int_equal(got.identity, UINT64_MAX);
	assert_true(parcel_is_believed(&end, &got));
	assert_int_equal(got.size, INT64_MAX);
	assert_true(parcel_is_believed(&missed, &got));
	assert_true(got.vanished);
	assert_int_equal(got.error, VB_ERR_IO);
	assert_int_equal(got.native, 2);
}

static void parcels_that_break_a_rule_are_refused(void **state)
{
	struct vb__parcel bad[] = {
		{ .kind = VB__PARCEL_WHOLE, .number = 0 },
		{ .kind = VB__PARCEL_WHOLE, .number = 1, .size = 1 },
		{ .kind = VB__PARCEL_WHOLE, .number = 1, .data = slice("x") },
		{ .kind = VB__PARCEL_WHOLE, .number = 1, .mtime_ns = 1000000000 },
		{ .kind = VB__PARCEL_WHOLE, .number = 1, .vanished = true },
		{ .kind = VB__PARCEL_END, .number = 1, .size = UINT64_MAX },
		{ .kind = VB__PARCEL_END, .number = 1, .data = slice("x") },
		{ .kind = VB__PARCEL_END, .number = 1, .error = VB_ERR_IO },
		{ .kind = VB__PARCEL_MISSED, .number = 1 },
		{ .kind = VB__PARCEL_MISSED, .number = 1, .error = VB_ERR_IO, .data = slice("\n") },
		{ .kind = 0, .number = 1 },
		{ .kind = 4, .number = 1 },
	};
	struct vb__parcel got;

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_false(parcel_is_believed(&bad[i], &got));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(file_comes_back_in_about_sixty_bytes),
		cmocka_unit_test(file_comes_back_with_all_that_it_can_have),
		cmocka_unit_test(other_kinds_come_back),
		cmocka_unit_test(records_are_taken_one_after_another),
		cmocka_unit_test(names_that_lead_elsewhere_are_refused),
		cmocka_unit_test(empty_name_is_for_a_directory_in_the_target),
		cmocka_unit_test(names_that_are_too_long_are_not_sent),
		cmocka_unit_test(file_offers_that_break_a_rule_are_refused),
		cmocka_unit_test(other_offers_that_break_a_rule_are_refused),
		cmocka_unit_test(words_about_a_failure_are_cut_and_cleaned),
		cmocka_unit_test(other_versions_are_refused),
		cmocka_unit_test(answers_come_back),
		cmocka_unit_test(answers_that_break_a_rule_are_refused),
		cmocka_unit_test(longest_answer_fits_and_its_path_is_cut_at_the_front),
		cmocka_unit_test(parcels_come_back),
		cmocka_unit_test(parcels_that_break_a_rule_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
