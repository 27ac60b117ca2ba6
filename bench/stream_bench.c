/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures a stream, or a plain TCP connection, between two processes on this
 * machine. One number as the result. Used by bench/measure, which puts it beside others.
 *
 *	stream_bench MODE ADDRESS ofi|verbs|tcp [size=N] [count=N] [direct=N] [block=N] [depth=N] [keep]
 *
 * MODE: bw (MB/s one way, from memory to memory), rate (writes/s one way), lat (µs one
 * way, half a round trip). `direct` is direct_bytes, 1 for never; `keep` keeps the memory registered.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

struct run {
	const char *mode, *address;
	bool tcp, keep;
	size_t size;
	unsigned count;
	struct vb_stream_options options;
	int port_pipe[2];
};

/* One of the two. */
struct end {
	struct vb_stream *stream;
	int socket;
};

static void must_do(bool done, const char *what)
{
	if (done)
		return;
	perror(what);
	exit(1);
}

/* ---- Either ---- */

static void put(const struct end *end, const char *data, size_t len)
{
	struct vb_error err;
	ssize_t n;

	if (end->stream) {
		must(vb_stream_write(end->stream, data, len, &err), &err);
		return;
	}
	for (; len; data += n, len -= (size_t)n)
		must_do((n = write(end->socket, data, len)) > 0, "write");
}

/* False at the end. */
static bool get(const struct end *end, char *data, size_t len)
{
	struct vb_error err;
	ssize_t n;

	if (end->stream) {
		n = vb_stream_read(end->stream, data, len, &err);
		must(n, &err);
		return n == (ssize_t)len;
	}
	n = recv(end->socket, data, len, MSG_WAITALL);
	must_do(n >= 0, "recv");
	return n == (ssize_t)len;
}

static void end_well(const struct end *end)
{
	struct vb_error err;

	if (end->stream)
		must(vb_stream_close(end->stream, &err), &err);
	else
		close(end->socket);
}

static void keep(const struct run *run, const struct end *end, char *data)
{
	struct vb_error err;

	if (run->keep && end->stream)
		must(vb_stream_keep(end->stream, data, run->size, &err), &err);
}

/* ---- Connecting ---- */

static void tell_port(const struct run *run, int port)
{
	must_do(write(run->port_pipe[1], &port, sizeof(port)) == sizeof(port), "write");
}

static int learn_port(const struct run *run)
{
	int port;

	must_do(read(run->port_pipe[0], &port, sizeof(port)) == sizeof(port), "read");
	return port;
}

static struct sockaddr_in address_of(const struct run *run, int port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };

	inet_pton(AF_INET, run->address, &at.sin_addr);
	return at;
}

static int without_delay(int fd)
{
	int one = 1;

	must_do(fd >= 0, "socket");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

static struct end accept_socket(const struct run *run)
{
	struct sockaddr_in at = address_of(run, 0);
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM, 0), peer;

	must_do(bind(fd, (struct sockaddr *)&at, len) == 0 && listen(fd, 1) == 0, "listen");
	getsockname(fd, (struct sockaddr *)&at, &len);
	tell_port(run, ntohs(at.sin_port));
	peer = without_delay(accept(fd, NULL, NULL));
	close(fd);
	return (struct end){ .socket = peer };
}

static struct end connect_socket(const struct run *run)
{
	struct sockaddr_in at = address_of(run, learn_port(run));
	int fd = without_delay(socket(AF_INET, SOCK_STREAM, 0));

	must_do(connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0, "connect");
	return (struct end){ .socket = fd };
}

static struct end accept_stream(const struct run *run)
{
	struct vb_stream_server *server;
	struct vb_error err;
	struct end end = { .socket = -1 };

	must(vb_stream_serve(run->address, "0", &run->options, &server, &err), &err);
	tell_port(run, vb_stream_server_port(server));
	must(vb_stream_accept(server, &end.stream, &err), &err);
	vb_stream_server_close(server);
	return end;
}

static struct end connect_stream(const struct run *run)
{
	struct vb_error err;
	struct end end = { .socket = -1 };
	char port[16];

	snprintf(port, sizeof(port), "%d", learn_port(run));
	must(vb_stream_connect(run->address, port, &run->options, &end.stream, &err), &err);
	return end;
}

