/* SPDX-License-Identifier: Apache-2.0 */
/* Strangers that know libfabric's tcp provider, and send what it does not expect. */
#include <errno.h>
#include <sys/socket.h>

#include "fabric/address.h"
#include "server_side.h"
#include "wire/hello.h"

#define OPENING 32
#define OPENED (OPENING + VB__HELLO_BYTES)

struct frame {
	uint8_t op, op_data, pieces, header_len;
	uint16_t flags;
	uint8_t len;
};

/* The first is one of the provider's, and none of ours; the others no provider sends on our connections. */
static const struct frame frames[] = {
	{ .op = 0, .header_len = 16, .len = 136 },
	{ .op = 4, .header_len = 16, .len = 136 },
	{ .op = 0, .header_len = 16, .len = 16, .op_data = 2 }, /* acknowledges what was not sent */
	{ .op = 0, .header_len = 15, .len = 136 },
	{ .op = 0, .header_len = 255, .len = 255 },
	{ .op = 0, .header_len = 16, .len = 8 },
	{ .op = 1, .header_len = 24, .len = 24 },
	{ .op = 1, .header_len = 24, .len = 255 },
	{ .op = 1, .header_len = 16, .len = 136 },
	{ .op = 2, .header_len = 16, .len = 136 },
	{ .op = 2, .header_len = 112, .len = 112, .pieces = 255 },
	{ .op = 3, .header_len = 16, .len = 136 },
	{ .op = 4, .header_len = 16, .len = 16, .flags = 1 },
	{ .op = 4, .header_len = 112, .len = 136, .pieces = 255 },
	{ .op = 5, .header_len = 16, .len = 136 },
	{ .op = 6, .header_len = 16, .len = 136 },
	{ .op = 7, .header_len = 16, .len = 136 },
	{ .op = 8, .header_len = 16, .len = 136 },
	{ .op = 9, .header_len = 16, .len = 136 },
	{ .op = 10, .header_len = 16, .len = 136 },
	{ .op = 11, .header_len = 16, .len = 136 },
	{ .op = 12, .header_len = 16, .len = 136 },
	{ .op = 255, .header_len = 16, .len = 136 },
};

#define FRAMES (sizeof(frames) / sizeof(frames[0]))

static void send_frame(int fd, const struct frame *frame)
{
	uint8_t bytes[256] = { 3, frame->op };
	size_t len = frame->len < 16 ? 16 : frame->len;

	bytes[2] = (uint8_t)frame->flags;
	bytes[4] = frame->op_data;
	bytes[5] = frame->pieces;
	bytes[6] = frame->header_len;
	bytes[8] = frame->len;
	CHECK_EQ(send(fd, bytes, len, MSG_NOSIGNAL), len);
}

static void encode_opening(uint8_t bytes[OPENED], uint8_t provider_kind, uint8_t kind)
{
	struct vb__hello hello = {
		.kind = kind, .version = VB__PROTOCOL_VERSION, .max_message = 4096, .depth = 2
	};

	memset(bytes, 0, OPENING);
	bytes[0] = 3;
	bytes[1] = provider_kind;
	bytes[3] = VB__HELLO_BYTES;
	bytes[24] = 1; /* the order of bytes */
	vb__hello_encode(bytes + OPENING, &hello);
}

/* Whatever comes is over within some seconds; what does not come fails the test. */
static void limit_waiting(int fd)
{
	struct timeval limit = { .tv_sec = 20 };

	CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
}

/* Connected, as far as the other side can know. */
static int open_as_stranger(struct side *side)
{
	struct vb__address found[VB__ADDRESSES_MAX];
	uint8_t bytes[OPENED];
	int fd;

	CHECK(vb__address_resolve(side->address, port_there(side), 0, found, NULL) > 0);
	fd = socket(found[0].sa.ss_family, SOCK_STREAM, 0);
	limit_waiting(fd);
	CHECK_EQ(connect(fd, (struct sockaddr *)&found[0].sa, found[0].len), 0);
	encode_opening(bytes, 0, VB__HELLO_OPEN);
	CHECK_EQ(send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL), sizeof(bytes));
	CHECK_EQ(recv(fd, bytes, sizeof(bytes), MSG_WAITALL), sizeof(bytes));
	return fd;
}

