/* SPDX-License-Identifier: Apache-2.0 */
/* Block devices as sinks and sources: a loop device, where there can be one. */
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "file_kit.h"

#define SIZE (4 * MIB)

struct loop {
	char path[32];
	int fd;
};

/* A device over a file of ours that is full of bytes; skips the test if that cannot be. */
static struct loop attach(struct kit *kit)
{
	const char *file = kit_path(kit, "backing");
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC), backing;
	int number = control >= 0 ? ioctl(control, LOOP_CTL_GET_FREE) : -1;
	struct loop loop = { .fd = -1 };

	make_file(file, SIZE);
	backing = open(file, O_RDWR | O_CLOEXEC);
	snprintf(loop.path, sizeof(loop.path), "/dev/loop%d", number);
	if (number >= 0)
		loop.fd = open(loop.path, O_RDWR | O_CLOEXEC);
	if (loop.fd < 0 || ioctl(loop.fd, LOOP_SET_FD, backing)) {
		print_message("# skipped: no loop device to be had: %s\n", strerror(errno));
		if (loop.fd >= 0)
			close(loop.fd);
		loop.fd = -1;
	}
	close(backing);
	if (control >= 0)
		close(control);
	if (loop.fd < 0)
		skip();
	return loop;
}

static void detach(struct loop *loop)
{
	assert_int_equal(ioctl(loop->fd, LOOP_CLR_FD, 0), 0);
	close(loop->fd);
}

static void a_device_is_read_to_its_end(void **state)
{
	struct loop loop = attach(*state);
	const char *copy = kit_path(*state, "copy");
	struct vb_error err = { .code = VB_OK };
	struct vb__source *source = open_source(*state, &(struct vb_input){ .path = loop.path });

	assert_int_equal(source->total_bytes, SIZE);
	assert_false(source->has_mode);
	assert_int_equal(pump_through(source, open_sink(*state, copy, SIZE), 64 * KIB, 3, &err), 0);
	detach(&loop);
	assert_same_files(kit_path(*state, "backing"), copy);
}

/* Holes lie as they come, aligned to nothing. */
static void a_device_is_written_in_place(void **state)
{
	const uint64_t ends[] = { 5000, 100000, 100001, 2000000, 2000000 + 512, 3000000 };
	struct loop loop = attach(*state);
	struct vb__sink *sink = open_sink(*state, loop.path, 3000000);
	struct vb_error err = { .code = VB_OK };
	uint8_t *data = page_aligned(SIZE), *have = page_aligned(SIZE);
	uint64_t at = 0;

	make_bytes(have, SIZE, 0);
	make_bytes(data, SIZE, 99);
	for (size_t i = 0; i < COUNT(ends); i++) {
		bool hole = i % 2;
		struct vb__block block = { .offset = at, .length = ends[i] - at, .flags = hole };

		if (hole)
			memset(have + at, 0, block.length);
		else
			memcpy(have + at, data + at, block.length);
		assert_int_equal(sink->ops->put(sink, &block, hole ? NULL : data + at, &err), 0);
		at = ends[i];
	}
	assert_int_equal(sink->ops->finish(sink, at, &err), 0);
	sink->ops->close(sink);
	detach(&loop);
	assert_file_is(kit_path(*state, "backing"), have, SIZE);
	free(data);
	free(have);
}

static void what_does_not_fit_is_told_at_once(void **state)
{
	struct loop loop = attach(*state);
	struct vb_error err;
	int rc = sink_refuses(*state, loop.path, &(struct vb__origin){ .total_bytes = SIZE + 1 },
			      &err);

	detach(&loop);
	assert_int_equal(rc, VB_ERR_IO);
	assert_int_equal(err.native, ENOSPC);
}

static void the_end_of_the_device_is_an_error(void **state)
{
	struct loop loop = attach(*state);
	struct vb__sink *sink = open_sink(*state, loop.path, UINT64_MAX);
	struct vb__block block = { .offset = SIZE, .length = 4096 };
	struct vb_error err = { .code = VB_OK };
	uint8_t *data = page_aligned(4096);
	int rc = sink->ops->put(sink, &block, data, &err);

	sink->ops->close(sink);
	detach(&loop);
	assert_int_equal(rc, VB_ERR_IO);
	assert_int_equal(err.native, ENOSPC);
	free(data);
}

static void a_device_in_use_is_refused(void **state)
{
	struct loop loop = attach(*state);
	int other = open(loop.path, O_RDONLY | O_EXCL | O_CLOEXEC);
	struct vb_error err;
	int rc = sink_refuses(*state, loop.path, &(struct vb__origin){ .total_bytes = SIZE }, &err);

	close(other);
	detach(&loop);
	assert_int_equal(rc, VB_ERR_IO);
	assert_int_equal(err.native, EBUSY);
	assert_non_null(strstr(err.hint, "mounted"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, kit_setup, kit_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_device_is_read_to_its_end),	 TEST(a_device_is_written_in_place),
		TEST(what_does_not_fit_is_told_at_once), TEST(the_end_of_the_device_is_an_error),
		TEST(a_device_in_use_is_refused),
	};

	return cmocka_run_group_tests_name("sink_device", tests, NULL, NULL);
}
