/* SPDX-License-Identifier: Apache-2.0 */
/* Flags: the table, and how each kind is stored. */
#include "common/flag.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/quantity.h"

#define FIELD(name) offsetof(struct arguments, name), sizeof(((struct arguments *)0)->name)
#define BOTH (RDSEND | RDRECV)
#define REMOTE (RDCP | RDPIPE)
#define ALL (BOTH | REMOTE)
#define EVERY (ALL | RDPERF)
#define HEADLINE(tools, text)         \
	{                             \
		tools, .help = (text) \
	}

const struct flag flags[] = {
	HEADLINE(BOTH, "Key"),
	{ BOTH, 'k', "key-file", "FILE", FLAG_TEXT, FIELD(key_file), 0, 0, "the name of a file",
	  "the key is in FILE, less a newline at its end; '-': the first line of stdin" },

	HEADLINE(RDCP, "What is copied"),
	{ RDCP, 'r', "recursive", NULL, FLAG_SET, FIELD(tree.recursive), 1, 0, NULL,
	  "directories, with all that is in them; of symbolic links what they point to, as scp" },
	{ RDCP, 'a', "archive", NULL, FLAG_SET, FIELD(archive), 1, 0, NULL,
	  "everything as it is: -r -p -H -A -X -S --links --owner --specials" },
	{ RDCP, 'p', "preserve", NULL, FLAG_BITS, FIELD(tree.keep), VB_KEEP_MODE | VB_KEEP_TIMES, 0,
	  NULL, "modes and times" },
	{ RDCP, 0, "links", NULL, FLAG_BITS, FIELD(tree.keep), VB_KEEP_SYMLINKS, 0, NULL,
	  "symbolic links as links" },
	{ RDCP, 0, "owner", NULL, FLAG_BITS, FIELD(tree.keep), VB_KEEP_OWNER, 0, NULL,
	  "users and groups, by name, else by number; takes root at the target" },
	{ RDCP, 0, "numeric-ids", NULL, FLAG_BITS, FIELD(tree.keep), VB_KEEP_NUMERIC_IDS, 0, NULL,
	  "... by number only" },
	{ RDCP, 0, "specials", NULL, FLAG_BITS, FIELD(tree.keep), VB_KEEP_SPECIALS, 0, NULL,
	  "FIFOs, sockets, device nodes" },
	{ RDCP, 'H', "hard-links", NULL, FLAG_BITS, FIELD(tree.keep), VB_KEEP_HARDLINKS, 0, NULL,
	  "names of one file stay names of one file" },
	{ RDCP, 'A', "acls", NULL, FLAG_BITS, FIELD(tree.keep), VB_KEEP_ACLS, 0, NULL,
	  "access control lists" },
	{ RDCP, 'X', "xattrs", NULL, FLAG_BITS, FIELD(tree.keep), VB_KEEP_XATTRS, 0, NULL,
	  "extended attributes" },
	{ RDCP, 'S', "sparse", NULL, FLAG_BITS, FIELD(tree.keep), VB_KEEP_HOLES, 0, NULL,
	  "holes stay holes" },
	{ RDCP, 0, "exclude", "PATTERN", FLAG_RULE, FIELD(rules), '-', 0, "a pattern",
	  "leave out what matches, as rsync does; the first --exclude or --include that matches "
	  "counts" },
	{ RDCP, 0, "include", "PATTERN", FLAG_RULE, FIELD(rules), '+', 0, "a pattern",
	  "do not leave out what matches" },
	{ RDCP, 0, "files-from", "FILE", FLAG_TEXT, FIELD(files_from), 0, 0, "the name of a file",
	  "only what FILE lists ('-': stdin), a path below the one SRC in each line; directories "
	  "with all that is in them" },
	{ RDCP, '0', "from0", NULL, FLAG_SET, FIELD(from0), 1, 0, NULL,
	  "the paths in FILE end with a NUL, not with a newline" },
	{ RDCP, 0, "sync", NULL, FLAG_SET, FIELD(sync), 1, 0, NULL,
	  "only files whose size or time differ; keeps the times" },
	{ RDCP, 0, "checksum", NULL, FLAG_SET, FIELD(checksum), 1, 0, NULL,
	  "only files whose contents differ: both sides read all" },
	{ RDCP, 0, "delete", NULL, FLAG_SET, FIELD(tree.delete_others), 1, 0, NULL,
	  "remove from the copied directories at DST what is not at SRC; not what is excluded" },
	{ RDCP, 'n', "dry-run", NULL, FLAG_SET, FIELD(tree.dry_run), 1, 0, NULL,
	  "change nothing, list what would be done" },
	{ RDCP, 0, "resume", NULL, FLAG_SET, FIELD(tree.no_resume), 0, 0, NULL,
	  "go on with large files where an earlier try was interrupted (the default)" },
	{ RDCP, 0, "no-resume", NULL, FLAG_SET, FIELD(tree.no_resume), 1, 0, NULL,
	  "start them anew, and leave nothing of them behind" },

	HEADLINE(RDPIPE, "Input"),
	{ RDPIPE, 'n', "no-stdin", NULL, FLAG_SET, FIELD(no_stdin), 1, 0, NULL,
	  "do not read stdin: leave it to others, in a loop of the shell for instance" },

	HEADLINE(REMOTE, "The far side"),
	{ REMOTE, 'e', "rsh", "COMMAND", FLAG_TEXT, FIELD(rsh), 0, 0, "a command",
	  "starts the far side in place of ssh: 'ssh -l me', 'srun -w', 'docker exec -i', "
	  "'kubectl exec -i %h --'; HOST and the command are appended, or HOST is put where %h "
	  "stands; quotes as in the shell, but there is no shell" },
	{ RDCP, 0, "rdcp-path", "PATH", FLAG_TEXT, FIELD(far_path), 0, 0, "a path",
	  "rdcp at the far side, if it is not found there" },
	{ RDPIPE, 0, "rdpipe-path", "PATH", FLAG_TEXT, FIELD(far_path), 0, 0, "a path",
	  "rdpipe at the far sides, if it is not found there" },
	{ REMOTE, 'P', "port", "PORT", FLAG_SSH, FIELD(ssh_options), 'p', 65535,
	  "a port from 1 to 65535", "ssh's port" },
	{ REMOTE, 'F', "ssh-config", "FILE", FLAG_SSH, FIELD(ssh_options), 'F', 0,
	  "the name of a file", "-F, -i, -J and -o are ssh's own" },
	{ REMOTE, 'i', "identity", "FILE", FLAG_SSH, FIELD(ssh_options), 'i', 0,
	  "the name of a file", "ssh's private key" },
	{ REMOTE, 'J', "jump", "HOST", FLAG_SSH, FIELD(ssh_options), 'J', 0, "a host",
	  "ssh goes by way of HOST" },
	{ REMOTE, 'o', "ssh-option", "OPTION", FLAG_SSH, FIELD(ssh_options), 'o', 0, "an option",
	  "any option of ssh's configuration" },
	{ RDCP, 0, "retries", "N", FLAG_COUNT, FIELD(retries), 0, 1000000, "a number",
	  "continue so often after a lost connection (5), after 1, 2, 4 ... 30 seconds" },
	{ RDCP, 0, "no-fallback", NULL, FLAG_SET, FIELD(no_fallback), 1, 0, NULL,
	  "fail where no data connection can be made, rather than go through ssh" },

	HEADLINE(RDPERF, "What is measured"),
	{ RDPERF, 0, "op", "NAME", FLAG_OP, FIELD(cell.op), 0, 0,
	  "send, write, write_imm, read, fetch_add or cas",
	  "send (the default), write, write_imm (with immediate data), read, fetch_add or cas "
	  "(compare and swap)" },
	{ RDPERF, 0, "qp", "TYPE", FLAG_QP, FIELD(cell.qp), 0, 0, "rc, uc or ud",
	  "the type of queue pair: rc (the default), uc (send, write, write_imm) or ud (send)" },
	{ RDPERF, 's', "size", "SIZES", FLAG_TEXT, FIELD(size), 0, 0, "a size",
	  "one (64K), several (2,64,1M), or a range in powers of two (2:8M, the default)" },
	{ RDPERF, 0, "bw", NULL, FLAG_SET, FIELD(only_bandwidth), 1, 0, NULL,
	  "only bandwidth: as much as the depth allows under way at once" },
	{ RDPERF, 0, "lat", NULL, FLAG_SET, FIELD(only_latency), 1, 0, NULL,
	  "only latency: one at a time, half of there and back; of reads and atomics until they are "
	  "done" },
	{ RDPERF, 0, "depth", "N", FLAG_COUNT, FIELD(cell.depth), 1, VB_PERF_DEPTH_MAX,
	  "a number from 1 to 4096", "operations under way at once on each rail (16)" },
	{ RDPERF, 0, "rails", "N", FLAG_COUNT, FIELD(cell.rails), 1, VB_PERF_RAILS_MAX,
	  "a number from 1 to 16", "connections at once, for bandwidth (1)" },
	{ RDPERF, 0, "bidir", NULL, FLAG_SET, FIELD(cell.both_ways), 1, 0, NULL,
	  "bandwidth both ways at once, added up" },
	{ RDPERF, 0, "poll", NULL, FLAG_SET, FIELD(cell.wait), VB_PERF_POLL, 0, NULL,
	  "both sides spin for what completes (the default)" },
	{ RDPERF, 0, "event", NULL, FLAG_SET, FIELD(cell.wait), VB_PERF_EVENT, 0, NULL,
	  "both sides sleep until something completes" },
	{ RDPERF, 'D', "duration", "SEC", FLAG_TIME, FIELD(cell.duration_ms), 1,
	  VB_PERF_DURATION_MAX_MS, "a time above 0, of an hour at most",
	  "so long for each number (0.5)" },
	{ RDPERF, 'n', "count", "N", FLAG_COUNT, FIELD(cell.count), 1, UINT32_MAX, "a number",
	  "so many operations on each rail, as long as they go on" },
	{ RDPERF, 0, "check", NULL, FLAG_SET, FIELD(cell.check), 1, 0, NULL,
	  "compare what arrives with what was sent, which costs time; of writes the last ones, "
	  "not of write_imm over uc" },

	HEADLINE(EVERY, "Connection"),
	{ RDPERF, 0, "serve", NULL, FLAG_SET, FIELD(serve), 1, 0, NULL,
	  "be the other side, for one client after another" },
	{ RDPERF, 'p', "port", "PORT", FLAG_TEXT, FIELD(port), 0, 0, "a port",
	  "of the side that serves (7472); data takes another one" },
	{ RDPERF, 0, "bind", "ADDRESS", FLAG_TEXT, FIELD(bind), 0, 0, "an address",
	  "with --serve: listen there only (all addresses)" },
	{ RDRECV, 0, "bind", "ADDRESS", FLAG_TEXT, FIELD(bind), 0, 0, "an address",
	  "listen there only (all addresses)" },
	{ RDSEND, 0, "bind", "ADDRESS", FLAG_TEXT, FIELD(options.connection.source), 0, 0,
	  "an address", "connect from this address of this machine (by the route)" },
	{ EVERY, '4', "ipv4", NULL, FLAG_SET, FIELD(options.connection.family), AF_INET, 0, NULL,
	  "IPv4 only" },
	{ EVERY, '6', "ipv6", NULL, FLAG_SET, FIELD(options.connection.family), AF_INET6, 0, NULL,
	  "IPv6 only" },
	{ EVERY, 0, "fabric", "NAME", FLAG_FABRIC, FIELD(options.connection.fabric), 0, 0,
	  "verbs, ofi or auto",
	  "verbs (RDMA), ofi (libfabric: TCP and others) or auto (verbs where there is a way)" },
	{ EVERY, 0, "wireup", "HOW", FLAG_WIREUP, FIELD(options.connection.wireup), 0, 0,
	  "cm, tcp or auto",
	  "over verbs, connect by rdma_cm (cm), by TCP at 1000 above the port (tcp), or auto (cm, "
	  "else tcp; who listens, by both)" },
	{ EVERY, 0, "device", "NAME", FLAG_TEXT, FIELD(options.connection.device), 0, 0,
	  "the name of a device", "only this RDMA device or libfabric provider" },
	{ RDSEND | RDPERF, 0, "timeout", "SEC", FLAG_TIME,
	  FIELD(options.connection.connect_timeout_ms), 1, UINT32_MAX, "a time above 0",
	  "go on trying to connect for so long (10)" },
	{ REMOTE, 0, "timeout", "SEC", FLAG_TIME, FIELD(options.connection.connect_timeout_ms), 1,
	  UINT32_MAX, "a time above 0", "go on trying each address of a host for so long (3)" },
	{ RDRECV, 0, "timeout", "SEC", FLAG_TIME, FIELD(options.wait_timeout_ms), 0, UINT32_MAX,
	  "a time", "give up if nobody with the key comes for so long (0: never)" },
	{ EVERY, 0, "peer-timeout", "SEC", FLAG_TIME, FIELD(options.connection.peer_timeout_ms),
	  200, UINT32_MAX, "a time of at least 0.2 seconds",
	  "a peer whose host is silent for so long is lost (10)" },
	{ RDRECV, 0, "keep-listening", NULL, FLAG_SET, FIELD(keep_listening), 1, 0, NULL,
	  "serve one transfer after another; one that fails is reported and the next one awaited. "
	  "FILE is replaced each time, COMMAND started anew; on stdout follows one after the other, "
	  "also what came of those that failed" },

	HEADLINE(ALL, "Transfer"),
	{ ALL, 'b', "block", "SIZE", FLAG_BLOCK, FIELD(options.block_bytes), VB_BLOCK_MIN,
	  VB_BLOCK_MAX, "a multiple of 4K from 4K to 64M",
	  "how much is read, sent and written at a time, a multiple of 4K (512K, or 256K if little "
	  "may be pinned); the receiver's holds, up to the sender's" },
	{ ALL, 'w', "window", "N", FLAG_COUNT, FIELD(options.window_blocks), 1, VB_WINDOW_MAX,
	  "a number from 1 to 1000",
	  "blocks under way on each rail (8, over TCP 4, and room for workers that encrypt or compress)" },
	{ ALL, 0, "rails", "N", FLAG_COUNT, FIELD(options.rails), 1, VB_RAILS_MAX,
	  "a number from 1 to 16",
	  "connections that share the work (2, over TCP by the CPUs); the sender's holds" },
	{ ALL, 0, "workers", "N", FLAG_COUNT, FIELD(options.workers), 1, VB_WORKERS_MAX,
	  "a number from 1 to 64", "threads that read, check and write (by the CPUs)" },
	{ ALL, 0, "bwlimit", "RATE", FLAG_SIZE, FIELD(options.max_bytes_per_second), 0, UINT64_MAX,
	  "a rate in bytes per second",
	  "no faster than RATE bytes per second, as they are sent, 100M for instance (0: no limit)" },
	{ BOTH, 'e', "encrypt", "[WHEN]", FLAG_ENCRYPT, FIELD(options.encrypt), 0, 0,
	  "no, ask or require",
	  "encrypt the data: require (or fail; what is meant without WHEN), ask (if the peer "
	  "can) or no; without this option the peer decides" },
	{ RDCP, 0, "encrypt", "[WHEN]", FLAG_ENCRYPT, FIELD(options.encrypt), 0, 0,
	  "no, ask or require",
	  "encrypt the data, with names and attributes: require (what is meant without WHEN), "
	  "ask or no; -e is --rsh" },
	{ RDPIPE, 0, "encrypt", "[WHEN]", FLAG_ENCRYPT, FIELD(options.encrypt), 0, 0,
	  "no, ask or require",
	  "encrypt the data on every connection: require (what is meant without WHEN), ask or no; "
	  "-e is --rsh" },
	{ ALL, 'z', "compress", "[LEVEL]", FLAG_COMPRESS, FIELD(options.compress), 1,
	  VB_COMPRESS_MAX, "auto, no, or a level from 1 to 19",
	  "compress what is sent: auto (as far as that is faster; what is meant without LEVEL), "
	  "a level of zstd, or no; the sender's holds, and without this option the peer's" },
	{ RDRECV | RDCP, 0, "fsync", NULL, FLAG_SET, FIELD(options.fsync), 1, 0, NULL,
	  "success means that the data is on stable storage" },
	{ RDPIPE, 0, "fsync", NULL, FLAG_SET, FIELD(options.fsync), 1, 0, NULL,
	  "success means that what '>' or '>>' has written is on stable storage" },
	{ ALL, 0, "direct", NULL, FLAG_SET, FIELD(options.direct), VB_DIRECT_ALWAYS, 0, NULL,
	  "files go past the page cache wherever they can (where it gains)" },
	{ ALL, 0, "no-direct", NULL, FLAG_SET, FIELD(options.direct), VB_DIRECT_NEVER, 0, NULL,
	  "files go through the page cache" },

	HEADLINE(RDPERF, "Results, on stdout, and messages, on stderr"),
	{ RDPERF, 0, "svg", "FILE", FLAG_TEXT, FIELD(svg), 0, 0, "the name of a file",
	  "draw a chart of it" },
	{ RDPERF, 0, "add", "FILE", FLAG_ADD, FIELD(runs), 0, 0, "the name of a file",
	  "into the same chart: what an earlier --json has written; again for more. Without HOST "
	  "only these" },
	{ RDPERF, 0, "label", "TEXT", FLAG_TEXT, FIELD(label), 0, 0, "a text",
	  "what the chart calls this run (how it was measured)" },
	{ RDPERF, 0, "json", NULL, FLAG_SET, FIELD(json), 1, 0, NULL,
	  "results in JSON, an object a line, and messages, too" },
	{ RDPERF, 'v', "verbose", NULL, FLAG_RAISE, FIELD(verbosity), 0, 0, NULL,
	  "say what was chosen and, serving, who comes; -vv, -vvv: more" },

	HEADLINE(ALL, "Messages, all on stderr"),
	{ RDCP, 'v', "verbose", NULL, FLAG_RAISE, FIELD(verbosity), 0, 0, NULL,
	  "list what is copied, say what was chosen, and the bandwidth; -vv, -vvv: more" },
	{ RDPIPE, 'v', "verbose", NULL, FLAG_RAISE, FIELD(verbosity), 0, 0, NULL,
	  "say what was chosen, how much went through each stage, and the bandwidth; -vv, -vvv: "
	  "more" },
	{ BOTH, 'v', "verbose", NULL, FLAG_RAISE, FIELD(verbosity), 0, 0, NULL,
	  "say what was chosen, what arrived, and the bandwidth; -vv, -vvv: more" },
	{ RDPERF, 'q', "quiet", NULL, FLAG_SET, FIELD(verbosity), (uint64_t)-1, 0, NULL,
	  "say nothing but errors" },
	{ ALL, 'q', "quiet", NULL, FLAG_SET, FIELD(verbosity), (uint64_t)-1, 0, NULL,
	  "say nothing but errors, and what --json asks for" },
	{ RDCP, 0, "stats", NULL, FLAG_SET, FIELD(stats), 1, 0, NULL, "end with a summary" },
	{ ALL, 0, "json", NULL, FLAG_SET, FIELD(json), 1, 0, NULL,
	  "say everything in JSON, an object a line: progress every second, a summary at the end" },
	{ EVERY, 'h', "help", NULL, FLAG_SET, FIELD(request), REQUEST_HELP, 0, NULL,
	  "print this on stdout" },
	{ EVERY, 0, "version", NULL, FLAG_SET, FIELD(request), REQUEST_VERSION, 0, NULL,
	  "print the version on stdout" },
	{ 0 },
};

