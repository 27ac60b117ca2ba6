/* SPDX-License-Identifier: Apache-2.0 */
/* Files as sinks: whole or not at all, with the right mode, in the right place. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "file_kit.h"

#define BLOCK (64 * KIB)

static const struct vb__origin unknown = { .total_bytes = UINT64_MAX };

static int put(struct vb__sink *sink, uint64_t offset, size_t len, struct vb_error *err)
{
	struct vb__block block = { .offset = offset, .length = len };
	uint8_t *data = page_aligned(len);
	int rc;

	*err = (struct vb_error){ .code = VB_OK };
	make_bytes(data, len, offset);
	rc = sink->ops->put(sink, &block, data, err);
	free(data);
	return rc;
}

static int put_hole(struct vb__sink *sink, uint64_t offset, uint64_t len)
{
	struct vb__block block = { .offset = offset, .length = len, .flags = VB__BLOCK_HOLE };

	return sink->ops->put(sink, &block, NULL, NULL);
}

static void assert_made(const char *path, size_t len)
{
	uint8_t *data = page_aligned(len);

	make_bytes(data, len, 0);
	assert_file_is(path, data, len);
	free(data);
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_mode & 07777;
}

static struct vb__sink *open_with(struct kit *kit, const char *path,
				  const struct vb__origin *origin, enum vb_direct direct,
				  bool fsync)
{
	struct vb__sink_options options = { .direct = direct,
					    .fsync = fsync,
					    .cancel_fd = kit->cancel_fd };
	struct vb_error err = { .code = VB_OK };
	struct vb__sink *sink = NULL;

	assert_int_equal(vb__sink_open(&(struct vb_output){ .path = path }, origin, &options, &sink,
				       &err),
			 0);
	return sink;
}

/* One block of `len`, finished and closed. */
static void write_whole(struct kit *kit, const char *path, const struct vb__origin *origin,
			size_t len)
{
	struct vb__sink *sink = open_with(kit, path, origin, VB_DIRECT_AUTO, false);
	struct vb_error err;

	assert_int_equal(put(sink, 0, len, &err), 0);
	assert_int_equal(sink->ops->finish(sink, len, &err), 0);
	sink->ops->close(sink);
	assert_made(path, len);
}

static void nothing_is_seen_before_the_end(void **state)
{
	const char *path = kit_path(*state, "file");
	struct vb__sink *sink = open_sink(*state, path, 2 * BLOCK);
	struct vb_error err;

	assert_int_equal(put(sink, BLOCK, BLOCK, &err), 0);
	assert_int_equal(put(sink, 0, BLOCK, &err), 0);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(sink->ops->finish(sink, 2 * BLOCK, &err), 0);
	assert_made(path, 2 * BLOCK);
	sink->ops->close(sink);
	assert_int_equal(kit_count(*state), 1);
}

static void the_old_file_stays_until_the_end(void **state)
{
	const char *path = kit_path(*state, "file");
	struct vb__sink *sink;
	struct vb_error err;

	make_file(path, 100);
	sink = open_sink(*state, path, 5);
	assert_int_equal(put(sink, 0, 5, &err), 0);
	assert_made(path, 100);
	assert_int_equal(sink->ops->finish(sink, 5, &err), 0);
	sink->ops->close(sink);
	assert_made(path, 5);
	assert_int_equal(kit_count(*state), 1);
}

static void what_is_not_finished_leaves_nothing(void **state)
{
	const char *path = kit_path(*state, "file");
	struct vb__sink *sink;
	struct vb_error err;

	make_file(path, 100);
	sink = open_sink(*state, path, UINT64_MAX);
	assert_int_equal(put(sink, 0, BLOCK, &err), 0);
	sink->ops->close(sink);
	assert_made(path, 100);
	assert_int_equal(kit_count(*state), 1);
}

