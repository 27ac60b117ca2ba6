/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lookup: a hash table in the server's memory, in which clients look for themselves. A client gets a token of it, and then
 * reads slots by vb_get: on an RDMA device the server's CPU has no part in that; over libfabric, without one, a thread of the
 * library does it in the server. FILE has lines "KEY VALUE". The server waits for so many CLIENTS, then until all have left, and
 * tells how much CPU time it took from when the last had its token. Exit code 1: some keys are not there.
 */
#include "lookup.h"
#include "example.h"

#define CLIENTS_MAX 64

static struct slot table[SLOTS];

/* False: it has left already, or there is no memory for it. */
static bool lend(struct vb_channel *channel)
{
	char line[VB_ERROR_LINE_MAX];
	struct vb_region *region; /* until the channel is closed */
	struct vb_grant *grant;
	struct vb_error err;

	if (vb_region_open(channel, table, sizeof(table), &region, &err) == 0 &&
	    vb_grant(region, 0, sizeof(table), VB_RIGHT_READ, &grant, &err) == 0 &&
	    vb_channel_send(channel, vb_grant_token(grant), sizeof(struct vb_token), &err) == 0)
		return true;
	warnx("%s", vb_error_format(&err, line, sizeof(line)));
	vb_channel_abort(channel);
	return false;
}

static int serve(const struct address *at, const char *path, unsigned clients)
{
	struct vb_channel *channels[CLIENTS_MAX];
	struct vb_listener *listener;
	struct vb_error err;
	const void *message;
	clock_t before;

	table_fill(table, path);
	must(vb_listener_open(at->host, at->port, &with_warnings, &listener, &err), &err);
	warnx("listening on port %d", vb_listener_port(listener));
	for (unsigned i = 0; i < clients; i += lend(channels[i]))
		must(vb_listener_accept(listener, &channels[i], &err), &err);
	before = clock();
	for (unsigned i = 0; i < clients; i++) {
		while (vb_channel_recv(channels[i], &message, &err) >= 0)
			; /* it says nothing: what is received is its end, or that it is lost */
		vb_channel_close(channels[i], NULL);
	}
	vb_listener_close(listener);
	warnx("took %.0f ms of CPU time", 1e3 * (double)(clock() - before) / CLOCKS_PER_SEC);
	return 0;
}

/* True if it is there. Whoever lent the table may have filled it up. */
static bool find(struct vb_channel *channel, const struct vb_token *token, const char *key,
		 struct slot *slot)
{
	struct vb_error err;

	for (unsigned at = table_slot_of(key), n = 0; n < SLOTS; at = (at + 1) % SLOTS, n++) {
		must(vb_get(channel, token, at * sizeof(*slot), slot, sizeof(*slot), &err), &err);
		slot->value[sizeof(slot->value) - 1] = '\0';
		if (!slot->key[0] || !strncmp(slot->key, key, sizeof(slot->key)))
			return slot->key[0];
	}
	return false;
}

static int look_up(const struct address *at, char **keys)
{
	struct vb_channel *channel;
	struct vb_token token;
	struct vb_error err;
	const void *message;
	struct slot slot;
	int missing = 0;

	must(vb_channel_connect(at->host, at->port, &with_warnings, &channel, &err), &err);
	if (must(vb_channel_recv(channel, &message, &err), &err) != sizeof(token))
		errx(1, "that is no server of tables");
	memcpy(&token, message, sizeof(token));
	for (; *keys; keys++)
		if (find(channel, &token, *keys, &slot))
			printf("%s %s\n", *keys, printable(slot.value));
		else
			warnx("%s: not there", *keys), missing++;
	vb_channel_close(channel, NULL);
	return printed(missing > 0);
}

int main(int argc, char **argv)
{
	struct address address;

	if (argc == 5 && asks_for(argv, "--server", &address) && number(argv[4]) <= CLIENTS_MAX)
		return serve(&address, argv[3], number(argv[4]));
	if (argc > 3 && asks_for(argv, "--client", &address))
		return look_up(&address, argv + 3);
	return usage("lookup --server [HOST]:PORT FILE CLIENTS | --client HOST:PORT KEY...");
}