/* ---- Measuring ---- */

/* A writer that has read before has a thread more, over libfabric; most have. */
static void greet(const struct end *end)
{
	put(end, "!", 1);
	if (end->stream)
		must(vb_stream_flush(end->stream, NULL), NULL);
}

static void hear_greeting(const struct end *end)
{
	char byte;

	must_do(get(end, &byte, 1), "greeting");
}

/* The reader's memory for each read: of one write, but not less than a reader would use. */
static size_t read_size(const struct run *run)
{
	return strcmp(run->mode, "rate") ? run->size : run->size * 1024;
}

static void serve(const struct run *run)
{
	struct end end = run->tcp ? accept_socket(run) : accept_stream(run);
	bool echo = !strcmp(run->mode, "lat");
	size_t size = read_size(run);
	char *data = aligned_alloc(4096, (size + 4095) / 4096 * 4096);

	memset(data, 1, size);
	keep(run, &end, data);
	greet(&end);
	while (get(&end, data, size))
		if (echo)
			put(&end, data, size);
	if (run->tcp && !echo)
		put(&end, "!", 1); /* what a sync says of a stream */
	end_well(&end);
	free(data);
}

/* Ends when the other side has read all. */
static double one_way(const struct run *run, const struct end *end, char *data)
{
	double start = now();
	char byte;

	for (unsigned i = 0; i < run->count; i++)
		put(end, data, run->size);
	if (end->stream)
		must(vb_stream_sync(end->stream, NULL), NULL);
	else
		shutdown(end->socket, SHUT_WR), get(end, &byte, 1);
	return now() - start;
}

static double ping_pong(const struct run *run, const struct end *end, char *data)
{
	double start = 0;

	for (unsigned i = 0; i < run->count + 100; i++) {
		if (i == 100)
			start = now();
		put(end, data, run->size);
		get(end, data, run->size);
	}
	return now() - start;
}

static void measure(const struct run *run)
{
	struct end end = run->tcp ? connect_socket(run) : connect_stream(run);
	char *data = aligned_alloc(4096, (run->size + 4095) / 4096 * 4096);

	memset(data, 1, run->size);
	keep(run, &end, data);
	hear_greeting(&end);
	if (!strcmp(run->mode, "bw"))
		printf("%.1f\n", (double)run->size * run->count / one_way(run, &end, data) / 1e6);
	else if (!strcmp(run->mode, "rate"))
		printf("%.0f\n", run->count / one_way(run, &end, data));
	else
		printf("%.2f\n", ping_pong(run, &end, data) / run->count / 2 * 1e6);
	if (getenv("VB_BENCH_COUNTERS") && end.stream) {
		struct vb_stream_counters c;

		vb_stream_counters(end.stream, &c);
		fprintf(stderr, "%llu messages, %llu bytes without a copy\n",
			(unsigned long long)c.messages_sent, (unsigned long long)c.direct_written);
	}
	end_well(&end);
	free(data);
}

static void set_option(struct run *run, const char *word)
{
	const char *value = strchr(word, '=');
	unsigned long n = value ? strtoul(value + 1, NULL, 10) : 0;

	if (!strncmp(word, "size=", 5))
		run->size = n;
	else if (!strncmp(word, "count=", 6))
		run->count = (unsigned)n;
	else if (!strncmp(word, "direct=", 7))
		run->options.direct_bytes = n == 1 ? UINT64_MAX : n;
	else if (!strncmp(word, "block=", 6))
		run->options.connection.max_message_bytes = (uint32_t)n + 24;
	else if (!strncmp(word, "depth=", 6))
		run->options.connection.depth = (uint32_t)n;
	else if (!strcmp(word, "keep"))
		run->keep = true;
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
	run.tcp = !strcmp(argv[3], "tcp");
	run.options.connection.fabric = strcmp(argv[3], "verbs") ? VB_FABRIC_OFI : VB_FABRIC_VERBS;
	for (int i = 4; i < argc; i++)
		set_option(&run, argv[i]);
	pid = fork();
	if (pid == 0) {
		serve(&run);
		return 0;
	}
	measure(&run);
	waitpid(pid, &status, 0);
	return status ? 1 : 0;
}
