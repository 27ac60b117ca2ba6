/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ping-pong, as ibv_rc_pingpong does it: a message there and back, many times.
 *
 *	pingpong --server ADDRESS [SIZE]                     ADDRESS is [HOST]:PORT, e.g. :7471
 *	pingpong --client ADDRESS [SIZE [ITERATIONS]]        4096 bytes, 1000 times
 */
#include <stdlib.h>
#include <time.h>

#include "example.h"

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Sends back whatever comes, until the client has closed. */
static int serve(const struct address *at, const struct vb_options *options, struct vb_error *err)
{
	struct vb_listener *listener;
	struct vb_channel *channel;
	const void *message;
	ssize_t len = vb_listener_open(at->host, at->port, options, &listener, err);

	if (len != 0)
		return (int)len;
	fprintf(stderr, "pingpong: listening on port %d\n", vb_listener_port(listener));
	len = vb_listener_accept(listener, &channel, err);
	vb_listener_close(listener);
	if (len != 0)
		return (int)len;
	while ((len = vb_channel_recv(channel, &message, err)) >= 0)
		if (vb_channel_send(channel, message, (size_t)len, err) != 0)
			break;
	if (len == VB_ERR_EOF)
		return vb_channel_close(channel, err);
	vb_channel_abort(channel);
	return err->code;
}

static int play(struct vb_channel *channel, size_t size, int iterations, struct vb_error *err)
{
	struct vb_region *ball;
	const void *message;
	double began, seconds;
	ssize_t rc = vb_region_alloc(channel, size, &ball, err);

	if (rc != 0)
		return (int)rc;
	began = now();
	for (int i = 0; i < iterations && rc >= 0; i++) {
		rc = vb_channel_send(channel, vb_region_addr(ball), size, err);
		if (rc == 0)
			rc = vb_channel_recv(channel, &message, err);
	}
	seconds = now() - began;
	vb_region_close(ball);
	if (rc < 0)
		return (int)rc;
	printf("%.0f bytes in %.2f seconds = %.2f Mbit/sec\n", 2.0 * (double)size * iterations,
	       seconds, 16.0 * (double)size * iterations / seconds / 1e6);
	printf("%d iters in %.2f seconds = %.2f usec/iter\n", iterations, seconds,
	       seconds * 1e6 / iterations);
	return 0;
}

static int challenge(const struct address *to, const struct vb_options *options, int iterations,
		     struct vb_error *err)
{
	struct vb_channel *channel;
	int rc = vb_channel_connect(to->host ? to->host : "localhost", to->port, options, &channel,
				    err);

	if (rc != 0)
		return rc;
	fprintf(stderr, "pingpong: %s\n", vb_channel_description(channel));
	rc = play(channel, options->max_message_bytes, iterations, err);
	if (rc == 0)
		return vb_channel_close(channel, err);
	vb_channel_abort(channel);
	return rc;
}

int main(int argc, char **argv)
{
	int size = argc > 3 ? atoi(argv[3]) : 4096, iterations = argc > 4 ? atoi(argv[4]) : 1000;
	struct vb_options options = { .max_message_bytes = (uint32_t)size };
	struct address address;
	struct vb_error err;

	if (argc > 2 && size > 0 && iterations > 0 && read_address(argv[2], &address)) {
		if (!strcmp(argv[1], "--server"))
			return serve(&address, &options, &err) ? complain("pingpong", &err) : 0;
		if (!strcmp(argv[1], "--client"))
			return challenge(&address, &options, iterations, &err)
				       ? complain("pingpong", &err)
				       : 0;
	}
	fprintf(stderr, "usage: pingpong --server [HOST]:PORT [SIZE]\n"
			"       pingpong --client HOST:PORT [SIZE [ITERATIONS]]\n");
	return 2;
}
