/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a server's clients cost while they are silent, and how fast they are
 * answered when they are not.
 *
 *	server_bench MODE ADDRESS FABRIC [clients=N] [count=N]
 *
 * MODE: server, or channels (as many accepted channels with the same limits,
 * for comparison). The clients are other processes. Prints, a word and a number
 * to a line: of each connection on the serving side "resident" and "pinned" KiB
 * and "descriptors"; and of a server "silent", the per cent of a CPU that all of
 * them take while they are silent, "echoes" a second while one client after the
 * other is talked to, and "resident_after" that.
 */
#include <dirent.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define PER_PROCESS 250u
#define SILENT_MS 4000

struct run {
	const char *mode, *address;
	unsigned clients, count;
	struct vb_options options;
	int port_pipe[2], go_pipe[2];
};

/* What the process has of it all. */
struct cost {
	double rss_kib, pinned_kib, fds;
};

static double status_kib(const char *what)
{
	FILE *file = fopen("/proc/self/status", "re");
	double kib = 0;
	char line[128];

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, what, strlen(what)))
			kib = strtod(line + strlen(what) + 1, NULL);
	fclose(file);
	return kib;
}

static double count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (dir && readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static struct cost cost_now(void)
{
	return (struct cost){ status_kib("VmRSS"), status_kib("VmPin"), count_fds() };
}

static void tell(int fd, int value)
{
	if (write(fd, &value, sizeof(value)) != sizeof(value))
		exit(1);
}

static int hear(int fd)
{
	int value;

	if (read(fd, &value, sizeof(value)) != sizeof(value))
		exit(0);
	return value;
}

/* ---- The clients ---- */

static void talk(struct vb_channel *channel)
{
	struct vb_error err;
	const void *message;

	must(vb_channel_send(channel, "ping", 4, &err), &err);
	must((int)vb_channel_recv(channel, &message, &err), &err);
}

/* Connects its part, is silent until it is told to talk, and stays until the server has gone. */
static void be_clients(struct run *run, const char *port, unsigned n)
{
	struct vb_channel **channels = calloc(n, sizeof(struct vb_channel *));
	struct vb_error err;

	for (unsigned i = 0; i < n; i++)
		must(vb_channel_connect(run->address, port, &run->options, &channels[i], &err),
		     &err);
	for (unsigned rounds = (unsigned)hear(run->go_pipe[0]); rounds; rounds--)
		for (unsigned i = 0; i < n; i++)
			talk(channels[i]);
	hear(run->go_pipe[0]); /* ends with the server */
}

static unsigned start_clients(struct run *run)
{
	unsigned processes = 0;
	char port[16];

	snprintf(port, sizeof(port), "%d", hear(run->port_pipe[0]));
	for (unsigned left = run->clients; left; processes++) {
		unsigned n = left < PER_PROCESS ? left : PER_PROCESS;

		if (fork() == 0) {
			close(run->go_pipe[1]);
			be_clients(run, port, n);
		}
		left -= n;
	}
	return processes;
}

/* ---- The serving side ---- */

static void print_cost(const struct run *run, const struct cost *before, const struct cost *after)
{
	double n = run->clients;

	printf("resident %.1f\npinned %.1f\ndescriptors %.1f\n",
	       (after->rss_kib - before->rss_kib) / n, (after->pinned_kib - before->pinned_kib) / n,
	       (after->fds - before->fds) / n);
	fflush(stdout);
}

static void serve_channels(struct run *run)
{
	struct vb_channel **channels = calloc(run->clients, sizeof(struct vb_channel *));
	struct vb_listener *listener;
	struct vb_error err;
	struct cost before, after;

	must(vb_listener_open(run->address, "0", &run->options, &listener, &err), &err);
	before = cost_now();
	tell(run->port_pipe[1], vb_listener_port(listener));
	for (unsigned i = 0; i < run->clients; i++)
		must(vb_listener_accept(listener, &channels[i], &err), &err);
	after = cost_now();
	print_cost(run, &before, &after);
	exit(0);
}

/* Serves until the time is over, or, without one, until so many messages have come. */
static void echo(struct vb_server *server, double seconds, unsigned messages)
{
	double until = now() + seconds;
	struct vb_server_event event;
	struct vb_error err;
	int rc;

	while (messages || now() < until) {
		rc = vb_server_wait(server, messages ? -1 : 100, &event, &err);
		if (rc == VB_ERR_AGAIN)
			continue;
		must(rc, &err);
		if (event.kind == VB_CLIENT_LEFT)
			must(event.why.code, &event.why);
		if (event.kind != VB_CLIENT_MESSAGE)
			continue;
		must(vb_channel_send(event.client, event.message, event.len, &err), &err);
		messages--;
	}
}

static void measure_server(struct run *run, struct vb_server *server, const struct cost *before)
{
	unsigned processes = (run->clients + PER_PROCESS - 1) / PER_PROCESS;
	struct cost after = cost_now();
	double cpu, start;

	print_cost(run, before, &after);
	cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
	echo(server, SILENT_MS / 1000.0, 0);
	cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	printf("silent %.1f\n", cpu / SILENT_MS * 1000 * 100);
	start = now();
	for (unsigned i = 0; i < processes; i++)
		tell(run->go_pipe[1], (int)run->count);
	echo(server, 0, run->clients * run->count);
	printf("echoes %.0f\n", run->clients * run->count / (now() - start));
	after = cost_now();
	printf("resident_after %.1f\n", (after.rss_kib - before->rss_kib) / run->clients);
	fflush(stdout);
}

static void serve(struct run *run)
{
	struct vb_server_options options = { .connection = run->options };
	struct vb_server_event event;
	struct vb_server *server;
	struct vb_error err;
	struct cost before;

	must(vb_server_open(run->address, "0", &options, &server, &err), &err);
	before = cost_now();
	tell(run->port_pipe[1], vb_server_port(server));
	while (vb_server_clients(server) < run->clients)
		must(vb_server_wait(server, -1, &event, &err), &err);
	measure_server(run, server, &before);
	exit(0);
}

static void warn(void *arg, enum vb_log_level level, const char *line)
{
	(void)arg, (void)level;
	fprintf(stderr, "server_bench: %s\n", line);
}

static void allow_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static void set_option(struct run *run, const char *word)
{
	const char *value = strchr(word, '=');
	unsigned n = value ? (unsigned)strtoul(value + 1, NULL, 10) : 0;

	if (!strncmp(word, "clients=", 8))
		run->clients = n;
	else if (!strncmp(word, "count=", 6))
		run->count = n;
}

int main(int argc, char **argv)
{
	struct run run = { .clients = 1000, .count = 20 };
	int status, failed = 0;
	pid_t server;

	if (argc < 4 || pipe(run.port_pipe) != 0 || pipe(run.go_pipe) != 0)
		return 2;
	run.mode = argv[1];
	run.address = argv[2];
	run.options.fabric = strcmp(argv[3], "verbs") ? VB_FABRIC_OFI : VB_FABRIC_VERBS;
	run.options.max_message_bytes = 4096;
	run.options.connect_timeout_ms = 60000;
	run.options.log = warn;
	for (int i = 4; i < argc; i++)
		set_option(&run, argv[i]);
	allow_descriptors();
	server = fork();
	if (server == 0) {
		if (strcmp(run.mode, "server") != 0)
			serve_channels(&run);
		serve(&run);
	}
	start_clients(&run);
	/* When the server is done its clients are of no more use. */
	waitpid(server, &status, 0);
	failed = status != 0;
	close(run.go_pipe[1]);
	while (wait(&status) > 0)
		;
	return failed;
}
