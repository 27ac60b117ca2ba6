/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sender for tests of examples/deposit.c that does what no honest one would. It does the steps that are named, in order, and
 * prints what comes of those that can be refused.
 *
 *	depositor HOST:PORT FILE STEP...
 *
 *	offer, lie          of FILE; with a wrong hash
 *	offer=BYTES         of another length
 *	put, half, beyond   write FILE into the memory that was granted, its first half, or beyond the end
 *	finish, id=ID       as deposit does it
 *	noise               a message that is none
 *	hear                wait for an answer and print it, or the name of the error
 *	stay                12 s without a call
 */
#include <openssl/evp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <verbatim/verbatim.h>

struct depositor {
	struct vb_channel *channel;
	struct vb_token token;
	uint8_t *data;
	size_t len;
};

/* The kind, in the first 8 bytes, and the body. */
#define BODY_AT 8
#define MESSAGE_BYTES (BODY_AT + 256)

static void say(struct depositor *d, char kind, const void *body, size_t len)
{
	char message[MESSAGE_BYTES] = { kind };

	memcpy(message + BODY_AT, body, len);
	vb_channel_send(d->channel, message, sizeof(message), NULL);
}

static void offer(struct depositor *d, uint64_t len, uint8_t twist)
{
	uint8_t body[8 + 32];

	memcpy(body, &len, sizeof(len));
	EVP_Digest(d->data, d->len, body + 8, NULL, EVP_sha256(), NULL);
	body[8] ^= twist;
	say(d, 'O', body, sizeof(body));
}

static void put(struct depositor *d, uint64_t offset, size_t len)
{
	int rc = vb_put(d->channel, &d->token, offset, d->data, len, NULL);

	printf("put %s\n", vb_err_name((enum vb_err)rc));
}

/* Nothing is sent along behind a text. */
static int is_clean(const char *text)
{
	size_t len = strnlen(text, MESSAGE_BYTES - BODY_AT);

	while (len < MESSAGE_BYTES - BODY_AT && !text[len])
		len++;
	return len == MESSAGE_BYTES - BODY_AT;
}

static void hear(struct depositor *d)
{
	const char *message;
	ssize_t len = vb_channel_recv(d->channel, (const void **)&message, NULL);

	if (len != MESSAGE_BYTES) {
		printf("%s\n", vb_err_name((enum vb_err)len));
		return;
	}
	if (*message == 'T')
		memcpy(&d->token, message + BODY_AT, sizeof(d->token));
	printf("%c%.256s%s\n", *message,
	       *message == 'N' || *message == 'S' ? message + BODY_AT : "",
	       strchr("NS", *message) && !is_clean(message + BODY_AT) ? " and more" : "");
}

static void do_step(struct depositor *d, const char *step)
{
	static const char noise[1000] = "noise";

	if (!strncmp(step, "offer", 5))
		offer(d, step[5] ? strtoull(step + 6, NULL, 10) : d->len, 0);
	else if (!strcmp(step, "lie"))
		offer(d, d->len, 1);
	else if (!strcmp(step, "put"))
		put(d, 0, d->len);
	else if (!strcmp(step, "half"))
		put(d, 0, d->len / 2);
	else if (!strcmp(step, "beyond"))
		put(d, 1, d->len);
	else if (!strcmp(step, "finish"))
		say(d, 'D', "", 0);
	else if (!strncmp(step, "id=", 3))
		say(d, 'I', step + 3, strlen(step + 3));
	else if (!strcmp(step, "noise"))
		vb_channel_send(d->channel, noise, sizeof(noise), NULL);
	else if (!strcmp(step, "stay"))
		sleep(12);
	else
		hear(d);
	fflush(stdout);
}

static int read_file(struct depositor *d, const char *path)
{
	FILE *file = fopen(path, "rb");
	size_t room = 16 << 20;

	d->data = malloc(room);
	if (!file || !d->data)
		return 1;
	d->len = fread(d->data, 1, room, file);
	fclose(file);
	return 0;
}

int main(int argc, char **argv)
{
	char line[VB_ERROR_LINE_MAX], *colon = argc > 3 ? strrchr(argv[1], ':') : NULL;
	struct depositor d = { 0 };
	struct vb_error err;

	if (!colon || read_file(&d, argv[2]) != 0)
		return 2;
	*colon = '\0';
	if (vb_channel_connect(argv[1], colon + 1, NULL, &d.channel, &err) != 0) {
		fprintf(stderr, "depositor: %s\n", vb_error_format(&err, line, sizeof(line)));
		return 1;
	}
	for (int i = 3; i < argc; i++)
		do_step(&d, argv[i]);
	vb_channel_abort(d.channel);
	free(d.data);
	return 0;
}
