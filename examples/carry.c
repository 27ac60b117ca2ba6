/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carry: moves one file from one process to another through a channel.
 *
 *	carry [--progress] --receive [HOST]:PORT FILE
 *	carry [--progress] --send HOST:PORT FILE
 *
 * The messages: the file's size (8 bytes, little-endian), its blocks, its
 * XXH3-128 (16 bytes). The receiver answers with one message, empty when the
 * file is verified and in its place, else what went wrong: both exit codes
 * come from it. An empty message instead of a block or the hash says that the
 * sender gives up, and the next one says why.
 *
 * The receiver writes to FILE.carry-XXXXXX and renames it at the very end.
 * Only kill -9 can leave that file behind.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <verbatim/verbatim.h>
#include <xxhash.h>

#define BLOCK (256u << 10)
#define BUFFERS 8u

static const struct vb_options options = { .max_message_bytes = BLOCK, .depth = BUFFERS };

/* Removed by whatever ends this process, apart from kill -9. */
static char temporary[PATH_MAX];

struct transfer {
	struct vb_channel *channel;
	const char *path;
	int fd;
	uint64_t size, done;
	XXH3_state_t *hash;
	double began, shown;
	bool progress, terminal;
	char why[VB_ERROR_LINE_MAX]; /* it failed; empty: all well so far */
};

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* ---- The end from outside ---- */

static void on_signal(int signal_number)
{
	if (temporary[0])
		unlink(temporary);
	raise(signal_number); /* with its default action, once this handler has returned */
}

/* On both sides: libraries below us may have handlers of their own, which end with exit(1). */
static void catch_signals(void)
{
	const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND };

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &action, NULL);
}

/* ---- What went wrong: the first cause stays; all of these return false ---- */

static bool fail(struct transfer *t, const char *who, const char *what)
{
	if (!t->why[0])
		snprintf(t->why, sizeof(t->why), "%.128s%.800s", who, what);
	return false;
}

static bool fail_errno(struct transfer *t, const char *operation)
{
	char text[400];

	snprintf(text, sizeof(text), "%s %.300s: %s", operation, t->path, strerror(errno));
	return fail(t, "", text);
}

static bool fail_vb(struct transfer *t, const struct vb_error *err)
{
	char line[VB_ERROR_LINE_MAX];

	return fail(t, "", vb_error_format(err, line, sizeof(line)));
}

/* The peer's words, which may hold anything. */
static bool fail_peer(struct transfer *t, const char *who, const void *text, size_t len)
{
	char clean[500];
	size_t n = len < sizeof(clean) - 1 ? len : sizeof(clean) - 1;

	for (size_t i = 0; i < n; i++) {
		unsigned char c = ((const unsigned char *)text)[i];

		clean[i] = (char)(c < ' ' || c > '~' ? '?' : c);
	}
	clean[n] = '\0';
	return fail(t, who, clean);
}

/* ---- What the user sees ---- */

static const char *in_words(char *to, size_t size, double amount, double base,
			    const char *const *units)
{
	while (amount >= base && units[1]) {
		amount /= base;
		units++;
	}
	snprintf(to, size, "%.2f %s", amount, *units);
	return to;
}

static const char *in_bytes(char to[32], uint64_t bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", NULL };

	return in_words(to, 32, (double)bytes, 1024, units);
}

static const char *rate(char to[32], const struct transfer *t)
{
	static const char *const units[] = { "B/s", "kB/s", "MB/s", "GB/s", NULL };
	double seconds = now() - t->began;

	return in_words(to, 32, (double)t->done / (seconds > 0 ? seconds : 1e-9), 1000, units);
}

/* On a terminal one line that changes, elsewhere a line for every quarter. */
static void show_progress(struct transfer *t, size_t len)
{
	char so_far[32], all[32], speed[32];
	uint64_t before = t->done;

	t->done += len;
	if (!t->progress || !t->size)
		return;
	if (t->terminal ? now() < t->shown + 0.1 : before * 4 / t->size == t->done * 4 / t->size)
		return;
	t->shown = now();
	fprintf(stderr, "%scarry: %3.0f %%  %s of %s, %s%s", t->terminal ? "\r" : "",
		100.0 * (double)t->done / (double)t->size, in_bytes(so_far, t->done),
		in_bytes(all, t->size), rate(speed, t), t->terminal ? "\033[K" : "\n");
}

static int report(const struct transfer *t, const XXH128_canonical_t *sum)
{
	char bytes[32], speed[32];

	if (t->terminal && t->shown > 0)
		fprintf(stderr, "\r\033[K");
	if (t->why[0]) {
		fprintf(stderr, "carry: %s\n", t->why);
		return 1;
	}
	printf("moved %s in %.2f s, %s, xxh3 ", in_bytes(bytes, t->size), now() - t->began,
	       rate(speed, t));
	for (size_t i = 0; i < sizeof(sum->digest); i++)
		printf("%02x", sum->digest[i]);
	printf(", verified\n");
	return 0;
}

