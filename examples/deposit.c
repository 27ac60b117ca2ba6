/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deposit: a file is written straight into the receiver's memory, and a secret is handed out for it. It is in SECRETS, a file of
 * lines "ID SECRET".
 *
 *	sender                          receiver
 *	O  length and SHA-256      ->
 *	                           <-   T  a token of memory that was granted for just this
 *	   writes into that memory
 *	D  done                    ->      revokes, and compares the hash
 *	                           <-   G  good
 *	I  its ID                  ->      stores FILE
 *	                           <-   S  the secret
 *
 * In place of each answer there may be an N, no, and why: then the receiver hangs up. It serves one sender after another until
 * one has got its secret. Exit code 3: the receiver said no.
 */
#include <fcntl.h>
#include <openssl/evp.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "example.h"

#define LARGEST (256u << 20)
#define PATIENCE 5.0 /* seconds: anybody may call a receiver, and be silent */
#define TEXT_MAX 256

struct message {
	char kind;
	union {
		struct {
			uint64_t len;
			uint8_t sha256[32];
		} offer;
		struct vb_token token;
		char text[TEXT_MAX];
	};
};

static void hash(const void *data, size_t len, uint8_t sha256[32])
{
	if (EVP_Digest(data, len, sha256, NULL, EVP_sha256(), NULL) != 1)
		errx(1, "there is no SHA-256");
}

/* Waits until the channel may have got further; false when the time is over. */
static bool wait_until(double deadline, struct vb_channel *channel)
{
	struct pollfd ready = { .fd = vb_channel_fd(channel, NULL), .events = POLLIN };
	double left = deadline - now();

	return left > 0 && poll(&ready, 1, (int)(left * 1e3) + 1) != 0;
}

static const char *why_not(ssize_t returned, const struct vb_error *error)
{
	static char line[VB_ERROR_LINE_MAX];

	if (returned == VB_ERR_AGAIN)
		return "that takes too long";
	return returned < 0 ? vb_error_format(error, line, sizeof(line)) : NULL;
}

/* Both of them: NULL, or why it went wrong. */
static const char *say(struct vb_channel *channel, char kind, struct message *message)
{
	double deadline = now() + PATIENCE;
	struct vb_error error;
	int rc;

	message->kind = kind;
	do
		rc = vb_channel_try_send(channel, message, sizeof(*message), &error);
	while (rc == VB_ERR_AGAIN && wait_until(deadline, channel));
	return why_not(rc, &error);
}

static const char *hear(struct vb_channel *channel, char kind, double patience,
			struct message *message)
{
	double deadline = now() + patience;
	struct vb_error error;
	const void *bytes;
	ssize_t len;

	do
		len = vb_channel_try_recv(channel, &bytes, &error);
	while (len == VB_ERR_AGAIN && wait_until(deadline, channel));
	if (len < 0)
		return why_not(len, &error);
	if (len == sizeof(*message))
		memcpy(message, bytes, sizeof(*message));
	message->text[TEXT_MAX - 1] = '\0';
	if (len != sizeof(*message) || message->kind != kind)
		return "that is not what comes next";
	return NULL;
}

/* ---- The sender ---- */

/* The answer takes the place of the message. */
static void ask(struct vb_channel *channel, char kind, char answer, struct message *message)
{
	const char *why = say(channel, kind, message);

	if (why)
		errx(1, "%s", why);
	why = hear(channel, answer, 12 * PATIENCE, message);
	for (char *at = message->text; message->kind == 'N' && *at; at++)
		*at = *at < ' ' || *at > '~' ? '?' : *at;
	if (why && message->kind == 'N')
		errx(3, "the receiver says no: %s", message->text);
	if (why)
		errx(1, "%s", why);
}

static int send_file(const struct address *to, const char *path, const char *id)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct message message = { 0 };
	struct stat st = { .st_size = 0 };
	struct vb_channel *channel;
	struct vb_error error;
	void *data = "";

	if (fd < 0 || fstat(fd, &st) != 0)
		err(1, "%s", path);
	if (st.st_size)
		data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		err(1, "%s", path);
	if (strlen(id) >= TEXT_MAX)
		errx(1, "the ID is too long");
	message.offer.len = (uint64_t)st.st_size;
	hash(data, (size_t)st.st_size, message.offer.sha256);
	must(vb_channel_connect(to->host, to->port, NULL, &channel, &error), &error);
	ask(channel, 'O', 'T', &message);
	must(vb_put(channel, &message.token, 0, data, (size_t)st.st_size, &error), &error);
	ask(channel, 'D', 'G', &message);
	snprintf(message.text, TEXT_MAX, "%s", id);
	ask(channel, 'I', 'S', &message);
	puts(message.text);
	vb_channel_close(channel, NULL); /* the answers have said it all */
	return 0;
}

