/* SPDX-License-Identifier: Apache-2.0 */
/* The sending end: what it sends for which answers, and what it does not believe. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "driven.h"

static void small_files_come_as_parcels_in_one_block(void **state)
{
	struct kit *kit = *state;
	struct driven d = driven_open(kit, kit_path(kit, "."), VB_KEEP_ARCHIVE);
	unsigned seen = 0;
	size_t at = 0;

	make_file(kit, "a", 0);
	make_file(kit, "b", 5000);
	make_file(kit, "c", VB__TREE_SMALL);
	driven_start(&d);
	driven_take_offers(&d, 4);
	assert_int_equal(d.listed, 1);
	assert_int_equal(driven_want(&d, 2, 3), 0);
	assert_int_equal(driven_settle(&d, 4), 0);
	driven_take(&d, VB__BLOCK_PARCELS);
	while (at < d.block.length) {
		struct vb__parcel parcel = driven_parcel_at(&d, &at);

		assert_int_equal(parcel.kind, VB__PARCEL_WHOLE);
		assert_bytes(parcel.data.data, parcel.data.len, 0);
		seen += parcel.data.len == 0 || parcel.data.len == 5000 ||
			parcel.data.len == VB__TREE_SMALL;
	}
	assert_int_equal(seen, 3);
	assert_int_equal(driven_next(&d), 0);
	driven_end(&d);
	assert_int_equal(d.report.files, 3);
	assert_int_equal(d.report.directories, 1);
	assert_int_equal(d.report.bytes, 5000 + VB__TREE_SMALL);
	assert_int_equal(d.report.sent_bytes, 5000 + VB__TREE_SMALL);
	assert_int_equal(d.report.failed + d.report.vanished + d.report.unchanged, 0);
}

static void large_file_comes_in_blocks_and_then_its_end(void **state)
{
	struct kit *kit = *state;
	struct driven d = driven_open(kit, kit_path(kit, "file"), VB_KEEP_ARCHIVE);
	const uint64_t size = 3 * ROOM + 77;
	struct vb__parcel parcel;

	make_file(kit, "file", size);
	driven_start(&d);
	driven_take_offers(&d, 1);
	assert_int_equal(driven_want(&d, 1, 1), 0);
	assert_int_equal(driven_settle(&d, 1), 0);
	for (uint64_t at = 0; at < size; at += d.block.length) {
		driven_take(&d, 0);
		assert_int_equal(d.block.file, 1);
		assert_int_equal(d.block.offset, at);
		assert_bytes(d.buffer, d.block.length, at);
	}
	driven_take(&d, VB__BLOCK_PARCELS);
	parcel = driven_only_parcel(&d);
	assert_int_equal(parcel.kind, VB__PARCEL_END);
	assert_int_equal(parcel.number, 1);
	assert_int_equal(parcel.size, size);
	assert_int_equal(parcel.identity, d.last_file.identity);
	assert_true(parcel.mtime_s == d.last_file.mtime_s);
	assert_int_equal(driven_next(&d), 0);
	driven_end(&d);
	assert_int_equal(d.report.files, 1);
	assert_int_equal(d.report.sent_bytes, size);
}

static void only_the_parts_that_are_wanted_come(void **state)
{
	struct kit *kit = *state;
	struct driven d = driven_open(kit, kit_path(kit, "file"), VB_KEEP_ARCHIVE);
	const uint64_t size = MIB;

	make_file(kit, "file", size);
	driven_start(&d);
	driven_take_offers(&d, 1);
	assert_int_equal(driven_want_part(&d, 1, 100, 50), 0);
	assert_int_equal(driven_want_part(&d, 1, size - 10, 10), 0);
	assert_int_equal(driven_settle(&d, 1), 0);
	driven_take(&d, 0);
	assert_int_equal(d.block.offset, 100);
	assert_int_equal(d.block.length, 50);
	assert_bytes(d.buffer, 50, 100);
	driven_take(&d, 0);
	assert_int_equal(d.block.offset, size - 10);
	assert_int_equal(d.block.length, 10);
	assert_bytes(d.buffer, 10, size - 10);
	driven_take(&d, VB__BLOCK_PARCELS);
	assert_int_equal(driven_only_parcel(&d).kind, VB__PARCEL_END);
	assert_int_equal(driven_next(&d), 0);
	driven_end(&d);
	assert_int_equal(d.report.sent_bytes, 60);
	assert_int_equal(d.report.resumed_bytes, size - 60);
	assert_int_equal(d.report.files, 1);
}

static void parts_of_a_file_that_is_another_now_are_not_sent(void **state)
{
	struct kit *kit = *state;
	struct driven d = driven_open(kit, kit_path(kit, "file"), VB_KEEP_ARCHIVE);
	struct vb__parcel parcel;

	make_file(kit, "file", MIB);
	driven_start(&d);
	driven_take_offers(&d, 1);
	make_file(kit, "other", MIB);
	assert_int_equal(renameat(kit->dir_fd, "other", kit->dir_fd, "file"), 0);
	assert_int_equal(driven_want_part(&d, 1, 0, MIB - 1), 0);
	assert_int_equal(driven_settle(&d, 1), 0);
	driven_take(&d, VB__BLOCK_PARCELS);
	parcel = driven_only_parcel(&d);
	assert_words(&parcel, "it changed while it was read");
	assert_int_equal(driven_next(&d), 0);
	driven_end(&d);
	assert_int_equal(d.report.failed, 1);
}

static void holes_come_as_holes_if_they_are_kept(void **state)
{
	struct kit *kit = *state;
	struct driven d = driven_open(kit, kit_path(kit, "file"), VB_KEEP_HOLES);
	uint64_t holes = 0, data = 0;

	make_file(kit, "file", 64 * KIB);
	assert_int_equal(truncate(d.paths[0], 8 * MIB), 0);
	driven_start(&d);
	driven_take_offers(&d, 1);
	assert_int_equal(d.last_file.flags, VB__OFFER_SPARSE);
	assert_int_equal(driven_want(&d, 1, 1), 0);
	assert_int_equal(driven_settle(&d, 1), 0);
	while (holes + data < 8 * MIB) {
		assert_int_equal(driven_next(&d), 1);
		assert_int_equal(d.block.offset, holes + data);
		driven_fill(&d);
		*(d.block.flags & VB__BLOCK_HOLE ? &holes : &data) += d.block.length;
	}
	assert_int_equal(data, 64 * KIB);
	driven_take(&d, VB__BLOCK_PARCELS);
	assert_int_equal(driven_only_parcel(&d).kind, VB__PARCEL_END);
	assert_int_equal(driven_next(&d), 0);
	driven_end(&d);
	assert_int_equal(d.report.sent_bytes, 64 * KIB);
}

static void what_is_settled_without_a_want_is_unchanged(void **state)
{
	struct kit *kit = *state;
	struct driven d = driven_open(kit, kit_path(kit, "."), VB_KEEP_ARCHIVE);

	make_file(kit, "a", 10);
	make_file(kit, "b", 10);
	driven_start(&d);
	driven_take_offers(&d, 3);
	assert_int_equal(driven_settle(&d, 1), 0);
	assert_int_equal(driven_settle(&d, 1), 0);
	assert_int_equal(driven_settle(&d, 3), 0);
	assert_int_equal(driven_next(&d), 0);
	driven_end(&d);
	assert_int_equal(d.report.unchanged, 2);
	assert_int_equal(d.report.files, 0);
	assert_int_equal(d.report.bytes, 20);
	assert_int_equal(d.report.sent_bytes, 0);
}

static void answers_that_make_no_sense_end_it(void **state)
{
	struct kit *kit = *state;
	struct driven d = driven_open(kit, kit_path(kit, "d"), VB_KEEP_ARCHIVE);
	struct vb_error err = { .code = VB_OK };

	make_dir(kit, "d");
	make_file(kit, "d/a", 10);
	make_file(kit, "d/b", MIB);
	driven_start(&d);
	/* Nothing has been offered yet. */
	assert_int_equal(driven_want(&d, 1, 1), VB_ERR_PROTOCOL);
	assert_int_equal(driven_settle(&d, 1), VB_ERR_PROTOCOL);
	driven_take_offers(&d, 3);
	assert_int_equal(driven_want(&d, 1, 1), VB_ERR_PROTOCOL); /* the directory */
	assert_int_equal(driven_want(&d, 4, 1), VB_ERR_PROTOCOL);
	assert_int_equal(driven_want(&d, 3, 2), VB_ERR_PROTOCOL);
	assert_int_equal(driven_want(&d, 2, UINT32_MAX - 1), VB_ERR_PROTOCOL);
	assert_int_equal(driven_want_part(&d, 1, 0, 1), VB_ERR_PROTOCOL);
	assert_int_equal(driven_want_part(&d, 2, 0, 2 * MIB), VB_ERR_PROTOCOL);
	assert_int_equal(driven_want_part(&d, UINT32_MAX, 0, 1), VB_ERR_PROTOCOL);
	assert_int_equal(driven_settle(&d, 4), VB_ERR_PROTOCOL);
	assert_int_equal(d.source->ops->hear(d.source, "nonsense", 8, &err), VB_ERR_PROTOCOL);
	assert_int_equal(driven_want(&d, 2, 2), 0);
	assert_int_equal(driven_want(&d, 2, 1), VB_ERR_PROTOCOL); /* twice */
	assert_int_equal(driven_want_part(&d, 3, 0, 1), VB_ERR_PROTOCOL);
	assert_int_equal(driven_settle(&d, 3), 0);
	assert_int_equal(driven_settle(&d, 2), VB_ERR_PROTOCOL);
	assert_int_equal(driven_want(&d, 2, 1), VB_ERR_PROTOCOL);
	driven_end(&d);
}

