/* SPDX-License-Identifier: Apache-2.0 */
/* Streams as sinks: order, who waits for whom, and that nobody waits for ever. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "file_kit.h"

#define BLOCK (32 * KIB)

/* Giving up has to be noticed in a fraction of a second. */
#define SOON_MS 1000

struct reader {
	int fd;
	const char *path; /* a FIFO to open; NULL: fd */
	size_t limit;	  /* closes after so many */
	bool zeros;
	uint64_t got;
};

static void *reader_run(void *arg)
{
	struct reader *reader = arg;
	uint8_t *data = page_aligned(BLOCK);
	ssize_t n;

	if (reader->path)
		reader->fd = open(reader->path, O_RDONLY);
	while (reader->got < reader->limit && (n = read(reader->fd, data, BLOCK)) > 0) {
		if (!reader->zeros)
			assert_bytes(data, (size_t)n, reader->got);
		for (ssize_t i = 0; reader->zeros && i < n; i++)
			assert_int_equal(data[i], 0);
		reader->got += (uint64_t)n;
	}
	close(reader->fd);
	free(data);
	return NULL;
}

static struct vb__sink *sink_of(struct kit *kit, struct vb_output *output, bool fsync)
{
	struct vb__sink_options options = { .cancel_fd = kit->cancel_fd, .fsync = fsync };
	struct vb__origin origin = { .total_bytes = UINT64_MAX };
	struct vb_error err = { .code = VB_OK };
	struct vb__sink *sink;

	assert_int_equal(vb__sink_open(output, &origin, &options, &sink, &err), 0);
	return sink;
}

/* A thread that brings every n-th block, from the last to the first or the other way. */
struct bringer {
	struct vb__sink *sink;
	unsigned first, step, count;
	int rc;
	struct vb_error err;
};

static void *bring(void *arg)
{
	struct bringer *b = arg;
	uint8_t *data = page_aligned(BLOCK);

	for (unsigned i = b->first; i < b->count && !b->rc; i += b->step) {
		struct vb__block block = { .offset = (uint64_t)i * BLOCK, .length = BLOCK };

		make_bytes(data, BLOCK, block.offset);
		b->rc = b->sink->ops->put(b->sink, &block, data, &b->err);
	}
	free(data);
	return NULL;
}

/* Returns the first error. */
static int bring_all(struct vb__sink *sink, unsigned threads, unsigned count, struct vb_error *err)
{
	struct bringer bringers[8] = { 0 };
	pthread_t ids[8];
	int rc = 0;

	for (unsigned i = 0; i < threads; i++) {
		bringers[i] = (struct bringer){
			.sink = sink, .first = threads - 1 - i, .step = threads, .count = count
		};
		ids[i] = start_thread(bring, &bringers[i]);
	}
	for (unsigned i = 0; i < threads; i++) {
		join_thread(ids[i]);
		if (bringers[i].rc && !rc) {
			rc = bringers[i].rc;
			*err = bringers[i].err;
		}
	}
	return rc;
}

static void blocks_are_written_in_order(void **state)
{
	struct reader reader = { .limit = SIZE_MAX };
	struct vb_error err = { .code = VB_OK };
	struct vb__sink *sink;
	pthread_t thread;
	int fds[2], flags;

	assert_int_equal(pipe(fds), 0);
	flags = fcntl(fds[1], F_GETFL);
	reader.fd = fds[0];
	thread = start_thread(reader_run, &reader);
	sink = sink_of(*state, &(struct vb_output){ .fd = fds[1] }, true);
	assert_int_equal(bring_all(sink, 8, 500, &err), 0);
	assert_int_equal(sink->ops->finish(sink, 500 * BLOCK, &err), 0);
	sink->ops->close(sink);
	assert_int_equal(fcntl(fds[1], F_GETFL), flags);
	assert_int_equal(close(fds[1]), 0);
	join_thread(thread);
	assert_int_equal(reader.got, 500 * BLOCK);
}

