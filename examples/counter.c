/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counter: many clients count in one number of the server's by themselves, and no increment is lost. A client gets a
 * token, adds one to the number so many TIMES, and tells how often it did. Exit code 3: the fabric has no atomic operations
 * (iWARP, or libfabric over TCP).
 */
#include "example.h"

#define CLIENTS_MAX 64

static uint64_t number_of_all;

/* Grants a client the number. One that may not count is told why. */
static void lend(struct vb_channel *channel)
{
	char why[VB_ERROR_LINE_MAX];
	struct vb_region *region; /* until the channel is closed */
	struct vb_grant *grant;
	struct vb_error err;
	size_t len = sizeof(number_of_all);

	must(vb_region_open(channel, &number_of_all, len, &region, &err), &err);
	if (vb_grant(region, 0, len, VB_RIGHT_ATOMIC, &grant, &err) != 0) {
		vb_error_format(&err, why, sizeof(why));
		vb_channel_send(channel, why, strlen(why), NULL);
		vb_channel_close(channel, NULL);
		errx(err.code == VB_ERR_UNSUPPORTED ? 3 : 1, "%s", why);
	}
	must(vb_channel_send(channel, vb_grant_token(grant), sizeof(struct vb_token), &err), &err);
}

/* How often it did. */
static uint64_t see_off(struct vb_channel *channel)
{
	struct vb_error err;
	const void *message;
	uint64_t added;

	if (must(vb_channel_recv(channel, &message, &err), &err) != sizeof(added))
		errx(1, "%s does not say how often it has counted", vb_channel_peer(channel));
	memcpy(&added, message, sizeof(added));
	must(vb_channel_close(channel, &err), &err);
	return added;
}

static int serve(const struct address *at, unsigned clients)
{
	struct vb_channel *channels[CLIENTS_MAX];
	struct vb_listener *listener;
	struct vb_error err;
	uint64_t added = 0;

	must(vb_listener_open(at->host, at->port, &with_warnings, &listener, &err), &err);
	warnx("listening on port %d", vb_listener_port(listener));
	for (unsigned i = 0; i < clients; i++) {
		must(vb_listener_accept(listener, &channels[i], &err), &err);
		lend(channels[i]);
	}
	vb_listener_close(listener);
	for (unsigned i = 0; i < clients; i++)
		added += see_off(channels[i]);
	printf("%u clients added %llu, the number is %llu\n", clients, (unsigned long long)added,
	       (unsigned long long)number_of_all);
	return printed(added == number_of_all ? 0 : 1);
}

static int count(const struct address *to, uint64_t times)
{
	struct vb_channel *channel;
	struct vb_token token;
	struct vb_error err;
	char why[VB_ERROR_LINE_MAX];
	const void *message;
	uint64_t before = 0;
	ssize_t len;

	must(vb_channel_connect(to->host, to->port, &with_warnings, &channel, &err), &err);
	len = must(vb_channel_recv(channel, &message, &err), &err);
	snprintf(why, sizeof(why), "%.*s", (int)len, (const char *)message);
	if (len != sizeof(token))
		errx(3, "the server says: %s", printable(why));
	memcpy(&token, message, sizeof(token));
	for (uint64_t i = 0; i < times; i++)
		must(vb_fetch_add(channel, &token, 0, 1, &before, &err), &err);
	must(vb_channel_send(channel, &times, sizeof(times), &err), &err);
	must(vb_channel_close(channel, &err), &err);
	printf("added %llu, the last of them to %llu\n", (unsigned long long)times,
	       (unsigned long long)before);
	return printed(0);
}

int main(int argc, char **argv)
{
	struct address address;

	if (argc == 4 && asks_for(argv, "--server", &address) && number(argv[3]) <= CLIENTS_MAX)
		return serve(&address, number(argv[3]));
	if (argc == 4 && asks_for(argv, "--client", &address))
		return count(&address, number(argv[3]));
	return usage("counter --server [HOST]:PORT CLIENTS | --client HOST:PORT TIMES");
}