/* ---- Sending ---- */

static bool send_message(struct transfer *t, const void *message, size_t len)
{
	struct vb_error err;

	return vb_channel_send(t->channel, message, len, &err) == 0 || fail_vb(t, &err);
}

static bool read_block(struct transfer *t, uint8_t *to, size_t len)
{
	while (len) {
		ssize_t n = read(t->fd, to, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail_errno(t, "read");
		if (n == 0)
			return fail(t, "read: the file became shorter: ", t->path);
		to += n;
		len -= (size_t)n;
	}
	return true;
}

/* The next block is read while earlier ones are under way, straight from these buffers. */
static bool send_blocks(struct transfer *t, uint8_t *buffers, size_t block)
{
	int64_t tickets[BUFFERS] = { 0 };
	struct vb_error err;

	for (unsigned i = 0; t->done < t->size; i = (i + 1) % BUFFERS) {
		struct iovec piece = { .iov_base = buffers + i * block, .iov_len = block };

		if (piece.iov_len > t->size - t->done)
			piece.iov_len = (size_t)(t->size - t->done);
		if (tickets[i] && vb_channel_wait(t->channel, tickets[i], &err) != 0)
			return fail_vb(t, &err);
		if (!read_block(t, piece.iov_base, piece.iov_len))
			return false;
		XXH3_128bits_update(t->hash, piece.iov_base, piece.iov_len);
		tickets[i] = vb_channel_post(t->channel, &piece, 1, &err);
		if (tickets[i] < 0)
			return fail_vb(t, &err);
		show_progress(t, piece.iov_len);
	}
	return true;
}

/* False: the sender's own trouble, of which the receiver has been told; no verdict will come. */
static bool send_file(struct transfer *t, XXH128_canonical_t *sum)
{
	size_t block = vb_channel_max_message(t->channel) < BLOCK
			       ? vb_channel_max_message(t->channel)
			       : BLOCK;
	uint8_t *buffers = aligned_alloc(4096, (size_t)BUFFERS * BLOCK);
	uint64_t size = htole64(t->size);
	struct vb_region *region = NULL;
	struct vb_error err;
	bool ok;

	ok = buffers || fail_errno(t, "make room for");
	ok = ok && (vb_region_open(t->channel, buffers, BUFFERS * block, &region, &err) == 0 ||
		    fail_vb(t, &err));
	ok = ok && send_message(t, &size, sizeof(size)) && send_blocks(t, buffers, block);
	vb_region_close(region); /* waits until the buffers are ours again */
	free(buffers);
	XXH128_canonicalFromHash(sum, XXH3_128bits_digest(t->hash));
	ok = ok && send_message(t, sum, sizeof(*sum));
	if (ok || vb_channel_send(t->channel, "", 0, NULL) != 0)
		return true;
	vb_channel_send(t->channel, t->why, strlen(t->why), NULL);
	return false;
}

/* What the receiver says counts, also when sending failed: it may have given up and said why. */
static void hear_verdict(struct transfer *t)
{
	struct vb_error err;
	const void *message;
	ssize_t len = vb_channel_recv(t->channel, &message, &err);

	if (len > 0) {
		t->why[0] = '\0';
		fail_peer(t, "the receiver says: ", message, (size_t)len);
	} else if (len < 0) {
		fail_vb(t, &err);
	}
}

static int send_side(struct transfer *t, const char *host, const char *port)
{
	XXH128_canonical_t sum = { .digest = { 0 } };
	struct vb_error err;
	struct stat st;

	t->fd = open(t->path, O_RDONLY | O_CLOEXEC);
	if (t->fd < 0 || fstat(t->fd, &st) != 0) {
		fail_errno(t, "open");
	} else if (!S_ISREG(st.st_mode)) {
		fail(t, "not a regular file: ", t->path);
	} else if (vb_channel_connect(host, port, &options, &t->channel, &err) != 0) {
		fail_vb(t, &err);
	} else {
		fprintf(stderr, "carry: %s\n", vb_channel_description(t->channel));
		t->size = (uint64_t)st.st_size;
		t->began = now();
		if (send_file(t, &sum))
			hear_verdict(t);
	}
	vb_channel_close(t->channel, NULL); /* the verdict has said it all */
	return report(t, &sum);
}

/* ---- Receiving ---- */

static bool open_temporary(struct transfer *t)
{
	mode_t mask = umask(0);
	struct stat st;

	umask(mask);
	if (stat(t->path, &st) == 0 && S_ISDIR(st.st_mode))
		return fail(t, "it is a directory: ", t->path);
	if (strlen(t->path) > sizeof(temporary) - sizeof(".carry-XXXXXX"))
		return fail(t, "the name is too long: ", t->path);
	snprintf(temporary, sizeof(temporary), "%s.carry-XXXXXX", t->path);
	t->fd = mkostemp(temporary, O_CLOEXEC);
	if (t->fd < 0) {
		temporary[0] = '\0';
		return fail_errno(t, "create a file beside");
	}
	return fchmod(t->fd, 0666 & ~mask) == 0 || fail_errno(t, "set the mode of");
}

/* The length of the next message, or -1: the channel failed, or the sender gave up. */
static ssize_t next_message(struct transfer *t, const void **message)
{
	struct vb_error err;
	ssize_t len = vb_channel_recv(t->channel, message, &err);

	if (len > 0)
		return len;
	if (len == 0)
		len = vb_channel_recv(t->channel, message, &err);
	if (len < 0)
		fail_vb(t, &err);
	else
		fail_peer(t, "the sender says: ", *message, (size_t)len);
	return -1;
}

static bool write_block(struct transfer *t, const uint8_t *from, size_t len)
{
	while (len) {
		ssize_t n = write(t->fd, from, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail_errno(t, "write");
		from += n;
		len -= (size_t)n;
	}
	return true;
}

static bool receive_file(struct transfer *t, XXH128_canonical_t *sum)
{
	const void *message;
	ssize_t len = next_message(t, &message);
	uint64_t size;

	if (len != sizeof(size))
		return fail(t, "the sender does not speak our language", "");
	memcpy(&size, message, sizeof(size));
	t->size = le64toh(size);
	t->began = now();
	while (t->done < t->size) {
		len = next_message(t, &message);
		if (len < 0)
			return false;
		if ((uint64_t)len > t->size - t->done)
			return fail(t, "the sender sent more than it announced", "");
		XXH3_128bits_update(t->hash, message, (size_t)len);
		if (!write_block(t, message, (size_t)len))
			return false;
		show_progress(t, (size_t)len);
	}
	len = next_message(t, &message);
	XXH128_canonicalFromHash(sum, XXH3_128bits_digest(t->hash));
	if (len != sizeof(*sum) || memcmp(message, sum, sizeof(*sum)) != 0)
		return fail(t, "the hash differs from the sender's: ", t->path);
	return true;
}

/* Only when everything is well does the file get its name, and only then is that said. */
static void settle(struct transfer *t)
{
	if (close(t->fd) != 0)
		fail_errno(t, "close");
	if (!t->why[0] && rename(temporary, t->path) != 0)
		fail_errno(t, "rename to");
	if (t->why[0])
		unlink(temporary);
	temporary[0] = '\0';
	vb_channel_send(t->channel, t->why, strlen(t->why), NULL);
	vb_channel_close(t->channel, NULL);
}

static bool wait_for_sender(struct transfer *t, const char *host, const char *port)
{
	struct vb_listener *listener = NULL;
	struct vb_error err;
	bool ok = vb_listener_open(*host ? host : NULL, port, &options, &listener, &err) == 0;

	if (ok) {
		fprintf(stderr, "carry: listening on port %d, %s\n", vb_listener_port(listener),
			vb_listener_description(listener));
		ok = vb_listener_accept(listener, &t->channel, &err) == 0;
	}
	vb_listener_close(listener);
	return ok || fail_vb(t, &err);
}

static int receive_side(struct transfer *t, const char *host, const char *port)
{
	XXH128_canonical_t sum = { .digest = { 0 } };

	if (open_temporary(t) && wait_for_sender(t, host, port)) {
		receive_file(t, &sum);
		settle(t);
	} else if (temporary[0]) {
		unlink(temporary);
	}
	return report(t, &sum);
}

/* Splits "HOST:PORT" or "[V6]:PORT" in place. */
static const char *split(char *address, const char **host)
{
	char *colon = strrchr(address, ':');

	if (!colon)
		return NULL;
	*colon = '\0';
	*host = address;
	if (*address == '[' && colon[-1] == ']') {
		colon[-1] = '\0';
		*host = address + 1;
	}
	return colon + 1;
}

int main(int argc, char **argv)
{
	bool asked = argc > 1 && !strcmp(argv[1], "--progress"), terminal = isatty(STDERR_FILENO);
	char **args = argv + (asked ? 2 : 1);
	const char *host = "", *port = argc - (args - argv) == 3 ? split(args[1], &host) : NULL;
	struct transfer t = { .fd = -1, .progress = asked || terminal, .terminal = terminal };
	int status = 2;

	catch_signals();
	t.path = port ? args[2] : NULL;
	t.hash = XXH3_createState();
	if (t.hash)
		XXH3_128bits_reset(t.hash);
	if (t.hash && port && !strcmp(args[0], "--receive"))
		status = receive_side(&t, host, port);
	else if (t.hash && port && !strcmp(args[0], "--send"))
		status = send_side(&t, *host ? host : "localhost", port);
	else
		fprintf(stderr, "usage: carry [--progress] --receive [HOST]:PORT FILE | "
				"--send HOST:PORT FILE\n");
	XXH3_freeState(t.hash);
	return status;
}
