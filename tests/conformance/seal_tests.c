/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encrypted transfers, and somebody on the way. He stands where a rail's message is sent: the linker
 * puts our vb__channel_send_loan before the library's. There he sees what goes over the wire, and
 * leaves out, repeats and exchanges what he likes.
 */
#include <string.h>
#include <sys/stat.h>

#include "channel/inside.h"
#include "core/failure.h"
#include "transfer/seal.h"
#include "transfer_side.h"

#define NAME "the-name-of-a-secret-file"
#define CONTENTS "what nobody is to read"

enum mischief {
	NONE,
	LEAVE_OUT,
	REPEAT,
	EXCHANGE
};

static enum mischief mischief;
static _Atomic int at_block; /* at 1 it happens */
static _Atomic int seen_names, seen_contents, seen_messages;
static uint8_t kept[2 * BLOCK];
static size_t kept_bytes;

int __real_vb__channel_send_loan(struct vb_channel *channel, const struct vb__loan *loan,
				 size_t len, struct vb_error *err);
int __wrap_vb__channel_send_loan(struct vb_channel *channel, const struct vb__loan *loan,
				 size_t len, struct vb_error *err);

static void listen_in(const uint8_t *message, size_t len)
{
	seen_messages++;
	seen_names += memmem(message, len, NAME, strlen(NAME)) != NULL;
	seen_contents += memmem(message, len, CONTENTS, strlen(CONTENTS)) != NULL;
}

static int send_kept(struct vb_channel *channel, struct vb_error *err)
{
	struct vb__loan loan;

	if (vb__channel_borrow(channel, &loan, err) != 0)
		return err->code;
	memcpy(loan.data, kept, kept_bytes);
	return __real_vb__channel_send_loan(channel, &loan, kept_bytes, err);
}

int __wrap_vb__channel_send_loan(struct vb_channel *channel, const struct vb__loan *loan,
				 size_t len, struct vb_error *err)
{
	int turn = at_block ? at_block-- : 0, rc;

	listen_in(loan->data, len);
	if (turn == 2 || (turn == 1 && mischief == REPEAT)) {
		memcpy(kept, loan->data, len);
		kept_bytes = len;
	}
	if ((turn == 1 && mischief == LEAVE_OUT) || (turn == 2 && mischief == EXCHANGE)) {
		vb__channel_give_back_unsent(channel, loan);
		return 0;
	}
	rc = __real_vb__channel_send_loan(channel, loan, len, err);
	if (rc == 0 && turn == 1 && (mischief == REPEAT || mischief == EXCHANGE))
		rc = send_kept(channel, err);
	return rc;
}

static struct vb_transfer_options encrypting(const struct side *side, enum vb_encrypt encrypt)
{
	struct vb_transfer_options options = transferring(side);

	options.encrypt = encrypt;
	return options;
}

/* ---- Whoever asks for it ---- */

#define LENGTH (5 * BLOCK + 77)

static void is_sealed(const struct vb_session *session)
{
	const char *cipher = vb_session_cipher(session);

	CHECK(cipher && (!strcmp(cipher, "AES-256-GCM") || !strcmp(cipher, "ChaCha20-Poly1305")));
	CHECK(strstr(vb_session_description(session), cipher));
}

static void receive_sealed(struct side *side, const struct vb_transfer_options *options)
{
	const char *target = scratch_path(side, "target");
	struct vb_door *door = door_here(side, options);
	struct vb_session *session = let_in(door);
	struct outcome o;

	CHECK(!vb_session_cipher(session));
	o = receive_by(session, &(struct vb_output){ .path = target });
	went_well(&o, LENGTH);
	is_sealed(session);
	vb_session_close(session);
	vb_door_close(door);
	CHECK(file_holds(target, LENGTH, 3));
	same_digest(side, &o, true);
}

static void send_sealed(struct side *side, const struct vb_transfer_options *options)
{
	const char *source = scratch_path(side, "source");
	struct vb_session *session;
	struct outcome o;

	make_file(source, LENGTH, 3);
	session = come_in(side, options);
	o = send_by(session, &(struct vb_input){ .path = source });
	went_well(&o, LENGTH);
	is_sealed(session);
	vb_session_close(session);
	same_digest(side, &o, false);
}

static void asking_receiver(struct side *side)
{
	struct vb_transfer_options options = encrypting(side, VB_ENCRYPT_ASK);

	receive_sealed(side, &options);
}

static void willing_receiver(struct side *side)
{
	struct vb_transfer_options options = transferring(side);

	receive_sealed(side, &options);
}

static void willing_sender(struct side *side)
{
	struct vb_transfer_options options = transferring(side);

	options.rails = 3;
	send_sealed(side, &options);
}

static void requiring_sender(struct side *side)
{
	struct vb_transfer_options options = encrypting(side, VB_ENCRYPT_REQUIRE);

	send_sealed(side, &options);
}