static const char *const fabrics[] = {
	[VB_FABRIC_AUTO] = "auto",
	[VB_FABRIC_VERBS] = "verbs",
	[VB_FABRIC_OFI] = "ofi",
	NULL,
};

static const char *const encrypts[] = {
	[VB_ENCRYPT_IF_ASKED] = "", /* nobody says so */
	[VB_ENCRYPT_ASK] = "ask",   [VB_ENCRYPT_REQUIRE] = "require",
	[VB_ENCRYPT_NEVER] = "no",  NULL,
};

static const char *const compressions[] = { "auto", "no", NULL };

static const char *const wireups[] = {
	[VB_WIREUP_AUTO] = "auto",
	[VB_WIREUP_CM] = "cm",
	[VB_WIREUP_TCP] = "tcp",
	NULL,
};

static const char *const ops[] = {
	[VB_PERF_SEND] = "send",
	[VB_PERF_WRITE] = "write",
	[VB_PERF_WRITE_IMM] = "write_imm",
	[VB_PERF_READ] = "read",
	[VB_PERF_FETCH_ADD] = "fetch_add",
	[VB_PERF_CAS] = "cas",
	NULL,
};

static const char *const qps[] = {
	[VB_PERF_RC] = "rc",
	[VB_PERF_UC] = "uc",
	[VB_PERF_UD] = "ud",
	NULL,
};