/* ---- The receiver ---- */

static bool store(const char *path, const struct vb_region *memory)
{
	FILE *file = fopen(path, "wb");
	bool ok = file && fwrite(vb_region_addr(memory), vb_region_len(memory), 1, file) == 1;

	return file && fclose(file) == 0 && ok;
}

static bool find_secret(const char *path, const char *id, char secret[TEXT_MAX])
{
	FILE *file = fopen(path, "r");
	char line[2 * TEXT_MAX], name[TEXT_MAX];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file))
		found = sscanf(line, "%255s %255[^\n]", name, secret) == 2 && !strcmp(name, id);
	if (file)
		fclose(file);
	return found;
}

/* The memory is the sender's from the token until it is done, and never again. */
static const char *take_deposit(struct vb_channel *channel, struct vb_region **memory)
{
	struct message offer = { 0 }, message = { 0 };
	const char *why = hear(channel, 'O', PATIENCE, &offer);
	size_t len = offer.offer.len;
	struct vb_grant *grant;
	struct vb_error error;
	uint8_t sha256[32];

	if (why || len == 0 || len > LARGEST)
		return why ? why : len ? "it is too large" : "it is empty";
	if (vb_region_alloc(channel, len, memory, &error) != 0 ||
	    vb_grant(*memory, 0, len, VB_RIGHT_WRITE, &grant, &error) != 0)
		return why_not(error.code, &error);
	message.token = *vb_grant_token(grant);
	why = say(channel, 'T', &message);
	if (!why) /* 1 MB/s, or it is given up */
		why = hear(channel, 'D', PATIENCE + (double)len / 1e6, &message);
	vb_revoke(grant);
	if (why)
		return why;
	hash(vb_region_addr(*memory), len, sha256);
	if (memcmp(sha256, offer.offer.sha256, sizeof(sha256)) != 0)
		return "bad: its SHA-256 is another one";
	return say(channel, 'G', &message);
}

static const char *hand_out_secret(struct vb_channel *channel, const char *secrets,
				   const char *path, const struct vb_region *memory)
{
	struct message id = { 0 }, secret = { 0 };
	const char *why = hear(channel, 'I', PATIENCE, &id);

	if (why)
		return why;
	if (!find_secret(secrets, id.text, secret.text))
		return "nobody is known by that ID";
	return store(path, memory) ? say(channel, 'S', &secret) : "it cannot be stored";
}

/* True if it has got its secret. */
static bool serve(struct vb_channel *channel, const char *secrets, const char *path)
{
	struct vb_region *memory = NULL; /* until the channel is aborted */
	const char *why = take_deposit(channel, &memory);
	struct message no = { 0 };
	double deadline;

	if (!why)
		why = hand_out_secret(channel, secrets, path, memory);
	if (why) {
		warnx("%s: %s", vb_channel_peer(channel), why);
		snprintf(no.text, TEXT_MAX, "%s", why);
		say(channel, 'N', &no);
	}
	deadline = now() + PATIENCE;
	while (vb_channel_try_finish(channel, NULL) == VB_ERR_AGAIN &&
	       wait_until(deadline, channel))
		; /* the sender's library takes the last words */
	vb_channel_abort(channel);
	return !why;
}

static int receive(const struct address *at, const char *secrets, const char *path)
{
	struct vb_listener *listener;
	struct vb_channel *channel;
	struct vb_error error;

	must(vb_listener_open(at->host, at->port, NULL, &listener, &error), &error);
	warnx("listening on port %d", vb_listener_port(listener));
	do
		must(vb_listener_accept(listener, &channel, &error), &error);
	while (!serve(channel, secrets, path));
	vb_listener_close(listener);
	return 0;
}

int main(int argc, char **argv)
{
	struct address address;

	if (argc == 5 && asks_for(argv, "--receive", &address))
		return receive(&address, argv[3], argv[4]);
	if (argc == 5 && asks_for(argv, "--send", &address))
		return send_file(&address, argv[3], argv[4]);
	return usage("deposit --receive [HOST]:PORT SECRETS FILE | --send HOST:PORT FILE ID");
}
