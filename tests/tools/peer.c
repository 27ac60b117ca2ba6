/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One end of a channel for tests between hosts, by the public API only: sends
 * and receives messages whose contents both ends can foretell, and tells how
 * each channel ended. Whoever starts two of these decides what happens to them.
 *
 *	peer [OPTION...] listen [HOST]:PORT
 *	peer [OPTION...] connect HOST:PORT
 *
 *	--send N           send N messages, then receive until the end (0: only receive)
 *	--duplex           receive while sending
 *	--pause MS         before that, as a program that has other things to do
 *	--log              print warnings
 *	--size BYTES       of the largest message (1000)
 *	--peer-timeout MS, --connect-timeout MS
 *	--channels N       listen: accept so many, one after another (1)
 *
 * Prints for each channel a line `channel FABRIC DEVICE` when it is there, one
 * `flowing` at the first message sent or received, and at last
 * `end NAME sent N received N quiet_ms N`, NAME being VB_OK or the error's,
 * quiet_ms the time since the last message. Exits with 0 if all ended well, 3
 * if a peer was lost, else 1.
 */
#include <getopt.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <verbatim/verbatim.h>

#define SHIFTS 4096u

struct plan {
	uint64_t send;
	uint32_t size;
	bool duplex;
	uint32_t pause_ms;
	int channels;
	struct vb_options options;
	uint8_t *pattern; /* size + SHIFTS bytes */
};

struct run {
	const struct plan *plan;
	struct vb_channel *channel;
	uint64_t sent, received;
	_Atomic uint64_t heard_ms; /* when the last message was sent or received */
	struct vb_error send_error, recv_error;
};

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static uint64_t mix(uint64_t x)
{
	x = (x + 1) * 0x9e3779b97f4a7c15u;
	x ^= x >> 29;
	x *= 0xbf58476d1ce4e5b9u;
	return x ^ x >> 32;
}

/* ---- The messages: number i is some piece of the pattern ---- */

static bool make_pattern(struct plan *plan)
{
	plan->pattern = malloc((size_t)plan->size + SHIFTS);
	for (size_t i = 0; plan->pattern && i < (size_t)plan->size + SHIFTS; i++)
		plan->pattern[i] = (uint8_t)mix(i);
	return plan->pattern;
}

static const uint8_t *message_at(const struct plan *plan, uint64_t i, size_t *len)
{
	*len = (size_t)(mix(i) % ((uint64_t)plan->size + 1));
	return plan->pattern + mix(~i) % SHIFTS;
}

static void note_message(struct run *run)
{
	if (run->heard_ms == 0)
		puts("flowing");
	run->heard_ms = now_ms();
}

/* ---- Sending, receiving ---- */

static void *send_all(void *arg)
{
	struct run *run = arg;
	int rc = 0;

	while (rc == 0 && run->sent < run->plan->send) {
		size_t len;
		const uint8_t *message = message_at(run->plan, run->sent, &len);

		rc = vb_channel_send(run->channel, message, len, &run->send_error);
		if (rc == 0) {
			run->sent++;
			note_message(run);
		}
	}
	if (rc == 0 && run->plan->send)
		vb_channel_finish(run->channel, &run->send_error);
	return NULL;
}

static void receive_all(struct run *run)
{
	const void *got;
	ssize_t n;

	while ((n = vb_channel_recv(run->channel, &got, &run->recv_error)) >= 0) {
		size_t len;
		const uint8_t *want = message_at(run->plan, run->received, &len);

		if ((size_t)n != len || memcmp(got, want, len) != 0) {
			printf("message %llu is not what was sent\n",
			       (unsigned long long)run->received);
			exit(1);
		}
		run->received++;
		note_message(run);
	}
	if (run->recv_error.code == VB_ERR_EOF)
		run->recv_error.code = VB_OK;
}

static void exchange(struct run *run)
{
	struct timespec pause = { .tv_sec = run->plan->pause_ms / 1000,
				  .tv_nsec = (long)(run->plan->pause_ms % 1000) * 1000000 };
	pthread_t sender;

	nanosleep(&pause, NULL);
	if (!run->plan->duplex) {
		send_all(run);
		if (run->send_error.code == VB_OK)
			receive_all(run);
	} else if (pthread_create(&sender, NULL, send_all, run) == 0) {
		receive_all(run);
		pthread_join(sender, NULL);
	}
}

static int status_of(const struct vb_error *err)
{
	if (err->code == VB_OK)
		return 0;
	return err->code == VB_ERR_LOST ? 3 : 1;
}