static void parts_that_make_no_sense_end_it(void **state)
{
	struct kit *kit = *state;
	struct driven d = driven_open(kit, kit_path(kit, "file"), VB_KEEP_ARCHIVE);

	make_file(kit, "file", MIB);
	driven_start(&d);
	driven_take_offers(&d, 1);
	assert_int_equal(driven_want_part(&d, 1, MIB, 1), VB_ERR_PROTOCOL);
	assert_int_equal(driven_want_part(&d, 1, 100, 100), 0);
	assert_int_equal(driven_want_part(&d, 1, 199, 1), VB_ERR_PROTOCOL);
	assert_int_equal(driven_want_part(&d, 1, 0, 10), VB_ERR_PROTOCOL);
	assert_int_equal(driven_want(&d, 1, 1), VB_ERR_PROTOCOL);
	driven_end(&d);
}

static void file_that_is_gone_or_locked_is_missed_and_the_rest_sent(void **state)
{
	struct kit *kit = *state;
	struct driven d = driven_open(kit, kit_path(kit, "."), VB_KEEP_ARCHIVE);
	unsigned missed = 0, whole = 0, ended = 0;

	make_file(kit, "large gone", MIB);
	make_file(kit, "large there", 2 * ROOM);
	make_file(kit, "small gone", 10);
	make_file(kit, "small there", 10);
	driven_start(&d);
	driven_take_offers(&d, 5);
	assert_int_equal(unlinkat(kit->dir_fd, "large gone", 0), 0);
	assert_int_equal(unlinkat(kit->dir_fd, "small gone", 0), 0);
	assert_int_equal(driven_want(&d, 2, 4), 0);
	assert_int_equal(driven_settle(&d, 5), 0);
	while (driven_next(&d) > 0) {
		size_t at = 0;

		driven_fill(&d);
		while (d.block.flags == VB__BLOCK_PARCELS && at < d.block.length) {
			struct vb__parcel parcel = driven_parcel_at(&d, &at);

			whole += parcel.kind == VB__PARCEL_WHOLE;
			ended += parcel.kind == VB__PARCEL_END;
			missed += parcel.kind == VB__PARCEL_MISSED && parcel.vanished &&
				  parcel.native == ENOENT;
		}
	}
	assert_int_equal(missed, 2);
	assert_int_equal(whole, 1);
	assert_int_equal(ended, 1);
	driven_end(&d);
	assert_int_equal(d.report.vanished, 2);
	assert_int_equal(d.report.failed, 0);
	assert_int_equal(d.report.files, 2);
	assert_non_null(strstr(kit->told, "vanished small gone: No such file or directory\n"));
	assert_non_null(strstr(kit->told, "vanished large gone: No such file or directory\n"));
}