static void an_end_that_comes_too_early_is_refused(void **state)
{
	struct vb__sink *sink = open_sink(*state, kit_path(*state, "file"), 2 * BLOCK);
	struct vb_error err;

	assert_int_equal(put(sink, BLOCK, BLOCK, &err), 0);
	assert_int_equal(sink->ops->finish(sink, 2 * BLOCK, &err), VB_ERR_PROTOCOL);
	sink->ops->close(sink);
	assert_int_equal(kit_count(*state), 0);
}

/* Both users have been told that nothing came of it. */
static void what_was_given_up_at_its_very_end_is_not_seen(void **state)
{
	const char *path = kit_path(*state, "file");

	make_file(path, 100);
	for (int fsync = 0; fsync <= 1; fsync++) {
		struct vb__sink *sink =
			open_with(*state, path, &unknown, VB_DIRECT_AUTO, fsync != 0);
		struct vb_error err;

		assert_int_equal(put(sink, 0, BLOCK, &err), 0);
		kit_cancel(*state);
		assert_int_equal(sink->ops->finish(sink, BLOCK, &err), VB_ERR_INTERRUPTED);
		sink->ops->close(sink);
		assert_made(path, 100);
		assert_int_equal(kit_count(*state), 1);
	}
}

static int disk_errno; /* 0: it is well */
static unsigned synced;

__typeof__(sync_file_range) __real_sync_file_range, __wrap_sync_file_range;

int __wrap_sync_file_range(int fd, off_t offset, off_t bytes, unsigned flags)
{
	synced++;
	errno = disk_errno;
	return disk_errno ? -1 : __real_sync_file_range(fd, offset, bytes, flags);
}

/* It is told once: fsync would find nothing wrong any more. */
static void a_disk_that_fails_while_synced_is_told(void **state)
{
	const char *path = kit_path(*state, "file");
	struct vb__sink *sink = open_with(*state, path, &unknown, VB_DIRECT_AUTO, true);
	struct vb_error err;

	assert_int_equal(put(sink, 0, BLOCK, &err), 0);
	disk_errno = EIO;
	assert_int_equal(sink->ops->finish(sink, BLOCK, &err), VB_ERR_IO);
	disk_errno = 0;
	assert_int_equal(err.native, EIO);
	sink->ops->close(sink);
	assert_int_equal(kit_count(*state), 0);
}

static void where_it_cannot_be_done_in_pieces_it_is_synced_at_once(void **state)
{
	const char *path = kit_path(*state, "file");
	struct vb__sink *sink = open_with(*state, path, &unknown, VB_DIRECT_AUTO, true);
	struct vb_error err;

	assert_int_equal(put(sink, 0, BLOCK, &err), 0);
	disk_errno = ENOSYS;
	assert_int_equal(sink->ops->finish(sink, BLOCK, &err), 0);
	disk_errno = 0;
	sink->ops->close(sink);
	assert_made(path, BLOCK);
}

/* As long as all that is not there is looked at, too, that would take hours. */
static void a_file_of_nothing_but_holes_is_synced_soon(void **state)
{
	const uint64_t much = UINT64_C(1) << 42;
	struct vb__origin origin = { .total_bytes = much, .sparse = true };
	struct vb__sink *sink =
		open_with(*state, kit_path(*state, "file"), &origin, VB_DIRECT_AUTO, true);
	struct vb_error err;

	synced = 0;
	assert_int_equal(put_hole(sink, 0, much), 0);
	assert_int_equal(sink->ops->finish(sink, much, &err), 0);
	assert_true(synced > 1 && synced <= 4097);
	sink->ops->close(sink);
}

static void an_empty_file_is_made(void **state)
{
	const char *path = kit_path(*state, "file");
	struct vb__sink *sink = open_sink(*state, path, 0);
	struct vb_error err = { .code = VB_OK };

	assert_int_equal(sink->ops->finish(sink, 0, &err), 0);
	sink->ops->close(sink);
	assert_made(path, 0);
}

