/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deposit: a file is written straight into the receiver's memory, and a secret is handed out for it, from a file of lines
 * "ID SECRET". What goes over the channel: the sender's (O)ffer of a length and a SHA-256; a (T)oken of memory that is granted for
 * just this, which the sender writes into; (D)one; the memory is revoked, its hash compared: (G)ood; the sender's (I)D; the (S)ecret.
 * In place of each answer there may be a (N)o and why: then the receiver hangs up. It serves one after another until one has
 * got its secret. Exit code 3: the receiver said no.
 */
#include <openssl/evp.h>

#include "example.h"

#define LARGEST (256u << 20)
#define PATIENCE_MS 5000 /* anybody may call a receiver, and be silent */

struct message {
	char kind;
	union {
		struct offer {
			uint64_t len;
			uint8_t sha256[32];
		} offer;
		struct vb_token token;
		char text[256];
	};
};

/* Both of them: NULL, or why it went wrong. */
static const char *say(struct vb_channel *channel, char kind, struct message *message)
{
	struct vb_error error;

	message->kind = kind;
	return why_not(vb_channel_send(channel, message, sizeof(*message), &error), &error);
}

static const char *hear(struct vb_channel *channel, char kind, struct message *message)
{
	struct vb_error error;
	const void *bytes;
	ssize_t len = vb_channel_recv(channel, &bytes, &error);

	if (len == sizeof(*message))
		memcpy(message, bytes, sizeof(*message));
	message->text[sizeof(message->text) - 1] = '\0';
	if (len == sizeof(*message) && message->kind == kind)
		return NULL;
	return len < 0 ? why_not(len, &error) : "that is not what comes next";
}

/* The answer takes the place of the message. */
static void ask(struct vb_channel *channel, char kind, char answer, struct message *message)
{
	const char *why = say(channel, kind, message);

	if (!why)
		why = hear(channel, answer, message);
	if (why && message->kind == 'N')
		errx(3, "the receiver says no: %s", printable(message->text));
	if (why)
		errx(1, "%s", why);
}

static int send_file(const struct address *to, const char *path, const char *id)
{
	struct message message = { 0 };
	size_t len;
	const void *data = map_file(path, &len);
	struct vb_channel *channel;
	struct vb_error error;

	message.offer.len = len;
	EVP_Digest(data, len, message.offer.sha256, NULL, EVP_sha256(), NULL);
	must(vb_channel_connect(to->host, to->port, &with_warnings, &channel, &error), &error);
	vb_channel_set_timeout(channel, 12 * PATIENCE_MS);
	ask(channel, 'O', 'T', &message);
	must(vb_put(channel, &message.token, 0, data, len, &error), &error);
	ask(channel, 'D', 'G', &message);
	snprintf(message.text, sizeof(message.text), "%s", id);
	ask(channel, 'I', 'S', &message);
	puts(message.text);
	vb_channel_close(channel, NULL); /* the answers have said it all */
	return printed(0);
}

/* The memory is the sender's from the token until it is done, and never again. */
static const char *take(struct vb_channel *channel, const struct offer *offer,
			struct vb_region **memory)
{
	struct message message = { 0 };
	struct vb_grant *grant;
	struct vb_error error;
	uint8_t sha256[32];
	const char *why;

	if (!offer->len || offer->len > LARGEST)
		return offer->len ? "it is too large" : "it is empty";
	if (vb_region_alloc(channel, offer->len, memory, &error) != 0 ||
	    vb_grant(*memory, 0, offer->len, VB_RIGHT_WRITE, &grant, &error) != 0)
		return why_not(error.code, &error);
	message.token = *vb_grant_token(grant);
	vb_channel_set_timeout(channel, PATIENCE_MS + (uint32_t)(offer->len / 1000)); /* 1 MB/s */
	why = say(channel, 'T', &message);
	if (!why)
		why = hear(channel, 'D', &message);
	vb_channel_set_timeout(channel, PATIENCE_MS);
	vb_revoke(grant);
	EVP_Digest(vb_region_addr(*memory), offer->len, sha256, NULL, EVP_sha256(), NULL);
	if (!why && memcmp(sha256, offer->sha256, sizeof(sha256)) != 0)
		why = "bad: its SHA-256 is another one";
	return why;
}

static const char *serve(struct vb_channel *channel, const char *secrets, const char *path)
{
	struct message message = { 0 };
	struct vb_region *memory; /* until the channel is closed */
	const char *why = hear(channel, 'O', &message);

	if (why || (why = take(channel, &message.offer, &memory)) ||
	    (why = say(channel, 'G', &message)) || (why = hear(channel, 'I', &message)) ||
	    (why = find_line(secrets, message.text, message.text)))
		return why;
	if (!store_file(path, vb_region_addr(memory), vb_region_len(memory)))
		return "it cannot be stored";
	return say(channel, 'S', &message);
}

static int receive(const struct address *at, const char *secrets, const char *path)
{
	struct vb_listener *listener;
	struct vb_channel *channel;
	struct message no = { 0 };
	struct vb_error error;
	const char *why = "";

	must(vb_listener_open(at->host, at->port, &with_warnings, &listener, &error), &error);
	warnx("listening on port %d", vb_listener_port(listener));
	while (why) {
		must(vb_listener_accept(listener, &channel, &error), &error);
		vb_channel_set_timeout(channel, PATIENCE_MS);
		why = serve(channel, secrets, path);
		if (why) {
			warnx("%s: %s", vb_channel_peer(channel), why);
			snprintf(no.text, sizeof(no.text), "%s", why);
			say(channel, 'N', &no);
		}
		vb_channel_close(channel, NULL);
	}
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
