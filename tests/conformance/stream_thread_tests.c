/* SPDX-License-Identifier: Apache-2.0 */
/* One thread reads a stream while another writes it. */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include "../unit/pure/dice.h"
#include "stream_side.h"

#define MIB (1u << 20)

struct half {
	struct vb_stream *stream;
	uint64_t total;
	uint32_t seed;
};

static uint64_t model_bytes(const struct side *side)
{
	return (side->slow ? 1 : 24) * (uint64_t)MIB;
}

/* Mostly small, sometimes large. */
static size_t random_len(struct dice *dice, uint64_t left)
{
	static const unsigned most[] = { 10, 100, 5000, 70000, 400000 };
	size_t len = 1 + dice_throw(dice, most[dice_throw(dice, 5)]);

	return len < left ? len : (size_t)left;
}

static void *write_randomly(void *arg)
{
	struct half *half = arg;
	struct dice dice = { .state = half->seed };
	uint8_t *buffer = malloc(400000);
	size_t len;

	for (uint64_t at = 0; at < half->total; at += len) {
		len = random_len(&dice, half->total - at);
		fill_at(buffer, len, at, half->seed);
		write_well(half->stream, buffer, len);
		memset(buffer, 0, len);
		if (dice_throw(&dice, 50) == 0)
			sync_well(half->stream);
	}
	sync_well(half->stream);
	free(buffer);
	return NULL;
}

static void read_randomly(struct half *half, uint32_t seed)
{
	struct dice dice = { .state = seed + 1000 };
	uint8_t *buffer = malloc(400000);
	size_t len;

	for (uint64_t at = 0; at < half->total; at += len) {
		len = random_len(&dice, half->total - at);
		read_well(half->stream, buffer, len);
		CHECK(is_filled_at(buffer, len, at, seed));
	}
	free(buffer);
}

static void both_ways(struct side *side, struct vb_stream *stream, uint32_t mine, uint32_t theirs)
{
	struct half half = { .stream = stream, .total = model_bytes(side), .seed = mine };
	pthread_t writer;

	CHECK_EQ(pthread_create(&writer, NULL, write_randomly, &half), 0);
	read_randomly(&half, theirs);
	pthread_join(writer, NULL);
	close_stream(stream);
}

static void model_server(struct side *side)
{
	both_ways(side, serve_stream(side, 0), 1, 2);
}

static void model_client(struct side *side)
{
	both_ways(side, connect_stream(side, 0), 2, 1);
}

static void direct_model_server(struct side *side)
{
	both_ways(side, serve_stream(side, DIRECT_BYTES), 1, 2);
}

static void direct_model_client(struct side *side)
{
	both_ways(side, connect_stream(side, DIRECT_BYTES), 2, 1);
}

static void *read_answers(void *arg)
{
	struct half *half = arg;

	read_bytes(half->stream, 0, half->total, 100, half->seed);
	return NULL;
}

/* While a thread waits for an answer, what the other one writes does not stay behind. */
static void questions_client(struct side *side)
{
	struct vb_stream *stream = connect_stream(side, 0);
	struct half half = { .stream = stream, .total = 100 * 100, .seed = 1 };
	pthread_t reader;

	CHECK_EQ(pthread_create(&reader, NULL, read_answers, &half), 0);
	for (uint64_t at = 0; at < half.total; at += 100) {
		sleep_ms(1); /* so that it waits */
		write_bytes(stream, at, at + 100, 100, 1);
		if (at == 0)
			await_step(side, 0);
	}
	pthread_join(reader, NULL);
	close_stream(stream);
}

static void answers_server(struct side *side)
{
	struct vb_stream *stream = serve_stream(side, 0);
	uint8_t bytes[100];

	for (int i = 0; i < 100; i++) {
		read_well(stream, bytes, sizeof(bytes));
		write_well(stream, bytes, sizeof(bytes));
		if (i == 0)
			signal_step(side, 0);
	}
	expect_end(stream);
	close_stream(stream);
}

static void *write_much(void *arg)
{
	struct half *half = arg;

	write_bytes(half->stream, 0, half->total, MIB, half->seed);
	return NULL;
}

