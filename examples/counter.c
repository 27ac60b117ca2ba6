/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counter: many clients count in one number of the server's by themselves, and no increment is lost.
 *
 *	counter --server ADDRESS CLIENTS        ADDRESS is [HOST]:PORT, e.g. :7471
 *	counter --client ADDRESS TIMES
 *
 * A client gets a token, adds one to the number TIMES times, and sends how often it did. Exit codes: 0 all are
 * counted, 1 it failed, 2 usage, 3 the fabric has no atomic operations (iWARP, or libfabric over TCP).
 */
#include <stdlib.h>

#include "example.h"

#define CLIENTS_MAX 64

static uint64_t number;

/* ---- The server: grants, and waits ---- */

struct client {
	struct vb_channel *channel;
	struct vb_region *region;
	uint64_t added;
};

/* A client that may not count is told why. */
static int lend(struct client *client, struct vb_error *err)
{
	char line[VB_ERROR_LINE_MAX];
	struct vb_grant *grant; /* until the region is closed */
	int rc = vb_region_open(client->channel, &number, sizeof(number), &client->region, err);

	if (rc == 0)
		rc = vb_grant(client->region, 0, sizeof(number), VB_RIGHT_ATOMIC, &grant, err);
	if (rc == 0)
		return vb_channel_send(client->channel, vb_grant_token(grant),
				       sizeof(struct vb_token), err);
	vb_error_format(err, line, sizeof(line));
	vb_channel_send(client->channel, line, strlen(line), NULL);
	return rc;
}

static int hear_how_many(struct client *client, struct vb_error *err)
{
	const void *message;
	ssize_t len = vb_channel_recv(client->channel, &message, err);

	if (len == sizeof(client->added))
		memcpy(&client->added, message, sizeof(client->added));
	return len < 0 ? (int)len : 0;
}

static int serve_all(struct vb_listener *listener, struct client *clients, int count,
		     struct vb_error *err)
{
	int rc = 0;

	for (int i = 0; i < count && rc == 0; i++) {
		rc = vb_listener_accept(listener, &clients[i].channel, err);
		if (rc == 0)
			rc = lend(&clients[i], err);
	}
	for (int i = 0; i < count && rc == 0; i++)
		rc = hear_how_many(&clients[i], err);
	return rc;
}

static int serve(const struct address *at, int count)
{
	struct client clients[CLIENTS_MAX] = { 0 };
	struct vb_listener *listener;
	struct vb_error err;
	uint64_t added = 0;
	int rc = vb_listener_open(at->host, at->port, NULL, &listener, &err);

	if (rc != 0)
		return complain("counter", &err);
	fprintf(stderr, "counter: listening on port %d\n", vb_listener_port(listener));
	rc = serve_all(listener, clients, count, &err);
	vb_listener_close(listener);
	for (int i = 0; i < count; i++) {
		added += clients[i].added;
		vb_region_close(clients[i].region);
		vb_channel_close(clients[i].channel, NULL);
	}
	if (rc != 0) {
		complain("counter", &err);
		return rc == VB_ERR_UNSUPPORTED ? 3 : 1;
	}
	printf("%d clients added %llu, the number is %llu\n", count, (unsigned long long)added,
	       (unsigned long long)number);
	return added == number ? 0 : 1;
}

/* ---- A client ---- */

static int count_up(struct vb_channel *channel, const struct vb_token *token, uint64_t times,
		    struct vb_error *err)
{
	uint64_t before = 0;
	int rc = 0;

	for (uint64_t i = 0; i < times && rc == 0; i++)
		rc = vb_fetch_add(channel, token, 0, 1, &before, err);
	if (rc == 0)
		rc = vb_channel_send(channel, &times, sizeof(times), err);
	if (rc == 0)
		printf("added %llu, the last of them to %llu\n", (unsigned long long)times,
		       (unsigned long long)before);
	return rc;
}

static int run_client(const struct address *to, uint64_t times)
{
	struct vb_channel *channel;
	struct vb_token token;
	struct vb_error err;
	const void *message;
	ssize_t len = vb_channel_connect(to->host ? to->host : "localhost", to->port, NULL,
					 &channel, &err);
	int rc;

	if (len != 0)
		return complain("counter", &err);
	len = vb_channel_recv(channel, &message, &err);
	if (len >= 0 && len != sizeof(token)) {
		fprintf(stderr, "counter: the server says: %.*s\n", (int)len,
			(const char *)message);
		vb_channel_close(channel, NULL);
		return 3;
	}
	if (len == sizeof(token)) {
		memcpy(&token, message, sizeof(token));
		rc = count_up(channel, &token, times, &err);
	} else {
		rc = (int)len;
	}
	if (rc == 0)
		rc = vb_channel_close(channel, &err);
	else
		vb_channel_abort(channel);
	return rc == 0 ? 0 : complain("counter", &err);
}

int main(int argc, char **argv)
{
	struct address address;
	int count = argc == 4 ? atoi(argv[3]) : 0;

	if (count > 0 && read_address(argv[2], &address)) {
		if (!strcmp(argv[1], "--server") && count <= CLIENTS_MAX)
			return serve(&address, count);
		if (!strcmp(argv[1], "--client"))
			return run_client(&address, (uint64_t)count);
	}
	fprintf(stderr,
		"usage: counter --server [HOST]:PORT CLIENTS (%d at most)\n"
		"       counter --client HOST:PORT TIMES\n",
		CLIENTS_MAX);
	return 2;
}
