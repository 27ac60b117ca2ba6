/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers that are compressed: who decides it, what comes of it, and that every byte arrives all the same. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <verbatim/tree.h>

#include "transfer_side.h"

/* Of each two blocks one is text, and one cannot be packed. */
static uint8_t *mixed(size_t len)
{
	uint8_t *bytes = malloc(len + 1);

	CHECK(bytes);
	for (size_t at = 0; at < len; at += BLOCK) {
		size_t n = len - at < BLOCK ? len - at : BLOCK;

		if (at / BLOCK % 2)
			fill(bytes + at, n, 5);
		else
			for (size_t i = 0; i < n; i++)
				bytes[at + i] = (uint8_t) "text of no interest, "[i % 1009 % 21];
	}
	return bytes;
}

static void make_mixed(const char *path, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	uint8_t *bytes = mixed(len);

	CHECK_EQ(write(fd, bytes, len), len);
	CHECK_EQ(close(fd), 0);
	free(bytes);
}

static bool is_mixed(const char *path, size_t len)
{
	uint8_t *wanted = mixed(len), *found = malloc(len + 1);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool same = fd >= 0 && read(fd, found, len + 1) == (ssize_t)len &&
		    memcmp(wanted, found, len) == 0;

	close(fd);
	free(wanted);
	free(found);
	return same;
}

/* Who says what, and what holds; with sizes around a block's. */
static const struct {
	size_t bytes;
	int sender, receiver;
	const char *words; /* in the description; NULL: it is not compressed */
	enum vb_encrypt encrypt;
} cases[] = {
	{ 5 * BLOCK + 123, 3, 0, "compressed at level 3", VB_ENCRYPT_IF_ASKED },
	{ 5 * BLOCK, 0, VB_COMPRESS_AUTO, "compressed where", VB_ENCRYPT_ASK },
	{ BLOCK + 1, 1, 19, "compressed at level 1", VB_ENCRYPT_ASK },
	{ BLOCK, 19, VB_COMPRESS_AUTO, "compressed at level 19", VB_ENCRYPT_IF_ASKED },
	{ BLOCK - 1, VB_COMPRESS_AUTO, 0, "compressed where", VB_ENCRYPT_IF_ASKED },
	{ 1, 0, 9, "compressed at level 9", VB_ENCRYPT_IF_ASKED },
	{ 0, VB_COMPRESS_AUTO, VB_COMPRESS_AUTO, "compressed where", VB_ENCRYPT_ASK },
	{ 2 * BLOCK, VB_COMPRESS_NEVER, 9, NULL, VB_ENCRYPT_IF_ASKED },
	{ 2 * BLOCK, 9, VB_COMPRESS_NEVER, NULL, VB_ENCRYPT_IF_ASKED },
};

/* In the VM only the first two. */
static unsigned rounds(const struct side *side)
{
	return side->slow ? 2 : sizeof(cases) / sizeof(cases[0]);
}

static void is_told_packing(struct vb_session *session, const struct outcome *o, unsigned i)
{
	const char *words = vb_session_description(session);

	went_well(o, cases[i].bytes);
	if (!cases[i].words || cases[i].bytes < BLOCK - 1)
		CHECK_EQ(o->report.wire_bytes, cases[i].bytes);
	else
		CHECK(o->report.wire_bytes < cases[i].bytes && o->report.pack_ns);
	CHECK(cases[i].words ? strstr(words, cases[i].words) != NULL
			     : strstr(words, "compressed") == NULL);
}

static void deciding_receiver(struct side *side)
{
	const char *target = scratch_path(side, "target");

	for (unsigned i = 0; i < rounds(side); i++) {
		struct vb_transfer_options options = transferring(side);
		struct vb_session *session;
		struct vb_door *door;
		struct outcome o;

		options.compress = cases[i].receiver;
		door = door_here(side, &options);
		session = let_in(door);
		o = receive_by(session, &(struct vb_output){ .path = target });
		is_told_packing(session, &o, i);
		CHECK(is_mixed(target, cases[i].bytes));
		vb_session_close(session);
		vb_door_close(door);
		sem_wait(&side->shared->listening); /* for the next one */
		same_digest(side, &o, true);
	}
}

static void deciding_sender(struct side *side)
{
	const char *source = scratch_path(side, "source");

	for (unsigned i = 0; i < rounds(side); i++) {
		struct vb_transfer_options options = transferring(side);
		struct vb_session *session;
		struct outcome o;

		options.compress = cases[i].sender;
		options.encrypt = cases[i].encrypt;
		options.rails = 1 + i % 3;
		options.workers = i % 2 ? 1 : 4;
		make_mixed(source, cases[i].bytes);
		session = come_in(side, &options);
		o = send_by(session, &(struct vb_input){ .path = source });
		is_told_packing(session, &o, i);
		vb_session_close(session);
		same_digest(side, &o, false);
	}
}