static void walker_stays_within_the_window(void **state)
{
	enum {
		FILES = VB__TREE_AHEAD + 500
	};
	struct kit *kit = *state;
	struct driven d = driven_open(kit, kit_path(kit, "."), 0);
	struct vb_progress progress = { .bytes = 0 };

	for (unsigned i = 0; i < FILES; i++) {
		char name[20];

		snprintf(name, sizeof(name), "%u", i);
		close(openat(kit->dir_fd, name, O_CREAT | O_WRONLY, 0600));
	}
	driven_start(&d);
	driven_take_first_offers(&d, VB__TREE_AHEAD);
	d.source->ops->progress(d.source, &progress);
	assert_true(progress.counting);
	assert_int_equal(progress.total_files, VB__TREE_AHEAD - 1);
	/* What is wanted but not sent yet is as much ahead. */
	assert_int_equal(driven_want(&d, 2, 100), 0);
	assert_int_equal(driven_settle(&d, 200), 0);
	/* The walker may go on before. */
	for (d.block.flags = VB__BLOCK_OFFERS; d.block.flags == VB__BLOCK_OFFERS;) {
		assert_int_equal(driven_next(&d), 1);
		driven_fill(&d);
		if (d.block.flags == VB__BLOCK_OFFERS)
			driven_note_offers(&d);
	}
	assert_int_equal(d.block.flags, VB__BLOCK_PARCELS);
	while (d.last_number < FILES + 1) {
		if (driven_next(&d) <= 0)
			fail();
		driven_fill(&d);
		if (d.block.flags == VB__BLOCK_OFFERS)
			driven_note_offers(&d);
		assert_int_equal(driven_settle(&d, d.last_number), 0);
	}
	while (driven_next(&d) > 0) {
		driven_fill(&d);
		if (d.block.flags == VB__BLOCK_OFFERS)
			driven_note_offers(&d);
	}
	d.source->ops->progress(d.source, &progress);
	assert_false(progress.counting);
	assert_int_equal(progress.files, FILES);
	assert_int_equal(progress.total_files, FILES);
	driven_end(&d);
	assert_int_equal(d.report.files, 100);
	assert_int_equal(d.report.unchanged, FILES - 100);
}