static int complain(const struct vb_error *err)
{
	char line[VB_ERROR_LINE_MAX];

	fprintf(stderr, "peer: %s\n", vb_error_format(err, line, sizeof(line)));
	return status_of(err);
}

/* Takes the channel over. */
static int use(const struct plan *plan, struct vb_channel *channel)
{
	struct run run = { .plan = plan, .channel = channel };
	uint64_t began = now_ms(), heard, ended;
	struct vb_error err;

	printf("channel %s %s\n", vb_channel_fabric(channel), vb_channel_device(channel));
	fprintf(stderr, "peer: %s\n", vb_channel_description(channel));
	exchange(&run);
	ended = now_ms();
	heard = run.heard_ms ? run.heard_ms : began;
	err = run.send_error.code != VB_OK ? run.send_error : run.recv_error;
	if (err.code == VB_OK)
		vb_channel_close(channel, &err);
	else
		vb_channel_abort(channel);
	printf("end %s sent %llu received %llu quiet_ms %llu\n", vb_err_name(err.code),
	       (unsigned long long)run.sent, (unsigned long long)run.received,
	       (unsigned long long)(ended - heard));
	return err.code == VB_OK ? 0 : complain(&err);
}

/* ---- Who calls whom ---- */

static int run_listener(const struct plan *plan, const char *host, const char *port)
{
	struct vb_listener *listener;
	struct vb_channel *channel;
	struct vb_error err;
	int status = 0;

	if (vb_listener_open(*host ? host : NULL, port, &plan->options, &listener, &err) != 0)
		return complain(&err);
	fprintf(stderr, "peer: listening on port %d, %s\n", vb_listener_port(listener),
		vb_listener_description(listener));
	for (int i = 0; i < plan->channels && status == 0; i++) {
		if (vb_listener_accept(listener, &channel, &err) != 0)
			status = complain(&err);
		else
			status = use(plan, channel);
	}
	vb_listener_close(listener);
	return status;
}

static int run_client(const struct plan *plan, const char *host, const char *port)
{
	struct vb_channel *channel;
	struct vb_error err;

	if (vb_channel_connect(host, port, &plan->options, &channel, &err) != 0)
		return complain(&err);
	return use(plan, channel);
}

static void print_log(void *arg, enum vb_log_level level, const char *line)
{
	(void)arg, (void)level;
	fprintf(stderr, "log: %s\n", line);
}

static bool read_options(int argc, char **argv, struct plan *plan)
{
	static const struct option known[] = {
		{ "send", required_argument, NULL, 's' },
		{ "duplex", no_argument, NULL, 'd' },
		{ "pause", required_argument, NULL, 'p' },
		{ "size", required_argument, NULL, 'b' },
		{ "peer-timeout", required_argument, NULL, 't' },
		{ "connect-timeout", required_argument, NULL, 'o' },
		{ "channels", required_argument, NULL, 'c' },
		{ "log", no_argument, NULL, 'l' },
		{ 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		if (option == 's')
			plan->send = strtoull(optarg, NULL, 10);
		else if (option == 'd')
			plan->duplex = true;
		else if (option == 'p')
			plan->pause_ms = (uint32_t)strtoul(optarg, NULL, 10);
		else if (option == 'b')
			plan->size = (uint32_t)strtoul(optarg, NULL, 10);
		else if (option == 't')
			plan->options.peer_timeout_ms = (uint32_t)strtoul(optarg, NULL, 10);
		else if (option == 'o')
			plan->options.connect_timeout_ms = (uint32_t)strtoul(optarg, NULL, 10);
		else if (option == 'c')
			plan->channels = atoi(optarg);
		else if (option == 'l')
			plan->options.log = print_log;
		else
			return false;
	}
	plan->options.max_message_bytes = plan->size;
	return argc - optind == 2 && strrchr(argv[optind + 1], ':') && plan->size;
}

int main(int argc, char **argv)
{
	struct plan plan = { .size = 1000, .channels = 1 };
	char *host, *colon;
	int status = 1;

	if (!read_options(argc, argv, &plan)) {
		fprintf(stderr, "usage: peer [--send N] [--duplex] [--pause MS] [--size BYTES] "
				"[--peer-timeout MS] [--connect-timeout MS] [--channels N] [--log] "
				"listen|connect HOST:PORT\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	host = argv[optind + 1];
	colon = strrchr(host, ':');
	*colon = '\0';
	if (!make_pattern(&plan))
		return 1;
	if (strcmp(argv[optind], "listen") == 0)
		status = run_listener(&plan, host, colon + 1);
	else
		status = run_client(&plan, host, colon + 1);
	free(plan.pattern);
	return status;
}