static int index_of(const char *const *names, const char *text, uint64_t *index)
{
	for (uint64_t i = 0; names[i]; i++) {
		if (*text && strcmp(text, names[i]) == 0) {
			*index = i;
			return 0;
		}
	}
	return -1;
}

int flag_fabric_named(const char *name, enum vb_fabric *fabric)
{
	uint64_t found;

	if (index_of(fabrics, name, &found) != 0)
		return -1;
	*fabric = (enum vb_fabric)found;
	return 0;
}

int flag_wireup_named(const char *name, enum vb_wireup *wireup)
{
	uint64_t found;

	if (index_of(wireups, name, &found) != 0)
		return -1;
	*wireup = (enum vb_wireup)found;
	return 0;
}

bool flag_is_optional(const struct flag *flag)
{
	return flag->value && *flag->value == '[';
}

static int number_of(const struct flag *flag, const char *text, uint64_t *value)
{
	int result;

	switch (flag->kind) {
	case FLAG_SET:
	case FLAG_BITS:
		*value |= flag->least;
		return 0;
	case FLAG_FABRIC:
		return index_of(fabrics, text, value);
	case FLAG_ENCRYPT:
		return index_of(encrypts, text ? text : "require", value);
	case FLAG_COMPRESS:
		if (text && index_of(compressions, text, value) != 0) {
			result = quantity_count(text, value);
			break;
		}
		*value = (uint64_t)(text && *value ? VB_COMPRESS_NEVER : VB_COMPRESS_AUTO);
		return 0;
	case FLAG_OP:
		return index_of(ops, text, value);
	case FLAG_QP:
		return index_of(qps, text, value);
	case FLAG_WIREUP:
		return index_of(wireups, text, value);
	case FLAG_SIZE:
		result = quantity_size(text, value);
		break;
	case FLAG_BLOCK:
		result = quantity_size(text, value);
		if (*value % flag->least != 0)
			return -1;
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

/* As one item, "- PATTERN". */
static int add_rule(struct list *list, char sign, const char *pattern)
{
	char *rule;
	int result;

	if (!*pattern || asprintf(&rule, "%c %s", sign, pattern) < 0)
		return -1;
	result = list_add(list, rule);
	free(rule);
	return result;
}

/* As two items, "-p" and "22". */
static int add_option(struct list *list, const struct flag *flag, const char *value)
{
	const char option[] = { '-', (char)flag->least, '\0' };
	uint64_t number = 0;

	if (!*value)
		return -1;
	if (flag->most && (quantity_count(value, &number) != 0 || !number || number > flag->most))
		return -1;
	return list_add(list, option) == 0 ? list_add(list, value) : -1;
}

static int add_to_list(const struct flag *flag, struct list *list, const char *text)
{
	if (flag->kind == FLAG_ADD)
		return *text ? list_add(list, text) : -1;
	return flag->kind == FLAG_RULE ? add_rule(list, (char)flag->least, text)
				       : add_option(list, flag, text);
}

int flag_set(const struct flag *flag, struct arguments *arguments, const char *text)
{
	char *field = (char *)arguments + flag->offset;
	uint64_t value = 0;

	if (flag->kind == FLAG_RULE || flag->kind == FLAG_SSH || flag->kind == FLAG_ADD)
		return add_to_list(flag, (struct list *)(void *)field, text);

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
	if (flag->kind == FLAG_BITS)
		memcpy(&value, field, flag->width);
	if (number_of(flag, text, &value) != 0)
		return -1;
	/* Little-endian, as everything here: the low bytes are the value, whatever the width. */
	memcpy(field, &value, flag->width);
	return 0;
}
