/* SPDX-License-Identifier: Apache-2.0 */
/* Flags: the table, and how each kind is stored. */
#include "common/flag.h"

#include <string.h>
#include <sys/socket.h>

#include "common/quantity.h"

#define FIELD(name) offsetof(struct arguments, name), sizeof(((struct arguments *)0)->name)
#define BOTH (RDSEND | RDRECV)
#define HEADLINE(tools, text)         \
	{                             \
		tools, .help = (text) \
	}

const struct flag flags[] = {
	HEADLINE(BOTH, "Key"),
	{ BOTH, 'k', "key-file", "FILE", FLAG_TEXT, FIELD(key_file), 0, 0, "the name of a file",
	  "the key is in FILE, less a newline at its end; '-': the first line of stdin" },

	HEADLINE(BOTH, "Connection"),
	{ RDRECV, 0, "bind", "ADDRESS", FLAG_TEXT, FIELD(bind), 0, 0, "an address",
	  "listen there only (all addresses)" },
	{ RDSEND, 0, "bind", "ADDRESS", FLAG_TEXT, FIELD(options.connection.source), 0, 0,
	  "an address", "connect from this address of this machine (by the route)" },
	{ BOTH, '4', "ipv4", NULL, FLAG_SET, FIELD(options.connection.family), AF_INET, 0, NULL,
	  "IPv4 only" },
	{ BOTH, '6', "ipv6", NULL, FLAG_SET, FIELD(options.connection.family), AF_INET6, 0, NULL,
	  "IPv6 only" },
	{ BOTH, 0, "fabric", "NAME", FLAG_FABRIC, FIELD(options.connection.fabric), 0, 0,
	  "verbs, ofi or auto",
	  "verbs (RDMA), ofi (libfabric: TCP and others) or auto (verbs where there is a way)" },
	{ BOTH, 0, "device", "NAME", FLAG_TEXT, FIELD(options.connection.device), 0, 0,
	  "the name of a device", "only this RDMA device or libfabric provider" },
	{ RDSEND, 0, "timeout", "SEC", FLAG_TIME, FIELD(options.connection.connect_timeout_ms), 1,
	  UINT32_MAX, "a time above 0", "go on trying to connect for so long (10)" },
	{ RDRECV, 0, "timeout", "SEC", FLAG_TIME, FIELD(options.wait_timeout_ms), 0, UINT32_MAX,
	  "a time", "give up if nobody with the key comes for so long (0: never)" },
	{ BOTH, 0, "peer-timeout", "SEC", FLAG_TIME, FIELD(options.connection.peer_timeout_ms), 200,
	  UINT32_MAX, "a time of at least 0.2 seconds",
	  "a peer whose host is silent for so long is lost (10)" },
	{ RDRECV, 0, "keep-listening", NULL, FLAG_SET, FIELD(keep_listening), 1, 0, NULL,
	  "serve one transfer after another; one that fails is reported and the next one awaited. "
	  "FILE is replaced each time, COMMAND started anew; on stdout follows one after the other, "
	  "also what came of those that failed" },

	HEADLINE(BOTH, "Transfer"),
	{ BOTH, 'b', "block", "SIZE", FLAG_SIZE, FIELD(options.block_bytes), VB_BLOCK_MIN,
	  VB_BLOCK_MAX, "a size from 4K to 64M",
	  "how much is read, sent and written at a time (256K, over TCP 1M); the receiver's holds, "
	  "up to the sender's" },
	{ BOTH, 'w', "window", "N", FLAG_COUNT, FIELD(options.window_blocks), 1, VB_WINDOW_MAX,
	  "a number from 1 to 1000", "blocks under way on each rail (8, over TCP 4)" },
	{ BOTH, 0, "rails", "N", FLAG_COUNT, FIELD(options.rails), 1, VB_RAILS_MAX,
	  "a number from 1 to 16",
	  "connections that share the work (1, over TCP by the CPUs); the sender's holds" },
	{ BOTH, 0, "workers", "N", FLAG_COUNT, FIELD(options.workers), 1, VB_WORKERS_MAX,
	  "a number from 1 to 64", "threads that read, check and write (by the CPUs)" },
	{ BOTH, 0, "bwlimit", "RATE", FLAG_SIZE, FIELD(options.max_bytes_per_second), 0, UINT64_MAX,
	  "a rate in bytes per second",
	  "no faster than RATE bytes per second, 100M for instance (0: no limit)" },
	{ RDRECV, 0, "fsync", NULL, FLAG_SET, FIELD(options.fsync), 1, 0, NULL,
	  "success means that the data is on stable storage" },
	{ BOTH, 0, "direct", NULL, FLAG_SET, FIELD(options.direct), VB_DIRECT_ALWAYS, 0, NULL,
	  "files go past the page cache wherever they can (where it gains)" },
	{ BOTH, 0, "no-direct", NULL, FLAG_SET, FIELD(options.direct), VB_DIRECT_NEVER, 0, NULL,
	  "files go through the page cache" },

	HEADLINE(BOTH, "Messages, all on stderr"),
	{ BOTH, 'v', "verbose", NULL, FLAG_RAISE, FIELD(verbosity), 0, 0, NULL,
	  "say what was chosen, what arrived, and the bandwidth; -vv, -vvv: more" },
	{ BOTH, 'q', "quiet", NULL, FLAG_SET, FIELD(verbosity), (uint64_t)-1, 0, NULL,
	  "say nothing but errors" },
	{ BOTH, 0, "json", NULL, FLAG_SET, FIELD(json), 1, 0, NULL,
	  "say everything in JSON, an object a line: progress every second, a summary at the end" },
	{ BOTH, 'h', "help", NULL, FLAG_SET, FIELD(request), REQUEST_HELP, 0, NULL,
	  "print this on stdout" },
	{ BOTH, 0, "version", NULL, FLAG_SET, FIELD(request), REQUEST_VERSION, 0, NULL,
	  "print the version on stdout" },
	{ 0 },
};

static int fabric_named(const char *text, uint64_t *fabric)
{
	static const char *const names[] = {
		[VB_FABRIC_AUTO] = "auto",
		[VB_FABRIC_VERBS] = "verbs",
		[VB_FABRIC_OFI] = "ofi",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(text, names[i]) == 0) {
			*fabric = i;
			return 0;
		}
	}
	return -1;
}

static int number_of(const struct flag *flag, const char *text, uint64_t *value)
{
	int result;

	switch (flag->kind) {
	case FLAG_SET:
		*value = flag->least;
		return 0;
	case FLAG_FABRIC:
		return fabric_named(text, value);
	case FLAG_SIZE:
		result = quantity_size(text, value);
		break;
	case FLAG_TIME:
		result = quantity_time(text, value);
		break;
	case FLAG_COUNT:
		result = quantity_count(text, value);
		break;
	default:
		return -1;
	}
	return result == 0 && *value >= flag->least && *value <= flag->most ? 0 : -1;
}

int flag_set(const struct flag *flag, struct arguments *arguments, const char *text)
{
	char *field = (char *)arguments + flag->offset;
	uint64_t value = 0;

	if (flag->kind == FLAG_RAISE) {
		int *level = &arguments->verbosity;

		*level = *level < 1 ? 1 : *level + 1;
		return 0;
	}
	if (flag->kind == FLAG_TEXT) {
		if (!*text)
			return -1;
		memcpy(field, &text, sizeof(text));
		return 0;
	}
	if (number_of(flag, text, &value) != 0)
		return -1;
	/* Little-endian, as everything here: the low bytes are the value, whatever the width. */
	memcpy(field, &value, flag->width);
	return 0;
}