/* ---- Holes, and trees ---- */

#define SPARSE_BYTES (8u << 20)

static void hole_receiver(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	const char *target = scratch_path(side, "target");
	struct outcome o = serve_receiving(side, &options, &(struct vb_output){ .path = target });
	struct stat st;

	went_well(&o, SPARSE_BYTES);
	CHECK_EQ(stat(target, &st), 0);
	CHECK(st.st_blocks * 512 < 1 << 20);
	CHECK_EQ(st.st_size, SPARSE_BYTES);
	CHECK(o.report.hole_bytes > 7 << 20);
}

static void hole_sender(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	const char *source = scratch_path(side, "source");
	struct outcome o;

	make_mixed(source, BLOCK);
	CHECK_EQ(truncate(source, SPARSE_BYTES), 0);
	options.compress = VB_COMPRESS_AUTO;
	o = come_sending(side, &options, &(struct vb_input){ .path = source });
	went_well(&o, SPARSE_BYTES);
	CHECK(o.report.wire_bytes < BLOCK);
}

#define FILES 40u

static const char *in(const char *directory, unsigned number)
{
	static char path[300];

	snprintf(path, sizeof(path), "%s/%u", directory, number);
	return path;
}

/* Small ones share blocks, large ones have their own. */
static size_t size_of(unsigned number)
{
	return number % 10 ? number * 100 : 5 * BLOCK + number;
}

static void tree_receiver(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct vb_door *door;
	struct vb_session *session;
	struct vb_tree_report report;
	struct vb_error err;
	char directory[280];

	options.compress = 1;
	door = door_here(side, &options);
	session = let_in(door);
	if (vb_session_receive_tree(session, scratch_path(side, "target"),
				    &(struct vb_tree_options){ .recursive = true }, &report,
				    &err) != 0)
		fail_with(&err, "receive a tree");
	CHECK_EQ(report.files, FILES);
	CHECK(report.wire_bytes && report.wire_bytes < report.moved_bytes * 3 / 4);
	CHECK(report.moved_bytes > report.sent_bytes && report.pack_ns);
	vb_session_close(session);
	vb_door_close(door);
	snprintf(directory, sizeof(directory), "%s", scratch_path(side, "target"));
	for (unsigned i = 0; i < FILES; i++)
		CHECK(is_mixed(in(directory, i), size_of(i)));
}

static void tree_sender(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	const char *directory = scratch_path(side, "source");
	struct vb_session *session;
	struct vb_tree_report report;
	struct vb_error err;

	CHECK_EQ(mkdir(directory, 0700), 0);
	for (unsigned i = 0; i < FILES; i++)
		make_mixed(in(directory, i), size_of(i));
	options.encrypt = VB_ENCRYPT_ASK;
	session = come_in(side, &options);
	if (vb_session_send_tree(session, &directory, 1,
				 &(struct vb_tree_options){ .recursive = true }, &report,
				 &err) != 0)
		fail_with(&err, "send a tree");
	CHECK_EQ(report.files, FILES);
	CHECK(report.wire_bytes && report.wire_bytes < report.moved_bytes);
	vb_session_close(session);
}

/* ---- A limit is for what is sent ---- */

#define LIMIT (16 * BLOCK)
#define LIMITED (2 * LIMIT) /* of which half can be packed */

static void limited_receiver(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	const char *target = scratch_path(side, "target");
	struct outcome o = serve_receiving(side, &options, &(struct vb_output){ .path = target });

	went_well(&o, LIMITED);
	CHECK(is_mixed(target, LIMITED));
}

static void limited_sender(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	const char *source = scratch_path(side, "source");
	struct outcome o;

	options.compress = 3;
	options.max_bytes_per_second = LIMIT;
	make_mixed(source, LIMITED);
	o = come_sending(side, &options, &(struct vb_input){ .path = source });
	went_well(&o, LIMITED);
	CHECK(o.report.elapsed_ns < 1700000000);
	/* What may be made up for is a tenth of a second's. */
	CHECK(o.report.elapsed_ns > 850000000);
}

const struct test pack_tests[] = {
	{ "compressed_as_one_side_says_and_none_forbids", deciding_receiver, deciding_sender },
	{ "holes_stay_holes_when_compressed", hole_receiver, hole_sender, .only = "ofi" },
	{ "limit_is_for_what_is_sent", limited_receiver, limited_sender, .only = "ofi" },
	{ "trees_are_compressed_too", tree_receiver, tree_sender, .only = "ofi" },
	{ NULL },
};
