/* SPDX-License-Identifier: Apache-2.0 */
/* Full disks, missing permissions, many threads. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include "sink_kit.h"

static void mount_small(struct kit *kit)
{
	if (mount("none", kit->dir, "tmpfs", 0, "size=1m")) {
		print_message("# skipped: no tmpfs can be mounted: %s\n", strerror(errno));
		skip();
	}
}

static void a_full_disk_ends_it_all(void **state)
{
	struct kit *kit = *state;
	char text[100 * KIB], name[20];
	uint32_t n = 0;
	int rc = 0;

	mount_small(kit);
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	kit_make_file(kit, "f5", "old");
	kit_open(kit, "");
	while (rc == 0 && ++n < 20) {
		snprintf(name, sizeof(name), "f%u", n == 12 ? 5 : n + 100);
		offers(kit, offer_file(n, 0, name, sizeof(text) - 1));
		rc = send_whole(kit, n, text);
	}
	assert_int_equal(rc, VB_ERR_IO);
	assert_int_equal(kit->err.native, ENOSPC);
	assert_string_equal(kit->err.cause, "No space left on device");
	assert_true(strncmp(kit->err.object, "f1", 2) == 0);
	kit_close(kit);
	kit_assert_file(kit, "f5", "old");
	assert_in_range(kit->report.files, 5, 10);
	assert_int_equal(kit_count(kit, ""), 2 + kit->report.files); /* with the journal */
	assert_int_equal(umount(kit->dir), 0);
}

static void a_file_that_is_too_large_is_told_early(void **state)
{
	struct kit *kit = *state;

	mount_small(kit);
	kit_open(kit, "");
	offers(kit, offer_file(1, 0, "large", 2 * MIB));
	assert_int_equal(send_block(kit, 1, 0, 64 * KIB), VB_ERR_IO);
	assert_int_equal(kit->err.native, ENOSPC);
	assert_string_equal(kit->err.object, "large");
	kit_close(kit);
	assert_int_equal(umount(kit->dir), 0);
}

