/* SPDX-License-Identifier: Apache-2.0 */
/* Streams as sources: what blocks they make, how long bytes sit, and what ends them. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "file_kit.h"

#define ROOM (64 * KIB)

/* Bytes have to be on their way after a few ms. */
#define PROMPT_MS 6

struct feed {
	int fd;
	const char *path; /* a FIFO to open; NULL: fd */
	size_t len, piece;
	unsigned pause_us; /* after each piece */
};

static void *feed_run(void *arg)
{
	struct feed *feed = arg;
	uint8_t *data = page_aligned(feed->piece);
	size_t done = 0;

	if (feed->path)
		feed->fd = open(feed->path, O_WRONLY);
	while (done < feed->len) {
		size_t len = feed->len - done < feed->piece ? feed->len - done : feed->piece;
		ssize_t n;

		make_bytes(data, len, done);
		n = write(feed->fd, data, len);
		if (n < 0)
			break;
		done += (size_t)n;
		if (feed->pause_us)
			usleep(feed->pause_us);
	}
	close(feed->fd);
	free(data);
	return NULL;
}

static int next_block(struct vb__source *source, uint8_t *buffer, struct vb__block *block,
		      struct vb_error *err)
{
	*err = (struct vb_error){ .code = VB_OK };
	return source->ops->next(source, buffer, ROOM, block, err);
}

/* Takes all and checks it; returns how many blocks that were. */
static unsigned drain(struct vb__source *source, uint64_t len)
{
	uint8_t *buffer = page_aligned(ROOM);
	struct vb__block block;
	struct vb_error err;
	uint64_t done = 0;
	unsigned blocks = 0;
	int rc;

	while ((rc = next_block(source, buffer, &block, &err)) > 0) {
		assert_int_equal(block.offset, done);
		assert_in_range(block.length, 1, ROOM);
		assert_int_equal(block.flags, 0);
		assert_bytes(buffer, block.length, done);
		done += block.length;
		blocks++;
	}
	assert_int_equal(rc, 0);
	assert_int_equal(done, len);
	assert_int_equal(source->ops->finish(source, &err), 0);
	source->ops->close(source);
	free(buffer);
	return blocks;
}

static void a_pipe_is_read_to_its_end(void **state)
{
	static const size_t sizes[] = { 0, 1, ROOM - 1, ROOM, ROOM + 1, 5 * ROOM + 17 };
	int fds[2];

	for (size_t i = 0; i < COUNT(sizes); i++) {
		struct feed feed = { .len = sizes[i], .piece = 5000 };
		struct vb__source *source;
		pthread_t thread;

		assert_int_equal(pipe(fds), 0);
		feed.fd = fds[1];
		thread = start_thread(feed_run, &feed);
		source = open_source(*state, &(struct vb_input){ .fd = fds[0] });
		assert_int_equal(source->total_bytes, UINT64_MAX);
		assert_false(source->has_mode);
		drain(source, sizes[i]);
		join_thread(thread);
		assert_int_equal(close(fds[0]), 0);
	}
}

static void a_fast_pipe_makes_full_blocks(void **state)
{
	struct feed feed = { .len = 1024 * ROOM, .piece = 64 * KIB };
	struct vb__source *source;
	pthread_t thread;
	unsigned blocks;
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	feed.fd = fds[1];
	thread = start_thread(feed_run, &feed);
	source = open_source(*state, &(struct vb_input){ .fd = fds[0] });
	blocks = drain(source, feed.len);
	join_thread(thread);
	close(fds[0]);
	assert_in_range(blocks, 1024, 1024 + 1024 / 4);
}

/* The best of some: a busy machine may be slow at times, but not each time. */
static void a_lone_byte_does_not_sit(void **state)
{
	uint8_t *buffer = page_aligned(ROOM);
	uint64_t best = UINT64_MAX, since;
	struct vb__source *source;
	struct vb__block block;
	struct vb_error err;
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	source = open_source(*state, &(struct vb_input){ .fd = fds[0] });
	for (int i = 0; i < 20; i++) {
		assert_int_equal(write(fds[1], "x", 1), 1);
		since = vb__now_ns();
		assert_int_equal(next_block(source, buffer, &block, &err), 1);
		assert_int_equal(block.length, 1);
		since = vb__now_ns() - since;
		best = since < best ? since : best;
	}
	assert_true(best < vb__ms(PROMPT_MS));
	source->ops->close(source);
	close(fds[0]);
	close(fds[1]);
	free(buffer);
}

/* One byte in half a millisecond, for ever: the block would never be full. */
static void a_trickle_does_not_sit(void **state)
{
	struct feed feed = { .len = 500, .piece = 1, .pause_us = 500 };
	struct vb__source *source;
	pthread_t thread;
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	feed.fd = fds[1];
	source = open_source(*state, &(struct vb_input){ .fd = fds[0] });
	thread = start_thread(feed_run, &feed);
	assert_in_range(drain(source, feed.len), 10, 500);
	join_thread(thread);
	close(fds[0]);
}

