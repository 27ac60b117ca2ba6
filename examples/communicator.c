/* SPDX-License-Identifier: Apache-2.0 */
/* Communicator: a question and an answer over a stream, as over a socket. */
#include "example.h"

#define QUESTION_BYTES 40
#define ANSWER_BYTES 18

static const struct vb_stream_options options = { .connection = { .log = print_warning } };

/* Reads so many bytes and prints them. */
static void hear(struct vb_stream *stream, size_t len)
{
	char said[QUESTION_BYTES];
	struct vb_error err;

	if ((size_t)must(vb_stream_read(stream, said, len, &err), &err) < len)
		errx(1, "the peer has closed, and not said %zu bytes", len);
	printf("%.*s\n", (int)len, said);
}

static int serve(const struct address *at)
{
	struct vb_stream_server *server;
	struct vb_stream *stream;
	struct vb_error err;

	must(vb_stream_serve(at->host, at->port, &options, &server, &err), &err);
	warnx("listening on port %d", vb_stream_server_port(server));
	must(vb_stream_accept(server, &stream, &err), &err);
	hear(stream, QUESTION_BYTES);
	must(vb_stream_write(stream, "hello from server!", ANSWER_BYTES, &err), &err);
	must(vb_stream_close(stream, &err), &err);
	vb_stream_server_close(server);
	return printed(0);
}

static int ask(const struct address *to)
{
	static const char question[QUESTION_BYTES] = "hello from client!";
	struct vb_stream *stream;
	struct vb_error err;

	must(vb_stream_connect(to->host, to->port, &options, &stream, &err), &err);
	warnx("%s", vb_stream_description(stream));
	must(vb_stream_write(stream, question, QUESTION_BYTES, &err), &err);
	hear(stream, ANSWER_BYTES);
	must(vb_stream_close(stream, &err), &err);
	return printed(0);
}

int main(int argc, char **argv)
{
	struct address address;

	if (argc == 3 && asks_for(argv, "--server", &address))
		return serve(&address);
	if (argc == 3 && asks_for(argv, "--client", &address))
		return ask(&address);
	return usage("communicator --server [HOST]:PORT | --client HOST:PORT");
}