static void holes_are_left_out(void **state)
{
	const char *path = kit_path(*state, "file");
	struct vb__origin origin = { .total_bytes = 100 * MIB, .sparse = true };
	struct vb__sink *sink = open_with(*state, path, &origin, VB_DIRECT_AUTO, false);
	struct vb_error err;
	struct stat st;

	assert_int_equal(put_hole(sink, 0, 50 * MIB), 0);
	assert_int_equal(put(sink, 50 * MIB, BLOCK, &err), 0);
	assert_int_equal(put_hole(sink, 50 * MIB + BLOCK, 50 * MIB - BLOCK), 0);
	assert_int_equal(sink->ops->finish(sink, 100 * MIB, &err), 0);
	sink->ops->close(sink);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 100 * MIB);
	assert_in_range(st.st_blocks * 512, BLOCK, MIB);
}

static void modes_follow_the_origin_and_the_umask(void **state)
{
	const char *path = kit_path(*state, "file");
	struct vb__origin origin = { .total_bytes = 5, .has_mode = true, .mode = 0777 };
	mode_t before = umask(027);

	write_whole(*state, path, &origin, 5);
	assert_int_equal(mode_of(path), 0750);
	origin.mode = 0;
	write_whole(*state, path, &origin, 5);
	assert_int_equal(mode_of(path), 0);
	unlink(path);
	write_whole(*state, path, &unknown, 5);
	assert_int_equal(mode_of(path), 0640);
	umask(before);
}

static void without_an_origin_the_old_mode_stays(void **state)
{
	const char *path = kit_path(*state, "file");

	make_file(path, 1);
	assert_int_equal(chmod(path, 0462), 0);
	write_whole(*state, path, &unknown, 5);
	assert_int_equal(mode_of(path), 0462);
	assert_int_equal(chmod(path, 04755), 0);
	write_whole(*state, path, &unknown, 5);
	assert_int_equal(mode_of(path), 0755);
}

static void root_keeps_the_owner(void **state)
{
	const char *path = kit_path(*state, "file");
	struct stat st;

	if (geteuid() != 0) {
		print_message("# skipped: only root can give files to others\n");
		skip();
	}
	make_file(path, 1);
	assert_int_equal(chown(path, 12, 34), 0);
	write_whole(*state, path, &unknown, 5);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, 12);
	assert_int_equal(st.st_gid, 34);
}

static void assert_link(const char *path, const char *to)
{
	char have[200];
	ssize_t n = readlink(path, have, sizeof(have) - 1);

	assert_true(n > 0);
	have[n] = '\0';
	assert_string_equal(have, to);
}

static void what_a_link_points_to_is_replaced(void **state)
{
	const char *file = kit_path(*state, "file"), *link = kit_path(*state, "link");
	const char *chain = kit_path(*state, "chain");

	make_file(file, 100);
	assert_int_equal(symlink("file", link), 0);
	assert_int_equal(symlink(link, chain), 0);
	write_whole(*state, chain, &unknown, 7);
	assert_link(chain, link);
	assert_link(link, "file");
	assert_made(file, 7);
}

static void a_dangling_link_gets_its_file(void **state)
{
	const char *file = kit_path(*state, "file"), *link = kit_path(*state, "link");

	assert_int_equal(symlink("file", link), 0);
	write_whole(*state, link, &unknown, 7);
	assert_link(link, "file");
	assert_made(file, 7);
}

static void links_in_a_circle_are_refused(void **state)
{
	const char *link = kit_path(*state, "link");
	struct vb_error err;

	assert_int_equal(symlink("link", link), 0);
	assert_int_equal(sink_refuses(*state, link, &unknown, &err), VB_ERR_IO);
	assert_int_equal(err.native, ELOOP);
}

static void long_names_are_no_trouble(void **state)
{
	char name[256];

	/* Of two bytes each: the temporary name must not cut one in two. */
	for (size_t i = 0; i < 127; i++)
		memcpy(name + 2 * i, "\xc3\xa9", 2);
	memcpy(name + 254, "x", 2);
	write_whole(*state, kit_path(*state, name), &unknown, 5);
	write_whole(*state, kit_path(*state, name), &unknown, 6);
	assert_int_equal(kit_count(*state), 1);
}