/* The other way round, from the door. */
static void sending_door(struct side *side)
{
	struct vb_transfer_options options = encrypting(side, VB_ENCRYPT_ASK);
	const char *source = scratch_path(side, "source");
	struct outcome o;

	make_file(source, LENGTH, 3);
	o = serve_sending(side, &options, &(struct vb_input){ .path = source });
	went_well(&o, LENGTH);
}

static void receiving_guest(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	const char *target = scratch_path(side, "target");
	struct outcome o = come_receiving(side, &options, &(struct vb_output){ .path = target });

	went_well(&o, LENGTH);
	CHECK(file_holds(target, LENGTH, 3));
}

/* So many blocks that the key of each of two rails is replaced twice. */
#define LONG_BYTES ((size_t)VB_BLOCK_MIN * (4 * VB__SEAL_TURNS + 200))

static void long_receiver(struct side *side)
{
	struct vb_transfer_options options = encrypting(side, VB_ENCRYPT_REQUIRE);
	const char *target = scratch_path(side, "target");
	struct outcome o = serve_receiving(side, &options, &(struct vb_output){ .path = target });

	went_well(&o, LONG_BYTES);
	CHECK(file_holds(target, LONG_BYTES, 4));
}

static void long_sender(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	const char *source = scratch_path(side, "source");
	struct outcome o;

	options.block_bytes = VB_BLOCK_MIN;
	options.rails = 2;
	options.workers = 3;
	make_file(source, LONG_BYTES, 4);
	o = come_sending(side, &options, &(struct vb_input){ .path = source });
	went_well(&o, LONG_BYTES);
	CHECK_EQ(o.report.blocks, LONG_BYTES / VB_BLOCK_MIN);
}

/* ---- Whoever will not ---- */

static void refusing_receiver(struct side *side, enum vb_encrypt encrypt)
{
	struct vb_transfer_options options = encrypting(side, encrypt);
	const char *target = scratch_path(side, "target");
	struct outcome o = serve_receiving(side, &options, &(struct vb_output){ .path = target });

	went_wrong(&o, VB_ERR_REFUSED, "encryption: it is required, but ");
	CHECK_EQ(scratch_files(side), 1);
}

static void refusing_sender(struct side *side, enum vb_encrypt encrypt)
{
	struct vb_transfer_options options = encrypting(side, encrypt);
	const char *source = scratch_path(side, "source");
	struct outcome o;

	make_file(source, LENGTH, 3);
	o = come_sending(side, &options, &(struct vb_input){ .path = source });
	went_wrong(&o, VB_ERR_REFUSED, "encryption: it is required, but ");
	CHECK_EQ(seen_messages, 0);
}

static void never_receiver(struct side *side)
{
	refusing_receiver(side, VB_ENCRYPT_NEVER);
}

static void require_receiver(struct side *side)
{
	refusing_receiver(side, VB_ENCRYPT_REQUIRE);
}

static void never_sender(struct side *side)
{
	refusing_sender(side, VB_ENCRYPT_NEVER);
}

static void require_sender(struct side *side)
{
	refusing_sender(side, VB_ENCRYPT_REQUIRE);
}

/* ---- Somebody on the way ---- */

static void wary_receiver(struct side *side)
{
	struct vb_transfer_options options = encrypting(side, VB_ENCRYPT_REQUIRE);
	const char *target = scratch_path(side, "target");
	struct outcome o;

	make_file(target, 100, 99);
	o = serve_receiving(side, &options, &(struct vb_output){ .path = target });
	CHECK_EQ(o.err.code, VB_ERR_CORRUPT);
	CHECK(file_holds(target, 100, 99));
}

static void meddle(struct side *side, enum mischief what, int block, const char *words)
{
	struct vb_transfer_options options = transferring(side);
	const char *source = scratch_path(side, "source");
	struct outcome o;

	mischief = what;
	at_block = block;
	make_file(source, 6 * BLOCK, 3);
	o = come_sending(side, &options, &(struct vb_input){ .path = source });
	CHECK_EQ(at_block, 0);
	went_wrong(&o, VB_ERR_CORRUPT, words);
}

#define REFUSED "a sealed block was changed, left out, repeated or moved on its way"

static void leaving_out_sender(struct side *side)
{
	meddle(side, LEAVE_OUT, 3, REFUSED);
}

static void leaving_out_last_sender(struct side *side)
{
	meddle(side, LEAVE_OUT, 6, "what arrived is not what was sent");
}

/* ---- To a pipe: there blocks wait for those before them ---- */

/* One worker, so that it is known which block goes by which rail: the 7th is the first one's last. */
static void meddle_with_pipe(struct side *side, int block, enum vb_encrypt encrypt)
{
	struct vb_transfer_options options = encrypting(side, encrypt);
	const char *source = scratch_path(side, "source");
	struct outcome o;

	options.rails = 2;
	options.workers = 1;
	mischief = LEAVE_OUT;
	at_block = block;
	make_file(source, 8 * BLOCK, 3);
	o = come_sending(side, &options, &(struct vb_input){ .path = source });
	CHECK_EQ(at_block, 0);
	went_wrong(&o, VB_ERR_CORRUPT, "a block was left out on its way");
}

