/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deposit: a file is written straight into the receiver's memory, and a secret is handed out for it, from a file of lines
 * "ID SECRET". It receives, each for ten seconds at most, until one has got its secret. Exit code 3: the receiver has said no.
 */
#include <openssl/evp.h>
#include <unistd.h>

#include "deposit.h"
#include "example.h"

#define LARGEST (256u << 20)
#define DEPOSIT_S 10  /* for all of one: anybody may call a receiver, and be silent */
#define PATIENCE_S 60 /* of a sender who waits for some of those before */

static int send_file(const struct address *to, const char *path, const char *id)
{
	const struct vb_options options = { .log = print_warning,
					    .connect_timeout_ms = 1000 * PATIENCE_S };
	static struct talk talk;
	size_t len;
	const void *data = map_file(path, &len);
	struct vb_error error;
	const char *why;

	talk.message.offer.len = len;
	EVP_Digest(data, len, talk.message.offer.sha256, NULL, EVP_sha256(), NULL);
	must(vb_channel_connect(to->host, to->port, &options, &talk.channel, &error), &error);
	talk.until = now() + PATIENCE_S;
	alarm(2 * PATIENCE_S); /* access to memory takes as long as it takes */
	why = ask(&talk, 'O', 'T');
	if (!why)
		why = why_not(vb_put(talk.channel, &talk.message.token, 0, data, len, &error),
			      &error);
	if (!why)
		why = ask(&talk, 'D', 'G');
	if (!why) {
		snprintf(talk.message.text, sizeof(talk.message.text), "%s", id);
		why = ask(&talk, 'I', 'S');
	}
	vb_channel_close(talk.channel, NULL); /* the answers have said it all */
	if (why && talk.message.kind == 'N')
		errx(3, "the receiver says no: %s", printable(talk.message.text));
	if (why)
		errx(1, "%s", why);
	puts(printable(talk.message.text));
	return printed(0);
}

/* The memory is the sender's from the token until it is done, and never again. */
static const char *serve(struct talk *talk, const char *secrets, const char *path)
{
	struct message *message = &talk->message;
	const char *why = hear(talk, 'O');
	size_t len = message->offer.len;
	uint8_t sha256[32], offered[32];
	struct vb_region *memory; /* until the channel is closed */
	struct vb_grant *grant;
	struct vb_error error;

	if (why || len == 0 || len > LARGEST)
		return why ? why : len ? "it is too large" : "it is empty";
	memcpy(offered, message->offer.sha256, sizeof(offered));
	if (vb_region_alloc(talk->channel, len, &memory, &error) != 0 ||
	    vb_grant(memory, 0, len, VB_RIGHT_WRITE, &grant, &error) != 0)
		return why_not(error.code, &error);
	message->token = *vb_grant_token(grant);
	why = ask(talk, 'T', 'D');
	vb_revoke(grant);
	if (why)
		return why;
	EVP_Digest(vb_region_addr(memory), len, sha256, NULL, EVP_sha256(), NULL);
	if (memcmp(sha256, offered, sizeof(offered)) != 0)
		return "bad: its SHA-256 is another one";
	if ((why = ask(talk, 'G', 'I')) || (why = find_line(secrets, message->text, message->text)))
		return why;
	if (!store_file(path, vb_region_addr(memory), len))
		return "it cannot be stored";
	return say(talk, 'S');
}

static int receive(const struct address *at, const char *secrets, const char *path)
{
	static struct talk talk;
	struct vb_listener *listener;
	struct vb_error error;
	const char *why = "";

	must(vb_listener_open(at->host, at->port, &with_warnings, &listener, &error), &error);
	warnx("listening on port %d", vb_listener_port(listener));
	while (why) {
		must(vb_listener_accept(listener, &talk.channel, &error), &error);
		talk.until = now() + DEPOSIT_S;
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
