/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers that go well: every byte arrives, from and to all kinds of things. */
#include <fcntl.h>
#include <sys/stat.h>

#include "transfer_side.h"

static const size_t sizes[] = { 0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 123 };
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

/* Each size with one and with three rails, one and four workers; in the VM with one of these each. */
static unsigned rounds(const struct side *side)
{
	return side->slow ? SIZES : SIZES * 4;
}

static void set_round(struct vb_transfer_options *options, unsigned round)
{
	unsigned variant = round / SIZES + round;

	options->rails = variant % 2 ? 3 : 1;
	options->workers = variant / 2 % 2 ? 4 : 1;
}

static void receive_to_file(struct side *side, struct vb_door *door, unsigned round)
{
	const char *target = scratch_path(side, "target");
	struct vb_session *session = let_in(door);
	struct outcome o = receive_by(session, &(struct vb_output){ .path = target });

	went_well(&o, sizes[round % SIZES]);
	CHECK(file_holds(target, sizes[round % SIZES], round));
	vb_session_close(session);
	same_digest(side, &o, true);
}

static void receive_to_pipe(struct side *side, struct vb_door *door, unsigned round)
{
	struct vb_session *session = let_in(door);
	struct drain drain;
	struct outcome o;

	open_drain(&drain);
	o = receive_by(session, &(struct vb_output){ .fd = drain.fd });
	went_well(&o, sizes[round % SIZES]);
	CHECK(drained(&drain, sizes[round % SIZES], round));
	vb_session_close(session);
	same_digest(side, &o, true);
}

static void receive_rounds(struct side *side, unsigned workers,
			   void (*receive)(struct side *, struct vb_door *, unsigned))
{
	struct vb_transfer_options options = transferring(side);
	struct vb_door *door;

	options.workers = workers;
	door = door_here(side, &options);
	for (unsigned round = 0; round < rounds(side); round++)
		receive(side, door, round);
	vb_door_close(door);
}

static void to_file_server(struct side *side)
{
	receive_rounds(side, 1, receive_to_file);
}

static void to_file_server_by_many(struct side *side)
{
	receive_rounds(side, 4, receive_to_file);
}

static void to_pipe_server(struct side *side)
{
	receive_rounds(side, 1, receive_to_pipe);
}

static void to_pipe_server_by_many(struct side *side)
{
	receive_rounds(side, 4, receive_to_pipe);
}

static void from_file_client(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	const char *source = scratch_path(side, "source");

	for (unsigned round = 0; round < rounds(side); round++) {
		struct outcome o;

		set_round(&options, round);
		make_file(source, sizes[round % SIZES], round);
		o = come_sending(side, &options, &(struct vb_input){ .path = source });
		went_well(&o, sizes[round % SIZES]);
		same_digest(side, &o, false);
	}
}

static void from_pipe_client(struct side *side)
{
	struct vb_transfer_options options = transferring(side);

	for (unsigned round = 0; round < rounds(side); round++) {
		struct feed feed;
		struct outcome o;

		set_round(&options, round);
		open_feed(&feed, sizes[round % SIZES], round);
		o = come_sending(side, &options, &(struct vb_input){ .fd = feed.fd });
		went_well(&o, sizes[round % SIZES]);
		close_feed(&feed);
		same_digest(side, &o, false);
	}
}

static void sending_door(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	const char *source = scratch_path(side, "source");
	struct outcome o;

	make_file(source, 300000, 3);
	options.rails = 2;
	o = serve_sending(side, &options, &(struct vb_input){ .path = source });
	went_well(&o, 300000);
	same_digest(side, &o, true);
}

static void receiving_guest(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	const char *target = scratch_path(side, "target");
	struct outcome o = come_receiving(side, &options, &(struct vb_output){ .path = target });

	went_well(&o, 300000);
	CHECK(file_holds(target, 300000, 3));
	same_digest(side, &o, false);
}

/* Holes, data at an odd place, a hole, data, and a hole at the end. */
static const struct {
	off_t offset;
	size_t len;
} extents[] = { { (1 << 20) + 77, 70000 }, { 5 << 20, 1000 } };
#define SPARSE_BYTES (8u << 20)

static void make_sparse(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
	uint8_t bytes[70000];

	CHECK(fd >= 0);
	for (unsigned i = 0; i < 2; i++) {
		fill(bytes, extents[i].len, i);
		CHECK_EQ(pwrite(fd, bytes, extents[i].len, extents[i].offset), extents[i].len);
	}
	CHECK_EQ(ftruncate(fd, SPARSE_BYTES), 0);
	CHECK_EQ(close(fd), 0);
}