/* ext4 gives them no more than a block of 4 KiB, so the name has to help. */
static void attributes_that_fit_into_no_block_are_left_out_and_told(void **state)
{
	struct kit *kit = *state;
	char value[3800], name[241];
	struct driven d;

	memset(value, 'v', sizeof(value));
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	d = driven_open(kit, kit_path(kit, name), VB_KEEP_XATTRS);
	d.room = VB_BLOCK_MIN;
	make_file(kit, name, 10);
	if (setxattr(d.paths[0], "user.large", value, sizeof(value), 0)) {
		print_message("no such attributes here: %s\n", strerror(errno));
		skip();
	}
	driven_start(&d);
	driven_take_offers(&d, 1);
	if (!d.missed) {
		driven_take(&d, VB__BLOCK_OFFERS);
		driven_note_offers(&d);
	}
	assert_int_equal(d.last_file.xattrs.len, 0);
	assert_int_equal(d.missed, 1);
	assert_int_equal(driven_settle(&d, 1), 0);
	assert_int_equal(driven_next(&d), 0);
	driven_end(&d);
	assert_int_equal(d.report.failed, 1);
	assert_non_null(
		strstr(kit->told, "n: its extended attributes are too large for a block\n"));
}

static void happenings_over_there_are_told_and_counted(void **state)
{
	struct kit *kit = *state;
	struct driven d = driven_open(kit, kit_path(kit, "file"), VB_KEEP_ARCHIVE);
	struct vb__answer happened = {
		.kind = VB__ANSWER_HAPPENED,
		.happening = VB_TREE_FAILED,
		.error = VB_ERR_IO,
		.native = ENOSPC,
		.path = { .data = (const uint8_t *)"file", .len = 4 },
		.cause = { .data = (const uint8_t *)"No space left on device", .len = 23 },
	};

	make_file(kit, "file", 1);
	driven_start(&d);
	driven_take_offers(&d, 1);
	assert_int_equal(driven_settle(&d, 1), 0);
	assert_int_equal(driven_next(&d), 0);
	/* Also when all was sent. */
	assert_int_equal(driven_hear(&d, happened), 0);
	happened.happening = VB_TREE_DELETED;
	happened.error = happened.native = 0;
	happened.cause.len = 0;
	assert_int_equal(driven_hear(&d, happened), 0);
	driven_end(&d);
	assert_int_equal(d.report.failed, 1);
	assert_int_equal(d.report.deleted, 1);
	assert_string_equal(kit->told, "there failed file: No space left on device\n");
}