/* Nobody is kept. */
static void await_end(int fd)
{
	uint8_t bytes[256];
	ssize_t n;

	do
		n = recv(fd, bytes, sizeof(bytes), 0);
	while (n > 0);
	CHECK(n == 0 || errno == ECONNRESET);
	close(fd);
}

/* All of them, one after the other; the listening side looks after each until it has ended. */
static void send_all_frames(struct side *side)
{
	for (unsigned i = 0; i < FRAMES; i++) {
		int fd = open_as_stranger(side);

		send_frame(fd, &frames[i]);
		await_end(fd);
	}
}

static void channels_server(struct side *side)
{
	struct vb_listener *listener = listen_here(side);
	const void *message;
	struct vb_error err;

	for (unsigned i = 0; i < FRAMES; i++) {
		struct vb_channel *ch = accept_one(side, listener);

		CHECK_EQ(vb_channel_recv(ch, &message, &err), VB_ERR_PROTOCOL);
		CHECK(err.cause[0]);
		vb_channel_abort(ch);
	}
	close_well(accept_one(side, listener));
	vb_listener_close(listener);
}

static void channels_client(struct side *side)
{
	send_all_frames(side);
	close_well(connect_there(side));
}

static void clients_server(struct side *side)
{
	struct vb_server *server = plain_server(side);
	struct vb_server_event event;
	unsigned lost = 0;

	do {
		event = next_event(server);
		if (event.kind == VB_CLIENT_MESSAGE)
			send_well(event.client, event.message, event.len);
		if (event.kind == VB_CLIENT_LEFT && event.why.code != VB_ERR_EOF) {
			if (event.why.code != VB_ERR_PROTOCOL)
				fail_with(&event.why, "a stranger left");
			lost++;
		}
	} while (event.kind != VB_CLIENT_LEFT || event.why.code != VB_ERR_EOF);
	CHECK_EQ(lost, FRAMES);
	nobody_is_left(server);
}

static void clients_client(struct side *side)
{
	struct vb_channel *ch = connect_there(side);

	talk_once(ch, 0);
	send_all_frames(side);
	talk_once(ch, 1);
	close_well(ch);
}

/* A listener that answers as it should, and then does not go on so. */
static void false_server(struct side *side)
{
	struct vb__address here[VB__ADDRESSES_MAX], bound;
	uint8_t bytes[OPENED];
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);
	int listener, fd;

	CHECK(vb__address_resolve(side->address, "0", 0, here, NULL) > 0);
	listener = socket(here[0].sa.ss_family, SOCK_STREAM, 0);
	CHECK_EQ(bind(listener, (struct sockaddr *)&here[0].sa, here[0].len), 0);
	CHECK_EQ(listen(listener, 1), 0);
	CHECK_EQ(getsockname(listener, (struct sockaddr *)&sa, &len), 0);
	vb__address_from(&bound, (struct sockaddr *)&sa);
	side->shared->port = vb__address_port(&bound);
	sem_post(&side->shared->listening);
	for (unsigned i = 0; i < FRAMES; i++) {
		fd = accept(listener, NULL, NULL);
		limit_waiting(fd);
		CHECK_EQ(recv(fd, bytes, sizeof(bytes), MSG_WAITALL), sizeof(bytes));
		encode_opening(bytes, 1, VB__HELLO_ACCEPT);
		CHECK_EQ(send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL), sizeof(bytes));
		send_frame(fd, &frames[i]);
		await_end(fd);
	}
	close(listener);
}

static void deceived_client(struct side *side)
{
	struct vb_channel *ch;
	const void *message;
	struct vb_error err;

	side->options.depth = 2;
	for (unsigned i = 0; i < FRAMES; i++) {
		int rc = vb_channel_connect(side->address, port_there(side), &side->options, &ch,
					    &err);

		if (rc == 0) {
			rc = (int)vb_channel_recv(ch, &message, &err);
			vb_channel_abort(ch);
		}
		CHECK_EQ(rc, VB_ERR_PROTOCOL); /* libfabric 2 may see it before we are connected */
	}
}

const struct test frame_stranger_tests[] = {
	{ "unexpected_frame_ends_only_its_channel", channels_server, channels_client, RETURNS,
	  RETURNS, "ofi" },
	{ "unexpected_frame_ends_only_its_client", clients_server, clients_client, RETURNS, RETURNS,
	  "ofi" },
	{ "unexpected_frame_of_a_listener_ends_only_its_channel", false_server, deceived_client,
	  RETURNS, RETURNS, "ofi" },
	{ NULL },
};