static bool is_sparse_content(const uint8_t *bytes, size_t len)
{
	size_t at = 0;

	if (len != SPARSE_BYTES)
		return false;
	for (unsigned i = 0; i < 2; i++) {
		for (; at < (size_t)extents[i].offset; at++)
			if (bytes[at])
				return false;
		if (!is_filled(bytes + at, extents[i].len, i))
			return false;
		at += extents[i].len;
	}
	while (at < len && !bytes[at])
		at++;
	return at == len;
}

static void sparse_file_server(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	const char *target = scratch_path(side, "target");
	struct outcome o = serve_receiving(side, &options, &(struct vb_output){ .path = target });
	uint8_t *bytes = malloc(SPARSE_BYTES);
	int fd = open(target, O_RDONLY | O_CLOEXEC);
	struct stat st;

	went_well(&o, SPARSE_BYTES);
	CHECK(fd >= 0 && fstat(fd, &st) == 0);
	CHECK_EQ(st.st_mode & 07777, 0640);
	CHECK(st.st_blocks * 512 < 1 << 20);
	CHECK_EQ(st.st_size, SPARSE_BYTES);
	CHECK_EQ(read(fd, bytes, SPARSE_BYTES), SPARSE_BYTES);
	CHECK(is_sparse_content(bytes, SPARSE_BYTES));
	same_digest(side, &o, true);
	free(bytes);
	close(fd);
}

static void sparse_pipe_server(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct drain drain;
	struct outcome o;

	open_drain(&drain);
	o = serve_receiving(side, &options, &(struct vb_output){ .fd = drain.fd });
	went_well(&o, SPARSE_BYTES);
	end_drain(&drain);
	CHECK(is_sparse_content(drain.bytes, drain.len));
	same_digest(side, &o, true);
	free(drain.bytes);
}

static void sparse_client(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	const char *source = scratch_path(side, "source");
	struct outcome o;

	make_sparse(source);
	options.rails = 3;
	o = come_sending(side, &options, &(struct vb_input){ .path = source });
	went_well(&o, SPARSE_BYTES);
	CHECK(o.report.hole_bytes > 7 << 20);
	same_digest(side, &o, false);
}

#define FIVE_GIB (UINT64_C(5) << 30)

static const uint64_t islands[] = { 0, (UINT64_C(1) << 32) - 5, FIVE_GIB - 10 };

static void huge_server(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	const char *target = scratch_path(side, "target");
	struct outcome o = serve_receiving(side, &options, &(struct vb_output){ .path = target });
	int fd = open(target, O_RDONLY | O_CLOEXEC);
	uint8_t bytes[10];
	struct stat st;

	went_well(&o, FIVE_GIB);
	CHECK(fd >= 0 && fstat(fd, &st) == 0);
	CHECK_EQ(st.st_size, FIVE_GIB);
	CHECK(st.st_blocks * 512 < 1 << 20);
	for (uint32_t i = 0; i < 3; i++) {
		CHECK_EQ(pread(fd, bytes, 10, (off_t)islands[i]), 10);
		CHECK(is_filled(bytes, 10, i));
	}
	same_digest(side, &o, true);
	close(fd);
}