static void missing_path_is_told_and_nothing_is_left_to_do(void **state)
{
	struct kit *kit = *state;
	struct driven d = driven_open(kit, kit_path(kit, "absent"), VB_KEEP_ARCHIVE);

	driven_start(&d);
	driven_take(&d, VB__BLOCK_OFFERS);
	driven_note_offers(&d);
	assert_int_equal(d.missed, 1);
	assert_int_equal(driven_next(&d), 0);
	driven_end(&d);
	assert_int_equal(d.report.failed, 1);
	assert_string_equal(kit->told, "failed absent: No such file or directory\n");
}

static void bad_rule_is_refused_at_once(void **state)
{
	static const char *const rules[] = { "nonsense", NULL };
	struct kit *kit = *state;
	struct driven d = driven_open(kit, kit_path(kit, "."), 0);
	struct vb_error err = { .code = VB_OK };

	d.options.rules = rules;
	assert_int_equal(vb__tree_source_open(d.paths, 1, &d.options, VB_DIRECT_AUTO, -1, &d.report,
					      &d.source, &err),
			 VB_ERR_INVALID);
	assert_non_null(strstr(err.cause, "nonsense"));
}

static void *cancel_soon(void *arg)
{
	struct kit *kit = arg;

	usleep(20000); /* so that it is most likely waiting; it must end in any case */
	assert_int_equal(eventfd_write(kit->cancel_fd, 1), 0);
	return NULL;
}

static void waiting_for_answers_ends_when_it_is_cancelled(void **state)
{
	struct kit *kit = *state;
	struct driven d = driven_open(kit, kit_path(kit, "."), VB_KEEP_ARCHIVE);
	pthread_t thread;

	make_file(kit, "a", 10);
	driven_start(&d);
	driven_take_offers(&d, 2);
	assert_int_equal(pthread_create(&thread, NULL, cancel_soon, kit), 0);
	assert_int_equal(driven_next(&d), VB_ERR_INTERRUPTED);
	pthread_join(thread, NULL);
	driven_end(&d);
}

/* With everything under way: nothing may be left, which a sanitizer sees. */
static void closing_early_frees_what_was_handed_out(void **state)
{
	struct kit *kit = *state;
	struct driven d = driven_open(kit, kit_path(kit, "."), VB_KEEP_ARCHIVE);

	make_file(kit, "a", 10);
	make_file(kit, "b", MIB);
	make_file(kit, "c", MIB);
	make_file(kit, "d", 10);
	driven_start(&d);
	driven_take_offers(&d, 5);
	assert_int_equal(driven_want(&d, 2, 2), 0);
	assert_int_equal(driven_next(&d), 1);
	assert_int_equal(driven_next(&d), 1);
	assert_int_equal(driven_want(&d, 4, 1), 0);
	driven_end(&d);
	/* And while the walker is at work, or waits. */
	d = driven_open(kit, "/usr", VB_KEEP_ARCHIVE);
	driven_start(&d);
	driven_end(&d);
}

/* ---- several threads ---- */

struct crew {
	struct driven *d;
	pthread_mutex_t order;
	uint64_t bytes[64];
	bool ended[64];
	unsigned files;
};

static void count_parcels(struct crew *crew, const uint8_t *data, size_t len)
{
	struct vb__parcel parcel;
	size_t at = 0;

	while (at < len) {
		assert_true(vb__parcel_decode(&parcel, data, len, &at));
		assert_int_not_equal(parcel.kind, VB__PARCEL_MISSED);
		assert_false(crew->ended[parcel.number]);
		crew->ended[parcel.number] = true;
		crew->bytes[parcel.number] += parcel.data.len;
		crew->files++;
	}
}

