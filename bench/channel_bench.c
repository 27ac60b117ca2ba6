/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the channel between two processes on this machine. One line of
 * result: a name and a number. Used by bench/run, which puts it beside others.
 *
 *	channel_bench MODE ADDRESS FABRIC [size=N] [count=N] [depth=N] [spin=US] [plain] [one]
 *
 * MODE: bw (MB/s one way), rate (messages/s one way), lat (µs one way, half a
 * round trip), setup (µs to connect and to close). `plain` sends from memory
 * that is in no region, `one` always from the same buffer, as perftest does.
 */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

struct run {
	const char *mode, *address;
	size_t size;
	unsigned count;
	int plain, one;
	struct vb_options options;
	int port_pipe[2];
};

static void serve(struct run *run)
{
	struct vb_listener *listener;
	struct vb_channel *channel;
	struct vb_error err;
	const void *message;
	int echo = !strcmp(run->mode, "lat"), port,
	    rounds = strcmp(run->mode, "setup") ? 1 : (int)run->count;
	ssize_t n;

	must(vb_listener_open(run->address, "0", &run->options, &listener, &err), &err);
	port = vb_listener_port(listener);
	if (write(run->port_pipe[1], &port, sizeof(port)) != sizeof(port))
		exit(1);
	for (int i = 0; i < rounds; i++) {
		must(vb_listener_accept(listener, &channel, &err), &err);
		while ((n = vb_channel_recv(channel, &message, &err)) >= 0)
			if (echo)
				must(vb_channel_send(channel, message, (size_t)n, &err), &err);
		must(n == VB_ERR_EOF ? 0 : (int)n, &err);
		must(vb_channel_close(channel, &err), &err);
	}
	vb_listener_close(listener);
}

static struct vb_channel *connect_there(struct run *run)
{
	struct vb_channel *channel;
	struct vb_error err;
	static int port;
	char text[16];

	if (!port && read(run->port_pipe[0], &port, sizeof(port)) != sizeof(port))
		exit(1);
	snprintf(text, sizeof(text), "%d", port);
	must(vb_channel_connect(run->address, text, &run->options, &channel, &err), &err);
	return channel;
}

/* One way, with as much under way as the depth allows; ends when the peer has all of it. */
static double one_way(struct run *run)
{
	struct vb_channel *channel = connect_there(run);
	unsigned depth = vb_channel_depth(channel);
	char *memory = aligned_alloc(4096, (run->size + 4095) / 4096 * 4096 * (depth + 1));
	size_t stride = run->one ? 0 : (run->size + 4095) / 4096 * 4096;
	struct vb_region *region = NULL;
	struct vb_error err;
	int64_t *tickets = calloc(depth + 1, sizeof(*tickets));
	double start;

	memset(memory, 1, stride * depth + run->size);
	if (!run->plain)
		must(vb_region_open(channel, memory, stride * depth + run->size, &region, &err),
		     &err);
	start = now();
	for (unsigned i = 0; i < run->count; i++) {
		unsigned k = i % (depth + 1);
		struct iovec piece = { memory + k * stride, run->size };

		if (run->plain) {
			must(vb_channel_send(channel, piece.iov_base, run->size, &err), &err);
			continue;
		}
		must(vb_channel_wait(channel, tickets[k], &err), &err);
		tickets[k] = vb_channel_post(channel, &piece, 1, &err);
		must(tickets[k] > 0 ? 0 : -1, &err);
	}
	must(vb_channel_finish(channel, &err), &err);
	start = now() - start;
	vb_region_close(region);
	must(vb_channel_close(channel, &err), &err);
	free(memory);
	free(tickets);
	return start;
}

static double ping_pong(struct run *run)
{
	struct vb_channel *channel = connect_there(run);
	char *buffer = calloc(1, run->size);
	const void *message;
	struct vb_error err;
	double start = 0;

	for (unsigned i = 0; i < run->count + 100; i++) {
		if (i == 100)
			start = now();
		must(vb_channel_send(channel, buffer, run->size, &err), &err);
		must((int)vb_channel_recv(channel, &message, &err), &err);
	}
	start = now() - start;
	must(vb_channel_close(channel, &err), &err);
	free(buffer);
	return start / run->count / 2;
}

static void set_up_and_down(struct run *run)
{
	double up = 0, down = 0, t;

	/* The first one also starts the libraries; it does not count. */
	for (unsigned i = 0; i < run->count; i++) {
		struct vb_channel *channel;
		struct vb_error err;

		if (i == 1)
			up = down = 0;
		t = now();
		channel = connect_there(run);
		up += now() - t;
		t = now();
		must(vb_channel_close(channel, &err), &err);
		down += now() - t;
	}
	printf("connect %.0f us, close %.0f us\n", up / (run->count - 1) * 1e6,
	       down / (run->count - 1) * 1e6);
}

static void measure(struct run *run)
{
	if (!strcmp(run->mode, "bw"))
		printf("%.1f\n", (double)run->size * run->count / one_way(run) / 1e6);
	else if (!strcmp(run->mode, "rate"))
		printf("%.0f\n", run->count / one_way(run));
	else if (!strcmp(run->mode, "lat"))
		printf("%.2f\n", ping_pong(run) * 1e6);
	else
		set_up_and_down(run);
}

static void set_option(struct run *run, const char *word)
{
	const char *value = strchr(word, '=');
	unsigned long n = value ? strtoul(value + 1, NULL, 10) : 0;

	if (!strncmp(word, "size=", 5))
		run->size = n;
	else if (!strncmp(word, "count=", 6))
		run->count = (unsigned)n;
	else if (!strncmp(word, "depth=", 6))
		run->options.depth = (uint32_t)n;
	else if (!strncmp(word, "spin=", 5))
		run->options.spin_us = n ? (uint32_t)n : VB_SPIN_NEVER;
	else if (!strcmp(word, "plain"))
		run->plain = 1;
	else if (!strcmp(word, "one"))
		run->one = 1;
}

int main(int argc, char **argv)
{
	struct run run = { .size = 64, .count = 1000 };
	int status;
	pid_t pid;

	if (argc < 4 || pipe(run.port_pipe) != 0)
		return 2;
	run.mode = argv[1];
	run.address = argv[2];
	run.options.fabric = strcmp(argv[3], "verbs") ? VB_FABRIC_OFI : VB_FABRIC_VERBS;
	for (int i = 4; i < argc; i++)
		set_option(&run, argv[i]);
	run.options.max_message_bytes = run.size > 65536 ? (uint32_t)run.size : 65536;
	pid = fork();
	if (pid == 0) {
		serve(&run);
		return 0;
	}
	measure(&run);
	waitpid(pid, &status, 0);
	return status ? 1 : 0;
}
