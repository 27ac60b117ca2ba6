/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the channel between two processes on this machine. One line of
 * result: a name and a number. Used by bench/measure, which puts it beside others.
 *
 *	channel_bench MODE ADDRESS FABRIC [size=N] [count=N] [depth=N] [spin=US] [from=WHAT] [one]
 *
 * MODE: bw (MB/s one way), rate (messages/s one way), lat (µs one way, half a
 * round trip), connect and close (µs). WHAT: kept-region, sent-region, new-region, buffer, copy,
 * or plain, see `enum from`; `one` sends always the same buffer, as perftest does.
 */
#include <err.h>
#include <poll.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

enum from {
	KEPT_REGION, /* registered before */
	SENT_REGION, /* likewise, but each message is sent before the next one */
	NEW_REGION,  /* registered for each message */
	BUFFER,	     /* not registered, and free again before the next */
	COPY,
	PLAIN, /* as the library chooses */
};

struct run {
	const char *mode, *address;
	size_t size;
	unsigned count;
	enum from from;
	int one;
	struct vb_options options;
	int port_pipe[2];
};

static int visits(const struct run *run)
{
	return !strcmp(run->mode, "connect") || !strcmp(run->mode, "close");
}

static void serve(struct run *run)
{
	struct vb_listener *listener;
	struct vb_channel *channel;
	struct vb_error err;
	const void *message;
	int echo = !strcmp(run->mode, "lat"), port, rounds = visits(run) ? (int)run->count : 1;
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

/* Never from the buffer itself. */
static void send_copied(struct vb_channel *channel, const struct iovec *piece, struct vb_error *err)
{
	struct pollfd fd = { .fd = vb_channel_fd(channel, err), .events = POLLIN };
	int rc;

	must(fd.fd, err);
	while ((rc = vb_channel_try_send(channel, piece->iov_base, piece->iov_len, err)) ==
	       VB_ERR_AGAIN)
		poll(&fd, 1, -1);
	must(rc, err);
}

static void send_registered(struct vb_channel *channel, const struct iovec *piece,
			    struct vb_error *err)
{
	struct vb_region *region;

	must(vb_region_open(channel, piece->iov_base, piece->iov_len, &region, err), err);
	must(vb_channel_wait(channel, vb_channel_post(channel, piece, 1, err), err), err);
	vb_region_close(region);
}

static void send_one(struct run *run, struct vb_channel *channel, const struct iovec *piece,
		     int64_t *ticket, struct vb_error *err)
{
	switch (run->from) {
	case KEPT_REGION:
		must(vb_channel_wait(channel, *ticket, err), err);
		*ticket = vb_channel_post(channel, piece, 1, err);
		must(*ticket, err);
		break;
	case NEW_REGION:
		send_registered(channel, piece, err);
		break;
	case BUFFER:
		must(vb_channel_wait(channel, vb_channel_post(channel, piece, 1, err), err), err);
		break;
	case COPY:
		send_copied(channel, piece, err);
		break;
	case SENT_REGION:
	case PLAIN:
		must(vb_channel_send(channel, piece->iov_base, piece->iov_len, err), err);
	}
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
	if (run->from <= SENT_REGION)
		must(vb_region_open(channel, memory, stride * depth + run->size, &region, &err),
		     &err);
	start = now();
	for (unsigned i = 0; i < run->count; i++) {
		unsigned k = i % (depth + 1);
		struct iovec piece = { memory + k * stride, run->size };

		send_one(run, channel, &piece, &tickets[k], &err);
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

/* The first one also starts the libraries; it does not count. */
static double set_up_or_down(struct run *run, int down)
{
	double taken = 0, t;

	for (unsigned i = 0; i < run->count; i++) {
		struct vb_channel *channel;
		struct vb_error err;

		t = now();
		channel = connect_there(run);
		if (down)
			t = now();
		else
			taken += i ? now() - t : 0;
		must(vb_channel_close(channel, &err), &err);
		if (down)
			taken += i ? now() - t : 0;
	}
	return taken / (run->count - 1);
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
		printf("%.0f\n", set_up_or_down(run, !strcmp(run->mode, "close")) * 1e6);
}

static enum from from_named(const char *name)
{
	static const char *const names[] = { "kept-region", "sent-region", "new-region",
					     "buffer",	    "copy",	   "plain" };
	unsigned i = 0;

	while (strcmp(names[i], name) != 0)
		if (++i == sizeof(names) / sizeof(names[0]))
			errx(2, "from=%s?", name);
	return (enum from)i;
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
	else if (!strncmp(word, "from=", 5))
		run->from = from_named(value + 1);
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
	close(run.port_pipe[1]);
	measure(&run);
	waitpid(pid, &status, 0);
	return status ? 1 : 0;
}