static void pipe_receiver(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct drain drain;
	struct outcome o;

	open_drain(&drain);
	o = serve_receiving(side, &options, &(struct vb_output){ .fd = drain.fd });
	CHECK_EQ(o.err.code, VB_ERR_CORRUPT);
	CHECK(!drained(&drain, 8 * BLOCK, 3));
}

static void plain_pipe_sender(struct side *side)
{
	meddle_with_pipe(side, 7, VB_ENCRYPT_NEVER);
}

static void plain_pipe_middle_sender(struct side *side)
{
	meddle_with_pipe(side, 2, VB_ENCRYPT_NEVER);
}

static void sealed_pipe_sender(struct side *side)
{
	meddle_with_pipe(side, 7, VB_ENCRYPT_REQUIRE);
}

static void repeating_sender(struct side *side)
{
	meddle(side, REPEAT, 3, REFUSED);
}

static void repeating_last_sender(struct side *side)
{
	meddle(side, REPEAT, 6, REFUSED);
}

static void exchanging_sender(struct side *side)
{
	meddle(side, EXCHANGE, 3, REFUSED);
}

/* ---- What can be seen ---- */

static void receive_tree(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct vb_tree_options tree = { .recursive = true };
	struct vb_door *door = door_here(side, &options);
	struct vb_session *session = let_in(door);
	struct vb_tree_report report;
	struct vb_error err;

	if (vb_session_receive_tree(session, scratch_path(side, "copy"), &tree, &report, &err) != 0)
		fail_with(&err, "receive a tree");
	CHECK_EQ(report.files, 1);
	vb_session_close(session);
	vb_door_close(door);
}

static void send_tree(struct side *side, enum vb_encrypt encrypt)
{
	struct vb_transfer_options options = encrypting(side, encrypt);
	struct vb_tree_options tree = { .recursive = true };
	const char *paths[] = { scratch_path(side, "tree"), NULL };
	FILE *file;
	struct vb_session *session;
	struct vb_error err;

	CHECK_EQ(mkdir(paths[0], 0755), 0);
	file = fopen(scratch_path(side, "tree/" NAME), "w");
	CHECK(file && fputs(CONTENTS, file) >= 0 && fclose(file) == 0);
	session = come_in(side, &options);
	if (vb_session_send_tree(session, paths, 1, &tree, NULL, &err) != 0)
		fail_with(&err, "send a tree");
	vb_session_close(session);
}

static void plain_tree_sender(struct side *side)
{
	send_tree(side, VB_ENCRYPT_IF_ASKED);
	CHECK(seen_messages && seen_names && seen_contents);
}

static void sealed_tree_sender(struct side *side)
{
	send_tree(side, VB_ENCRYPT_ASK);
	CHECK(seen_messages && !seen_names && !seen_contents);
}

/* What the fabric has no part in is tried over one of them. */
#define ONCE .only = "ofi"

const struct test seal_tests[] = {
	{ "sealed_if_the_receiver_asks_on_all_rails", asking_receiver, willing_sender },
	{ "sealed_with_keys_that_are_replaced", long_receiver, long_sender, ONCE },
	{ "sealed_if_the_sender_requires", willing_receiver, requiring_sender, ONCE },
	{ "sealed_from_the_door_to_its_guest", sending_door, receiving_guest, ONCE },
	{ "sealed_or_not_sent_if_the_sender_requires", never_receiver, require_sender, ONCE },
	{ "sealed_or_not_taken_if_the_receiver_requires", require_receiver, never_sender, ONCE },
	{ "sealed_block_that_is_left_out_is_noticed", wary_receiver, leaving_out_sender, ONCE },
	{ "sealed_last_block_that_is_left_out_is_noticed", wary_receiver, leaving_out_last_sender,
	  ONCE },
	{ "sealed_last_block_of_a_rail_is_missed_by_a_pipe", pipe_receiver, sealed_pipe_sender,
	  ONCE },
	{ "last_block_of_a_rail_is_missed_by_a_pipe", pipe_receiver, plain_pipe_sender, ONCE },
	{ "block_that_is_left_out_is_missed_by_a_pipe", pipe_receiver, plain_pipe_middle_sender,
	  ONCE },
	{ "sealed_block_that_is_repeated_is_noticed", wary_receiver, repeating_sender, ONCE },
	{ "sealed_last_block_that_is_repeated_is_noticed", wary_receiver, repeating_last_sender,
	  ONCE },
	{ "sealed_blocks_that_are_exchanged_are_noticed", wary_receiver, exchanging_sender, ONCE },
	{ "sealed_tree_shows_neither_names_nor_contents", receive_tree, sealed_tree_sender, ONCE },
	{ "tree_that_is_not_sealed_shows_both", receive_tree, plain_tree_sender, ONCE },
	{ NULL },
};