/* The reader comes to its end only if the descriptor is closed already. */
static int wait_for_reader(void *arg, int cancel_fd, struct vb_error *err)
{
	(void)cancel_fd;
	(void)err;
	join_thread(*(pthread_t *)arg);
	return VB_ERR_IO;
}

static void the_output_is_closed_before_its_end_is_told(void **state)
{
	struct reader reader = { .limit = SIZE_MAX };
	struct vb_error err = { .code = VB_OK };
	struct vb_output output = { .at_end = wait_for_reader };
	struct vb__sink *sink;
	pthread_t thread;
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	reader.fd = fds[0];
	thread = start_thread(reader_run, &reader);
	output.fd = fds[1];
	output.at_end_arg = &thread;
	sink = sink_of(*state, &output, false);
	assert_int_equal(bring_all(sink, 1, 3, &err), 0);
	assert_int_equal(sink->ops->finish(sink, 3 * BLOCK, &err), VB_ERR_IO);
	sink->ops->close(sink);
	assert_int_equal(reader.got, 3 * BLOCK);
	assert_int_equal(fcntl(fds[1], F_GETFL), -1);
}

static void a_hole_becomes_zeros(void **state)
{
	struct reader reader = { .limit = SIZE_MAX, .zeros = true };
	struct vb__block block = { .length = 1000001, .flags = VB__BLOCK_HOLE };
	struct vb_error err = { .code = VB_OK };
	struct vb__sink *sink;
	pthread_t thread;
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	reader.fd = fds[0];
	thread = start_thread(reader_run, &reader);
	sink = sink_of(*state, &(struct vb_output){ .fd = fds[1] }, false);
	assert_int_equal(sink->ops->put(sink, &block, NULL, &err), 0);
	assert_int_equal(sink->ops->finish(sink, 1000001, &err), 0);
	sink->ops->close(sink);
	close(fds[1]);
	join_thread(thread);
	assert_int_equal(reader.got, 1000001);
}

static void assert_broken(struct kit *kit, int fds[2])
{
	struct reader reader = { .fd = fds[0], .limit = BLOCK };
	struct vb_error err = { .code = VB_OK };
	pthread_t thread = start_thread(reader_run, &reader);
	struct vb__sink *sink =
		sink_of(kit, &(struct vb_output){ .fd = fds[1], .name = "it" }, false);

	assert_int_equal(bring_all(sink, 4, 1000, &err), VB_ERR_IO);
	assert_int_equal(err.native, EPIPE);
	assert_string_equal(err.object, "it");
	assert_string_equal(err.cause, "the reader has closed the pipe");
	assert_int_equal(sink->ops->finish(sink, 1000 * BLOCK, &err), VB_ERR_IO);
	sink->ops->close(sink);
	join_thread(thread);
	close(fds[1]);
}

static void a_reader_that_goes_early_is_told_to_all(void **state)
{
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	assert_broken(*state, fds);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	assert_broken(*state, fds);
}

static void *cancel_soon(void *arg)
{
	usleep(20000);
	kit_cancel(arg);
	return NULL;
}

/* Four threads, nobody reads: one is stuck in the pipe, the others wait for it. */
static void assert_stuck_ends(struct kit *kit, struct vb_output *output)
{
	struct vb__sink *sink = sink_of(kit, output, false);
	struct vb_error err = { .code = VB_OK };
	pthread_t thread = start_thread(cancel_soon, kit);
	uint64_t since = vb__now_ns();
	eventfd_t value;

	assert_int_equal(bring_all(sink, 4, 1000, &err), VB_ERR_INTERRUPTED);
	assert_true(vb__now_ns() - since < vb__ms(SOON_MS));
	join_thread(thread);
	sink->ops->close(sink);
	assert_int_equal(eventfd_read(kit->cancel_fd, &value), 0);
}

static void a_stuck_reader_does_not_hold_us(void **state)
{
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	assert_stuck_ends(*state, &(struct vb_output){ .fd = fds[1] });
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	assert_stuck_ends(*state, &(struct vb_output){ .fd = fds[1] });
	close(fds[0]);
	close(fds[1]);
}