static void places_that_cannot_be_are_told_at_once(void **state)
{
	struct kit *kit = *state;
	struct vb_error err;

	assert_int_equal(sink_refuses(kit, kit_path(kit, "none/file"), &unknown, &err), VB_ERR_IO);
	assert_int_equal(err.native, ENOENT);
	assert_non_null(strstr(err.hint, "directory"));
	assert_int_equal(sink_refuses(kit, kit_path(kit, "none/"), &unknown, &err), VB_ERR_IO);
	assert_int_equal(err.native, ENOENT);
	assert_int_equal(sink_refuses(kit, kit->dir, &unknown, &err), VB_ERR_IO);
	assert_int_equal(err.native, EISDIR);
	make_file(kit_path(kit, "file"), 1);
	assert_int_equal(sink_refuses(kit, kit_path(kit, "file/file"), &unknown, &err), VB_ERR_IO);
	assert_int_equal(err.native, ENOTDIR);
	assert_int_equal(sink_refuses(kit, "", &unknown, &err), VB_ERR_IO);
}

static bool is_denied(struct kit *kit)
{
	struct vb_error err;

	return sink_refuses(kit, kit_path(kit, "file"), &unknown, &err) == VB_ERR_IO &&
	       err.native == EACCES && strstr(err.hint, "directory");
}

