/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lookup: a hash table in the server's memory, in which clients look for themselves.
 *
 *	lookup --server ADDRESS FILE CLIENTS        ADDRESS is [HOST]:PORT, e.g. :7471
 *	lookup --client ADDRESS KEY...              prints the value of each
 *
 * FILE has lines "KEY VALUE". A client gets a token of the table and then reads slots of it by vb_get: on an RDMA device the
 * server's CPU has no part in that. It waits for so many CLIENTS, then until all have left, and tells how much CPU time it
 * took. Exit codes: 0 all are found, 1 some are not or it failed, 2 usage.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "example.h"

#define SLOTS 4096u
#define CLIENTS_MAX 64

struct slot {
	char key[32]; /* empty: none */
	char value[96];
};

static struct slot table[SLOTS];

/* FNV-1a */
static unsigned slot_of(const char *key)
{
	uint32_t hash = 2166136261u;

	for (; *key; key++)
		hash = (hash ^ (unsigned char)*key) * 16777619u;
	return hash % SLOTS;
}

/* ---- The server ---- */

/* Reads at most half as many as there are slots, so that every search meets an empty one. */
static int fill_table(const char *path)
{
	FILE *file = fopen(path, "r");
	struct slot slot = { 0 };
	unsigned count = 0;

	if (!file) {
		fprintf(stderr, "lookup: %s: %s\n", path, strerror(errno));
		return 1;
	}
	while (count < SLOTS / 2 && fscanf(file, "%31s %95[^\n]", slot.key, slot.value) == 2) {
		unsigned i = slot_of(slot.key);

		while (table[i].key[0] && strcmp(table[i].key, slot.key) != 0)
			i = (i + 1) % SLOTS;
		table[i] = slot;
		count++;
	}
	fclose(file);
	fprintf(stderr, "lookup: %u lines\n", count);
	return 0;
}

struct client {
	struct vb_channel *channel;
	struct vb_region *region;
};

static int lend(struct client *client, struct vb_error *err)
{
	struct vb_grant *grant; /* until the region is closed */
	int rc = vb_region_open(client->channel, table, sizeof(table), &client->region, err);

	if (rc == 0)
		rc = vb_grant(client->region, 0, sizeof(table), VB_RIGHT_READ, &grant, err);
	if (rc != 0)
		return rc;
	return vb_channel_send(client->channel, vb_grant_token(grant), sizeof(struct vb_token),
			       err);
}

/* A client says nothing: what is received is its end. Whoever is lost does not matter to the others. */
static void see_off(struct client *client)
{
	const void *message;
	struct vb_error err;

	while (vb_channel_recv(client->channel, &message, &err) >= 0)
		;
	if (err.code != VB_ERR_EOF)
		complain("lookup", &err);
	vb_region_close(client->region);
	vb_channel_close(client->channel, NULL);
}

static int serve_clients(struct vb_listener *listener, int count, struct vb_error *err)
{
	struct client clients[CLIENTS_MAX] = { 0 };
	int rc = 0, joined = 0;

	while (joined < count && rc == 0) {
		rc = vb_listener_accept(listener, &clients[joined].channel, err);
		if (rc == 0 && lend(&clients[joined++], err) != 0)
			complain("lookup", err);
	}
	while (joined-- > 0)
		see_off(&clients[joined]);
	return rc;
}

static int serve(const struct address *at, const char *path, int count)
{
	struct vb_listener *listener;
	struct vb_error err;
	int rc = fill_table(path);

	if (rc != 0)
		return rc;
	if (vb_listener_open(at->host, at->port, NULL, &listener, &err) != 0)
		return complain("lookup", &err);
	fprintf(stderr, "lookup: listening on port %d\n", vb_listener_port(listener));
	rc = serve_clients(listener, count, &err);
	vb_listener_close(listener);
	fprintf(stderr, "lookup: took %.0f ms of CPU time\n",
		1e3 * (double)clock() / CLOCKS_PER_SEC);
	return rc == 0 ? 0 : complain("lookup", &err);
}

/* ---- A client ---- */

/* Returns 1 if it is there, 0 if not. */
static int look_up(struct vb_channel *channel, const struct vb_token *token, const char *key,
		   struct slot *slot, struct vb_error *err)
{
	for (unsigned i = slot_of(key);; i = (i + 1) % SLOTS) {
		int rc = vb_get(channel, token, i * sizeof(*slot), slot, sizeof(*slot), err);

		if (rc != 0)
			return rc;
		slot->key[sizeof(slot->key) - 1] = slot->value[sizeof(slot->value) - 1] = '\0';
		if (!slot->key[0])
			return 0;
		if (!strcmp(slot->key, key))
			return 1;
	}
}

static int look_up_all(struct vb_channel *channel, char **keys, struct vb_error *err)
{
	struct vb_token token;
	struct slot slot;
	const void *message;
	ssize_t rc = vb_channel_recv(channel, &message, err);
	int missing = 0;

	if (rc < 0)
		return (int)rc;
	if (rc != sizeof(token)) {
		fprintf(stderr, "lookup: that is no server of tables\n");
		return 1;
	}
	memcpy(&token, message, sizeof(token));
	for (; *keys; keys++) {
		int found = look_up(channel, &token, *keys, &slot, err);

		if (found < 0)
			return found;
		if (found)
			printf("%s %s\n", *keys, slot.value);
		else
			fprintf(stderr, "lookup: %s: not there\n", *keys);
		missing |= !found;
	}
	return missing;
}

static int run_client(const struct address *to, char **keys)
{
	struct vb_channel *channel;
	struct vb_error err;
	int rc = vb_channel_connect(to->host ? to->host : "localhost", to->port, NULL, &channel,
				    &err);

	if (rc != 0)
		return complain("lookup", &err);
	rc = look_up_all(channel, keys, &err);
	vb_channel_close(channel, NULL);
	return rc < 0 ? complain("lookup", &err) : rc;
}

int main(int argc, char **argv)
{
	struct address address;

	if (argc > 3 && read_address(argv[2], &address)) {
		int clients = argc == 5 ? atoi(argv[4]) : 0;

		if (!strcmp(argv[1], "--server") && clients > 0 && clients <= CLIENTS_MAX)
			return serve(&address, argv[3], clients);
		if (!strcmp(argv[1], "--client"))
			return run_client(&address, argv + 3);
	}
	fprintf(stderr,
		"usage: lookup --server [HOST]:PORT FILE CLIENTS (%d at most)\n"
		"       lookup --client HOST:PORT KEY...\n",
		CLIENTS_MAX);
	return 2;
}