/* Somebody else's terminal may hold us: it never tells how much fits. */
#ifndef WITHOUT_PROC
static void a_stuck_terminal_does_not_hold_us(void **state)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY), slave;

	assert_true(master >= 0);
	assert_int_equal(grantpt(master) | unlockpt(master), 0);
	slave = open(ptsname(master), O_RDWR | O_NOCTTY);
	assert_true(slave >= 0);
	assert_stuck_ends(*state, &(struct vb_output){ .fd = slave });
	close(slave);
	close(master);
}
#endif

/* A block whose predecessor never comes. */
static void waiting_for_a_turn_can_be_given_up(void **state)
{
	struct vb__block block = { .offset = BLOCK, .length = 1 };
	struct vb__sink *sink = open_sink(*state, "/dev/null", UINT64_MAX);
	pthread_t thread = start_thread(cancel_soon, *state);
	struct vb_error err = { .code = VB_OK };

	assert_int_equal(sink->ops->put(sink, &block, "x", &err), VB_ERR_INTERRUPTED);
	join_thread(thread);
	sink->ops->close(sink);
}

static void a_tireless_reader_of_zeros_can_be_stopped(void **state)
{
	struct vb__block block = { .length = UINT64_MAX, .flags = VB__BLOCK_HOLE };
	struct vb__sink *sink = open_sink(*state, "/dev/null", UINT64_MAX);
	pthread_t thread = start_thread(cancel_soon, *state);
	struct vb_error err = { .code = VB_OK };

	assert_int_equal(sink->ops->put(sink, &block, NULL, &err), VB_ERR_INTERRUPTED);
	join_thread(thread);
	sink->ops->close(sink);
}

static void the_same_place_twice_is_refused(void **state)
{
	struct vb__block block = { .length = 1 };
	struct vb__sink *sink = open_sink(*state, "/dev/null", UINT64_MAX);
	struct vb_error err = { .code = VB_OK };

	assert_int_equal(sink->ops->put(sink, &block, "x", &err), 0);
	assert_int_equal(sink->ops->put(sink, &block, "x", &err), VB_ERR_PROTOCOL);
	sink->ops->close(sink);
}

static void an_end_that_comes_too_early_is_refused(void **state)
{
	struct vb__sink *sink = open_sink(*state, "/dev/null", UINT64_MAX);
	struct vb_error err = { .code = VB_OK };

	assert_int_equal(sink->ops->finish(sink, 1, &err), VB_ERR_PROTOCOL);
	sink->ops->close(sink);
}

static void a_fifo_waits_for_its_reader(void **state)
{
	const char *path = kit_path(*state, "fifo");
	struct reader reader = { .path = path, .limit = SIZE_MAX };
	struct vb_error err = { .code = VB_OK };
	struct vb__sink *sink;
	pthread_t thread;

	assert_int_equal(mkfifo(path, 0600), 0);
	thread = start_thread(reader_run, &reader);
	sink = open_sink(*state, path, UINT64_MAX);
	assert_int_equal(bring_all(sink, 3, 100, &err), 0);
	assert_int_equal(sink->ops->finish(sink, 100 * BLOCK, &err), 0);
	join_thread(thread);
	sink->ops->close(sink);
	assert_int_equal(reader.got, 100 * BLOCK);
}

static void waiting_for_a_reader_can_be_given_up(void **state)
{
	const char *path = kit_path(*state, "fifo");
	struct vb__origin origin = { .total_bytes = UINT64_MAX };
	struct vb_error err;
	pthread_t thread;

	assert_int_equal(mkfifo(path, 0600), 0);
	thread = start_thread(cancel_soon, *state);
	assert_int_equal(sink_refuses(*state, path, &origin, &err), VB_ERR_INTERRUPTED);
	join_thread(thread);
}

