/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages: the client sends 10,000 of them, "0" to "9999"; the server logs
 * each one in order and ends by itself when the client disconnects.
 */
#include "example.h"

#define MESSAGES 10000

static int serve(const struct address *at, const struct vb_options *options)
{
	struct vb_listener *listener;
	struct vb_channel *channel;
	struct vb_error err;
	const void *message;
	ssize_t len;

	must(vb_listener_open(at->host, at->port, options, &listener, &err), &err);
	warnx("listening on port %d, %s", vb_listener_port(listener),
	      vb_listener_description(listener));
	must(vb_listener_accept(listener, &channel, &err), &err);
	vb_listener_close(listener);
	while ((len = vb_channel_recv(channel, &message, &err)) != VB_ERR_EOF)
		printf("received %.*s\n", (int)must(len, &err), (const char *)message);
	must(vb_channel_close(channel, &err), &err);
	return printed(0);
}

static int send_all(const struct address *to, const struct vb_options *options)
{
	struct vb_channel *channel;
	struct vb_error err;
	char text[16];

	must(vb_channel_connect(to->host, to->port, options, &channel, &err), &err);
	warnx("%s", vb_channel_description(channel));
	for (int i = 0; i < MESSAGES; i++) {
		snprintf(text, sizeof(text), "%d", i);
		must(vb_channel_send(channel, text, strlen(text), &err), &err);
	}
	must(vb_channel_close(channel, &err), &err);
	return 0;
}

int main(int argc, char **argv)
{
	bool tcp = argc == 5 && !strcmp(argv[3], "--wireup") && !strcmp(argv[4], "tcp");
	bool cm = argc == 5 && !strcmp(argv[3], "--wireup") && !strcmp(argv[4], "cm");
	struct vb_options options = { .log = print_warning,
				      .wireup = tcp  ? VB_WIREUP_TCP
						: cm ? VB_WIREUP_CM
						     : VB_WIREUP_AUTO };
	struct address address;

	if ((argc == 3 || tcp || cm) && asks_for(argv, "--server", &address))
		return serve(&address, &options);
	if ((argc == 3 || tcp || cm) && asks_for(argv, "--client", &address))
		return send_all(&address, &options);
	return usage("messages --server [HOST]:PORT | --client HOST:PORT [--wireup cm|tcp]");
}
