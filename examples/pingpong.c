/* SPDX-License-Identifier: Apache-2.0 */
/* Ping-pong, as ibv_rc_pingpong does it: a message there and back, many times. */
#include "example.h"

/* Sends back whatever comes, until the client has closed. */
static int serve(const struct address *at, const struct vb_options *options)
{
	struct vb_listener *listener;
	struct vb_channel *channel;
	struct vb_error err;
	const void *ball;
	ssize_t len;

	must(vb_listener_open(at->host, at->port, options, &listener, &err), &err);
	warnx("listening on port %d", vb_listener_port(listener));
	must(vb_listener_accept(listener, &channel, &err), &err);
	vb_listener_close(listener);
	while ((len = vb_channel_recv(channel, &ball, &err)) != VB_ERR_EOF)
		must(vb_channel_send(channel, ball, (size_t)must(len, &err), &err), &err);
	must(vb_channel_close(channel, &err), &err);
	return 0;
}

static int play(const struct address *to, const struct vb_options *options, unsigned times)
{
	size_t size = options->max_message_bytes;
	struct vb_channel *channel;
	struct vb_region *ball; /* memory of the channel's, so that no copy is made of it */
	struct vb_error err;
	const void *answer;
	double took, bytes = 2.0 * (double)size * times;

	must(vb_channel_connect(to->host, to->port, options, &channel, &err), &err);
	warnx("%s", vb_channel_description(channel));
	must(vb_region_alloc(channel, size, &ball, &err), &err);
	took = -now();
	for (unsigned i = 0; i < times; i++) {
		must(vb_channel_send(channel, vb_region_addr(ball), size, &err), &err);
		must(vb_channel_recv(channel, &answer, &err), &err);
	}
	took += now();
	must(vb_channel_close(channel, &err), &err);
	printf("%.0f bytes in %.2f seconds = %.2f Mbit/sec\n", bytes, took, bytes * 8 / took / 1e6);
	printf("%u iters in %.2f seconds = %.2f usec/iter\n", times, took, took * 1e6 / times);
	return printed(0);
}

int main(int argc, char **argv)
{
	struct vb_options options = { .log = print_warning,
				      .max_message_bytes = argc > 3 ? number(argv[3]) : 4096 };
	struct address address;

	if (asks_for(argv, "--server", &address))
		return serve(&address, &options);
	if (asks_for(argv, "--client", &address))
		return play(&address, &options, argc > 4 ? number(argv[4]) : 1000);
	return usage("pingpong --server [HOST]:PORT [SIZE] | --client HOST:PORT [SIZE [TIMES]]");
}
