/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server that sends every message back, to any number of clients at once.
 * It runs until it is killed.
 *
 *	echo_server [PORT]               7471 if not given
 */
#include <stdio.h>
#include <verbatim/verbatim.h>

static int fail(const struct vb_error *err)
{
	char line[VB_ERROR_LINE_MAX];

	fprintf(stderr, "echo_server: %s\n", vb_error_format(err, line, sizeof(line)));
	return 1;
}

static void print_warning(void *arg, enum vb_log_level level, const char *line)
{
	(void)arg, (void)level;
	fprintf(stderr, "echo_server: warning: %s\n", line);
}

static void on_event(const struct vb_server *server, const struct vb_server_event *event)
{
	const char *peer = vb_channel_peer(event->client);
	struct vb_error err;

	switch (event->kind) {
	case VB_CLIENT_JOINED:
		printf("%s joined by %s, %u are here\n", peer, vb_channel_fabric(event->client),
		       vb_server_clients(server));
		break;
	case VB_CLIENT_MESSAGE:
		/* Blocks while this client does not take its messages. If it matters that the
		 * others are heard meanwhile, use vb_channel_try_send. */
		if (vb_channel_send(event->client, event->message, event->len, &err) != 0)
			fail(&err); /* it will be told as having left */
		break;
	case VB_CLIENT_LEFT:
		printf("%s left%s%s\n", peer, event->why.code == VB_ERR_EOF ? "" : ": ",
		       event->why.code == VB_ERR_EOF ? "" : event->why.cause);
		break;
	}
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const struct vb_server_options options = { .connection = { .log = print_warning } };
	struct vb_server_event event;
	struct vb_server *server;
	struct vb_error err;

	if (vb_server_open(NULL, argc > 1 ? argv[1] : "7471", &options, &server, &err) != 0)
		return fail(&err);
	fprintf(stderr, "echo_server: listening on port %d, %s\n", vb_server_port(server),
		vb_server_description(server));
	while (vb_server_wait(server, -1, &event, &err) == 0)
		on_event(server, &event);
	vb_server_close(server);
	return fail(&err);
}