static void huge_client(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	const char *source = scratch_path(side, "source");
	int fd = open(source, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	uint8_t bytes[10];
	struct outcome o;

	for (uint32_t i = 0; i < 3; i++) {
		fill(bytes, 10, i);
		CHECK_EQ(pwrite(fd, bytes, 10, (off_t)islands[i]), 10);
	}
	close(fd);
	o = come_sending(side, &options, &(struct vb_input){ .path = source });
	went_well(&o, FIVE_GIB);
	CHECK(o.report.hole_bytes > FIVE_GIB - (1 << 20));
	same_digest(side, &o, false);
}

/* Checks what is told while it goes, and keeps the last of it. */
static void check_progress(void *arg, const struct vb_progress *progress)
{
	struct vb_progress *last = arg;

	CHECK(progress->bytes >= last->bytes);
	CHECK(progress->elapsed_ns >= last->elapsed_ns);
	CHECK(progress->filled_here <= 100 && progress->filled_there <= 100);
	CHECK_EQ(progress->total_bytes, 300000);
	*last = *progress;
}

static void progress_server(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct vb_progress last = { .bytes = 0 };
	struct outcome o;

	options.progress = check_progress;
	options.progress_arg = &last;
	o = serve_receiving(side, &options,
			    &(struct vb_output){ .path = scratch_path(side, "target") });
	went_well(&o, 300000);
	CHECK_EQ(last.bytes, 300000);
}

static void progress_client(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	const char *source = scratch_path(side, "source");
	struct vb_progress last = { .bytes = 0 };
	struct outcome o;

	make_file(source, 300000, 1);
	options.progress = check_progress;
	options.progress_arg = &last;
	o = come_sending(side, &options, &(struct vb_input){ .path = source });
	went_well(&o, 300000);
	CHECK_EQ(last.bytes, 300000);
}

#define LIMIT 500000u
#define LIMITED 150000u /* 300 ms */

static void limited_server(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct outcome o;

	options.max_bytes_per_second = side->shared->number[3];
	o = serve_receiving(side, &options,
			    &(struct vb_output){ .path = scratch_path(side, "target") });
	went_well(&o, LIMITED);
}

static void limited_client(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	const char *source = scratch_path(side, "source");
	struct outcome o;

	make_file(source, LIMITED, 1);
	options.max_bytes_per_second = LIMIT;
	o = come_sending(side, &options, &(struct vb_input){ .path = source });
	went_well(&o, LIMITED);
	CHECK(o.report.elapsed_ns > 250000000u);
}

static void limiting_server(struct side *side)
{
	side->shared->number[3] = LIMIT;
	limited_server(side);
}

static void unlimited_client(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct outcome o;
	struct feed feed;

	open_feed(&feed, LIMITED, 1);
	o = come_sending(side, &options, &(struct vb_input){ .fd = feed.fd });
	went_well(&o, LIMITED);
	CHECK(o.report.elapsed_ns > 250000000u);
	close_feed(&feed);
}

static void tell_seen(void *side)
{
	signal_step(side, 0);
}

/* The few bytes that are there arrive although no more come and the input does not end. */
static void trickle_server(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct moment seen = { .bytes = HELD, .act = tell_seen, .arg = side };
	struct drain drain;
	struct outcome o;

	options.progress = await_moment;
	options.progress_arg = &seen;
	open_drain(&drain);
	o = serve_receiving(side, &options, &(struct vb_output){ .fd = drain.fd });
	went_well(&o, HELD);
	CHECK(drained(&drain, HELD, 1));
}

static void *end_when_seen(void *arg)
{
	struct side *side = ((void **)arg)[0];
	struct held *held = ((void **)arg)[1];

	await_step(side, 0);
	close(held->far_fd);
	return NULL;
}

static void trickle_client(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct held held;
	void *args[] = { side, &held };
	pthread_t ender;
	struct outcome o;

	open_held(&held);
	pthread_create(&ender, NULL, end_when_seen, args);
	o = come_sending(side, &options, &(struct vb_input){ .fd = held.fd });
	went_well(&o, HELD);
	pthread_join(ender, NULL);
	close(held.fd);
}

static void described_server(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct vb_door *door = door_here(side, &options);
	struct vb_session *session = let_in(door);
	struct outcome o;

	CHECK(strstr(vb_door_description(door), side->fabric));
	CHECK(strstr(vb_session_peer(session), "port"));
	o = receive_by(session, &(struct vb_output){ .path = scratch_path(side, "target") });
	went_well(&o, 1000);
	CHECK(strstr(vb_session_description(session), "32 KiB, 3 under way on each of 2 rails"));
	vb_session_close(session);
	vb_door_close(door);
}

/* The receiver may make blocks and window smaller; rails are the sender's. */
static void described_client(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	const char *source = scratch_path(side, "source");
	struct vb_session *session;
	struct outcome o;

	make_file(source, 1000, 1);
	options.rails = 2;
	options.block_bytes = BLOCK / 2;
	options.window_blocks = 3;
	session = come_in(side, &options);
	CHECK(strstr(vb_session_description(session), side->fabric));
	o = send_by(session, &(struct vb_input){ .path = source });
	went_well(&o, 1000);
	CHECK(strstr(vb_session_description(session), "32 KiB, 3 under way on each of 2 rails"));
	vb_session_close(session);
}

const struct test transfer_tests[] = {
	{ "every_size_arrives_from_file_to_file", to_file_server, from_file_client },
	{ "every_size_arrives_from_pipe_to_file", to_file_server_by_many, from_pipe_client },
	{ "every_size_arrives_from_file_to_pipe", to_pipe_server_by_many, from_file_client },
	{ "every_size_arrives_from_pipe_to_pipe", to_pipe_server, from_pipe_client },
	{ "side_that_waits_may_send", sending_door, receiving_guest },
	{ "holes_stay_holes_in_a_file", sparse_file_server, sparse_client },
	{ "holes_are_zeros_in_a_pipe", sparse_pipe_server, sparse_client },
	{ "five_gib_of_holes_take_no_time", huge_server, huge_client },
	{ "progress_ascends_to_the_total", progress_server, progress_client },
	{ "limit_of_the_sender_is_kept", limited_server, limited_client },
	{ "limit_of_the_receiver_is_kept", limiting_server, unlimited_client },
	{ "bytes_do_not_wait_for_more", trickle_server, trickle_client },
	{ "session_tells_what_was_agreed_on", described_server, described_client },
	{ NULL },
};
