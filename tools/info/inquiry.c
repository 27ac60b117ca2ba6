/* SPDX-License-Identifier: Apache-2.0 */
/* What rdinfo is asked. */
#include "info/inquiry.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <verbatim/verbatim.h>

#include "common/console.h"
#include "common/exit_code.h"
#include "common/flag.h"
#include "common/quantity.h"
#include "info/trial.h"

static const char help[] =
	"Usage: rdinfo [OPTION]... [HOST]\n"
	"       rdinfo --check [OPTION]... [HOST]\n"
	"       rdinfo --serve [OPTION]...\n"
	"\n"
	"Shows the RDMA devices of this machine with their ports, GIDs and abilities.\n"
	"With HOST: which way would be taken there, why, and why the others would not.\n"
	"\n"
	"What:\n"
	"  -c, --check             the doctor: looks for what is wrong on this machine,\n"
	"                          and says what to try; with HOST, and 'rdinfo --serve'\n"
	"                          there, also tries the way: connects on each fabric,\n"
	"                          times, sends bursts of several sizes\n"
	"      --serve             answer such trials until interrupted; serves anybody\n"
	"\n"
	"Connection:\n"
	"  -p, --port PORT         of the side that serves: PORT is for RDMA, the one\n"
	"                          after it for libfabric (7470)\n"
	"      --bind ADDRESS      the address of this machine to go from (by the route),\n"
	"                          or to serve at (all addresses)\n"
	"  -4, --ipv4              IPv4 only\n"
	"  -6, --ipv6              IPv6 only\n"
	"      --fabric NAME       only verbs (RDMA) or only ofi (libfabric: TCP and\n"
	"                          others), or auto (both)\n"
	"      --wireup HOW        over verbs, connect by rdma_cm (cm), by TCP at 1000\n"
	"                          above the port (tcp), or auto (cm where it is to be\n"
	"                          had; who listens, by both)\n"
	"      --device NAME       only this RDMA device or libfabric provider\n"
	"      --timeout SEC       go on trying to connect for so long (5)\n"
	"\n"
	"Results, on stdout, and messages, on stderr:\n"
	"      --json              results in JSON, one object, and messages, too\n"
	"  -v, --verbose           say more; -vv, -vvv: more still\n"
	"  -h, --help              print this on stdout\n"
	"      --version           print the version on stdout\n"
	"\n"
	"SEC: seconds, fractions too, or with ms, s, m, h. VB_FABRIC, VB_WIREUP and\n"
	"VB_DEVICE in the environment stand for --fabric, --wireup and --device where\n"
	"these are not given.\n"
	"\n"
	"Exit codes:\n"
	"  0  all is well, or there is a way to HOST\n"
	"  1  --check found something to mend, but nothing that fails\n"
	"  2  --check found a problem, or nothing leads to HOST\n"
	"  3  wrong usage, or it could not be found out\n"
	"\n"
	"Examples, the last one after 'rdinfo --serve' at the host backup:\n"
	"  rdinfo\n"
	"  rdinfo backup\n"
	"  rdinfo --check\n"
	"  rdinfo --check backup\n";

enum long_only {
	OPTION_SERVE = 256,
	OPTION_BIND,
	OPTION_FABRIC,
	OPTION_WIREUP,
	OPTION_DEVICE,
	OPTION_TIMEOUT,
	OPTION_JSON,
	OPTION_VERSION,
};

static const struct option names[] = {
	{ "check", no_argument, NULL, 'c' },
	{ "serve", no_argument, NULL, OPTION_SERVE },
	{ "port", required_argument, NULL, 'p' },
	{ "bind", required_argument, NULL, OPTION_BIND },
	{ "ipv4", no_argument, NULL, '4' },
	{ "ipv6", no_argument, NULL, '6' },
	{ "fabric", required_argument, NULL, OPTION_FABRIC },
	{ "wireup", required_argument, NULL, OPTION_WIREUP },
	{ "device", required_argument, NULL, OPTION_DEVICE },
	{ "timeout", required_argument, NULL, OPTION_TIMEOUT },
	{ "verbose", no_argument, NULL, 'v' },
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, OPTION_VERSION },
	{ 0 },
};

__attribute__((format(printf, 1, 2))) static int misused(const char *format, ...)
{
	char text[300];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	console_error("%s; try 'rdinfo --help'", text);
	return INQUIRY_FAILED;
}

static int print(const char *text)
{
	if (fputs(text, stdout) >= 0 && fflush(stdout) == 0)
		return EXIT_OK;
	console_error("cannot write to stdout");
	return INQUIRY_FAILED;
}

static int print_version(void)
{
	char line[64];

	snprintf(line, sizeof(line), "rdinfo %s\n", vb_version());
	return print(line);
}

static int set_fabric(struct inquiry *i, const char *name)
{
	if (flag_fabric_named(name, &i->options.fabric) != 0)
		return misused("--fabric: '%.100s' is not verbs, ofi or auto", name);
	return -1;
}

static int set_wireup(struct inquiry *i, const char *name)
{
	if (flag_wireup_named(name, &i->options.wireup) != 0)
		return misused("--wireup: '%.100s' is not cm, tcp or auto", name);
	return -1;
}

static int set_timeout(struct inquiry *i, const char *text)
{
	uint64_t ms;

	if (quantity_time(text, &ms) != 0 || !ms || ms > UINT32_MAX)
		return misused("--timeout: '%.100s' is not a time above 0", text);
	i->options.connect_timeout_ms = (uint32_t)ms;
	return -1;
}

static int set_port(struct inquiry *i, const char *text)
{
	char next[8];

	if (trial_next_port(text, next) != 0)
		return misused("--port: '%.100s' is not a port from 0 to 65534", text);
	i->port = text;
	return -1;
}

static int set(struct inquiry *i, int option, const char *value)
{
	switch (option) {
	case 'c':
		i->check = true;
		return -1;
	case OPTION_SERVE:
		i->serve = true;
		return -1;
	case 'p':
		return set_port(i, value);
	case OPTION_BIND:
		i->bind = i->options.source = value;
		return -1;
	case '4':
		i->options.family = AF_INET;
		return -1;
	case '6':
		i->options.family = AF_INET6;
		return -1;
	case OPTION_FABRIC:
		return set_fabric(i, value);
	case OPTION_WIREUP:
		return set_wireup(i, value);
	case OPTION_DEVICE:
		i->options.device = value;
		return -1;
	case OPTION_TIMEOUT:
		return set_timeout(i, value);
	case 'v':
		i->verbosity++;
		return -1;
	case OPTION_JSON:
		i->json = true;
		return -1;
	case 'h':
		return print(help);
	default:
		return print_version();
	}
}

int inquiry_parse(struct inquiry *i, int argc, char **argv)
{
	int option, code = -1;

	*i = (struct inquiry){ .port = TRIAL_PORT, .options = { .connect_timeout_ms = 5000 } };
	opterr = 0;
	optind = 0; /* starts afresh */
	while (code < 0 && (option = getopt_long(argc, argv, ":cp:46vh", names, NULL)) != -1) {
		if (option == '?' || option == ':')
			return misused(option == ':' ? "'%.100s' needs a value"
						     : "unknown or ambiguous option '%.100s'",
				       argv[optind - 1]);
		code = set(i, option, optarg);
	}
	if (code >= 0)
		return code;
	i->host = argv[optind];
	if (i->host && argv[optind + 1])
		return misused("one HOST only");
	if (i->host && !*i->host)
		return misused("HOST is empty");
	if (i->serve && (i->host || i->check))
		return misused("--serve goes without HOST and --check");
	return -1;
}