/* As the shell's `>` and `>>` open it. */
static void a_file_given_open_is_written_where_it_stands(void **state)
{
	static const int flags[] = { O_WRONLY, O_WRONLY | O_APPEND };

	for (size_t i = 0; i < COUNT(flags); i++) {
		const char *path = kit_path(*state, "out");
		struct vb__block block = { .length = 3 };
		struct vb_error err = { .code = VB_OK };
		struct vb__sink *sink;
		int fd;

		make_file(path, 0);
		fd = open(path, flags[i]);
		assert_int_equal(write(fd, "one", 3), 3);
		sink = sink_of(*state, &(struct vb_output){ .fd = fd }, true);
		assert_int_equal(sink->ops->put(sink, &block, "two", &err), 0);
		assert_int_equal(sink->ops->finish(sink, 3, &err), 0);
		sink->ops->close(sink);
		assert_int_equal(write(fd, "end", 3), 3);
		close(fd);
		assert_file_is(path, "onetwoend", 9);
	}
}

static void a_name_of_a_descriptor_is_that_descriptor(void **state)
{
	struct vb__block block = { .length = 3 };
	struct vb_error err = { .code = VB_OK };
	const char *path = kit_path(*state, "out");
	struct vb__sink *sink;
	char name[32];
	int fd;

	make_file(path, 0);
	fd = open(path, O_WRONLY);
	assert_int_equal(write(fd, "one", 3), 3);
	snprintf(name, sizeof(name), "/dev/fd/%d", fd);
	sink = open_sink(*state, name, 3);
	assert_int_equal(sink->ops->put(sink, &block, "two", &err), 0);
	assert_int_equal(sink->ops->finish(sink, 3, &err), 0);
	sink->ops->close(sink);
	assert_int_equal(write(fd, "end", 3), 3);
	close(fd);
	assert_file_is(path, "onetwoend", 9);
}

static void a_descriptor_for_reading_is_refused(void **state)
{
	struct vb__sink_options options = { .cancel_fd = -1 };
	struct vb__origin origin = { .total_bytes = 1 };
	struct vb_error err = { .code = VB_OK };
	int fd = open("/dev/null", O_RDONLY);
	struct vb__sink *sink;

	(void)state;
	assert_int_equal(vb__sink_open(&(struct vb_output){ .fd = fd }, &origin, &options, &sink,
				       &err),
			 VB_ERR_IO);
	assert_int_equal(err.native, EBADF);
	close(fd);
}

static void a_full_device_is_told(void **state)
{
	struct vb__sink *sink = open_sink(*state, "/dev/full", UINT64_MAX);
	struct vb_error err = { .code = VB_OK };

	assert_int_equal(bring_all(sink, 3, 10, &err), VB_ERR_IO);
	assert_int_equal(err.native, ENOSPC);
	assert_string_equal(err.cause, "No space left on device");
	assert_string_equal(err.object, "/dev/full");
	sink->ops->close(sink);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, kit_setup, kit_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(blocks_are_written_in_order),
		TEST(the_output_is_closed_before_its_end_is_told),
		TEST(a_hole_becomes_zeros),
		TEST(a_reader_that_goes_early_is_told_to_all),
		TEST(a_stuck_reader_does_not_hold_us),
#ifndef WITHOUT_PROC
		TEST(a_stuck_terminal_does_not_hold_us),
#endif
		TEST(waiting_for_a_turn_can_be_given_up),
		TEST(a_tireless_reader_of_zeros_can_be_stopped),
		TEST(the_same_place_twice_is_refused),
		TEST(an_end_that_comes_too_early_is_refused),
		TEST(a_fifo_waits_for_its_reader),
		TEST(waiting_for_a_reader_can_be_given_up),
		TEST(a_file_given_open_is_written_where_it_stands),
		TEST(a_name_of_a_descriptor_is_that_descriptor),
		TEST(a_descriptor_for_reading_is_refused),
		TEST(a_full_device_is_told),
	};

	return cmocka_run_group_tests_name("sink_stream", tests, NULL, NULL);
}