static int claim(struct crew *crew, uint8_t *buffer, struct vb__block *block)
{
	struct driven *d = crew->d;
	struct vb_error err = { .code = VB_OK };
	int rc;

	pthread_mutex_lock(&crew->order);
	rc = d->source->ops->next(d->source, buffer, ROOM, block, &err);
	pthread_mutex_unlock(&crew->order);
	return rc;
}

static void *work(void *arg)
{
	struct crew *crew = arg;
	struct driven *d = crew->d;
	uint8_t *buffer = aligned_alloc(4096, ROOM);
	struct vb__block block;
	struct vb_error err = { .code = VB_OK };

	while (claim(crew, buffer, &block) > 0) {
		assert_int_equal(d->source->ops->fill(d->source, buffer, &block, &err), 0);
		pthread_mutex_lock(&crew->order);
		if (block.flags == VB__BLOCK_PARCELS) {
			count_parcels(crew, buffer, block.length);
		} else if (block.flags == 0) {
			assert_bytes(buffer, block.length, block.offset);
			crew->bytes[block.file] += block.length;
		}
		pthread_mutex_unlock(&crew->order);
	}
	free(buffer);
	return NULL;
}

static void many_threads_send_every_byte_once(void **state)
{
	enum {
		FILES = 40,
		THREADS = 4
	};
	struct kit *kit = *state;
	struct driven d = driven_open(kit, kit_path(kit, "."), VB_KEEP_ARCHIVE);
	struct crew crew = { .d = &d, .order = PTHREAD_MUTEX_INITIALIZER };
	struct vb_progress progress = { .bytes = 0 };
	pthread_t threads[THREADS];
	uint64_t total = 0, sum = 0;

	for (unsigned i = 0; i < FILES; i++) {
		char name[20];

		snprintf(name, sizeof(name), "%u", i);
		make_file(kit, name, i % 3 ? 1000 * i : 40000 * i);
		total += i % 3 ? 1000 * i : 40000 * i;
	}
	driven_start(&d);
	driven_take_offers(&d, FILES + 1);
	assert_int_equal(driven_want(&d, 2, FILES), 0);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, work, &crew), 0);
	assert_int_equal(driven_settle(&d, FILES + 1), 0);
	alarm(HANGS_S);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	alarm(0);
	for (unsigned i = 0; i < COUNT(crew.bytes); i++)
		sum += crew.bytes[i];
	assert_int_equal(sum, total);
	assert_int_equal(crew.files, FILES);
	d.source->ops->progress(d.source, &progress);
	assert_int_equal(progress.bytes, total);
	assert_int_equal(progress.total_bytes, total);
	assert_int_equal(progress.files, FILES);
	assert_true(progress.name[0]);
	driven_end(&d);
	assert_int_equal(d.report.files, FILES);
}

#define IN_KIT(test) cmocka_unit_test_setup_teardown(test, kit_setup, kit_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_KIT(small_files_come_as_parcels_in_one_block),
		IN_KIT(large_file_comes_in_blocks_and_then_its_end),
		IN_KIT(only_the_parts_that_are_wanted_come),
		IN_KIT(parts_of_a_file_that_is_another_now_are_not_sent),
		IN_KIT(holes_come_as_holes_if_they_are_kept),
		IN_KIT(what_is_settled_without_a_want_is_unchanged),
		IN_KIT(answers_that_make_no_sense_end_it),
		IN_KIT(parts_that_make_no_sense_end_it),
		IN_KIT(file_that_is_gone_or_locked_is_missed_and_the_rest_sent),
		IN_KIT(walker_stays_within_the_window),
		IN_KIT(attributes_that_fit_into_no_block_are_left_out_and_told),
		IN_KIT(happenings_over_there_are_told_and_counted),
		IN_KIT(missing_path_is_told_and_nothing_is_left_to_do),
		IN_KIT(bad_rule_is_refused_at_once),
		IN_KIT(waiting_for_answers_ends_when_it_is_cancelled),
		IN_KIT(closing_early_frees_what_was_handed_out),
		IN_KIT(many_threads_send_every_byte_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