/* Root may write everywhere: then it is asked by a child that is somebody else. */
static void a_directory_without_permission_is_told_at_once(void **state)
{
	struct kit *kit = *state;
	int status = 0;
	pid_t pid = 0;

	assert_int_equal(chmod(kit->dir, 0555), 0);
	if (geteuid() != 0) {
		assert_true(is_denied(kit));
	} else {
		pid = fork();
		if (pid == 0)
			_exit(setuid(65534) == 0 && is_denied(kit) ? 0 : 1);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	assert_int_equal(chmod(kit->dir, 0700), 0);
}

static int not_content(void *arg, int cancel_fd, struct vb_error *err)
{
	(void)cancel_fd;
	*(bool *)arg = true;
	*err = (struct vb_error){ .code = VB_ERR_IO };
	return VB_ERR_IO;
}

static void the_end_can_be_refused(void **state)
{
	bool called = false;
	struct vb_output output = { .path = kit_path(*state, "file"),
				    .at_end = not_content,
				    .at_end_arg = &called };
	struct vb__sink_options options = { .cancel_fd = -1 };
	struct vb_error err = { .code = VB_OK };
	struct vb__sink *sink;

	assert_int_equal(vb__sink_open(&output, &unknown, &options, &sink, &err), 0);
	assert_int_equal(sink->ops->finish(sink, 0, &err), VB_ERR_IO);
	assert_true(called);
	sink->ops->close(sink);
}

/* A file may have 1 MiB at most; the signal that comes with it is blocked, as in the engine. */
static void a_limit_of_size_is_told(void **state)
{
	const char *path = kit_path(*state, "file");
	struct rlimit before, limit;
	struct vb__sink *sink;
	struct vb_error err;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = (struct rlimit){ .rlim_cur = MIB, .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(sink_refuses(*state, path, &(struct vb__origin){ .total_bytes = 2 * MIB },
				      &err),
			 VB_ERR_IO);
	assert_int_equal(err.native, EFBIG);
	sink = open_sink(*state, path, UINT64_MAX);
	assert_int_equal(put(sink, MIB, BLOCK, &err), VB_ERR_IO);
	assert_int_equal(err.native, EFBIG);
	sink->ops->close(sink);
	sink = open_sink(*state, path, UINT64_MAX);
	assert_int_equal(put_hole(sink, 0, 2 * MIB), 0);
	err = (struct vb_error){ .code = VB_OK };
	assert_int_equal(sink->ops->finish(sink, 2 * MIB, &err), VB_ERR_IO);
	assert_int_equal(err.native, EFBIG);
	sink->ops->close(sink);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(kit_count(*state), 0);
}

static void assert_full(struct kit *kit)
{
	const char *path = kit_path(kit, "file");
	struct vb__sink *sink;
	struct vb_error err;
	uint64_t at = 0;
	int rc;

	make_file(path, 100);
	assert_int_equal(sink_refuses(kit, path, &(struct vb__origin){ .total_bytes = 2 * MIB },
				      &err),
			 VB_ERR_IO);
	assert_int_equal(err.native, ENOSPC);
	sink = open_sink(kit, path, UINT64_MAX);
	while ((rc = put(sink, at, BLOCK, &err)) == 0 && at < 4 * MIB)
		at += BLOCK;
	assert_int_equal(rc, VB_ERR_IO);
	assert_int_equal(err.native, ENOSPC);
	assert_string_equal(err.cause, "No space left on device");
	sink->ops->close(sink);
	assert_made(path, 100);
	assert_int_equal(kit_count(kit), 1);
}

static void a_full_disk_is_told_and_leaves_nothing(void **state)
{
	struct kit *kit = *state;

	if (mount("none", kit->dir, "tmpfs", 0, "size=1m")) {
		print_message("# skipped: no tmpfs can be mounted: %s\n", strerror(errno));
		skip();
	}
	assert_full(kit);
	assert_int_equal(umount(kit->dir), 0);
}

#ifndef WITHOUT_PROC
/* A child writes and writes; killed, it leaves nothing. */
static void a_killed_writer_leaves_nothing(void **state)
{
	struct kit *kit = *state;
	const char *path = kit_path(kit, "file");
	int fds[2], probe = openat(AT_FDCWD, kit->dir, O_TMPFILE | O_RDWR, 0600);

	if (probe < 0) {
		print_message("# skipped: this file system has no files without names\n");
		skip();
	}
	close(probe);
	make_file(path, 100);
	for (int i = 0; i < 10; i++) {
		char byte;
		pid_t pid;

		assert_int_equal(pipe(fds), 0);
		pid = fork();
		if (pid == 0) {
			struct vb__sink *sink = open_sink(kit, path, UINT64_MAX);
			struct vb_error err;

			for (uint64_t at = 0;; at = (at + BLOCK) % (16 * MIB))
				if (put(sink, at, BLOCK, &err) ||
				    (!at && write(fds[1], "x", 1) < 0))
					_exit(1);
		}
		close(fds[1]);
		assert_int_equal(read(fds[0], &byte, 1), 1);
		usleep((useconds_t)(1000 * i));
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		close(fds[0]);
		assert_int_equal(kit_count(kit), 1);
		assert_made(path, 100);
	}
}
#endif

#define TEST(name) cmocka_unit_test_setup_teardown(name, kit_setup, kit_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_is_seen_before_the_end),
		TEST(the_old_file_stays_until_the_end),
		TEST(what_is_not_finished_leaves_nothing),
		TEST(an_end_that_comes_too_early_is_refused),
		TEST(what_was_given_up_at_its_very_end_is_not_seen),
		TEST(a_disk_that_fails_while_synced_is_told),
		TEST(where_it_cannot_be_done_in_pieces_it_is_synced_at_once),
		TEST(a_file_of_nothing_but_holes_is_synced_soon),
		TEST(an_empty_file_is_made),
		TEST(holes_are_left_out),
		TEST(modes_follow_the_origin_and_the_umask),
		TEST(without_an_origin_the_old_mode_stays),
		TEST(root_keeps_the_owner),
		TEST(what_a_link_points_to_is_replaced),
		TEST(a_dangling_link_gets_its_file),
		TEST(links_in_a_circle_are_refused),
		TEST(long_names_are_no_trouble),
		TEST(places_that_cannot_be_are_told_at_once),
		TEST(a_directory_without_permission_is_told_at_once),
		TEST(the_end_can_be_refused),
		TEST(a_limit_of_size_is_told),
		TEST(a_full_disk_is_told_and_leaves_nothing),
#ifndef WITHOUT_PROC /* a file with a name stays */
		TEST(a_killed_writer_leaves_nothing),
#endif
	};

	return cmocka_run_group_tests_name("sink_file", tests, NULL, NULL);
}
