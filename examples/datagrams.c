/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Datagrams: an echo for one, and announcements for a group.
 *
 *	datagrams --echo [HOST]:PORT COUNT          answers COUNT datagrams
 *	datagrams --ask HOST:PORT FROM TEXT...      asks from our address FROM, and prints the answers
 *	datagrams --listen GROUP FROM COUNT         prints COUNT announcements to the group
 *	datagrams --announce GROUP FROM TEXT...     announces
 *
 * What gets lost is asked for again: that is up to the application. GROUP is a multicast address, e.g. 239.1.2.3.
 */
#include "example.h"

#define TRIES 10
#define PATIENCE_MS 500

static const struct vb_dgram_options options = { .connection = { .log = print_warning } };

static struct vb_dgram *start(const char *host, const char *port)
{
	struct vb_dgram *dgram;
	struct vb_error err;

	must(vb_dgram_open(host, port, &options, &dgram, &err), &err);
	warnx("listening on port %d, %s", vb_dgram_port(dgram), vb_dgram_description(dgram));
	return dgram;
}

static int echo(const struct address *at, unsigned count)
{
	struct vb_dgram *dgram = start(at->host, at->port);
	struct vb_datagram got;
	struct vb_error err;

	while (count-- > 0) {
		must(vb_dgram_recv(dgram, -1, &got, &err), &err);
		must(vb_dgram_send(dgram, got.from, got.bytes, got.len, &err), &err);
		warnx("answered %s", vb_dgram_peer_text(got.from));
	}
	vb_dgram_close(dgram);
	return 0;
}

/* Asks until there is an answer, and prints it. */
static void ask(struct vb_dgram *dgram, struct vb_dgram_peer *peer, const char *text)
{
	struct vb_datagram got;
	struct vb_error err;

	for (int i = 0; i < TRIES; i++) {
		must(vb_dgram_send(dgram, peer, text, strlen(text), &err), &err);
		if (vb_dgram_recv(dgram, PATIENCE_MS, &got, &err) == VB_ERR_AGAIN)
			continue;
		must(err.code, &err);
		printf("%s: %.*s\n", text, (int)got.len, (const char *)got.bytes);
		return;
	}
	printf("%s: no answer\n", text);
}

static int ask_all(const struct address *at, const char *from, char **texts)
{
	struct vb_dgram *dgram = start(from, "0");
	struct vb_dgram_peer *peer;
	struct vb_error err;

	must(vb_dgram_resolve(dgram, at->host, at->port, &peer, &err), &err);
	for (; *texts; texts++)
		ask(dgram, peer, *texts);
	vb_dgram_close(dgram);
	return printed(0);
}

static int listen_to(const char *group, const char *from, unsigned count)
{
	struct vb_dgram *dgram = start(from, "0");
	struct vb_dgram_peer *peer;
	struct vb_datagram got;
	struct vb_error err;

	must(vb_dgram_join(dgram, group, &peer, &err), &err);
	warnx("joined %s", vb_dgram_peer_text(peer));
	while (count-- > 0) {
		must(vb_dgram_recv(dgram, -1, &got, &err), &err);
		printf("%.*s\n", (int)got.len, (const char *)got.bytes);
		fflush(stdout);
	}
	vb_dgram_close(dgram);
	return printed(0);
}

static int announce(const char *group, const char *from, char **texts)
{
	struct vb_dgram *dgram = start(from, "0");
	struct vb_dgram_peer *peer;
	struct vb_error err;

	must(vb_dgram_join(dgram, group, &peer, &err), &err);
	for (; *texts; texts++)
		must(vb_dgram_send(dgram, peer, *texts, strlen(*texts), &err), &err);
	vb_dgram_close(dgram);
	return 0;
}

int main(int argc, char **argv)
{
	struct address at;

	if (argc == 4 && asks_for(argv, "--echo", &at))
		return echo(&at, number(argv[3]));
	if (argc > 4 && asks_for(argv, "--ask", &at) && at.host)
		return ask_all(&at, argv[3], argv + 4);
	if (argc == 5 && !strcmp(argv[1], "--listen"))
		return listen_to(argv[2], argv[3], number(argv[4]));
	if (argc > 4 && !strcmp(argv[1], "--announce"))
		return announce(argv[2], argv[3], argv + 4);
	return usage("datagrams --echo [HOST]:PORT COUNT | --ask HOST:PORT FROM TEXT... |\n"
		     "       --listen GROUP FROM COUNT | --announce GROUP FROM TEXT...");
}
