/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages: the client sends 10,000 of them, "0" to "9999"; the server logs
 * each one in order and ends by itself when the client disconnects.
 *
 *	messages --server ADDRESS [--wireup cm|tcp]        ADDRESS is [HOST]:PORT, e.g. :7471
 *	messages --client ADDRESS [--wireup cm|tcp]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <verbatim/verbatim.h>

#define MESSAGES 10000

static int fail(const struct vb_error *err)
{
	char line[VB_ERROR_LINE_MAX];

	fprintf(stderr, "messages: %s\n", vb_error_format(err, line, sizeof(line)));
	return 1;
}

static int serve(const char *host, const char *port, const struct vb_options *options)
{
	struct vb_listener *listener = NULL;
	struct vb_channel *channel = NULL;
	struct vb_error err;
	const void *message;
	ssize_t len = 0;

	if (vb_listener_open(*host ? host : NULL, port, options, &listener, &err) != 0)
		return fail(&err);
	fprintf(stderr, "messages: listening on port %d, %s\n", vb_listener_port(listener),
		vb_listener_description(listener));
	if (vb_listener_accept(listener, &channel, &err) != 0) {
		vb_listener_close(listener);
		return fail(&err);
	}
	vb_listener_close(listener);
	while ((len = vb_channel_recv(channel, &message, &err)) >= 0)
		printf("received %.*s\n", (int)len, (const char *)message);
	if (len != VB_ERR_EOF) {
		vb_channel_abort(channel);
		return fail(&err);
	}
	return vb_channel_close(channel, &err) == 0 ? 0 : fail(&err);
}

static int send_all(struct vb_channel *channel, struct vb_error *err)
{
	char text[16];
	int rc = 0;

	for (int i = 0; i < MESSAGES && rc == 0; i++) {
		snprintf(text, sizeof(text), "%d", i);
		rc = vb_channel_send(channel, text, strlen(text), err);
	}
	return rc;
}

static int run_client(const char *host, const char *port, const struct vb_options *options)
{
	struct vb_channel *channel;
	struct vb_error err;

	if (vb_channel_connect(*host ? host : "localhost", port, options, &channel, &err) != 0)
		return fail(&err);
	fprintf(stderr, "messages: %s\n", vb_channel_description(channel));
	if (send_all(channel, &err) != 0) {
		vb_channel_abort(channel);
		return fail(&err);
	}
	return vb_channel_close(channel, &err) == 0 ? 0 : fail(&err);
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
	bool asks = argc == 5 && !strcmp(argv[3], "--wireup");
	bool tcp = asks && !strcmp(argv[4], "tcp"), cm = asks && !strcmp(argv[4], "cm");
	struct vb_options options = { .wireup = tcp  ? VB_WIREUP_TCP
						: cm ? VB_WIREUP_CM
						     : VB_WIREUP_AUTO };
	const char *host = "", *port = argc == 3 || tcp || cm ? split(argv[2], &host) : NULL;

	if (port && !strcmp(argv[1], "--server"))
		return serve(host, port, &options);
	if (port && !strcmp(argv[1], "--client"))
		return run_client(host, port, &options);
	fprintf(stderr,
		"usage: messages --server [HOST]:PORT | --client HOST:PORT [--wireup cm|tcp]\n");
	return 2;
}