static void the_flags_of_a_descriptor_are_left_alone(void **state)
{
	struct feed feed = { .len = 3 * ROOM, .piece = ROOM };
	struct vb__source *source;
	pthread_t thread;
	int fds[2], flags;

	assert_int_equal(pipe(fds), 0);
	flags = fcntl(fds[0], F_GETFL);
	feed.fd = fds[1];
	source = open_source(*state, &(struct vb_input){ .fd = fds[0] });
	assert_int_equal(fcntl(fds[0], F_GETFL), flags);
	thread = start_thread(feed_run, &feed);
	drain(source, feed.len);
	join_thread(thread);
	assert_int_equal(fcntl(fds[0], F_GETFL), flags);
	close(fds[0]);
}

static void a_socket_that_does_not_block_is_read(void **state)
{
	struct feed feed = { .len = 10 * ROOM, .piece = 3000 };
	struct vb__source *source;
	pthread_t thread;
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	assert_int_equal(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
	feed.fd = fds[1];
	source = open_source(*state, &(struct vb_input){ .fd = fds[0] });
	thread = start_thread(feed_run, &feed);
	drain(source, feed.len);
	join_thread(thread);
	close(fds[0]);
}

/* Feeds it to the FIFO: at first nobody writes to it, which is not its end. */
static void a_fifo_waits_for_its_writer(void **state)
{
	const char *path = kit_path(*state, "fifo");
	struct feed feed = { .path = path, .len = 7 * ROOM + 1, .piece = ROOM };
	struct vb__source *source;
	pthread_t thread;

	assert_int_equal(mkfifo(path, 0600), 0);
	source = open_source(*state, &(struct vb_input){ .path = path });
	thread = start_thread(feed_run, &feed);
	drain(source, feed.len);
	join_thread(thread);
}

/* Somebody has written to it and gone: no writer will be waited for. */
static void a_fifo_given_open_is_read_to_its_end(void **state)
{
	const char *path = kit_path(*state, "fifo");
	struct feed feed = { .path = path, .len = 3000, .piece = 3000 };
	struct vb__source *source;
	pthread_t thread;
	int fd;

	assert_int_equal(mkfifo(path, 0600), 0);
	thread = start_thread(feed_run, &feed);
	fd = open(path, O_RDONLY);
	join_thread(thread);
	source = open_source(*state, &(struct vb_input){ .fd = fd });
	drain(source, feed.len);
	close(fd);
}

static void *cancel_soon(void *arg)
{
	usleep(20000);
	kit_cancel(arg);
	return NULL;
}

static void assert_cancelled(struct kit *kit, const struct vb_input *input)
{
	struct vb__source *source = open_source(kit, input);
	uint8_t *buffer = page_aligned(ROOM);
	pthread_t thread = start_thread(cancel_soon, kit);
	struct vb__block block;
	struct vb_error err;
	eventfd_t value;

	assert_int_equal(next_block(source, buffer, &block, &err), VB_ERR_INTERRUPTED);
	assert_int_equal(err.code, VB_ERR_INTERRUPTED);
	join_thread(thread);
	assert_int_equal(eventfd_read(kit->cancel_fd, &value), 0);
	source->ops->close(source);
	free(buffer);
}

static void waiting_can_be_given_up(void **state)
{
	const char *path = kit_path(*state, "fifo");
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	assert_cancelled(*state, &(struct vb_input){ .fd = fds[0] });
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	assert_cancelled(*state, &(struct vb_input){ .fd = fds[0] });
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_cancelled(*state, &(struct vb_input){ .path = path });
}

static int disguised = -1;
int __real_fstat64(int fd, struct stat *st);
int __wrap_fstat64(int fd, struct stat *st);

int __wrap_fstat64(int fd, struct stat *st)
{
	int rc = __real_fstat64(fd, st);

	if (rc == 0 && fd == disguised)
		st->st_mode = S_IFREG | 0600;
	return rc;
}

/* As /proc/kmsg is, which must not be read for a test. */
static void waiting_for_what_looks_like_a_file_can_be_given_up(void **state)
{
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	disguised = fds[0];
	assert_cancelled(*state, &(struct vb_input){ .fd = fds[0] });
	disguised = -1;
	close(fds[0]);
	close(fds[1]);
}

/* Memory is read as a file: one page is there, the next is not. */
static void an_error_in_the_middle_is_no_end(void **state)
{
	uint8_t *pages =
		mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open("/proc/self/mem", O_RDONLY);
	uint8_t *buffer = page_aligned(ROOM);
	struct vb__source *source;
	struct vb__block block;
	struct vb_error err;

	assert_int_equal(munmap(pages + 4096, 4096), 0);
	assert_int_equal(lseek(fd, (off_t)(uintptr_t)pages, SEEK_SET), (off_t)(uintptr_t)pages);
	source = open_source(*state, &(struct vb_input){ .fd = fd });
	assert_int_equal(next_block(source, buffer, &block, &err), VB_ERR_IO);
	assert_int_equal(err.native, EIO);
	assert_string_equal(err.operation, "read");
	source->ops->close(source);
	close(fd);
	munmap(pages, 4096);
	free(buffer);
}

static void do_nothing(int signal_number)
{
	(void)signal_number;
}

struct pest {
	pthread_t victim;
	atomic_bool stop;
};

static void *pester(void *arg)
{
	struct pest *pest = arg;

	while (!pest->stop) {
		pthread_kill(pest->victim, SIGUSR1);
		usleep(300);
	}
	return NULL;
}

static void signals_do_not_matter(void **state)
{
	struct sigaction action = { .sa_handler = do_nothing };
	struct feed feed = { .len = 20000, .piece = 1000, .pause_us = 1000 };
	struct pest pest = { .victim = pthread_self() };
	pthread_t feeder, pesterer;
	struct vb__source *source;
	int fds[2];

	sigaction(SIGUSR1, &action, NULL);
	assert_int_equal(pipe(fds), 0);
	feed.fd = fds[1];
	source = open_source(*state, &(struct vb_input){ .fd = fds[0] });
	feeder = start_thread(feed_run, &feed);
	pesterer = start_thread(pester, &pest);
	drain(source, feed.len);
	pest.stop = true;
	join_thread(pesterer);
	join_thread(feeder);
	close(fds[0]);
}

static uint64_t length_of(struct kit *kit, const char *path)
{
	struct vb__source *source = open_source(kit, &(struct vb_input){ .path = path });
	struct pump pump = { .source = source, .block_bytes = ROOM, .threads = 1 };

	assert_int_equal(pump_run(&pump), 0);
	source->ops->close(source);
	return pump.bytes;
}

/* Their sizes are 0 and 4096, whatever they hold. */
static void files_made_by_the_kernel_are_read(void **state)
{
	assert_in_range(length_of(*state, "/proc/version"), 10, 4000);
	if (access("/sys/class/net/lo/mtu", R_OK) == 0)
		assert_in_range(length_of(*state, "/sys/class/net/lo/mtu"), 2, 20);
	else
		print_message("# skipped: no /sys/class/net/lo/mtu here\n");
}

static int refuse_source(struct kit *kit, const struct vb_input *input, struct vb_error *err)
{
	struct vb__source *source = NULL;

	*err = (struct vb_error){ .code = VB_OK };
	return vb__source_open(input, VB_DIRECT_AUTO, kit->cancel_fd, &source, err);
}

static void what_cannot_be_read_is_told_at_once(void **state)
{
	struct kit *kit = *state;
	struct vb_error err;
	int fd = open("/dev/null", O_WRONLY);

	assert_int_equal(refuse_source(kit, &(struct vb_input){ .path = kit->dir }, &err),
			 VB_ERR_IO);
	assert_int_equal(err.native, EISDIR);
	assert_string_equal(err.cause, "Is a directory");
	assert_int_equal(refuse_source(kit, &(struct vb_input){ .path = kit_path(kit, "none") },
				       &err),
			 VB_ERR_IO);
	assert_int_equal(err.native, ENOENT);
	assert_int_equal(refuse_source(kit, &(struct vb_input){ .fd = fd }, &err), VB_ERR_IO);
	assert_int_equal(err.native, EBADF);
	close(fd);
	assert_int_equal(refuse_source(kit, &(struct vb_input){ .fd = 999 }, &err), VB_ERR_IO);
}

static int not_content(void *arg, int cancel_fd, struct vb_error *err)
{
	(void)cancel_fd;
	++*(int *)arg;
	*err = (struct vb_error){ .code = VB_ERR_IO };
	return VB_ERR_IO;
}

static void the_end_can_be_refused(void **state)
{
	int fd = open("/dev/null", O_RDONLY), calls = 0;
	struct vb_input input = { .fd = fd, .at_end = not_content, .at_end_arg = &calls };
	struct vb__source *source = open_source(*state, &input);
	uint8_t *buffer = page_aligned(ROOM);
	struct vb__block block;
	struct vb_error err;

	assert_int_equal(next_block(source, buffer, &block, &err), 0);
	assert_int_equal(calls, 0);
	assert_int_equal(source->ops->finish(source, &err), VB_ERR_IO);
	assert_int_equal(calls, 1);
	source->ops->close(source);
	close(fd);
	free(buffer);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, kit_setup, kit_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_pipe_is_read_to_its_end),
		TEST(a_fast_pipe_makes_full_blocks),
		TEST(a_lone_byte_does_not_sit),
		TEST(a_trickle_does_not_sit),
		TEST(the_flags_of_a_descriptor_are_left_alone),
		TEST(a_socket_that_does_not_block_is_read),
		TEST(a_fifo_waits_for_its_writer),
		TEST(a_fifo_given_open_is_read_to_its_end),
		TEST(waiting_can_be_given_up),
		TEST(waiting_for_what_looks_like_a_file_can_be_given_up),
		TEST(an_error_in_the_middle_is_no_end),
		TEST(signals_do_not_matter),
		TEST(files_made_by_the_kernel_are_read),
		TEST(what_cannot_be_read_is_told_at_once),
		TEST(the_end_can_be_refused),
	};

	return cmocka_run_group_tests_name("source_stream", tests, NULL, NULL);
}
