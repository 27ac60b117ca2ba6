/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures access to a peer's memory, between two processes on this machine.
 * One number as the result. Used by bench/measure, which puts it beside others.
 *
 *	access_bench put|get|add ADDRESS FABRIC [size=N] [count=N] [depth=N] [spin=US]
 *
 * put and get: MB/s. add: fetch-and-adds a second. `depth` are under way at once.
 */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define DEPTH_MAX 64u

struct run {
	enum vb_access_kind kind;
	const char *address;
	size_t size;
	unsigned count, depth;
	struct vb_options options;
	int port_pipe[2];
};

static unsigned right_for(enum vb_access_kind kind)
{
	return kind == VB_PUT ? VB_RIGHT_WRITE : kind == VB_GET ? VB_RIGHT_READ : VB_RIGHT_ATOMIC;
}

/* It only waits, and is not to take the CPU from who is measured. */
static void own(struct run *run)
{
	struct vb_options options = { .fabric = run->options.fabric };
	struct vb_listener *listener;
	struct vb_channel *channel;
	struct vb_region *region;
	struct vb_grant *grant;
	struct vb_error err;
	const void *message;
	int port;

	must(vb_listener_open(run->address, "0", &options, &listener, &err), &err);
	port = vb_listener_port(listener);
	if (write(run->port_pipe[1], &port, sizeof(port)) != sizeof(port))
		exit(1);
	must(vb_listener_accept(listener, &channel, &err), &err);
	must(vb_region_alloc(channel, run->size, &region, &err), &err);
	must(vb_grant(region, 0, run->size, right_for(run->kind), &grant, &err), &err);
	must(vb_channel_send(channel, vb_grant_token(grant), sizeof(struct vb_token), &err), &err);
	while (vb_channel_recv(channel, &message, &err) >= 0)
		;
	vb_region_close(region);
	vb_channel_close(channel, NULL);
	vb_listener_close(listener);
}

static struct vb_channel *connect_there(struct run *run, struct vb_token *token)
{
	struct vb_channel *channel;
	struct vb_error err;
	const void *message;
	char port[16];
	int number;

	if (read(run->port_pipe[0], &number, sizeof(number)) != sizeof(number))
		exit(1);
	snprintf(port, sizeof(port), "%d", number);
	must(vb_channel_connect(run->address, port, &run->options, &channel, &err), &err);
	must(vb_channel_recv(channel, &message, &err), &err);
	memcpy(token, message, sizeof(*token));
	return channel;
}

static double use(struct run *run)
{
	struct vb_token token;
	struct vb_channel *channel = connect_there(run, &token);
	int64_t handles[DEPTH_MAX] = { 0 };
	struct vb_region *region;
	struct vb_error err;
	struct iovec piece;
	struct vb_access access = {
		.kind = run->kind, .token = &token, .pieces = &piece, .count = 1, .operand = 1
	};
	double start;

	must(vb_region_alloc(channel, run->size, &region, &err), &err);
	piece = (struct iovec){ vb_region_addr(region), run->size };
	start = now();
	for (unsigned i = 0; i < run->count; i++) {
		int64_t *handle = &handles[i % run->depth];

		if (*handle)
			must(vb_access_wait(channel, *handle, &err), &err);
		*handle = vb_access_post(channel, &access, 1, &err);
		must(*handle, &err);
	}
	must(vb_access_wait(channel, handles[(run->count - 1) % run->depth], &err), &err);
	start = now() - start;
	vb_region_close(region);
	must(vb_channel_close(channel, &err), &err);
	return start;
}

static void set_option(struct run *run, const char *word)
{
	const char *value = strchr(word, '=');
	unsigned long n = value ? strtoul(value + 1, NULL, 10) : 0;

	if (!strncmp(word, "size=", 5))
		run->size = n;
	else if (!strncmp(word, "count=", 6))
		run->count = (unsigned)n;
	else if (!strncmp(word, "depth=", 6) && n >= 1 && n <= DEPTH_MAX)
		run->depth = (unsigned)n;
	else if (!strncmp(word, "spin=", 5))
		run->options.spin_us = n ? (uint32_t)n : VB_SPIN_NEVER;
}

int main(int argc, char **argv)
{
	struct run run = { .size = 65536, .count = 1000, .depth = 16 };
	double took;
	int status;
	pid_t pid;

	if (argc < 4 || pipe(run.port_pipe) != 0)
		return 2;
	run.kind = !strcmp(argv[1], "put")   ? VB_PUT
		   : !strcmp(argv[1], "get") ? VB_GET
					     : VB_FETCH_ADD;
	run.address = argv[2];
	run.options.fabric = strcmp(argv[3], "verbs") ? VB_FABRIC_OFI : VB_FABRIC_VERBS;
	for (int i = 4; i < argc; i++)
		set_option(&run, argv[i]);
	if (run.kind == VB_FETCH_ADD)
		run.size = 8;
	pid = fork();
	if (pid == 0) {
		run.options.spin_us = VB_SPIN_NEVER; /* it has nothing to do: that is the point */
		own(&run);
		return 0;
	}
	took = use(&run);
	printf("%.1f\n",
	       (run.kind == VB_FETCH_ADD ? 1 : (double)run.size / 1e6) * run.count / took);
	waitpid(pid, &status, 0);
	return status ? 1 : 0;
}