/*
 * This side writes and reads at once; the other one, which does not make way, writes everything before it
 * reads anything. What it needs to hear for that must not wait behind data.
 */
static void duplex_server(struct side *side)
{
	struct vb_stream *stream = serve_stream(side, DIRECT_BYTES);
	struct half half = { .stream = stream, .total = model_bytes(side), .seed = 1 };
	pthread_t writer;

	CHECK_EQ(pthread_create(&writer, NULL, write_much, &half), 0);
	read_bytes(stream, 0, half.total, MIB, 2);
	pthread_join(writer, NULL);
	expect_end(stream);
	close_stream(stream);
}

static void one_after_the_other_client(struct side *side)
{
	struct vb_stream *stream = connect_stream(side, DIRECT_BYTES);

	write_bytes(stream, 0, model_bytes(side), MIB, 2);
	read_bytes(stream, 0, model_bytes(side), MIB, 1);
	close_stream(stream);
}

/* ---- Both only write, and more than one of them can hold ---- */

static sem_t at_limit;

static void on_warning(void *arg, enum vb_log_level level, const char *line)
{
	(void)arg, (void)level;
	if (strstr(line, "spill_bytes"))
		sem_post(&at_limit);
}

static void *read_when_warned(void *stream)
{
	CHECK_EQ(sem_wait(&at_limit), 0);
	read_bytes(stream, 0, 4 * MIB, MIB, 1);
	return NULL;
}

static void limited_server(struct side *side)
{
	struct vb_stream_options options = { .connection = side->options,
					     .direct_bytes = DIRECT_BYTES,
					     .spill_bytes = 100000 };
	struct vb_stream *stream;
	pthread_t reader;

	options.connection.log = on_warning;
	options.connection.log_level = VB_LOG_WARNING;
	sem_init(&at_limit, 0, 0);
	stream = serve_stream_by(side, &options);
	CHECK_EQ(pthread_create(&reader, NULL, read_when_warned, stream), 0);
	write_bytes(stream, 0, 4 * MIB, MIB, 0);
	pthread_join(reader, NULL);
	CHECK_EQ(sem_trywait(&at_limit), -1); /* it is told once */
	close_stream(stream);
}

static void write_and_read(struct side *side, uint64_t direct_bytes)
{
	struct vb_stream *stream = connect_stream(side, direct_bytes);

	write_bytes(stream, 0, 4 * MIB, MIB, 1);
	read_bytes(stream, 0, 4 * MIB, MIB, 0);
	close_stream(stream);
}

static void limited_client(struct side *side)
{
	write_and_read(side, DIRECT_BYTES);
}

static void limited_eager_client(struct side *side)
{
	write_and_read(side, UINT64_MAX);
}

/* Aborted while nobody is in a call, and data comes: a thread may be taking it in. */
#define ABORTS 16u

static void aborting_server(struct side *side)
{
	for (unsigned i = 0; i < ABORTS; i++) {
		struct vb_stream *stream = serve_stream(side, 0);

		read_bytes(stream, 0, 40, 40, 1);
		usleep(4000 + i * 50);
		vb_stream_abort(stream);
		signal_step(side, 0);
	}
}

static void dripping_client(struct side *side)
{
	for (unsigned i = 0; i < ABORTS; i++) {
		struct vb_stream *stream = connect_stream(side, 0);
		uint8_t bytes[300] = { 0 };
		ssize_t n;

		CHECK_EQ(sem_trywait(&side->shared->listening), 0); /* the next is another one */
		write_bytes(stream, 0, 40, 40, 1);
		CHECK_EQ(vb_stream_flush(stream, NULL), 0);
		usleep(2000);
		do {
			n = vb_stream_try_write(stream, bytes, sizeof(bytes), NULL);
			(void)vb_stream_try_flush(stream, NULL);
			usleep(20);
		} while (n >= 0 || n == VB_ERR_AGAIN);
		vb_stream_abort(stream);
		await_step(side, 0);
	}
}