static void a_limit_of_size_is_one_files_failure(void **state)
{
	struct kit *kit = *state;
	struct rlimit before, limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = (struct rlimit){ .rlim_cur = MIB, .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	kit_open(kit, "");
	offers(kit, offer_file(1, 0, "large", 2 * MIB));
	offers(kit, offer_file(2, 0, "small", 1));
	blocks(kit, 1, 0, MIB);
	assert_int_equal(kit->last_failure.native, EFBIG);
	blocks(kit, 1, MIB, MIB);
	ends(kit, 1, 2 * MIB);
	whole(kit, 2, "x");
	kit_finish(kit);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(kit->report.failed, 1);
	assert_int_equal(kit_count(kit, ""), 1);
}

static bool is_denied(struct kit *kit)
{
	kit->options.event = NULL;
	kit_open(kit, "");
	offers(kit, offer_directory(1, 0, "closed"));
	offers(kit, offer_file(2, 1, "file", 1));
	offers(kit, offer_file(3, 1, "large", 300 * KIB));
	offers(kit, offer_directory(4, 1, "sub"));
	offers(kit, offer_listed(4));
	offers(kit, offer_listed(1));
	offers(kit, offer_file(5, 0, "good", 1));
	whole(kit, 2, "x");
	blocks(kit, 3, 0, 300 * KIB);
	ends(kit, 3, 300 * KIB);
	whole(kit, 5, "x");
	kit_finish(kit);
	/* Two files, a directory, and the time and mode of one that is not ours. */
	return kit->report.failed == 4 && kit->report.files == 1 && kit->happened >= 4;
}

static void what_is_not_permitted_fails_and_the_rest_goes_on(void **state)
{
	struct kit *kit = *state;

	if (geteuid() != 0) {
		print_message("# skipped: only root can make a directory that is not ours\n");
		skip();
	}
	kit_run(kit, "mkdir closed; chmod 777 .");
	as_nobody(kit, is_denied);
	assert_int_equal(kit_count(kit, "closed"), 0);
	kit_assert_file(kit, "good", "x");
	assert_int_equal(kit_count(kit, ""), 2);
}

static bool keeps_closed_directories(struct kit *kit)
{
	struct vb__offer dir = offer_directory(1, 0, "closed");
	bool right = true;

	dir.mode = S_IFDIR | 0500;
	for (int round = 0; round < 2; round++) { /* made, then found */
		kit_open(kit, "");
		offers(kit, dir);
		offers(kit, offer_file(2, 1, "file", 1));
		offers(kit, offer_listed(1));
		whole(kit, 2, "x");
		kit_finish(kit);
		right = right && kit->report.failed == 0 &&
			kit_mode(kit, "closed") == (S_IFDIR | 0500);
	}
	kit->options.keep = 0;
	kit_open(kit, ""); /* interrupted, it gets back what it had */
	offers(kit, offer_directory(1, 0, "closed"));
	right = right && kit_mode(kit, "closed") == (S_IFDIR | 0700);
	kit_close(kit);
	return right && kit_mode(kit, "closed") == (S_IFDIR | 0500);
}

static void directories_closed_to_ourselves_are_no_trouble(void **state)
{
	struct kit *kit = *state;

	kit_run(kit, "chmod 777 .");
	as_nobody(kit, keeps_closed_directories);
}

static bool leaves_owners(struct kit *kit)
{
	struct vb__offer offer = offer_file(1, 0, "file", 1);
	struct stat st;

	offer.uid = offer.gid = 0;
	offer.mode = S_IFREG | 04755;
	kit_open(kit, "");
	offers(kit, offer);
	whole(kit, 1, "x");
	kit_finish(kit);
	return kit->report.failed == 0 && lstat(kit_path(kit, "file"), &st) == 0 &&
	       st.st_uid == geteuid();
}

static void owners_that_we_may_not_give_are_left(void **state)
{
	struct kit *kit = *state;

	kit_run(kit, "chmod 777 .");
	as_nobody(kit, leaves_owners);
}

static void syncing_is_no_trouble(void **state)
{
	struct kit *kit = *state;

	kit->sink_options.fsync = true;
	kit_open(kit, "");
	offers(kit, offer_directory(1, 0, "dir"));
	offers(kit, offer_file(2, 1, "large", 300 * KIB));
	offers(kit, offer_file(3, 1, "small", 1));
	offers(kit, offer_listed(1));
	blocks(kit, 2, 0, 300 * KIB);
	ends(kit, 2, 300 * KIB);
	whole(kit, 3, "x");
	kit_finish(kit);
	kit_assert_bytes(kit, "dir/large", 300 * KIB);
}

/* More large files at once than may be open. */
static void many_large_files_at_once(void **state)
{
	struct kit *kit = *state;
	struct rlimit before, limit;
	char name[20];

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = (struct rlimit){ .rlim_cur = 160, .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	kit_open(kit, "");
	for (uint32_t n = 1; n <= 300; n++) {
		snprintf(name, sizeof(name), "f%u", n);
		offers(kit, offer_file(n, 0, name, 130 * KIB));
		blocks(kit, n, 0, 65 * KIB);
	}
	for (uint32_t n = 1; n <= 300; n++)
		blocks(kit, n, 65 * KIB, 65 * KIB);
	for (uint32_t n = 1; n <= 300; n++)
		ends(kit, n, 130 * KIB);
	kit_finish(kit);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(kit->report.files, 300);
	kit_assert_bytes(kit, "f1", 130 * KIB);
	kit_assert_bytes(kit, "f300", 130 * KIB);
}

#define THREADS 4u
#define FILES 400u
#define LARGE 20u

struct sender {
	struct kit *kit;
	unsigned number;
	int rc;
};

static int put(struct kit *kit, const struct vb__block *block, const void *data)
{
	return kit->sink->ops->put(kit->sink, block, data, NULL);
}

static int put_whole(struct kit *kit, uint32_t number)
{
	struct vb__parcel parcel = { .kind = VB__PARCEL_WHOLE, .number = number, .size = 4 };
	uint8_t record[VB__PARCEL_HEADER + 4];
	struct vb__block block = { .length = sizeof(record), .flags = VB__BLOCK_PARCELS };

	memset(record, 'x', sizeof(record));
	parcel.data = (struct vb__slice){ .data = record, .len = 4 };
	vb__parcel_encode(record, &parcel);
	return put(kit, &block, record);
}

static int put_part(struct kit *kit, uint32_t number, unsigned part)
{
	static uint8_t data[64 * KIB] __attribute__((aligned(4096)));
	struct vb__block block = { .offset = part * sizeof(data),
				   .length = sizeof(data),
				   .file = number };

	return put(kit, &block, data);
}

static int put_end(struct kit *kit, uint32_t number)
{
	struct vb__parcel parcel = { .kind = VB__PARCEL_END,
				     .number = number,
				     .size = THREADS * 64 * KIB };
	uint8_t record[VB__PARCEL_HEADER];
	struct vb__block block = { .length = sizeof(record), .flags = VB__BLOCK_PARCELS };

	vb__parcel_encode(record, &parcel);
	return put(kit, &block, record);
}

/* Its share of the small files, and of each large one a part. */
static void *send_share(void *arg)
{
	struct sender *s = arg;

	for (uint32_t n = 0; n < FILES && s->rc == 0; n++)
		if (n % THREADS == s->number)
			s->rc = put_whole(s->kit, 100 + n);
	for (uint32_t n = 0; n < LARGE && s->rc == 0; n++) {
		s->rc = put_part(s->kit, 10 + n, s->number);
		if (s->rc == 0 && n % THREADS == s->number)
			s->rc = put_end(s->kit, 10 + n);
	}
	return NULL;
}

static void offer_many(struct kit *kit)
{
	char name[20];

	kit_open(kit, "");
	for (uint32_t n = 0; n < 4; n++) {
		snprintf(name, sizeof(name), "d%u", n);
		offers(kit, offer_directory(1 + n, 0, name));
	}
	for (uint32_t n = 0; n < LARGE; n++) {
		snprintf(name, sizeof(name), "l%u", n);
		offers(kit, offer_file(10 + n, 1 + n % 4, name, THREADS * 64 * KIB));
	}
	for (uint32_t n = 0; n < FILES; n++) {
		struct vb__offer file;

		snprintf(name, sizeof(name), "s%u", n);
		file = offer_file(100 + n, 1 + n % 4, name, 4);
		file.flags = VB__OFFER_LINKED;
		offers(kit, file);
	}
	offers(kit, offer_hardlink(1000, 1, "further", 100));
	for (uint32_t n = 0; n < 4; n++)
		offers(kit, offer_listed(1 + n));
}

static void many_threads_bring_many_files(void **state)
{
	struct kit *kit = *state;
	struct sender senders[THREADS];
	pthread_t threads[THREADS];

	offer_many(kit);
	for (unsigned i = 0; i < THREADS; i++) {
		senders[i] = (struct sender){ .kit = kit, .number = i };
		assert_int_equal(pthread_create(&threads[i], NULL, send_share, &senders[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_int_equal(senders[i].rc, 0);
	}
	kit_finish(kit);
	assert_int_equal(kit->report.files, FILES + LARGE);
	assert_int_equal(kit->report.hardlinks, 1);
	for (unsigned n = 0; n < 4; n++) {
		struct stat st;
		char name[20];

		snprintf(name, sizeof(name), "d%u", n);
		assert_int_equal(kit_count(kit, name), (FILES + LARGE) / 4 + (n == 0));
		assert_int_equal(stat(kit_path(kit, name), &st), 0);
		assert_int_equal(st.st_mtim.tv_sec, 1000000000);
	}
	assert_int_equal(kit_count(kit, ""), 4);
}

static int put_missed(struct kit *kit, uint32_t number)
{
	struct vb__parcel parcel = {
		.kind = VB__PARCEL_MISSED, .number = number, .error = VB_ERR_IO, .native = EIO
	};
	uint8_t record[VB__PARCEL_HEADER];
	struct vb__block block = { .length = sizeof(record), .flags = VB__BLOCK_PARCELS };

	vb__parcel_encode(record, &parcel);
	return put(kit, &block, record);
}

#define LONG (4 * MIB)

/* Long enough for others to come meanwhile. */
static void *send_long(void *arg)
{
	struct sender *s = arg;
	void *data = aligned_alloc(4096, LONG);
	struct vb__block block = { .offset = s->number * LONG, .length = LONG, .file = 1 };

	memset(data, 'x', LONG);
	s->rc = put(s->kit, &block, data);
	free(data);
	return NULL;
}

/* Whoever tells of it still needs it, and whoever writes to it last ends it. */
static void a_file_is_given_up_while_it_is_written(void **state)
{
	struct kit *kit = *state;
	struct sender senders[THREADS];
	pthread_t threads[THREADS];

	for (unsigned round = 0; round < 10; round++) {
		kit_open(kit, "");
		offers(kit, offer_file(1, 0, "file", THREADS * LONG));
		for (unsigned i = 0; i < THREADS; i++) {
			senders[i] = (struct sender){ .kit = kit, .number = i };
			assert_int_equal(pthread_create(&threads[i], NULL, send_long, &senders[i]),
					 0);
		}
		while (kit_count(kit, "") == 1) /* the journal: nobody writes yet */
			sched_yield();
		assert_int_equal(put_missed(kit, 1), 0);
		for (unsigned i = 0; i < THREADS; i++) {
			assert_int_equal(pthread_join(threads[i], NULL), 0);
			assert_int_equal(senders[i].rc, 0);
		}
		kit_finish(kit);
		assert_int_equal(kit->report.failed, 1);
		assert_int_equal(kit_count(kit, ""), 0);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, kit_setup, kit_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_full_disk_ends_it_all),
		TEST(a_file_that_is_too_large_is_told_early),
		TEST(a_limit_of_size_is_one_files_failure),
		TEST(what_is_not_permitted_fails_and_the_rest_goes_on),
		TEST(directories_closed_to_ourselves_are_no_trouble),
		TEST(owners_that_we_may_not_give_are_left),
		TEST(syncing_is_no_trouble),
		TEST(many_large_files_at_once),
		TEST(many_threads_bring_many_files),
		TEST(a_file_is_given_up_while_it_is_written),
	};

	return cmocka_run_group_tests_name("sink_faults", tests, NULL, NULL);
}
