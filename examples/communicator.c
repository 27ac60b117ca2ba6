/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Communicator: a question and an answer over a stream, as over a socket.
 *
 *	communicator --server ADDRESS        ADDRESS is [HOST]:PORT, e.g. :7471
 *	communicator --client ADDRESS
 */
#include "example.h"

#define QUESTION_BYTES 40
#define ANSWER_BYTES 18

static const char question[QUESTION_BYTES] = "hello from client!";
static const char answer[] = "hello from server!";

static int wait_for_client(const struct address *at, struct vb_stream **stream,
			   struct vb_error *err)
{
	struct vb_stream_server *server;
	int rc = vb_stream_serve(at->host, at->port, NULL, &server, err);

	if (rc != 0)
		return rc;
	fprintf(stderr, "communicator: listening on port %d\n", vb_stream_server_port(server));
	rc = vb_stream_accept(server, stream, err);
	vb_stream_server_close(server);
	return rc;
}

static int connect_to_server(const struct address *to, struct vb_stream **stream,
			     struct vb_error *err)
{
	int rc = vb_stream_connect(to->host ? to->host : "localhost", to->port, NULL, stream, err);

	if (rc == 0)
		fprintf(stderr, "communicator: %s\n", vb_stream_description(*stream));
	return rc;
}

/* Reads so many bytes and prints them. Returns 1 if the peer has closed before that. */
static int hear(struct vb_stream *stream, size_t len, struct vb_error *err)
{
	char said[QUESTION_BYTES];
	ssize_t got = vb_stream_read(stream, said, len, err);

	if (got < 0)
		return (int)got;
	if ((size_t)got < len) {
		fprintf(stderr, "communicator: the peer said %zd bytes, not %zu\n", got, len);
		return 1;
	}
	printf("%.*s\n", (int)len, said);
	return 0;
}

static int converse(const struct address *address, bool server)
{
	struct vb_stream *stream;
	struct vb_error err;
	int rc = server ? wait_for_client(address, &stream, &err)
			: connect_to_server(address, &stream, &err);

	if (rc != 0)
		return complain("communicator", &err);
	if (server) {
		rc = hear(stream, QUESTION_BYTES, &err);
		if (rc == 0)
			rc = vb_stream_write(stream, answer, ANSWER_BYTES, &err);
	} else {
		rc = vb_stream_write(stream, question, QUESTION_BYTES, &err);
		if (rc == 0)
			rc = hear(stream, ANSWER_BYTES, &err);
	}
	if (rc != 0) {
		vb_stream_abort(stream);
		return rc < 0 ? complain("communicator", &err) : 1;
	}
	return vb_stream_close(stream, &err) == 0 ? 0 : complain("communicator", &err);
}

int main(int argc, char **argv)
{
	struct address address;

	if (argc == 3 && read_address(argv[2], &address)) {
		if (!strcmp(argv[1], "--server") || !strcmp(argv[1], "--client"))
			return converse(&address, argv[1][2] == 's');
	}
	fprintf(stderr, "usage: communicator --server [HOST]:PORT | --client HOST:PORT\n");
	return 2;
}