/* A peer that is in a call all the time, but one that has no need to look at what came. */
static void writing_on_server(struct side *side)
{
	struct vb_stream *stream = serve_stream(side, 0);
	uint8_t *buffer = calloc(1, 64u << 10);

	read_bytes(stream, 0, 10, 10, 1);
	alarm(20);
	while (!side->shared->note) {
		write_well(stream, buffer, 64u << 10);
		usleep(1000);
	}
	close_stream(stream);
	free(buffer);
}

static void *read_it_all(void *stream)
{
	uint8_t *buffer = malloc(64u << 10);

	while (vb_stream_read(stream, buffer, 64u << 10, NULL) > 0)
		;
	free(buffer);
	return NULL;
}

static void reading_on_client(struct side *side)
{
	struct vb_stream *stream = connect_stream(side, 0);
	pthread_t reader;

	write_bytes(stream, 0, 10, 10, 1);
	CHECK_EQ(vb_stream_flush(stream, NULL), 0);
	CHECK_EQ(pthread_create(&reader, NULL, read_it_all, stream), 0);
	sleep_ms(100); /* it is in the middle of that */
	sync_well(stream);
	side->shared->note = 1;
	pthread_join(reader, NULL);
	close_stream(stream);
}

/* A read that must not wait does not do so for the write of another thread, whatever keeps that. */
#define PAGES (16u * MIB)

/* More than all accesses that can be under way carry, where one carries little. */
static size_t much(const struct side *side)
{
#ifdef __SANITIZE_THREAD__
	return 4 * PAGES; /* it notes every byte */
#else
	return side->slow || strcmp(side->fabric, "ofi") != 0 ? PAGES : 160 * (size_t)PAGES;
#endif
}

/* Nobody looks at it, so it is the same few pages over and over. */
static uint8_t *repeated_pages(size_t len)
{
	int fd = memfd_create("pages", MFD_CLOEXEC);
	uint8_t *at = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(at != MAP_FAILED);
	CHECK_EQ(ftruncate(fd, PAGES), 0);
	for (size_t done = 0; done < len; done += PAGES)
		CHECK(mmap(at + done, PAGES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
			   0) == at + done);
	close(fd);
	return at;
}

static void stopped_server(struct side *side)
{
	struct vb_stream *stream = serve_stream(side, 0);

	read_well(stream, repeated_pages(much(side)), much(side));
	expect_end(stream);
	close_stream(stream);
}

struct mass {
	struct vb_stream *stream;
	size_t len;
};

static void *write_mass(void *arg)
{
	struct mass *mass = arg;

	write_well(mass->stream, repeated_pages(mass->len), mass->len);
	return NULL;
}

static void trying_client(struct side *side)
{
	struct vb_stream *stream = connect_stream(side, 0);
	struct mass mass = { .stream = stream, .len = much(side) };
	struct vb_error err;
	pthread_t writer;
	uint8_t byte;

	alarm(20);
	CHECK_EQ(pthread_create(&writer, NULL, write_mass, &mass), 0);
	sleep_ms(100);
	kill(side->shared->server, SIGSTOP); /* in the middle of that */
	sleep_ms(100);
	for (int i = 0; i < 10; i++)
		CHECK_EQ(vb_stream_try_read(stream, &byte, 1, &err), VB_ERR_AGAIN);
	kill(side->shared->server, SIGCONT);
	pthread_join(writer, NULL);
	close_stream(stream);
}

const struct test stream_thread_tests[] = {
	{ "stream_read_and_written_at_random_by_two_threads", model_server, model_client },
	{ "stream_read_and_written_directly_by_two_threads", direct_model_server,
	  direct_model_client },
	{ "stream_write_goes_at_once_while_a_thread_reads", answers_server, questions_client },
	{ "stream_two_threads_against_one_that_only_writes", duplex_server,
	  one_after_the_other_client },
	{ "stream_both_write_more_than_spills_until_one_reads", limited_server, limited_client },
	{ "stream_both_write_more_than_spills_eagerly_until_one_reads", limited_server,
	  limited_eager_client },
	{ "stream_aborted_while_data_comes", aborting_server, dripping_client },
	{ "stream_sync_while_the_peer_writes_on", writing_on_server, reading_on_client },
	{ "stream_try_read_does_not_wait_for_a_write", stopped_server, trying_client },
	{ NULL },
};
