/* SPDX-License-Identifier: Apache-2.0 */
/* Datagrams: answers of strangers, who need no key for them. By a socket, so over libfabric's udp only. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "harness.h"
#include "wire/datagram.h"

#define DONE (-1)
#define PATIENCE_MS 20000

static int open_socket(struct side *side, struct sockaddr_in *at)
{
	struct timeval patience = { .tv_usec = 50000 };
	socklen_t len = sizeof(*at);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	*at = (struct sockaddr_in){ .sin_family = AF_INET };
	CHECK(inet_pton(AF_INET, side->address, &at->sin_addr) == 1);
	CHECK(fd >= 0 && bind(fd, (struct sockaddr *)at, sizeof(*at)) == 0);
	CHECK(getsockname(fd, (struct sockaddr *)at, &len) == 0);
	CHECK(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) == 0);
	return fd;
}

/* Answers a question, if one comes, with the limit that the client wants to hear. */
static void answer_one(struct side *side, int fd, const struct sockaddr_in *at)
{
	uint8_t bytes[VB__ENVELOPE_BYTES + VB__GREETING_BYTES];
	struct vb__greeting greeting = { .version = VB__DATAGRAM_VERSION, .numbered = true };
	struct vb__envelope envelope;
	struct sockaddr_in from;
	socklen_t from_len = sizeof(from);
	ssize_t n = recvfrom(fd, bytes, sizeof(bytes), 0, (struct sockaddr *)&from, &from_len);

	if (n < (ssize_t)sizeof(bytes) || !vb__envelope_decode(&envelope, bytes, (size_t)n) ||
	    envelope.kind != VB__ENVELOPE_QUESTION)
		return;
	envelope =
		(struct vb__envelope){ .kind = VB__ENVELOPE_ANSWER, .port = ntohs(at->sin_port) };
	memcpy(envelope.address, &at->sin_addr, 4);
	vb__envelope_encode(bytes, &envelope);
	greeting.max_bytes = (uint16_t)side->shared->note;
	vb__greeting_encode(bytes + VB__ENVELOPE_BYTES, &greeting);
	sendto(fd, bytes, sizeof(bytes), 0, (struct sockaddr *)&from, from_len);
}

static void limit_server(struct side *side)
{
	struct sockaddr_in at;
	int fd = open_socket(side, &at);

	side->shared->port = ntohs(at.sin_port);
	sem_post(&side->shared->listening);
	while (side->shared->note != DONE)
		answer_one(side, fd, &at);
	close(fd);
}

static void limit_client(struct side *side)
{
	static const int bad[] = { 1, 4, 7, 8, 9, 255 };
	struct vb_dgram_options options = { .connection = side->options, .numbered = true };
	const char *port = port_there(side);
	struct vb_dgram_peer *peer;
	struct vb_dgram *dgram;
	struct vb_error err;
	char much[1024] = { 0 };

	options.connection.connect_timeout_ms = PATIENCE_MS;
	if (vb_dgram_open(side->address, "0", &options, &dgram, &err) != 0)
		fail_with(&err, "open");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		side->shared->note = bad[i];
		CHECK_EQ(vb_dgram_resolve(dgram, side->address, port, &peer, &err),
			 VB_ERR_PROTOCOL);
		CHECK(strstr(err.cause, "largest datagram"));
	}
	side->shared->note = 256;
	/* An answer to an earlier question may still be under way. */
	for (int i = 0; vb_dgram_resolve(dgram, side->address, port, &peer, &err) != 0; i++)
		if (i == 10)
			fail_with(&err, "resolve");
	CHECK_EQ(vb_dgram_peer_max(peer), 256 - VB__NUMBER_BYTES);
	CHECK_EQ(vb_dgram_send(dgram, peer, much, sizeof(much), &err), VB_ERR_TOO_BIG);
	side->shared->note = DONE;
	vb_dgram_close(dgram);
}

const struct test dgram_stranger_tests[] = {
	{ "datagrams_are_not_sent_by_a_limit_that_makes_no_sense", limit_server, limit_client, 0, 0,
	  "ofi" },
	{ .name = NULL },
};
