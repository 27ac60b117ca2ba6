/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deposit: a file is written straight into the receiver's memory, and a secret is handed out for it, from a file of lines
 * "ID SECRET". What goes over the channel: the sender's (O)ffer of a length and a SHA-256; a (T)oken of memory that is granted for
 * just this, which the sender writes into; (D)one; the memory is revoked, its hash compared: (G)ood; the sender's (I)D; the (S)ecret.
 * In place of each answer there may be a (N)o and why: then the receiver hangs up. It serves one after another, each
 * for a few seconds, until one has got its secret. Exit code 3: the receiver said no.
 */
#include <openssl/evp.h>

#include "example.h"

#define LARGEST (256u << 20)
#define DEPOSIT_MS 10000u /* for all of one: anybody may call a receiver, and be silent */
#define SENDER_MS 60000u  /* who waits for some of those before */

struct talk {
	struct vb_channel *channel;
	double until; /* now() */
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
	} message; /* to be said, or heard last */
};

/* Each of them: NULL, or why it went wrong. */
static const char *say(struct talk *talk, char kind)
{
	struct vb_error error;

	talk->message.kind = kind;
	return why_not(vb_channel_send(talk->channel, &talk->message, sizeof(talk->message),
				       &error),
		       &error);
}

static const char *hear(struct talk *talk, char kind)
{
	double left_ms = 1e3 * (talk->until - now());
	struct vb_error error;
	const void *bytes;
	ssize_t len;

	vb_channel_set_timeout(talk->channel, left_ms > 1 ? (uint32_t)left_ms : 1);
	len = vb_channel_recv(talk->channel, &bytes, &error);
	if (len != sizeof(talk->message))
		return len < 0 ? why_not(len, &error) : "that is not what comes next";
	memcpy(&talk->message, bytes, sizeof(talk->message));
	talk->message.text[sizeof(talk->message.text) - 1] = '\0';
	return talk->message.kind == kind ? NULL : "that is not what comes next";
}

static const char *ask(struct talk *talk, char kind, char answer)
{
	const char *why = say(talk, kind);

	return why ? why : hear(talk, answer);
}

static void must_ask(struct talk *talk, char kind, char answer)
{
	const char *why = ask(talk, kind, answer);

	if (why && talk->message.kind == 'N')
		errx(3, "the receiver says no: %s", printable(talk->message.text));
	if (why)
		errx(1, "%s", why);
}

static int send_file(const struct address *to, const char *path, const char *id)
{
	struct vb_options options = with_warnings;
	struct talk talk = { 0 };
	size_t len;
	const void *data = map_file(path, &len);
	struct vb_error error;

	talk.message.offer.len = len;
	EVP_Digest(data, len, talk.message.offer.sha256, NULL, EVP_sha256(), NULL);
	options.connect_timeout_ms = SENDER_MS;
	must(vb_channel_connect(to->host, to->port, &options, &talk.channel, &error), &error);
	talk.until = now() + SENDER_MS / 1e3;
	must_ask(&talk, 'O', 'T');
	must(vb_put(talk.channel, &talk.message.token, 0, data, len, &error), &error);
	must_ask(&talk, 'D', 'G');
	snprintf(talk.message.text, sizeof(talk.message.text), "%s", id);
	must_ask(&talk, 'I', 'S');
	puts(talk.message.text);
	vb_channel_close(talk.channel, NULL); /* the answers have said it all */
	return printed(0);
}

/* The memory is the sender's from the token until it is done, and never again. */
static const char *take(struct talk *talk, struct offer offer, struct vb_region **memory)
{
	struct vb_grant *grant;
	struct vb_error error;
	uint8_t sha256[32];
	const char *why;

	if (!offer.len || offer.len > LARGEST)
		return offer.len ? "it is too large" : "it is empty";
	if (vb_region_alloc(talk->channel, offer.len, memory, &error) != 0 ||
	    vb_grant(*memory, 0, offer.len, VB_RIGHT_WRITE, &grant, &error) != 0)
		return why_not(error.code, &error);
	talk->message = (struct message){ .token = *vb_grant_token(grant) };
	why = ask(talk, 'T', 'D');
	vb_revoke(grant);
	if (!why)
		EVP_Digest(vb_region_addr(*memory), offer.len, sha256, NULL, EVP_sha256(), NULL);
	if (!why && memcmp(sha256, offer.sha256, sizeof(sha256)) != 0)
		why = "bad: its SHA-256 is another one";
	return why;
}

static const char *serve(struct talk *talk, const char *secrets, const char *path)
{
	struct vb_region *memory; /* until the channel is closed */
	const char *why = hear(talk, 'O');

	if (why || (why = take(talk, talk->message.offer, &memory)) ||
	    (why = ask(talk, 'G', 'I')) ||
	    (why = find_line(secrets, talk->message.text, talk->message.text)))
		return why;
	if (!store_file(path, vb_region_addr(memory), vb_region_len(memory)))
		return "it cannot be stored";
	return say(talk, 'S');
}

static int receive(const struct address *at, const char *secrets, const char *path)
{
	struct vb_listener *listener;
	struct talk talk = { 0 };
	struct vb_error error;
	const char *why = "";

	must(vb_listener_open(at->host, at->port, &with_warnings, &listener, &error), &error);
	warnx("listening on port %d", vb_listener_port(listener));
	while (why) {
		must(vb_listener_accept(listener, &talk.channel, &error), &error);
		talk.until = now() + DEPOSIT_MS / 1e3;
		why = serve(&talk, secrets, path);
		vb_channel_set_timeout(talk.channel, 1000);
		if (why) {
			warnx("%s: %s", vb_channel_peer(talk.channel), why);
			strncpy(talk.message.text, why, sizeof(talk.message.text) - 1);
			say(&talk, 'N');
		}
		vb_channel_close(talk.channel, NULL);
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
