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
#include <stdlib.h>

#include "example.h"

#define TRIES 10
#define PATIENCE_MS 500

static int fail(struct vb_dgram *dgram, const struct vb_error *err)
{
	vb_dgram_close(dgram);
	return complain("datagrams", err);
}

static int start(const char *host, const char *port, struct vb_dgram **dgram)
{
	struct vb_error err;

	if (vb_dgram_open(host, port, NULL, dgram, &err) != 0)
		return complain("datagrams", &err);
	fprintf(stderr, "datagrams: listening on port %d, %s\n", vb_dgram_port(*dgram),
		vb_dgram_description(*dgram));
	return 0;
}

static int echo(const struct address *at, int count)
{
	struct vb_datagram got;
	struct vb_dgram *dgram;
	struct vb_error err;

	if (start(at->host, at->port, &dgram) != 0)
		return 1;
	while (count-- > 0) {
		if (vb_dgram_recv(dgram, -1, &got, &err) != 0 ||
		    vb_dgram_send(dgram, got.from, got.bytes, got.len, &err) != 0)
			return fail(dgram, &err);
		fprintf(stderr, "datagrams: answered %s\n", vb_dgram_peer_text(got.from));
	}
	vb_dgram_close(dgram);
	return 0;
}

/* Asks until there is an answer; VB_ERR_AGAIN if there never is. */
static int ask(struct vb_dgram *dgram, struct vb_dgram_peer *peer, const char *text,
	       struct vb_datagram *got, struct vb_error *err)
{
	int rc = VB_ERR_AGAIN;

	for (int i = 0; i < TRIES && rc == VB_ERR_AGAIN; i++) {
		rc = vb_dgram_send(dgram, peer, text, strlen(text), err);
		if (rc == 0)
			rc = vb_dgram_recv(dgram, PATIENCE_MS, got, err);
	}
	return rc;
}

static int ask_all(const struct address *at, const char *from, char **texts)
{
	struct vb_dgram_peer *peer;
	struct vb_datagram got;
	struct vb_dgram *dgram;
	struct vb_error err;

	if (start(from, "0", &dgram) != 0)
		return 1;
	if (vb_dgram_resolve(dgram, at->host, at->port, &peer, &err) != 0)
		return fail(dgram, &err);
	for (; *texts; texts++) {
		int rc = ask(dgram, peer, *texts, &got, &err);

		if (rc && rc != VB_ERR_AGAIN)
			return fail(dgram, &err);
		printf("%s: %.*s\n", *texts, rc ? 9 : (int)got.len,
		       rc ? "no answer" : (const char *)got.bytes);
	}
	vb_dgram_close(dgram);
	return 0;
}

static int listen_to(const char *group, const char *from, int count)
{
	struct vb_dgram_peer *peer;
	struct vb_datagram got;
	struct vb_dgram *dgram;
	struct vb_error err;

	if (start(from, "0", &dgram) != 0)
		return 1;
	if (vb_dgram_join(dgram, group, &peer, &err) != 0)
		return fail(dgram, &err);
	fprintf(stderr, "datagrams: joined %s\n", vb_dgram_peer_text(peer));
	while (count-- > 0) {
		if (vb_dgram_recv(dgram, -1, &got, &err) != 0)
			return fail(dgram, &err);
		printf("%.*s\n", (int)got.len, (const char *)got.bytes);
		fflush(stdout);
	}
	vb_dgram_close(dgram);
	return 0;
}

static int announce(const char *group, const char *from, char **texts)
{
	struct vb_dgram_peer *peer;
	struct vb_dgram *dgram;
	struct vb_error err;

	if (start(from, "0", &dgram) != 0)
		return 1;
	if (vb_dgram_join(dgram, group, &peer, &err) != 0)
		return fail(dgram, &err);
	for (; *texts; texts++)
		if (vb_dgram_send(dgram, peer, *texts, strlen(*texts), &err) != 0)
			return fail(dgram, &err);
	vb_dgram_close(dgram);
	return 0;
}

int main(int argc, char **argv)
{
	struct address at;

	if (argc == 4 && !strcmp(argv[1], "--echo") && read_address(argv[2], &at))
		return echo(&at, atoi(argv[3]));
	if (argc > 4 && !strcmp(argv[1], "--ask") && read_address(argv[2], &at) && at.host)
		return ask_all(&at, argv[3], argv + 4);
	if (argc == 5 && !strcmp(argv[1], "--listen"))
		return listen_to(argv[2], argv[3], atoi(argv[4]));
	if (argc > 4 && !strcmp(argv[1], "--announce"))
		return announce(argv[2], argv[3], argv + 4);
	fprintf(stderr,
		"usage: datagrams --echo [HOST]:PORT COUNT | --ask HOST:PORT FROM TEXT... |\n"
		"       --listen GROUP FROM COUNT | --announce GROUP FROM TEXT...\n");
	return 2;
}
